//! The columns that rows of JSON fit into.

use std::sync::Arc;

use parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    errors::ParquetError,
    schema::types::Type,
};
use serde_json::{Map, Value};

/// What all values of a column fit into. Every value may also be null.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Of a column that is null in every row, which is then one of texts.
    Unknown,
    Bool,
    Int,
    Float,
    Text,
    List(Box<Shape>),
    Struct(Vec<(String, Shape)>),
}

/// A value that does not fit: where in its row, and why.
pub(super) struct Misfit {
    pub(super) column: String,
    pub(super) message: String,
}

impl Misfit {
    fn new(column: &str, message: impl Into<String>) -> Self {
        Self {
            column: column.to_owned(),
            message: message.into(),
        }
    }
}

impl Shape {
    /// Makes room for `value` as well.
    pub(super) fn widen(&mut self, value: &Value, column: &str) -> Result<(), Misfit> {
        match (&mut *self, value) {
            (_, Value::Null)
            | (Self::Bool, Value::Bool(_))
            | (Self::Text, Value::String(_))
            | (Self::Float, Value::Number(_)) => Ok(()),
            (Self::Int, Value::Number(number)) => {
                *self = Self::of_number(number, column)?;
                Ok(())
            }
            (Self::List(element), Value::Array(values)) => {
                let column = format!("{column}[]");
                values
                    .iter()
                    .try_for_each(|value| element.widen(value, &column))
            }
            (Self::Struct(fields), Value::Object(object)) => widen_fields(fields, object, column),
            (Self::Unknown, value) => {
                *self = match value {
                    Value::Null => Self::Unknown,
                    Value::Bool(_) => Self::Bool,
                    Value::Number(number) => Self::of_number(number, column)?,
                    Value::String(_) => Self::Text,
                    Value::Array(_) => Self::List(Box::new(Self::Unknown)),
                    Value::Object(_) => Self::Struct(Vec::new()),
                };
                match value {
                    Value::Array(_) | Value::Object(_) => self.widen(value, column),
                    _ => Ok(()),
                }
            }
            (shape, value) => Err(Misfit::new(
                column,
                format!(
                    "{} where earlier rows have {}; name the column among those that are stored as JSON text",
                    name_of(value),
                    shape.name()
                ),
            )),
        }
    }

    fn of_number(number: &serde_json::Number, column: &str) -> Result<Self, Misfit> {
        if number.is_i64() {
            Ok(Self::Int)
        } else if number.is_u64() {
            Err(Misfit::new(
                column,
                format!("{number} does not fit into 64 bits with a sign"),
            ))
        } else {
            Ok(Self::Float)
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "nulls",
            Self::Bool => "truth values",
            Self::Int | Self::Float => "numbers",
            Self::Text => "texts",
            Self::List(_) => "lists",
            Self::Struct(_) => "objects",
        }
    }

    /// Columns of the file below it.
    pub(super) fn leaves(&self) -> usize {
        match self {
            Self::List(element) => element.leaves(),
            Self::Struct(fields) => fields.iter().map(|(_, field)| field.leaves()).sum(),
            _ => 1,
        }
    }

    /// An object without fields has no columns, and so no way to say that it was there.
    pub(super) fn check(&self, column: &str) -> Result<(), Misfit> {
        match self {
            Self::Struct(fields) if fields.is_empty() => Err(Misfit::new(
                column,
                "objects without a field have no columns; name the column among those that are stored as JSON text",
            )),
            Self::Struct(fields) => fields
                .iter()
                .try_for_each(|(name, field)| field.check(&below(column, name))),
            Self::List(element) => element.check(&format!("{column}[]")),
            _ => Ok(()),
        }
    }

    pub(super) fn to_type(&self, name: &str) -> Result<Type, ParquetError> {
        let leaf = |physical, logical| {
            Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()
        };
        match self {
            Self::Bool => leaf(Physical::BOOLEAN, None),
            Self::Int => leaf(Physical::INT64, None),
            Self::Float => leaf(Physical::DOUBLE, None),
            Self::Text | Self::Unknown => leaf(Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::List(element) => {
                let repeated = Type::group_type_builder("list")
                    .with_repetition(Repetition::REPEATED)
                    .with_fields(vec![Arc::new(element.to_type("element")?)])
                    .build()?;
                Type::group_type_builder(name)
                    .with_repetition(Repetition::OPTIONAL)
                    .with_logical_type(Some(LogicalType::List))
                    .with_fields(vec![Arc::new(repeated)])
                    .build()
            }
            Self::Struct(fields) => Type::group_type_builder(name)
                .with_repetition(Repetition::OPTIONAL)
                .with_fields(types_of(fields)?)
                .build(),
        }
    }
}

pub(super) fn types_of(fields: &[(String, Shape)]) -> Result<Vec<Arc<Type>>, ParquetError> {
    fields
        .iter()
        .map(|(name, shape)| shape.to_type(name).map(Arc::new))
        .collect()
}

/// Makes room for an object's values, in the order in which their names are first met.
pub(super) fn widen_fields(
    fields: &mut Vec<(String, Shape)>,
    object: &Map<String, Value>,
    column: &str,
) -> Result<(), Misfit> {
    for (index, (name, value)) in object.iter().enumerate() {
        // Rows mostly have the same fields in the same order.
        let is_here = |at: usize| fields.get(at).is_some_and(|(known, _)| known == name);
        let at = if is_here(index) {
            index
        } else {
            match fields.iter().position(|(known, _)| known == name) {
                Some(at) => at,
                None => {
                    fields.push((name.clone(), Shape::Unknown));
                    fields.len() - 1
                }
            }
        };
        fields[at].1.widen(value, &below(column, name))?;
    }
    Ok(())
}

fn below(column: &str, name: &str) -> String {
    if column.is_empty() {
        name.to_owned()
    } else {
        format!("{column}.{name}")
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
