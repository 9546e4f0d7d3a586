//! "Return whether all items of xs are at least 4."

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Condition, Parts, Scope, slot, wrong};
use crate::tiny::arguments::Arguments;
use crate::tiny::function::{Bug, Wrong};

pub(super) fn draw(rng: &mut ChaCha8Rng) -> Parts {
    let all = rng.random_bool(0.5);
    let condition = Condition::draw(Scope::EACH, rng);
    let (word, start, found) = if all {
        ("all", "True", "False")
    } else {
        ("any", "False", "True")
    };
    let holds = condition.fragment("x");
    let denied = format!("not {holds}");
    let mut wrongs: Vec<Wrong> = condition.wrong("x").into_iter().take(3).collect();
    if all {
        for wrong in &mut wrongs {
            wrong.fragment = format!("not {}", wrong.fragment);
        }
    }
    let (right, other) = if all {
        (denied, holds)
    } else {
        (holds, denied)
    };
    wrongs.push(wrong(Bug::MissingNegation, other));
    Parts {
        spec: format!("{word}/{}", condition.spec()),
        statement: format!(
            "Return whether {word} items of xs are {}.",
            condition.words()
        ),
        template:
            "def f(xs):\n    {initial}\n    for x in xs:\n        if {condition}:\n            \
                   {update}\n    return ok"
                .to_owned(),
        slots: vec![
            slot(
                "initial",
                format!("ok = {start}"),
                [wrong(Bug::WrongInitialValue, format!("ok = {found}"))],
            ),
            slot("condition", right, wrongs),
            slot(
                "update",
                format!("ok = {found}"),
                [wrong(Bug::WrongAccumulator, format!("ok = {start}"))],
            ),
        ],
        arguments: Arguments::Screened {
            condition,
            satisfied: all,
        },
    }
}
