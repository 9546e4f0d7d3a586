//! "Return the number of pairs of items of xs whose product is less than 4."

use rand_chacha::ChaCha8Rng;

use super::{Condition, Parts, pick, slot, wrong};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::Bug;

const OPERATIONS: [(&str, &str); 3] = [("sum", "+"), ("product", "*"), ("difference", "-")];

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let condition = Condition::draw_comparison(1..=12, rng);
    let (word, sign) = *pick(&OPERATIONS, rng);
    let combine = |sign: &str| format!("y = xs[i] {sign} xs[j]");
    let others = OPERATIONS.into_iter().filter(|(_, other)| *other != sign);
    Parts {
        spec: format!("{word}/{}", condition.spec()),
        statement: format!(
            "Return the number of pairs of items of xs whose {word} is {}.",
            condition.words()
        ),
        template: "def f(xs):\n    {initial}\n    for i in range(len(xs)):\n        for j in \
                   {range}:\n            {expression}\n            if {condition}:\n                \
                   {update}\n    return s"
            .to_owned(),
        slots: vec![
            slot("initial", "s = 0", [wrong(Bug::WrongInitialValue, "s = 1")]),
            slot(
                "range",
                "range(i + 1, len(xs))",
                [
                    wrong(Bug::OffByOne, "range(i, len(xs))"),
                    wrong(Bug::WrongConstant, "range(1, len(xs))"),
                ],
            ),
            slot(
                "expression",
                combine(sign),
                others.map(|(_, other)| wrong(Bug::WrongOperator, combine(other))),
            ),
            slot("condition", condition.fragment("y"), condition.wrong("y")),
            slot(
                "update",
                "s += 1",
                [wrong(Bug::WrongAccumulator, "s += y"), wrong(Bug::WrongConstant, "s += 2")],
            ),
        ],
        arguments: Arguments::Items,
    }
}
