//! Values that files hold as JSON text: list and struct columns that somebody stored as strings.

use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error as _};
use serde_json::Value;

/// For `#[serde(deserialize_with = "dataset::json_text")]`: takes a `T`, or a text that holds a list, an
/// object or `null` that is a `T`. Other texts stand for themselves.
///
/// # Errors
/// A value that is neither, with the field of the text that is wrong.
pub fn json_text<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let inner = match &value {
        Value::String(text) if may_hold_json(text) => serde_json::from_str::<Value>(text),
        _ => return typed(value).map_err(D::Error::custom),
    };
    match inner {
        Ok(inner) => {
            typed(inner).map_err(|error| D::Error::custom(format!("in its JSON text, {error}")))
        }
        Err(not_json) => typed(value)
            .map_err(|error| D::Error::custom(format!("{error}; its text is no JSON: {not_json}"))),
    }
}

fn may_hold_json(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['[', '{']) || text.trim_end() == "null"
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        match error.path().to_string().as_str() {
            "." | "?" => error.inner().to_string(),
            path => format!("`{path}`: {}", error.inner()),
        }
    })
}

/// `value`, or the list, object or `null` that it holds as JSON text; other texts stay.
pub fn unpack(value: Value) -> Value {
    match &value {
        Value::String(text) if may_hold_json(text) => serde_json::from_str(text).unwrap_or(value),
        _ => value,
    }
}
