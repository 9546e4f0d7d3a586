//! Python values, compared by exact type.

use serde::{Deserialize, Serialize};

/// A Python value of a builtin type. Subclasses have no representation: a value that came out of
/// the jail was exactly of this type.
///
/// As JSON: `null`, booleans, 64-bit integers, finite floats (always with a point or an exponent),
/// strings and lists stand for themselves; `{"int": "-0x1f…"}` is a larger integer,
/// `{"float": "nan" | "inf" | "-inf"}`, `{"bytes": "00ff"}`, `{"tuple": […]}`, `{"set": […]}` and
/// `{"dict": [[key, value], …]}` the rest.
#[derive(Clone, Debug)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// An integer outside `i64`: optional `-`, `0x`, lower-case hexadecimal digits without leading zero.
    BigInt(String),
    Float(f64),
    Str(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    /// In insertion order, which equality ignores.
    Dict(Vec<(Value, Value)>),
    /// In any order.
    Set(Vec<Value>),
}

/// JSON that is not a [`Value`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a Python value: {reason}")]
pub struct ValueError {
    pub reason: String,
}

impl Value {
    pub fn str(text: impl Into<String>) -> Self {
        Self::Str(text.into())
    }

    /// An integer from its decimal digits, perhaps behind a minus sign.
    pub(crate) fn of_digits(digits: &str) -> Self {
        if let Ok(small) = digits.parse() {
            return Self::Int(small);
        }
        let (sign, digits) = match digits.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", digits),
        };
        // Nibbles, least first; each decimal digit multiplies by ten and adds.
        let mut nibbles: Vec<u8> = Vec::new();
        for digit in digits.bytes().map(|byte| byte.wrapping_sub(b'0')) {
            let mut carry = digit;
            for nibble in &mut nibbles {
                let value = *nibble * 10 + carry;
                *nibble = value & 15;
                carry = value >> 4;
            }
            if carry > 0 {
                nibbles.push(carry);
            }
        }
        let hex = nibbles.iter().rev().map(|nibble| format!("{nibble:x}"));
        Self::BigInt(format!("{sign}0x{}", hex.collect::<String>()))
    }

    /// The value that Python's `json.loads` makes of plain JSON. Integers past 64 bits become floats.
    pub fn of_plain_json(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::None,
            Json::Bool(b) => Self::Bool(*b),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(small), _) => Self::Int(small),
                (None, Some(large)) => Self::of_digits(&large.to_string()),
                (None, None) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Str(text.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::of_plain_json).collect()),
            Json::Object(items) => Self::Dict(
                items
                    .iter()
                    .map(|(key, value)| (Self::str(key), Self::of_plain_json(value)))
                    .collect(),
            ),
        }
    }

    /// The name of the Python type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::BigInt(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Set(_) => "set",
        }
    }
}

/// Exact: `True` is not `1`, `1` is not `1.0`, `(1,)` is not `[1]`; NaN equals NaN and `0.0` equals
/// `-0.0`. Dicts and sets are equal in any order.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::BigInt(a), Self::BigInt(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Tuple(a), Self::Tuple(b)) => a == b,
            (Self::Dict(a), Self::Dict(b)) => {
                sorted(a, |(key, _)| key) == sorted(b, |(key, _)| key)
            }
            (Self::Set(a), Self::Set(b)) => sorted(a, |item| item) == sorted(b, |item| item),
            _ => false,
        }
    }
}

/// Items ordered by the canonical text of their keys, which are distinct within a dict or set.
fn sorted<T>(items: &[T], key: impl Fn(&T) -> &Value) -> Vec<&T> {
    let mut items: Vec<&T> = items.iter().collect();
    items.sort_by_cached_key(|item| canonical(key(item)));
    items
}

