(superclass (constant) @name) @reference.extends
(superclass (scope_resolution name: (constant) @name)) @reference.extends
(call method: (identifier) @_function arguments: (argument_list (string (string_content) @name))
  (#eq? @_function "require_relative")) @import
