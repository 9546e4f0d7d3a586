//! JSON as Python's `json.dumps` prints it: what chat templates written for `transformers` expect.

use serde_json::Value;

/// `json.dumps(value, ensure_ascii=False, indent=indent)`.
pub(crate) fn to_json(value: &Value, indent: Option<usize>) -> String {
    let mut out = String::new();
    write(value, indent, 0, &mut out);
    out
}

fn write(value: &Value, indent: Option<usize>, depth: usize, out: &mut String) {
    match value {
        Value::Array(items) if items.is_empty() => out.push_str("[]"),
        Value::Object(fields) if fields.is_empty() => out.push_str("{}"),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                separate(i > 0, indent, depth + 1, out);
                write(item, indent, depth + 1, out);
            }
            close(']', indent, depth, out);
        }
        Value::Object(fields) => {
            out.push('{');
            for (i, (key, field)) in fields.iter().enumerate() {
                separate(i > 0, indent, depth + 1, out);
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(": ");
                write(field, indent, depth + 1, out);
            }
            close('}', indent, depth, out);
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => out.push_str(&float_repr(float)),
            _ => out.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

fn separate(comma: bool, indent: Option<usize>, depth: usize, out: &mut String) {
    match indent {
        Some(_) if comma => out.push(','),
        None if comma => out.push_str(", "),
        _ => {}
    }
    new_line(indent, depth, out);
}

fn close(bracket: char, indent: Option<usize>, depth: usize, out: &mut String) {
    new_line(indent, depth, out);
    out.push(bracket);
}

fn new_line(indent: Option<usize>, depth: usize, out: &mut String) {
    if let Some(width) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', width * depth));
    }
}

/// `repr` of a finite Python float: shortest digits, an exponent of two digits or more outside
/// `1e-4 ..= 1e16`.
fn float_repr(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let shortest = format!("{float:e}");
        let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{float:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prints_like_python() {
        let value = json!({"b": [1, 2.0, -0.5], "a": {}, "c": ["é\n\"", null, true], "d": 12345678901234567u64});
        assert_eq!(
            to_json(&value, None),
            r#"{"b": [1, 2.0, -0.5], "a": {}, "c": ["é\n\"", null, true], "d": 12345678901234567}"#
        );
        assert_eq!(
            to_json(&json!({"a": [1, []]}), Some(2)),
            "{\n  \"a\": [\n    1,\n    []\n  ]\n}"
        );
    }

    #[test]
    fn floats_are_written_as_repr_writes_them() {
        let cases = [
            (1e-7, "1e-07"),
            (1.5e-10, "1.5e-10"),
            (1e-4, "0.0001"),
            (0.1, "0.1"),
            (3.0, "3.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (-2.5e300, "-2.5e+300"),
            (0.0, "0.0"),
        ];
        for (float, expected) in cases {
            assert_eq!(float_repr(float), expected);
        }
    }
}
