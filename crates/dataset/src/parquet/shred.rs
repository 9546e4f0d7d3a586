//! Rows taken apart into columns with their levels.

use parquet::data_type::ByteArray;
use serde_json::{Map, Value};

use super::columns::Shape;

/// One column of the rows so far.
pub(super) struct Leaf {
    pub(super) definitions: Vec<i16>,
    pub(super) repetitions: Vec<i16>,
    pub(super) values: Values,
}

pub(super) enum Values {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Text(Vec<ByteArray>),
}

/// The columns of `shape`, empty.
pub(super) fn leaves_of(shape: &Shape, leaves: &mut Vec<Leaf>) {
    let values = match shape {
        Shape::List(element) => return leaves_of(element, leaves),
        Shape::Struct(fields) => {
            return fields
                .iter()
                .for_each(|(_, field)| leaves_of(field, leaves));
        }
        Shape::Bool => Values::Bool(Vec::new()),
        Shape::Int => Values::Int(Vec::new()),
        Shape::Float => Values::Float(Vec::new()),
        Shape::Text | Shape::Unknown => Values::Text(Vec::new()),
    };
    leaves.push(Leaf {
        definitions: Vec::new(),
        repetitions: Vec::new(),
        values,
    });
}

/// Levels of a value: those that hold for its first entry, and how many lists are around it.
#[derive(Clone, Copy)]
pub(super) struct Level {
    pub(super) repetition: i16,
    pub(super) definition: i16,
    pub(super) lists: i16,
}

impl Level {
    pub(super) const ROW: Self = Self {
        repetition: 0,
        definition: 0,
        lists: 0,
    };

    fn defined(self) -> Self {
        Self {
            definition: self.definition + 1,
            ..self
        }
    }
}

/// Appends the values of an object to the columns of its fields; a field that it lacks is null.
pub(super) fn shred_fields(
    object: &Map<String, Value>,
    fields: &[(String, Shape)],
    level: Level,
    leaves: &mut [Leaf],
) {
    let mut rest = leaves;
    for (name, shape) in fields {
        let (own, behind) = rest.split_at_mut(shape.leaves());
        shred(object.get(name).unwrap_or(&Value::Null), shape, level, own);
        rest = behind;
    }
}

fn shred(value: &Value, shape: &Shape, level: Level, leaves: &mut [Leaf]) {
    match (shape, value) {
        (Shape::List(element), Value::Array(values)) => {
            let level = level.defined();
            if values.is_empty() {
                absent(level, leaves);
            }
            let lists = level.lists + 1;
            for (index, value) in values.iter().enumerate() {
                let repetition = if index == 0 { level.repetition } else { lists };
                let level = Level {
                    repetition,
                    lists,
                    ..level.defined()
                };
                shred(value, element, level, leaves);
            }
        }
        (Shape::Struct(fields), Value::Object(object)) => {
            shred_fields(object, fields, level.defined(), leaves);
        }
        (_, value) => {
            let [leaf] = leaves else {
                return absent(level, leaves);
            };
            let is_there = leaf.values.push(value);
            leaf.repetitions.push(level.repetition);
            leaf.definitions
                .push(level.definition + i16::from(is_there));
        }
    }
}

fn absent(level: Level, leaves: &mut [Leaf]) {
    for leaf in leaves {
        leaf.repetitions.push(level.repetition);
        leaf.definitions.push(level.definition);
    }
}

impl Values {
    /// Appends a value; `false` where it is null. The shape has made room for every value, so that what
    /// is of another type here is null.
    fn push(&mut self, value: &Value) -> bool {
        match (self, value) {
            (Self::Bool(values), Value::Bool(value)) => values.push(*value),
            (Self::Int(values), Value::Number(value)) => match value.as_i64() {
                Some(value) => values.push(value),
                None => return false,
            },
            (Self::Float(values), Value::Number(value)) => match value.as_f64() {
                Some(value) => values.push(value),
                None => return false,
            },
            (Self::Text(values), Value::String(value)) => values.push(value.as_str().into()),
            _ => return false,
        }
        true
    }
}
