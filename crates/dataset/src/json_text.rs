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
        Ok(inner) => typed(inner).map_err(|error| D::Error::custom(format!("{IN_TEXT}{error}"))),
        Err(not_json) => typed(value)
            .map_err(|error| D::Error::custom(format!("{error}; its text is no JSON: {not_json}"))),
    }
}

/// Stands before what is wrong within a text.
const IN_TEXT: &str = "in its JSON text, ";

/// Field and message of an error at `path`. What [`json_text`] says begins with a path of its own, which
/// goes behind this one; positions in a text are left out, as they count from the beginning of a row or of
/// a text within it.
pub(crate) fn located(path: &str, message: &str) -> (String, String) {
    let mut field = match path {
        "." | "?" => String::new(),
        path => path.to_owned(),
    };
    let mut message = in_words_of_json(without_position(message));
    while let Some((inner, rest)) = message
        .strip_prefix('`')
        .and_then(|rest| rest.split_once("`: "))
    {
        if !inner.starts_with('[') && !field.is_empty() {
            field.push('.');
        }
        field.push_str(inner);
        message = rest.to_owned();
    }
    (field, message)
}

fn without_position(message: &str) -> String {
    match message.rsplit_once(" at line ") {
        Some((before, position))
            if position
                .split_once(" column ")
                .is_some_and(|(line, column)| {
                    [line, column].iter().all(|text| is_number(text))
                }) =>
        {
            before.to_owned()
        }
        _ => message.to_owned(),
    }
}

/// A type of this program tells nobody what a row should be.
fn in_words_of_json(message: String) -> String {
    match message.split_once("expected struct ") {
        Some((found, _)) => format!("{found}expected a JSON object"),
        None => message,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn may_hold_json(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['[', '{']) || text.trim_end() == "null"
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        match located(&error.path().to_string(), &error.inner().to_string()) {
            (field, message) if field.is_empty() => message,
            (field, message) => format!("`{field}`: {message}"),
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