/// A text that is equal exactly for equal values.
fn canonical(value: &Value) -> String {
    let join = |items: &[Value]| items.iter().map(canonical).collect::<Vec<_>>().join(",");
    let join_sorted = |mut texts: Vec<String>| {
        texts.sort();
        texts.join(",")
    };
    match value {
        Value::None => "N".into(),
        Value::Bool(b) => format!("B{b}"),
        Value::Int(i) => format!("i{i}"),
        Value::BigInt(i) => format!("I{i}"),
        Value::Float(f) if f.is_nan() => "Fnan".into(),
        Value::Float(f) => format!("F{:016x}", (f + 0.0).to_bits()),
        Value::Str(s) => format!("s{}:{s}", s.len()),
        Value::Bytes(b) => format!("b{b:?}"),
        Value::List(items) => format!("[{}]", join(items)),
        Value::Tuple(items) => format!("({})", join(items)),
        Value::Set(items) => {
            format!("{{{}}}", join_sorted(items.iter().map(canonical).collect()))
        }
        Value::Dict(items) => {
            let pairs = items
                .iter()
                .map(|(k, v)| format!("{}={}", canonical(k), canonical(v)));
            format!("<{}>", join_sorted(pairs.collect()))
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Str(value.to_owned())
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::List(items)
    }
}

impl From<Value> for serde_json::Value {
    fn from(value: Value) -> Self {
        use serde_json::{Value as Json, json};
        let array = |items: Vec<Value>| Json::Array(items.into_iter().map(Json::from).collect());
        match value {
            Value::None => Json::Null,
            Value::Bool(b) => Json::Bool(b),
            Value::Int(i) => json!(i),
            Value::BigInt(hex) => json!({ "int": hex }),
            Value::Float(f) if f.is_nan() => json!({ "float": "nan" }),
            Value::Float(f) if f == f64::INFINITY => json!({ "float": "inf" }),
            Value::Float(f) if f == f64::NEG_INFINITY => json!({ "float": "-inf" }),
            Value::Float(f) => json!(f),
            Value::Str(s) => Json::String(s),
            Value::Bytes(bytes) => json!({ "bytes": hex(&bytes) }),
            Value::List(items) => array(items),
            Value::Tuple(items) => json!({ "tuple": array(items) }),
            Value::Set(items) => json!({ "set": array(items) }),
            Value::Dict(items) => {
                let pairs = items
                    .into_iter()
                    .map(|(key, value)| array(vec![key, value]));
                json!({ "dict": Json::Array(pairs.collect()) })
            }
        }
    }
}

impl TryFrom<serde_json::Value> for Value {
    type Error = ValueError;

    fn try_from(json: serde_json::Value) -> Result<Self, ValueError> {
        use serde_json::Value as Json;
        Ok(match json {
            Json::Null => Self::None,
            Json::Bool(b) => Self::Bool(b),
            Json::Number(number) => match number.as_i64() {
                Some(i) => Self::Int(i),
                None if number.is_u64() => {
                    return Err(error("an integer past 64 bits is {\"int\": hex}"));
                }
                None => Self::Float(
                    number
                        .as_f64()
                        .ok_or_else(|| error("number out of range"))?,
                ),
            },
            Json::String(s) => Self::Str(s),
            Json::Array(items) => Self::List(values(Json::Array(items))?),
            Json::Object(object) => {
                let mut entries = object.into_iter();
                let (Some((tag, content)), None) = (entries.next(), entries.next()) else {
                    return Err(error("an object must have exactly one tag"));
                };
                tagged(&tag, content)?
            }
        })
    }
}

fn tagged(tag: &str, content: serde_json::Value) -> Result<Value, ValueError> {
    match (tag, &content) {
        ("int", serde_json::Value::String(hex)) if is_big_int(hex) => {
            Ok(Value::BigInt(hex.clone()))
        }
        ("float", serde_json::Value::String(name)) => match name.as_str() {
            "nan" => Ok(Value::Float(f64::NAN)),
            "inf" => Ok(Value::Float(f64::INFINITY)),
            "-inf" => Ok(Value::Float(f64::NEG_INFINITY)),
            _ => Err(error("a tagged float is nan, inf or -inf")),
        },
        ("bytes", serde_json::Value::String(hex)) => unhex(hex)
            .map(Value::Bytes)
            .ok_or_else(|| error("bytes must be hexadecimal")),
        ("tuple", _) => values(content).map(Value::Tuple),
        ("set", _) => values(content).map(Value::Set),
        ("dict", _) => {
            let pairs = values(content)?.into_iter().map(|pair| match pair {
                Value::List(pair) => <[Value; 2]>::try_from(pair)
                    .map(|[key, value]| (key, value))
                    .map_err(|_| error("a dict item must be [key, value]")),
                _ => Err(error("a dict item must be [key, value]")),
            });
            pairs.collect::<Result<_, _>>().map(Value::Dict)
        }
        _ => Err(error(&format!("unknown or malformed tag `{tag}`"))),
    }
}

fn values(json: serde_json::Value) -> Result<Vec<Value>, ValueError> {
    match json {
        serde_json::Value::Array(items) => items.into_iter().map(Value::try_from).collect(),
        _ => Err(error("expected an array")),
    }
}

/// Whether `text` is the canonical spelling of an integer outside `i64`.
fn is_big_int(text: &str) -> bool {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let Some(digits) = text.strip_prefix("0x") else {
        return false;
    };
    let canonical = digits
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && !digits.starts_with('0');
    let outside = match u64::from_str_radix(digits, 16) {
        Ok(magnitude) if negative => magnitude > 1 << 63,
        Ok(magnitude) => magnitude >= 1 << 63,
        Err(_) => digits.len() > 16,
    };
    canonical && outside
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

fn error(reason: &str) -> ValueError {
    ValueError {
        reason: reason.to_owned(),
    }
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::Value::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = serde_json::Value::deserialize(deserializer)?;
        Self::try_from(json).map_err(serde::de::Error::custom)
    }
}
