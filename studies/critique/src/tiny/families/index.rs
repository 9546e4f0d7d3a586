//! "Return the index of the last item of xs that is even, or -1 if there is none."

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Condition, Parts, Scope, condition_slot, pick, slot, wrong, wrong_defaults};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::Bug;

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let first = rng.random_bool(0.5);
    let none = *pick(&["0", "-1", "None"], rng);
    let condition = Condition::draw(Scope::EACH, rng);
    let (forward, backward) = ("range(len(xs))", "reversed(range(len(xs)))");
    let (word, right, wrongs) = if first {
        (
            "first",
            forward,
            [
                (Bug::WrongOrder, backward),
                (Bug::OffByOne, "range(1, len(xs))"),
            ],
        )
    } else {
        let short = "reversed(range(len(xs) - 1))";
        (
            "last",
            backward,
            [(Bug::WrongOrder, forward), (Bug::OffByOne, short)],
        )
    };
    let give_back = |default: &str| format!("return {default}");
    let mut slots = vec![slot(
        "range",
        right,
        wrongs.map(|(bug, range)| wrong(bug, range)),
    )];
    slots.extend(condition_slot(Some(&condition), "xs[i]"));
    slots.push(slot(
        "result",
        "return i",
        [
            wrong(Bug::WrongResult, "return xs[i]"),
            wrong(Bug::OffByOne, "return i + 1"),
        ],
    ));
    slots.push(slot(
        "default",
        give_back(none),
        wrong_defaults(none, give_back),
    ));
    Parts {
        spec: format!("{word}/{none}/{}", condition.spec()),
        statement: format!(
            "Return the index of the {word} item of xs that is {}, or {none} if there is none.",
            condition.words()
        ),
        template: "def f(xs):\n    for i in {range}:\n        if {condition}:\n            \
                   {result}\n    {default}"
            .to_owned(),
        slots,
        arguments: Arguments::Items,
    }
}
