(function_definition declarator: (function_declarator declarator: (field_identifier) @name)) @definition.method
(function_definition declarator: (function_declarator declarator: (qualified_identifier name: (identifier) @name))) @definition.method
(function_definition declarator: (function_declarator declarator: (qualified_identifier scope: (namespace_identifier) @name))) @owner
(class_specifier name: (type_identifier) @name body: (_)) @definition.class
(base_class_clause (type_identifier) @name) @reference.extends
(call_expression function: (qualified_identifier name: (identifier) @name)) @reference.call
