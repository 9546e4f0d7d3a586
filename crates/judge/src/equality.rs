//! Python's own `==`, truth and closeness over values, for assertions that are made of them.

use std::collections::HashSet;

use code::{Expectation, Literal};

use crate::Value;

/// Whether `value` is what an assertion expects.
pub(crate) fn meets(value: &Value, expected: &Expectation) -> bool {
    match expected {
        Expectation::Equal(literal) => equal(value, &of_literal(literal)),
        Expectation::NotEqual(literal) => !equal(value, &of_literal(literal)),
        Expectation::Is(literal) => *value == of_literal(literal),
        Expectation::OneOf(literals) => literals
            .iter()
            .any(|literal| equal(value, &of_literal(literal))),
        Expectation::True => truth(value),
        Expectation::False => !truth(value),
        Expectation::Close {
            to,
            absolute,
            relative,
        } => match (number(value), number(&of_literal(to))) {
            (Some(a), Some(b)) => {
                let near = (relative * a.abs().max(b.abs())).max(*absolute);
                a == b || a.is_finite() && b.is_finite() && (a - b).abs() <= near
            }
            _ => false,
        },
    }
}

/// As Python's `==`: numbers of any type by their value, a tuple is no list, dicts and sets in any
/// order. NaN equals nothing.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Dict(a), Value::Dict(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| {
                    b.iter()
                        .any(|(other, held)| equal(key, other) && equal(value, held))
                })
        }
        (Value::Set(a), Value::Set(b)) => same_set(a, b),
        _ => match (number(a), number(b)) {
            // Large integers are not compared as floats, which would round them.
            (Some(x), Some(y)) => match (integer(a), integer(b)) {
                (Some(a), Some(b)) => a == b,
                _ => x == y,
            },
            (None, None) => a == b,
            _ => false,
        },
    }
}

fn same_set(a: &[Value], b: &[Value]) -> bool {
    // Sets of texts are common and may be large.
    let texts = |items: &[Value]| -> Option<HashSet<String>> {
        let text = |item: &Value| match item {
            Value::Str(text) => Some(text.clone()),
            _ => None,
        };
        items.iter().map(text).collect()
    };
    if let (Some(a), Some(b)) = (texts(a), texts(b)) {
        return a == b;
    }
    let within = |a: &[Value], b: &[Value]| {
        a.iter()
            .all(|item| b.iter().any(|other| equal(item, other)))
    };
    within(a, b) && within(b, a)
}

/// Tuples as lists all the way down, as JSON has no tuples.
pub(crate) fn tuples_to_lists(value: &Value) -> Value {
    let all = |items: &[Value]| items.iter().map(tuples_to_lists).collect();
    match value {
        Value::List(items) | Value::Tuple(items) => Value::List(all(items)),
        Value::Dict(pairs) => {
            let pairs = pairs
                .iter()
                .map(|(key, value)| (key.clone(), tuples_to_lists(value)));
            Value::Dict(pairs.collect())
        }
        other => other.clone(),
    }
}

/// Python's `bool(value)`.
fn truth(value: &Value) -> bool {
    match value {
        Value::None => false,
        Value::Bool(b) => *b,
        Value::Int(i) => *i != 0,
        Value::BigInt(_) => true,
        Value::Float(f) => *f != 0.0,
        Value::Str(s) => !s.is_empty(),
        Value::Bytes(b) => !b.is_empty(),
        Value::List(items) | Value::Tuple(items) | Value::Set(items) => !items.is_empty(),
        Value::Dict(pairs) => !pairs.is_empty(),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        Value::Int(i) => Some(*i as f64),
        Value::BigInt(digits) => {
            let (sign, digits) = match digits.strip_prefix('-') {
                Some(digits) => (-1.0, digits),
                None => (1.0, digits.as_str()),
            };
            let digits = digits.strip_prefix("0x")?;
            let fold = |sum: f64, digit: char| Some(sum * 16.0 + f64::from(digit.to_digit(16)?));
            Some(sign * digits.chars().try_fold(0.0, fold)?)
        }
        Value::Float(f) => Some(*f),
        _ => None,
    }
}

/// The value of an integer, in a form that is equal for equal integers.
fn integer(value: &Value) -> Option<Result<i64, &str>> {
    match value {
        Value::Bool(b) => Some(Ok(i64::from(*b))),
        Value::Int(i) => Some(Ok(*i)),
        Value::BigInt(digits) => Some(Err(digits)),
        _ => None,
    }
}

fn of_literal(literal: &Literal) -> Value {
    let all = |items: &[Literal]| items.iter().map(of_literal).collect();
    match literal {
        Literal::None => Value::None,
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Int(digits) => Value::of_digits(digits),
        Literal::Float(f) => Value::Float(*f),
        Literal::Str(s) => Value::Str(s.clone()),
        Literal::Bytes(b) => Value::Bytes(b.clone()),
        Literal::List(items) => Value::List(all(items)),
        Literal::Tuple(items) => Value::Tuple(all(items)),
        Literal::Set(items) => Value::Set(all(items)),
        Literal::Dict(pairs) => Value::Dict(
            pairs
                .iter()
                .map(|(key, value)| (of_literal(key), of_literal(value)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_that_of_python() {
        let int = Value::Int;
        let large = |digits: &str| Value::of_digits(digits);
        let equals = [
            (int(1), Value::Float(1.0)),
            (int(1), Value::Bool(true)),
            (Value::Float(0.0), Value::Float(-0.0)),
            (
                large("36893488147419103232"),
                Value::Float(36_893_488_147_419_103_232.0),
            ),
            (large("18446744073709551617"), large("18446744073709551617")),
            (
                Value::Set(vec![int(1), int(2)]),
                Value::Set(vec![Value::Float(2.0), int(1)]),
            ),
            (
                Value::Dict(vec![(int(1), int(2)), (int(3), int(4))]),
                Value::Dict(vec![(int(3), int(4)), (Value::Bool(true), int(2))]),
            ),
            (
                Value::List(vec![int(1)]),
                Value::List(vec![Value::Float(1.0)]),
            ),
        ];
        for (a, b) in equals {
            assert!(equal(&a, &b) && equal(&b, &a), "{a:?} {b:?}");
        }
        let differ = [
            (int(1), Value::str("1")),
            (Value::Float(f64::NAN), Value::Float(f64::NAN)),
            (Value::Tuple(vec![int(1)]), Value::List(vec![int(1)])),
            (large("18446744073709551617"), large("18446744073709551616")),
            (int(9_007_199_254_740_993), int(9_007_199_254_740_992)),
            (Value::None, Value::Bool(false)),
            (Value::None, int(0)),
            (Value::Bytes(b"a".to_vec()), Value::str("a")),
        ];
        for (a, b) in differ {
            assert!(!equal(&a, &b) && !equal(&b, &a), "{a:?} {b:?}");
        }
    }
}
