//! "Return a times 4 plus b, but at most 7."

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Parts, slot, wrong};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::{Bug, Slot};

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let bound = rng.random_range(2..=9i64);
    let expression = Expression::draw(rng);
    let at_least = rng.random_bool(0.5);
    let (word, right, other) = if at_least {
        ("least", "max", "min")
    } else {
        ("most", "min", "max")
    };
    Parts {
        spec: format!("{}/at-{word}-{bound}", expression.words()),
        statement: format!("Return {}, but at {word} {bound}.", expression.words()),
        template: "def f(a, b):\n    {expression}\n    {bound}".to_owned(),
        slots: vec![
            expression.slot(),
            slot(
                "bound",
                format!("return {right}(d, {bound})"),
                [
                    wrong(Bug::WrongOperator, format!("return {other}(d, {bound})")),
                    wrong(
                        Bug::WrongConstant,
                        format!("return {right}(d, {})", bound + 1),
                    ),
                    wrong(
                        Bug::WrongConstant,
                        format!("return {right}(d, {})", bound - 1),
                    ),
                    wrong(Bug::MissingEdgeCase, "return d"),
                ],
            ),
        ],
        arguments: Arguments::Pair,
    }
}

enum Expression {
    Minus,
    MinusSwapped,
    Plus,
    Times,
    TimesPlus(i64),
    MinusTimes(i64),
}

impl Expression {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let factor = rng.random_range(2..=9);
        match rng.random_range(0..6u32) {
            0 => Self::Minus,
            1 => Self::MinusSwapped,
            2 => Self::Plus,
            3 => Self::Times,
            4 => Self::TimesPlus(factor),
            _ => Self::MinusTimes(factor),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Minus => "a minus b".to_owned(),
            Self::MinusSwapped => "b minus a".to_owned(),
            Self::Plus => "a plus b".to_owned(),
            Self::Times => "a times b".to_owned(),
            Self::TimesPlus(factor) => format!("a times {factor} plus b"),
            Self::MinusTimes(factor) => format!("a minus b times {factor}"),
        }
    }

    fn slot(&self) -> Slot {
        use Bug::{SwappedArguments, WrongExpression, WrongOperator};
        let (right, wrongs) = match self {
            Self::Minus => (
                "d = a - b".to_owned(),
                vec![
                    (SwappedArguments, "d = b - a".to_owned()),
                    (WrongOperator, "d = a + b".to_owned()),
                ],
            ),
            Self::MinusSwapped => (
                "d = b - a".to_owned(),
                vec![
                    (SwappedArguments, "d = a - b".to_owned()),
                    (WrongOperator, "d = b + a".to_owned()),
                ],
            ),
            Self::Plus => (
                "d = a + b".to_owned(),
                vec![
                    (WrongOperator, "d = a - b".to_owned()),
                    (WrongOperator, "d = a * b".to_owned()),
                ],
            ),
            Self::Times => (
                "d = a * b".to_owned(),
                vec![
                    (WrongOperator, "d = a + b".to_owned()),
                    (WrongExpression, "d = a * a".to_owned()),
                ],
            ),
            Self::TimesPlus(factor) => (
                format!("d = a * {factor} + b"),
                vec![
                    (SwappedArguments, format!("d = b * {factor} + a")),
                    (WrongOperator, format!("d = a * {factor} - b")),
                    (WrongOperator, format!("d = a + {factor} + b")),
                ],
            ),
            Self::MinusTimes(factor) => (
                format!("d = a - b * {factor}"),
                vec![
                    (SwappedArguments, format!("d = b - a * {factor}")),
                    (WrongOperator, format!("d = a + b * {factor}")),
                ],
            ),
        };
        slot(
            "expression",
            right,
            wrongs.into_iter().map(|(bug, line)| wrong(bug, line)),
        )
    }
}
