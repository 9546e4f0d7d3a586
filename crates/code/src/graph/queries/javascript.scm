(class_heritage (identifier) @name) @reference.extends
(class_heritage (member_expression property: (property_identifier) @name)) @reference.extends
(import_statement source: (string (string_fragment) @name)) @import
(export_statement source: (string (string_fragment) @name)) @import
(call_expression
  function: [(identifier) (import)] @_function
  arguments: (arguments (string (string_fragment) @name))
  (#any-of? @_function "require" "import")) @import
