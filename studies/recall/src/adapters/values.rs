//! Values that datasets write in more than one way.

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};

/// A text, or what stands for one: answers are numbers in some files.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scalar(pub(super) String);

/// One text or several. `null` is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Texts(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        text(&value).map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "expected a text or a number, found {}",
                name(&value)
            ))
        })
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = dataset::unpack(Value::deserialize(deserializer)?);
        let mut texts = Vec::new();
        gather(&value, &mut texts).map_err(D::Error::custom)?;
        Ok(Self(texts))
    }
}

/// Lists in lists are alternatives too.
fn gather(value: &Value, texts: &mut Vec<String>) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::Array(values) => values.iter().try_for_each(|value| gather(value, texts)),
        value => {
            let found = text(value)
                .ok_or_else(|| format!("expected texts or numbers, found {}", name(value)))?;
            // What is said twice is one alternative.
            if !texts.contains(&found) {
                texts.push(found);
            }
            Ok(())
        }
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
        _ => "a value",
    }
}

/// Columns that are not null; files with a common set of columns have nulls for those that a row lacks.
pub(super) fn without_nulls(columns: Map<String, Value>) -> Map<String, Value> {
    columns
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect()
}
