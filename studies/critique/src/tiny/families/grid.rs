//! "Read n. Print the number of pairs of integers from 1 to n, the second at most the first, whose product is odd."

use rand_chacha::ChaCha8Rng;

use super::{Condition, Parts, Scope, pick, slot, wrong};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::Bug;

const OPERATIONS: [(&str, &str); 2] = [("sum", "+"), ("product", "*")];
const ORDERS: [(&str, &str, [&str; 2]); 2] = [
    (
        "at most",
        "range(1, i + 1)",
        ["range(1, i)", "range(1, n + 1)"],
    ),
    (
        "less than",
        "range(1, i)",
        ["range(1, i + 1)", "range(1, n)"],
    ),
];
/// What is printed of the pairs, how it is gathered, and how it is not.
const GATHERED: [(&str, &str, [&str; 2]); 2] = [
    ("number of pairs", "s += 1", ["s += 2", "s += i"]),
    (
        "sum of the first of the pairs",
        "s += i",
        ["s += j", "s += 1"],
    ),
];

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let (word, sign) = *pick(&OPERATIONS, rng);
    let (order, inner, other_inner) = *pick(&ORDERS, rng);
    let (words, update, others) = *pick(&GATHERED, rng);
    let condition = Condition::draw(Scope::EACH, rng);
    let combine = |sign: &str| format!("x = i {sign} j");
    let other = OPERATIONS.into_iter().find(|(_, other)| *other != sign);
    Parts {
        spec: format!("{words}/{word}/{order}/{}", condition.spec()),
        statement: format!(
            "Read n. Print the {words} of integers from 1 to n, the second {order} the first, whose {word} is {}.",
            condition.words()
        ),
        template: "n = int(input())\n{initial}\nfor i in {outer}:\n    for j in {inner}:\n        {expression}\n        \
                   if {condition}:\n            {update}\nprint(s)"
            .to_owned(),
        slots: vec![
            slot("initial", "s = 0", [wrong(Bug::WrongInitialValue, "s = 1")]),
            slot(
                "outer",
                "range(1, n + 1)",
                [
                    wrong(Bug::OffByOne, "range(1, n)"),
                    wrong(Bug::OffByOne, "range(n + 2)"),
                ],
            ),
            slot("inner", inner, other_inner.map(|range| wrong(Bug::OffByOne, range))),
            slot(
                "expression",
                combine(sign),
                other
                    .into_iter()
                    .map(|(_, other)| wrong(Bug::WrongOperator, combine(other)))
                    .chain([wrong(Bug::WrongOperator, combine("-"))]),
            ),
            slot("condition", condition.fragment("x"), condition.wrong("x")),
            slot("update", update, others.map(|other| wrong(Bug::WrongAccumulator, other))),
        ],
        arguments: Arguments::Small,
    }
}
