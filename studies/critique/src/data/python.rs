//! Values of JSON as Python writes them: integers of any size, floats, quotes.

use std::fmt::{self, Write};

use serde_json::Value;

/// A value that `json.loads` gives, with its integers digit by digit.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Python {
    None,
    Bool(bool),
    /// Decimal digits, perhaps behind a minus sign.
    Int(String),
    Float(f64),
    Str(String),
    List(Vec<Python>),
    Dict(Vec<(Python, Python)>),
}

/// Nesting past this is refused, as it is by Python's own reader.
const DEEPEST: usize = 200;

impl Python {
    /// Reads JSON as Python does: NaN and infinities are numbers, and no integer is too large.
    ///
    /// # Errors
    /// What is wrong, with its byte.
    pub(super) fn of_json(text: &str) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.skip_space();
        if reader.at < text.len() {
            return Err(reader.error("something stands behind the value"));
        }
        Ok(value)
    }

    /// A value that was read from a column that holds no text; its integers are those of JSON in Rust.
    pub(super) fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::None,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) if number.is_f64() => {
                Self::Float(number.as_f64().unwrap_or(f64::NAN))
            }
            Value::Number(number) => Self::Int(number.to_string()),
            Value::String(text) => Self::Str(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::of_value).collect()),
            Value::Object(items) => Self::Dict(
                items
                    .iter()
                    .map(|(key, value)| (Self::Str(key.clone()), Self::of_value(value)))
                    .collect(),
            ),
        }
    }

    /// What stands under a key of a dict.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Dict(items) = self else {
            return None;
        };
        let is_key = |found: &Self| matches!(found, Self::Str(text) if text == key);
        items
            .iter()
            .rev()
            .find(|(found, _)| is_key(found))
            .map(|(_, value)| value)
    }

    /// Dicts with one key that is an integer in a text have that integer for a key: JSON has no other keys than
    /// texts.
    pub(super) fn with_integer_keys(self) -> Self {
        match self {
            Self::List(items) => {
                Self::List(items.into_iter().map(Self::with_integer_keys).collect())
            }
            Self::Dict(mut items) => {
                if let [(key, _)] = &mut items[..]
                    && let Self::Str(text) = key
                    && is_integer(text)
                {
                    *key = Self::Int(text.clone());
                }
                let items = items.into_iter();
                Self::Dict(
                    items
                        .map(|(key, value)| (key, value.with_integer_keys()))
                        .collect(),
                )
            }
            other => other,
        }
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits == "0" || !digits.starts_with('0');
    !digits.is_empty() && plain && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// As `repr` writes it.
impl fmt::Display for Python {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(digits) => f.write_str(digits),
            Self::Float(value) => float(*value, f),
            Self::Str(text) => string(text, f),
            Self::List(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    let before = if index == 0 { "" } else { ", " };
                    write!(f, "{before}{item}")?;
                }
                f.write_char(']')
            }
            Self::Dict(items) => {
                f.write_char('{')?;
                for (index, (key, value)) in items.iter().enumerate() {
                    let before = if index == 0 { "" } else { ", " };
                    write!(f, "{before}{key}: {value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

/// The shortest digits that give the number again, with an exponent below 1e-4 and from 1e16 on.
fn float(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if value.is_nan() {
        return f.write_str("float('nan')");
    }
    if value.is_infinite() {
        return f.write_str(if value > 0.0 {
            "float('inf')"
        } else {
            "float('-inf')"
        });
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or_default();
        return write!(f, "{digits}e{exponent:+03}");
    }
    write!(f, "{value:?}")
}

/// In single quotes, unless there are some in it and no double ones.
fn string(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    f.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c == quote => write!(f, "\\{c}")?,
            '\'' | '"' => f.write_char(c)?,
            c if c.escape_debug().len() == 1 => f.write_char(c)?,
            c => match c as u32 {
                code @ ..=0xff => write!(f, "\\x{code:02x}")?,
                code @ ..=0xffff => write!(f, "\\u{code:04x}")?,
                code => write!(f, "\\U{code:08x}")?,
            },
        }
    }
    f.write_char(quote)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Python, String> {
        if depth > DEEPEST {
            return Err(self.error("too many lists in lists"));
        }
        self.skip_space();
        let rest = &self.text[self.at..];
        match rest.as_bytes().first() {
            Some(b'[') => self.list(depth),
            Some(b'{') => self.dict(depth),
            Some(b'"') => self.string().map(Python::Str),
            Some(_) => self.word(),
            None => Err(self.error("a value is missing")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Python, String> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Python::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Python::List(items));
            }
            self.expect(b',')?;
        }
    }

    fn dict(&mut self, depth: usize) -> Result<Python, String> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b'}') {
            return Ok(Python::Dict(items));
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            self.expect(b':')?;
            items.push((Python::Str(key), self.value(depth + 1)?));
            if self.take(b'}') {
                return Ok(Python::Dict(items));
            }
            self.expect(b',')?;
        }
    }

    /// Its escapes are those of any reader of JSON.
    fn string(&mut self) -> Result<String, String> {
        let rest = &self.text[self.at..];
        let mut parsed = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        match parsed.next() {
            Some(Ok(text)) => {
                self.at += parsed.byte_offset();
                Ok(text)
            }
            Some(Err(problem)) => Err(self.error(&problem.to_string())),
            None => Err(self.error("a text is missing")),
        }
    }

    fn word(&mut self) -> Result<Python, String> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        let value = match word {
            "null" => Python::None,
            "true" => Python::Bool(true),
            "false" => Python::Bool(false),
            "NaN" => Python::Float(f64::NAN),
            "Infinity" => Python::Float(f64::INFINITY),
            "-Infinity" => Python::Float(f64::NEG_INFINITY),
            digits if is_integer(digits) => Python::Int(digits.to_owned()),
            number => match serde_json::from_str::<f64>(number) {
                Ok(value) => Python::Float(value),
                // Python reads numbers past the largest as infinite.
                Err(_) if is_huge(number) => Python::Float(if number.starts_with('-') {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                }),
                Err(_) => return Err(self.error("expected a value")),
            },
        };
        self.at += end;
        Ok(value)
    }

    /// Goes past a byte if it is the next.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.error(&format!("expected `{}`", byte as char)))
        }
    }

    fn skip_space(&mut self) {
        let rest = self.text.as_bytes()[self.at..].iter();
        self.at += rest.take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn error(&self, message: &str) -> String {
        format!("{message} (byte {})", self.at)
    }
}

