//! "Read integers from one line. Print the number of those whose double is less than the largest one."

use rand_chacha::ChaCha8Rng;

use super::condition::Comparison;
use super::{INTEGERS, Parts, pick, slot, wrong};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::Bug;

const EXTREMES: [(&str, &str, &str); 2] = [("largest", ">", "<"), ("smallest", "<", ">")];
const MULTIPLES: [(&str, i64); 3] = [("double", 2), ("triple", 3), ("fourfold", 4)];
/// What is printed, how it is gathered, and how it is not.
const GATHERED: [(&str, &str, [&str; 2]); 3] = [
    ("number", "s += 1", ["s += x", "s += 2"]),
    ("sum", "s += x", ["s += 1", "s -= x"]),
    ("sum of the squares", "s += x * x", ["s += x", "s += x * 2"]),
];

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let (extreme, sign, other_sign) = *pick(&EXTREMES, rng);
    let (multiple, factor) = *pick(&MULTIPLES, rng);
    let comparison = *pick(&Comparison::ALL, rng);
    let (words, update, others) = *pick(&GATHERED, rng);
    let better = |sign: &str| format!("x {sign} m");
    let holds =
        |factor: i64, comparison: Comparison| format!("x * {factor} {} m", comparison.sign());
    let near = comparison.near();
    Parts {
        spec: format!("{words}/{factor}/{}/{extreme}", comparison.words()),
        statement: format!(
            "Read integers from one line. Print the {words} of those whose {multiple} is {} the {extreme} one.",
            comparison.words()
        ),
        template: format!(
            "{INTEGERS}\n{{start}}\nfor x in xs:\n    if {{better}}:\n        m = x\n{{initial}}\n\
             for x in xs:\n    if {{condition}}:\n        {{update}}\nprint(s)"
        ),
        slots: vec![
            slot(
                "start",
                "m = xs[0]",
                [
                    wrong(Bug::WrongInitialValue, "m = 0"),
                    wrong(Bug::WrongInitialValue, "m = len(xs)"),
                ],
            ),
            slot(
                "better",
                better(sign),
                [
                    wrong(Bug::WrongComparison, better(other_sign)),
                    wrong(Bug::WrongComparison, better("!=")),
                ],
            ),
            slot("initial", "s = 0", [wrong(Bug::WrongInitialValue, "s = 1")]),
            slot(
                "condition",
                holds(factor, comparison),
                [
                    wrong(Bug::WrongComparison, holds(factor, near[0])),
                    wrong(Bug::WrongComparison, holds(factor, near[1])),
                    wrong(Bug::WrongConstant, holds(factor + 1, comparison)),
                    wrong(Bug::WrongConstant, holds(factor - 1, comparison)),
                ],
            ),
            slot(
                "update",
                update,
                others.map(|other| wrong(Bug::WrongAccumulator, other)),
            ),
        ],
        arguments: Arguments::Filled,
    }
}
