//! "Read integers from one line. Start with 5, add those that are even and subtract the others, but never go below
//! 2. Print the result."

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Condition, INTEGERS, Parts, Scope, condition_slot, slot, wrong};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::Bug;

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let start = rng.random_range(3..=9i64);
    let bound = rng.random_range(0..=2i64);
    let below = rng.random_bool(0.5);
    let condition = Condition::draw(Scope::EACH, rng);
    let begin = |value: i64| format!("s = {value}");
    let (word, keep, other) = if below {
        ("below", "max", "min")
    } else {
        ("above", "min", "max")
    };
    let bound = if below { bound } else { bound + 10 };
    let kept = |of: &str, bound: i64| format!("s = {of}(s, {bound})");
    let mut slots = vec![slot(
        "initial",
        begin(start),
        [
            wrong(Bug::WrongInitialValue, begin(0)),
            wrong(Bug::WrongConstant, begin(start + 1)),
        ],
    )];
    slots.extend(condition_slot(Some(&condition), "x"));
    slots.extend([
        slot(
            "add",
            "s += x",
            [
                wrong(Bug::WrongAccumulator, "s += 1"),
                wrong(Bug::WrongAccumulator, "s = x"),
            ],
        ),
        slot(
            "subtract",
            "s -= x",
            [
                wrong(Bug::WrongAccumulator, "s -= 1"),
                wrong(Bug::SwappedArguments, "s = x - s"),
            ],
        ),
        slot(
            "bound",
            kept(keep, bound),
            [
                wrong(Bug::WrongOperator, kept(other, bound)),
                wrong(Bug::WrongConstant, kept(keep, bound + 1)),
                wrong(Bug::MissingEdgeCase, ""),
            ],
        ),
    ]);
    Parts {
        spec: format!("{start}/{word}-{bound}/{}", condition.spec()),
        statement: format!(
            "Read integers from one line. Start with {start}, add those that are {} and subtract the others, but \
             never go {word} {bound}. Print the result.",
            condition.words()
        ),
        template: format!(
            "{INTEGERS}\n{{initial}}\nfor x in xs:\n    if {{condition}}:\n        {{add}}\n    else:\n        \
             {{subtract}}\n    {{bound}}\nprint(s)"
        ),
        slots,
        arguments: Arguments::Items,
    }
}
