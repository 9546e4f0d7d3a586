//! "Read integers from one line. Print the sum of those that are odd."

use rand_chacha::ChaCha8Rng;

use super::aggregate::Aggregate;
use super::{
    Condition, INTEGERS, Parts, Scope, condition_slot, condition_spec, slot, that_are, wrong,
};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::Bug;

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let aggregate = Aggregate::draw(rng);
    let condition = Condition::draw(Scope::GATHERED, rng);
    let condition = Some(&condition);
    let mut slots = vec![aggregate.initial_slot()];
    slots.extend(condition_slot(condition, "x"));
    slots.push(aggregate.update_slot("x"));
    slots.push(slot(
        "result",
        "print(s)",
        [
            wrong(Bug::OffByOne, "print(s + 1)"),
            wrong(Bug::WrongResult, "print(-s)"),
        ],
    ));
    Parts {
        spec: format!("{}/{}", aggregate.words(), condition_spec(condition)),
        statement: format!(
            "Read integers from one line. Print the {} of those{}.",
            aggregate.words(),
            that_are(condition)
        ),
        template: format!(
            "{INTEGERS}\n{{initial}}\nfor x in xs:\n    if {{condition}}:\n        {{update}}\n{{result}}"
        ),
        slots,
        arguments: Arguments::Items,
    }
}
