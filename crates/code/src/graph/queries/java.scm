(superclass [(type_identifier) @name (generic_type (type_identifier) @name)]) @reference.extends
(super_interfaces (type_list [(type_identifier) @name (generic_type (type_identifier) @name)])) @reference.extends
(extends_interfaces (type_list [(type_identifier) @name (generic_type (type_identifier) @name)])) @reference.extends
(enum_declaration name: (identifier) @name) @definition.enum
(record_declaration name: (identifier) @name) @definition.class
(constructor_declaration name: (identifier) @name) @definition.method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.field
(import_declaration (scoped_identifier) @name) @import
