(impl_item type: [(type_identifier) @name (generic_type type: (type_identifier) @name)]) @owner
(call_expression function: (scoped_identifier name: (identifier) @name)) @reference.call
(trait_item bounds: (trait_bounds (type_identifier) @name)) @reference.extends
(mod_item name: (identifier) @name !body) @import