/// A number in digits with an exponent, too large for 64 bits.
fn is_huge(text: &str) -> bool {
    let digits = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.bytes().all(digits) && text.parse::<f64>().is_ok_and(f64::is_infinite)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn repr(json: &str) -> String {
        Python::of_json(json).unwrap().to_string()
    }

    #[test]
    fn values_are_written_as_python_writes_them() {
        for (json, python) in [
            ("[1, 2.0, -3]", "[1, 2.0, -3]"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("[true, false, null]", "[True, False, None]"),
            ("{\"a\": [1], \"1\": 2}", "{'a': [1], '1': 2}"),
            ("\"it's\"", "\"it's\""),
            ("\"say \\\"it's\\\"\"", "'say \"it\\'s\"'"),
            ("\"a\\nb\\t\\\\\"", "'a\\nb\\t\\\\'"),
            ("\"\\u00e9\\u00a0\\u200b\"", "'é\\xa0\\u200b'"),
            ("\"\\ud83d\\ude00\"", "'😀'"),
            ("1e16", "1e+16"),
            ("123456789012345680.0", "1.2345678901234568e+17"),
            ("1e-5", "1e-05"),
            ("0.0001", "0.0001"),
            ("1.5e3", "1500.0"),
            ("-0.0", "-0.0"),
            ("1e999", "float('inf')"),
            ("[-Infinity, NaN]", "[float('-inf'), float('nan')]"),
            (" [ ] ", "[]"),
            ("{}", "{}"),
        ] {
            assert_eq!(repr(json), python, "{json}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for json in [
            "", "[1,]", "[1", "{1: 2}", "01", "nul", "[1] 2", "'a'", "--1",
        ] {
            assert!(Python::of_json(json).is_err(), "{json}");
        }
        assert!(Python::of_json(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn dicts_with_one_integer_key_get_it_back() {
        for (json, python) in [
            ("{\"1\": 2}", "{1: 2}"),
            ("{\"-7\": {\"8\": 9}}", "{-7: {8: 9}}"),
            ("[{\"10\": \"a\"}]", "[{10: 'a'}]"),
            ("{\"01\": 2}", "{'01': 2}"),
            ("{\"a\": 2}", "{'a': 2}"),
            ("{\"1\": 2, \"3\": 4}", "{'1': 2, '3': 4}"),
        ] {
            let value = Python::of_json(json).unwrap().with_integer_keys();
            assert_eq!(value.to_string(), python, "{json}");
        }
    }

    proptest! {
        #[test]
        fn json_of_any_shape_is_read_as_serde_reads_it(text in "[\\[\\]{}:,\" a-c0-9.eE+-]{0,24}") {
            // A `-0` is an integer in Python and a float in serde_json.
            if let (Ok(ours), Ok(theirs)) = (Python::of_json(&text), serde_json::from_str::<Value>(&text)) {
                let theirs = Python::of_value(&theirs);
                prop_assume!(!text.contains("-0") && !text.contains('"'));
                let digits = text.bytes().filter(u8::is_ascii_digit).count();
                prop_assume!(digits < 16);
                prop_assert_eq!(ours, theirs);
            }
        }
    }
}
