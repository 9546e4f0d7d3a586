//! "Return the list of the items plus 6 of xs that are odd, in reverse order."

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{
    Comparison, Condition, Parts, Scope, condition_slot, condition_spec, guarded_update, slot,
    that_are, wrong,
};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::{Bug, Slot};

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let condition = match Condition::draw_optional(Scope::EACH, rng) {
        // Equal items would hide the order.
        Some(Condition::Compares(Comparison::Equal, constant)) => {
            Some(Condition::Compares(Comparison::Different, constant))
        }
        condition => condition,
    };
    let condition = condition.as_ref();
    let map = Map::draw(rng);
    let reversed = rng.random_range(0..10u32) < 4;
    let (right, other) = if reversed {
        ("return s[::-1]", "return s")
    } else {
        ("return s", "return s[::-1]")
    };
    let mut slots = Vec::from_iter(condition_slot(condition, "x"));
    slots.push(map.update_slot());
    slots.push(slot(
        "result",
        right,
        [
            wrong(Bug::WrongOrder, other),
            wrong(Bug::OffByOne, "return s[1:]"),
        ],
    ));
    let order = if reversed { ", in reverse order" } else { "" };
    Parts {
        spec: format!(
            "{}/{}/{}",
            map.words(),
            condition_spec(condition),
            if reversed { "reversed" } else { "in order" }
        ),
        statement: format!(
            "Return the list of the {} of xs{}{order}.",
            map.words(),
            that_are(condition)
        ),
        template: format!(
            "def f(xs):\n    s = []\n    for x in xs:\n{}    {{result}}",
            guarded_update(condition)
        ),
        slots,
        arguments: Arguments::Items,
    }
}

/// What becomes of each item.
enum Map {
    Same,
    Square,
    Double,
    Negated,
    Plus(i64),
    Minus(i64),
    Times(i64),
}

impl Map {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let constant = rng.random_range(2..=9);
        match rng.random_range(0..7u32) {
            0 => Self::Same,
            1 => Self::Square,
            2 => Self::Double,
            3 => Self::Negated,
            4 => Self::Plus(constant),
            5 => Self::Minus(constant),
            // Times 2 would be the doubles again.
            _ => Self::Times(constant.max(3)),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Same => "items".to_owned(),
            Self::Square => "squares of the items".to_owned(),
            Self::Double => "doubles of the items".to_owned(),
            Self::Negated => "negated items".to_owned(),
            Self::Plus(constant) => format!("items plus {constant}"),
            Self::Minus(constant) => format!("items minus {constant}"),
            Self::Times(constant) => format!("items times {constant}"),
        }
    }

    fn update_slot(&self) -> Slot {
        use Bug::{SwappedArguments, WrongConstant, WrongExpression, WrongOperator};
        let (right, wrongs) = match self {
            Self::Same => (
                "x".to_owned(),
                vec![
                    (WrongExpression, "x * x".to_owned()),
                    (WrongExpression, "x * 2".to_owned()),
                    (WrongExpression, "-x".to_owned()),
                ],
            ),
            Self::Square => (
                "x * x".to_owned(),
                vec![
                    (WrongExpression, "x".to_owned()),
                    (WrongExpression, "x * 2".to_owned()),
                    (WrongOperator, "x + x".to_owned()),
                ],
            ),
            Self::Double => (
                "x * 2".to_owned(),
                vec![
                    (WrongExpression, "x".to_owned()),
                    (WrongExpression, "x * x".to_owned()),
                    (WrongConstant, "x * 3".to_owned()),
                ],
            ),
            Self::Negated => (
                "-x".to_owned(),
                vec![
                    (WrongExpression, "x".to_owned()),
                    (WrongExpression, "x * x".to_owned()),
                    (WrongExpression, "-x * 2".to_owned()),
                ],
            ),
            Self::Plus(constant) => (
                format!("x + {constant}"),
                vec![
                    (WrongOperator, format!("x - {constant}")),
                    (WrongOperator, format!("x * {constant}")),
                    (WrongConstant, format!("x + {}", constant + 1)),
                ],
            ),
            Self::Minus(constant) => (
                format!("x - {constant}"),
                vec![
                    (WrongOperator, format!("x + {constant}")),
                    (SwappedArguments, format!("{constant} - x")),
                    (WrongConstant, format!("x - {}", constant - 1)),
                ],
            ),
            Self::Times(constant) => (
                format!("x * {constant}"),
                vec![
                    (WrongOperator, format!("x + {constant}")),
                    (WrongExpression, "x * x".to_owned()),
                    (WrongConstant, format!("x * {}", constant + 1)),
                ],
            ),
        };
        let append = |item: String| format!("s.append({item})");
        slot(
            "update",
            append(right),
            wrongs
                .into_iter()
                .map(|(bug, item)| wrong(bug, append(item))),
        )
    }
}
