//! JSON as Python's `json.dumps` prints it: what chat templates written for `transformers` expect.

use serde_json::Value;

use crate::marked::GUARD;

/// How `json.dumps` is told to print.
#[derive(Clone, Debug)]
pub(crate) struct JsonStyle {
    /// What one level is set in by; on one line when absent.
    pub(crate) indent: Option<String>,
    pub(crate) item_separator: String,
    pub(crate) key_separator: String,
    pub(crate) sort_keys: bool,
    /// Write what is not ASCII as `\uXXXX`.
    pub(crate) ensure_ascii: bool,
}

impl JsonStyle {
    /// As Python prints when it is told no separators.
    pub(crate) fn new(indent: Option<String>) -> Self {
        Self {
            item_separator: if indent.is_some() { "," } else { ", " }.to_owned(),
            key_separator: ": ".to_owned(),
            indent,
            sort_keys: false,
            ensure_ascii: false,
        }
    }

    /// `json.dumps(value, …)`.
    pub(crate) fn print(&self, value: &Value) -> String {
        let mut out = String::new();
        self.write(value, 0, &mut out);
        out
    }

    fn write(&self, value: &Value, depth: usize, out: &mut String) {
        match value {
            Value::Array(items) if items.is_empty() => out.push_str("[]"),
            Value::Object(fields) if fields.is_empty() => out.push_str("{}"),
            Value::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    self.separate(i > 0, depth + 1, out);
                    self.write(item, depth + 1, out);
                }
                self.new_line(depth, out);
                out.push(']');
            }
            Value::Object(fields) => {
                let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
                if self.sort_keys {
                    fields.sort_by_key(|(key, _)| *key);
                }
                out.push('{');
                for (i, (key, field)) in fields.into_iter().enumerate() {
                    self.separate(i > 0, depth + 1, out);
                    self.write_string(key, out);
                    out.push_str(&self.key_separator);
                    self.write(field, depth + 1, out);
                }
                self.new_line(depth, out);
                out.push('}');
            }
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() => out.push_str(&float_repr(float)),
                _ => out.push_str(&number.to_string()),
            },
            Value::String(text) => self.write_string(text, out),
            Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
        }
    }

    fn write_string(&self, text: &str, out: &mut String) {
        let quoted = Value::from(text).to_string();
        if !self.ensure_ascii {
            out.push_str(&quoted);
            return;
        }
        let mut chars = quoted.chars();
        while let Some(c) = chars.next() {
            if c == GUARD {
                // It stands for no text of its own; what it guards does.
                out.push(GUARD);
                chars.next().into_iter().for_each(|c| escape(c, out));
            } else {
                escape(c, out);
            }
        }
    }

    fn separate(&self, comma: bool, depth: usize, out: &mut String) {
        if comma {
            out.push_str(&self.item_separator);
        }
        self.new_line(depth, out);
    }

    fn new_line(&self, depth: usize, out: &mut String) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(indent.as_str(), depth));
        }
    }
}

fn escape(c: char, out: &mut String) {
    if matches!(c, ' '..='~') {
        out.push(c);
        return;
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// `repr` of a finite Python float: shortest digits, an exponent of two digits or more outside
/// `1e-4 ..= 1e16`.
pub(crate) fn float_repr(float: f64) -> String {
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

/// `str.title`: a letter after anything but a letter is a capital, the others are small.
pub(crate) fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            titled.extend(c.to_lowercase());
        } else {
            titled.extend(c.to_uppercase());
        }
        inside = c.is_alphabetic();
    }
    titled
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prints_like_python() {
        let value = json!({"b": [1, 2.0, -0.5], "a": {}, "c": ["é\n\"", null, true], "d": 12345678901234567u64});
        assert_eq!(
            JsonStyle::new(None).print(&value),
            r#"{"b": [1, 2.0, -0.5], "a": {}, "c": ["é\n\"", null, true], "d": 12345678901234567}"#
        );
        assert_eq!(
            JsonStyle::new(Some("  ".to_owned())).print(&json!({"a": [1, []]})),
            "{\n  \"a\": [\n    1,\n    []\n  ]\n}"
        );
    }

    #[test]
    fn prints_as_it_is_told() {
        let style = JsonStyle {
            item_separator: ",".to_owned(),
            key_separator: ":".to_owned(),
            sort_keys: true,
            ensure_ascii: true,
            ..JsonStyle::new(None)
        };
        let value = json!({"b": [1, 2], "a": "é😀\u{7f}\u{E002}<"});
        assert_eq!(
            style.print(&value),
            "{\"a\":\"\\u00e9\\ud83d\\ude00\\u007f\u{E002}<\",\"b\":[1,2]}"
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
