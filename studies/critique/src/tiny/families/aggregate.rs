//! Running totals: the initial value and the update of "the sum of the squares of …".

use rand_chacha::ChaCha8Rng;

use super::{pick, slot, wrong};
use crate::tiny::function::{Bug, Slot};

/// What a loop gathers in `s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Sum,
    Number,
    Product,
    Squares,
    Doubles,
}

impl Aggregate {
    const ALL: [Self; 5] = [
        Self::Sum,
        Self::Number,
        Self::Product,
        Self::Squares,
        Self::Doubles,
    ];

    pub(super) fn draw(rng: &mut ChaCha8Rng) -> Self {
        *pick(&Self::ALL, rng)
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Number => "number",
            Self::Product => "product",
            Self::Squares => "sum of the squares",
            Self::Doubles => "sum of the doubles",
        }
    }

    pub(super) fn initial_slot(self) -> Slot {
        let (right, other) = if self == Self::Product {
            (1, 0)
        } else {
            (0, 1)
        };
        slot(
            "initial",
            format!("s = {right}"),
            [wrong(Bug::WrongInitialValue, format!("s = {other}"))],
        )
    }

    pub(super) fn update_slot(self, item: &str) -> Slot {
        let square = format!("{item} * {item}");
        let (right, wrongs) = match self {
            Self::Sum => (
                format!("s += {item}"),
                vec![
                    wrong(Bug::WrongOperator, format!("s -= {item}")),
                    wrong(Bug::WrongAccumulator, "s += 1"),
                    wrong(Bug::WrongAccumulator, format!("s = {item}")),
                ],
            ),
            Self::Number => (
                "s += 1".to_owned(),
                vec![
                    wrong(Bug::WrongAccumulator, format!("s += {item}")),
                    wrong(Bug::WrongConstant, "s += 2"),
                    wrong(Bug::WrongAccumulator, "s = 1"),
                ],
            ),
            Self::Product => (
                format!("s *= {item}"),
                vec![
                    wrong(Bug::WrongOperator, format!("s += {item}")),
                    wrong(Bug::WrongExpression, format!("s *= {square}")),
                    wrong(Bug::WrongAccumulator, format!("s = {item}")),
                ],
            ),
            Self::Squares => (
                format!("s += {square}"),
                vec![
                    wrong(Bug::WrongExpression, format!("s += {item}")),
                    wrong(Bug::WrongExpression, format!("s += {item} * 2")),
                    wrong(Bug::WrongOperator, format!("s -= {square}")),
                ],
            ),
            Self::Doubles => (
                format!("s += {item} * 2"),
                vec![
                    wrong(Bug::WrongExpression, format!("s += {item}")),
                    wrong(Bug::WrongExpression, format!("s += {square}")),
                    wrong(Bug::WrongConstant, format!("s += {item} * 3")),
                ],
            ),
        };
        slot("update", right, wrongs)
    }

    /// "the number of the items" needs a condition to be worth asking.
    pub(super) fn needs_condition(self) -> bool {
        self == Self::Number
    }
}
