//! The arguments of the hidden test calls.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::families::Condition;

/// A Python value of the tiny world; as JSON a number, a list of numbers or a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Int(i64),
    Ints(Vec<i64>),
    Text(String),
}

impl Value {
    /// As a line of standard input.
    pub fn line(&self) -> String {
        match self {
            Self::Int(int) => int.to_string(),
            Self::Ints(ints) => {
                let words: Vec<String> = ints.iter().map(ToString::to_string).collect();
                words.join(" ")
            }
            Self::Text(text) => text.clone(),
        }
    }
}

/// The arguments of one call, in order.
pub type Call = Vec<Value>;

/// What a function is called with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// One list `xs`, empty in the first call and with one item in the second.
    Items,
    /// One list `xs`; half of the lists hold only items on one side of the condition, or all but one.
    Screened {
        condition: Condition,
        satisfied: bool,
    },
    /// `a` and `b` with `a <= b`; equal in the first call.
    Bounds,
    /// `a` and `b`, any.
    Pair,
    /// One `n >= 0` with up to six digits; 0 in the first call.
    Natural,
    /// One list with at least one item.
    Filled,
    /// One `n` from 0 to 9; 0 in the first call.
    Small,
    /// One line of up to six short words of few letters; empty in the first call.
    Words,
}

/// Those that words are made of.
pub const LETTERS: [char; 5] = ['a', 'b', 'c', 'd', 'e'];

/// Draws a call may take on average before [`Arguments::calls`] gives up.
const ATTEMPTS: usize = 16;

impl Arguments {
    /// `n` calls of this stream, no two alike; fewer only where the world has no more.
    pub fn calls(&self, n: usize, rng: &mut ChaCha8Rng) -> Vec<Call> {
        let mut calls = Vec::with_capacity(n);
        for index in 0..ATTEMPTS * n {
            if calls.len() == n {
                break;
            }
            let call = self.call(index, rng);
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
        calls
    }

    fn call(&self, index: usize, rng: &mut ChaCha8Rng) -> Call {
        match self {
            Self::Items => vec![Value::Ints(items(index, rng))],
            Self::Screened {
                condition,
                satisfied,
            } => {
                let mut list = items(index, rng);
                if index.is_multiple_of(2) {
                    list.retain(|item| condition.holds(*item) == *satisfied);
                    if index.is_multiple_of(4) {
                        // One item near the border decides between neighbouring conditions.
                        let place = rng.random_range(0..=list.len());
                        list.insert(place, condition.border() + rng.random_range(-1..=1));
                    }
                }
                vec![Value::Ints(list)]
            }
            Self::Bounds => {
                let low = rng.random_range(-2..=8i64);
                let length = if index == 0 {
                    0
                } else {
                    rng.random_range(0..=8)
                };
                vec![Value::Int(low), Value::Int(low + length)]
            }
            Self::Pair => {
                vec![
                    Value::Int(rng.random_range(-5..=12)),
                    Value::Int(rng.random_range(-5..=12)),
                ]
            }
            Self::Natural => {
                let largest = [0, 1, 9, 99, 9_999, 999_999][index % 6];
                vec![Value::Int(rng.random_range((largest + 1) / 10..=largest))]
            }
            Self::Filled => {
                let mut list = items(index.max(1), rng);
                if list.is_empty() {
                    list.push(rng.random_range(-3..=12));
                }
                vec![Value::Ints(list)]
            }
            Self::Small => vec![Value::Int(match index {
                0 => 0,
                _ => rng.random_range(1..=9),
            })],
            Self::Words => {
                let n = match index {
                    0 => 0,
                    _ => rng.random_range(1..=6),
                };
                let words: Vec<String> = (0..n).map(|_| word(rng)).collect();
                vec![Value::Text(words.join(" "))]
            }
        }
    }
}

fn items(index: usize, rng: &mut ChaCha8Rng) -> Vec<i64> {
    let length = match index {
        0 | 1 => index,
        _ => [0, 1, 3, 5, 6, 7, 8][rng.random_range(0..7usize)],
    };
    (0..length).map(|_| rng.random_range(-3..=12)).collect()
}

fn word(rng: &mut ChaCha8Rng) -> String {
    let length = rng.random_range(1..=6usize);
    (0..length)
        .map(|_| LETTERS[rng.random_range(0..LETTERS.len())])
        .collect()
}
