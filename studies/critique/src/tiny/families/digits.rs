//! "Return the sum of the digits of n that are even."

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
        Some(Condition::draw(Scope::DIGITS, rng))
    } else {
        Condition::draw_optional(Scope::DIGITS, rng)
    };
    let condition = condition.as_ref();
    let mut slots = vec![
        aggregate.initial_slot(),
        slot(
            "loop",
            "n > 0",
            [
                wrong(Bug::OffByOne, "n > 9"),
                wrong(Bug::WrongConstant, "n > 99"),
            ],
        ),
        slot(
            "digit",
            "d = n % 10",
            [
                wrong(Bug::WrongOperator, "d = n // 10"),
                wrong(Bug::WrongConstant, "d = n % 9"),
            ],
        ),
    ];
    slots.extend(condition_slot(condition, "d"));
    slots.push(aggregate.update_slot("d"));
    Parts {
        spec: format!("{}/{}", aggregate.words(), condition_spec(condition)),
        statement: format!(
            "Return the {} of the digits of n{}.",
            aggregate.words(),
            that_are(condition)
        ),
        template: format!(
            "def f(n):\n    {{initial}}\n    while {{loop}}:\n        {{digit}}\n{}        n //= \
             10\n    return s",
            guarded_update(condition)
        ),
        slots,
        arguments: Arguments::Natural,
    }
}
