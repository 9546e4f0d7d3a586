//! "Read integers from one line. Print the length of the longest run of numbers that are odd."

use rand_chacha::ChaCha8Rng;

use super::{Condition, INTEGERS, Parts, Scope, condition_slot, pick, slot, wrong};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::Bug;

/// What of a run is compared, how it grows, and how it does not.
const MEASURED: [(&str, &str, [&str; 2]); 3] = [
    ("length of the longest run", "s += 1", ["s += x", "s = 1"]),
    ("largest sum of a run", "s += x", ["s += 1", "s = x"]),
    (
        "largest sum of squares of a run",
        "s += x * x",
        ["s += x", "s += x * 2"],
    ),
];

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let (words, grow, others) = *pick(&MEASURED, rng);
    let condition = Condition::draw(Scope::EACH, rng);
    let mut slots = vec![slot(
        "initial",
        "m = 0",
        [wrong(Bug::WrongInitialValue, "m = 1")],
    )];
    slots.extend(condition_slot(Some(&condition), "x"));
    slots.extend([
        slot(
            "grow",
            grow,
            others.map(|other| wrong(Bug::WrongAccumulator, other)),
        ),
        slot(
            "reset",
            "s = 0",
            [
                wrong(Bug::WrongInitialValue, "s = 1"),
                wrong(Bug::WrongAccumulator, "s -= 1"),
            ],
        ),
        slot(
            "keep",
            "m = max(m, s)",
            [
                wrong(Bug::WrongOperator, "m = min(m, s)"),
                wrong(Bug::WrongAccumulator, "m = s"),
            ],
        ),
        slot(
            "result",
            "print(m)",
            [
                wrong(Bug::WrongResult, "print(s)"),
                wrong(Bug::OffByOne, "print(m + 1)"),
            ],
        ),
    ]);
    Parts {
        spec: format!("{words}/{}", condition.spec()),
        statement: format!(
            "Read integers from one line. Print the {words} of numbers that are {}.",
            condition.words()
        ),
        template: format!(
            "{INTEGERS}\ns = 0\n{{initial}}\nfor x in xs:\n    if {{condition}}:\n        {{grow}}\n    \
             else:\n        {{reset}}\n    {{keep}}\n{{result}}"
        ),
        slots,
        arguments: Arguments::Screened {
            condition,
            satisfied: true,
        },
    }
}
