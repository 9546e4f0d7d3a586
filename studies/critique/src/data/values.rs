//! Values that datasets write in more than one way.

use dataset::{Row, RowError};
use serde_json::{Map, Value};

use crate::task::{LONGEST_S, is_time_limit};

/// A column that is there and not null.
pub(super) fn given<'a>(columns: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    columns.get(name).filter(|value| !value.is_null())
}

/// A text, or a number or truth value that stands for one; `None` where there is none.
pub(super) fn name(
    row: &Row,
    columns: &Map<String, Value>,
    field: &str,
) -> Result<Option<String>, RowError> {
    match given(columns, field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(other) => Err(row.error(
            field,
            format!("expected a text or a number, found {}", kind(other)),
        )),
    }
}

/// A text that must be there.
pub(super) fn text(
    row: &Row,
    columns: &Map<String, Value>,
    field: &str,
) -> Result<String, RowError> {
    match optional_text(row, columns, field)? {
        Some(text) => Ok(text),
        None => Err(row.error(field, "missing")),
    }
}

pub(super) fn optional_text(
    row: &Row,
    columns: &Map<String, Value>,
    field: &str,
) -> Result<Option<String>, RowError> {
    match given(columns, field) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(row.error(field, format!("expected a text, found {}", kind(other)))),
    }
}

/// A list of texts, which may stand in a text of JSON; empty where there is none.
pub(super) fn texts(
    row: &Row,
    columns: &Map<String, Value>,
    field: &str,
) -> Result<Vec<String>, RowError> {
    match given(columns, field) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
        Some(value) => row.typed(dataset::unpack(value.clone()), field),
    }
}

/// Seconds of a time limit, from a number, from free text by its first number ("2.0 seconds"), or from
/// `{seconds, nanos}`. Null, and the texts `NaN`, `None` and `null` in its place, are no limit; other texts without a
/// number, and numbers below 0, are wrong.
pub(super) fn time_limit(row: &Row, columns: &Map<String, Value>) -> Result<Option<f64>, RowError> {
    const FIELD: &str = "time_limit";
    let seconds = match given(columns, FIELD) {
        None => None,
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => match first_number(text) {
            None if !says_nothing(text) => {
                return Err(row.error(FIELD, format!("`{text}` has no number of seconds")));
            }
            seconds => seconds,
        },
        Some(Value::Object(parts)) => {
            let part = |name| parts.get(name).and_then(Value::as_f64);
            let (seconds, nanos) = (part("seconds"), part("nanos"));
            let some = seconds.is_some() || nanos.is_some();
            some.then(|| seconds.unwrap_or(0.0) + nanos.unwrap_or(0.0) * 1e-9)
        }
        Some(other) => {
            let found = kind(other);
            return Err(row.error(FIELD, format!("expected seconds, found {found}")));
        }
    };
    match seconds {
        Some(seconds) if !is_time_limit(seconds) => Err(row.error(
            FIELD,
            format!("{seconds} seconds; expected more than 0 and at most {LONGEST_S}"),
        )),
        seconds => Ok(seconds),
    }
}

/// What datasets write where there is no value.
fn says_nothing(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    ["", "nan", "none", "null", "n/a"].contains(&text.as_str())
}

/// The first number in a text, below 0 where a minus sign that begins a word stands before it.
fn first_number(text: &str) -> Option<f64> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let before = text[..start].strip_suffix('-');
    let negative =
        before.is_some_and(|before| before.ends_with(char::is_whitespace) || before.is_empty());
    let sign = if negative { -1.0 } else { 1.0 };
    let number = &text[start..];
    let whole = number
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(number.len());
    let fraction = number[whole..].strip_prefix('.').map_or(0, |rest| {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        if digits == 0 { 0 } else { 1 + digits }
    });
    let number: f64 = number[..whole + fraction].parse().ok()?;
    Some(sign * number)
}

/// Whether a program passed: a truth value, or 0 or 1. `None` where nobody says.
pub(super) fn success(row: &Row, columns: &Map<String, Value>) -> Result<Option<bool>, RowError> {
    let found = match given(columns, "success") {
        None => return Ok(None),
        Some(Value::Bool(passed)) => Some(*passed),
        Some(Value::Number(number)) if number.as_f64() == Some(0.0) => Some(false),
        Some(Value::Number(number)) if number.as_f64() == Some(1.0) => Some(true),
        Some(_) => None,
    };
    match found {
        Some(passed) => Ok(Some(passed)),
        None => Err(row.error("success", "expected true, false, 0 or 1")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::first_number;

    #[test]
    fn a_time_limit_is_the_first_number_of_a_text() {
        for (text, seconds) in [
            ("2.0 seconds", Some(2.0)),
            ("1 second", Some(1.0)),
            ("0.5-2 sec", Some(0.5)),
            ("limit: 3. No more", Some(3.0)),
            ("-3 seconds", Some(-3.0)),
            ("about - 3", Some(3.0)),
            ("NaN", None),
            ("none", None),
            ("", None),
        ] {
            assert_eq!(first_number(text), seconds, "{text}");
        }
    }
}
