//! "Return the product of the integers from a to b included that are at most 3."

use rand::RngExt;
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
    let included = rng.random_bool(0.5);
    let (right, short, late) = if included {
        ("range(a, b + 1)", "range(a, b)", "range(a + 1, b + 1)")
    } else {
        ("range(a, b)", "range(a, b + 1)", "range(a + 1, b)")
    };
    let mut slots = vec![
        aggregate.initial_slot(),
        slot(
            "range",
            right,
            [wrong(Bug::OffByOne, short), wrong(Bug::OffByOne, late)],
        ),
    ];
    slots.extend(condition_slot(condition, "i"));
    slots.push(aggregate.update_slot("i"));
    let end = if included { "included" } else { "excluded" };
    Parts {
        spec: format!("{}/{end}/{}", aggregate.words(), condition_spec(condition)),
        statement: format!(
            "Return the {} of the integers from a to b {end}{}.",
            aggregate.words(),
            that_are(condition)
        ),
        template: format!(
            "def f(a, b):\n    {{initial}}\n    for i in {{range}}:\n{}    return s",
            guarded_update(condition)
        ),
        slots,
        arguments: Arguments::Bounds,
    }
}
