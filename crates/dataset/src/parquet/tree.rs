//! The columns of a Parquet file as a tree of values.

use std::ops::Range;

use parquet::{
    basic::{ConvertedType, LogicalType, Repetition},
    schema::types::{SchemaDescriptor, Type},
};

/// What a value is made of. Its leaves are the columns of the file, numbered from left to right.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The columns below.
    pub(super) leaves: Range<usize>,
    /// Below this definition level the value is null; `None` where it never is.
    pub(super) null_below: Option<i16>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Leaf,
    Struct(Vec<(String, Node)>),
    List(Repeated),
    /// Pairs of a key and a value: the element is a struct of the two.
    Map(Repeated),
}

#[derive(Debug)]
pub(super) struct Repeated {
    pub(super) element: Box<Node>,
    /// Below this definition level there is no element.
    pub(super) empty_below: i16,
    /// The repetition level of every element but the first.
    pub(super) again_at: i16,
}

/// The columns of a row, by name.
pub(super) fn of_schema(schema: &SchemaDescriptor) -> Vec<(String, Node)> {
    let mut builder = Builder { leaves: 0 };
    builder.fields(schema.root_schema().get_fields(), 0, 0)
}

struct Builder {
    leaves: usize,
}

impl Builder {
    fn fields(
        &mut self,
        fields: &[std::sync::Arc<Type>],
        repetition: i16,
        definition: i16,
    ) -> Vec<(String, Node)> {
        fields
            .iter()
            .map(|field| {
                (
                    field.name().to_owned(),
                    self.node(field, repetition, definition),
                )
            })
            .collect()
    }

    fn node(&mut self, field: &Type, repetition: i16, definition: i16) -> Node {
        match field.get_basic_info().repetition() {
            Repetition::REQUIRED => self.value(field, repetition, definition, None),
            Repetition::OPTIONAL => {
                self.value(field, repetition, definition + 1, Some(definition + 1))
            }
            // A repeated field that no list is around is a list of its own.
            Repetition::REPEATED => {
                let first = self.leaves;
                let element = self.value(field, repetition + 1, definition + 1, None);
                self.repeated(first, element, repetition, definition, None, Kind::List)
            }
        }
    }

    fn value(
        &mut self,
        field: &Type,
        repetition: i16,
        definition: i16,
        null_below: Option<i16>,
    ) -> Node {
        let first = self.leaves;
        if field.is_primitive() {
            self.leaves += 1;
            return Node {
                kind: Kind::Leaf,
                leaves: first..self.leaves,
                null_below,
            };
        }
        if let [inner] = field.get_fields()
            && inner.get_basic_info().repetition() == Repetition::REPEATED
        {
            if is_list(field) {
                let element = self.element(field, inner, repetition + 1, definition + 1);
                return self.repeated(
                    first,
                    element,
                    repetition,
                    definition,
                    null_below,
                    Kind::List,
                );
            }
            if is_map(field) && inner.is_group() && inner.get_fields().len() == 2 {
                let element = self.value(inner, repetition + 1, definition + 1, None);
                return self.repeated(
                    first,
                    element,
                    repetition,
                    definition,
                    null_below,
                    Kind::Map,
                );
            }
        }
        let fields = self.fields(field.get_fields(), repetition, definition);
        Node {
            kind: Kind::Struct(fields),
            leaves: first..self.leaves,
            null_below,
        }
    }

    /// The element of a list: within the repeated group, or the repeated field itself in files of old
    /// writers (rules of the format, "Backward-compatibility rules" of its logical types).
    fn element(&mut self, list: &Type, inner: &Type, repetition: i16, definition: i16) -> Node {
        let is_element = inner.is_primitive()
            || inner.get_fields().len() != 1
            || inner.name() == "array"
            || inner.name() == format!("{}_tuple", list.name());
        match inner {
            Type::GroupType { fields, .. } if !is_element => {
                self.node(&fields[0], repetition, definition)
            }
            _ => self.value(inner, repetition, definition, None),
        }
    }

    fn repeated(
        &self,
        first: usize,
        element: Node,
        repetition: i16,
        definition: i16,
        null_below: Option<i16>,
        kind: impl FnOnce(Repeated) -> Kind,
    ) -> Node {
        Node {
            kind: kind(Repeated {
                element: Box::new(element),
                empty_below: definition + 1,
                again_at: repetition + 1,
            }),
            leaves: first..self.leaves,
            null_below,
        }
    }
}

fn is_list(field: &Type) -> bool {
    let info = field.get_basic_info();
    info.logical_type_ref() == Some(&LogicalType::List)
        || info.converted_type() == ConvertedType::LIST
}

fn is_map(field: &Type) -> bool {
    let info = field.get_basic_info();
    info.logical_type_ref() == Some(&LogicalType::Map)
        || matches!(
            info.converted_type(),
            ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE
        )
}
