(extends_clause value: (identifier) @name) @reference.extends
(extends_clause value: (member_expression property: (property_identifier) @name)) @reference.extends
(implements_clause [(type_identifier) @name (generic_type name: (type_identifier) @name)]) @reference.extends
(extends_type_clause [(type_identifier) @name (generic_type name: (type_identifier) @name)]) @reference.extends
(enum_declaration name: (identifier) @name) @definition.enum
(type_alias_declaration name: (type_identifier) @name) @definition.type
(import_statement source: (string (string_fragment) @name)) @import
(export_statement source: (string (string_fragment) @name)) @import
(call_expression
  function: [(identifier) (import)] @_function
  arguments: (arguments (string (string_fragment) @name))
  (#any-of? @_function "require" "import")) @import
