//! "Return the sum of the items of xs that are odd."

use rand_chacha::ChaCha8Rng;

use super::aggregate::Aggregate;
use super::{
    Condition, Parts, Scope, condition_slot, condition_spec, guarded_update, slot, that_are, wrong,
};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::Bug;

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let aggregate = Aggregate::draw(rng);
    let condition = if aggregate.needs_condition() {
        Some(Condition::draw(Scope::GATHERED, rng))
    } else {
        Condition::draw_optional(Scope::GATHERED, rng)
    };
    let condition = condition.as_ref();
    let mut slots = vec![aggregate.initial_slot()];
    slots.extend(condition_slot(condition, "x"));
    slots.push(aggregate.update_slot("x"));
    slots.push(slot(
        "result",
        "return s",
        [
            wrong(Bug::OffByOne, "return s + 1"),
            wrong(Bug::WrongResult, "return -s"),
        ],
    ));
    Parts {
        spec: format!("{}/{}", aggregate.words(), condition_spec(condition)),
        statement: format!(
            "Return the {} of the items of xs{}.",
            aggregate.words(),
            that_are(condition)
        ),
        template: format!(
            "def f(xs):\n    {{initial}}\n    for x in xs:\n{}    {{result}}",
            guarded_update(condition)
        ),
        slots,
        arguments: Arguments::Items,
    }
}
