(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @name
    (pointer_type (type_identifier) @name)
    (generic_type type: (type_identifier) @name)
    (pointer_type (generic_type type: (type_identifier) @name))]))) @owner
(import_spec path: (interpreted_string_literal) @name) @import
