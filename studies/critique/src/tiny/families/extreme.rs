//! "Return the largest square of the items of xs, or -1 if xs is empty."

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Parts, pick, slot, wrong, wrong_defaults};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::{Bug, Wrong};

/// What to give back for an empty list.
const EMPTY: [&str; 8] = ["0", "-1", "None", "1", "2", "5", "9", "10"];

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let largest = rng.random_bool(0.5);
    let empty = *pick(&EMPTY, rng);
    let key = Key::draw(rng);
    let (word, sign, other) = if largest {
        ("largest", ">", "<")
    } else {
        ("smallest", "<", ">")
    };
    let edge = |default: &str| format!("if not xs: return {default}");
    let mut wrong_edges = vec![wrong(Bug::MissingEdgeCase, "")];
    wrong_edges.extend(wrong_defaults(empty, edge));
    Parts {
        spec: format!("{word}/{empty}/{}", key.words()),
        statement: format!(
            "Return the {word} {} of the items of xs, or {empty} if xs is empty.",
            key.words()
        ),
        template: format!(
            "def f(xs):\n    {{edge}}\n    s = {}\n    for x in xs:\n        {{key}}\n        \
             if {{comparison}}:\n            {{update}}\n    return s",
            key.of("xs[0]")
        ),
        slots: vec![
            slot("edge", edge(empty), wrong_edges),
            slot("key", format!("y = {}", key.of("x")), key.wrong()),
            slot(
                "comparison",
                format!("y {sign} s"),
                [
                    wrong(Bug::WrongComparison, format!("y {other} s")),
                    wrong(Bug::WrongComparison, "y == s"),
                ],
            ),
            slot(
                "update",
                "s = y",
                [
                    wrong(Bug::WrongAccumulator, "s = x + 1"),
                    wrong(Bug::WrongAccumulator, "s += y"),
                ],
            ),
        ],
        arguments: Arguments::Items,
    }
}

/// What the items are compared by.
enum Key {
    Value,
    Square,
    Remainder(i64),
}

impl Key {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        match rng.random_range(0..3u32) {
            0 => Self::Value,
            1 => Self::Square,
            _ => Self::Remainder(rng.random_range(3..=7)),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Value => "value".to_owned(),
            Self::Square => "square".to_owned(),
            Self::Remainder(divisor) => format!("remainder by {divisor}"),
        }
    }

    fn of(&self, item: &str) -> String {
        match self {
            Self::Value => item.to_owned(),
            Self::Square => format!("{item} * {item}"),
            Self::Remainder(divisor) => format!("{item} % {divisor}"),
        }
    }

    fn wrong(&self) -> Vec<Wrong> {
        let divisor = if let Self::Remainder(divisor) = self {
            *divisor
        } else {
            3
        };
        match self {
            Self::Value => vec![
                wrong(Bug::WrongExpression, "y = x * x"),
                wrong(Bug::WrongExpression, "y = x * 2"),
                wrong(Bug::WrongExpression, format!("y = x % {divisor}")),
            ],
            Self::Square => vec![
                wrong(Bug::WrongExpression, "y = x"),
                wrong(Bug::WrongExpression, "y = x * 2"),
                wrong(Bug::WrongExpression, format!("y = x % {divisor}")),
            ],
            Self::Remainder(_) => vec![
                wrong(Bug::WrongExpression, "y = x"),
                wrong(Bug::WrongOperator, format!("y = x // {divisor}")),
                wrong(Bug::WrongConstant, format!("y = x % {}", divisor + 1)),
            ],
        }
    }
}
