//! What a repair recipe would do, in numbers.

use super::{
    recipe::{Patcher, Recipe},
    tasks::tasks_of,
};
use crate::{
    failure::Outcome,
    plan::{PhasePlan, Plan},
};

/// Seconds of a run of tests, about: an interpreter, a framework, and a package of some thousand lines.
const TEST_RUN: f64 = 0.5;

pub(super) fn add(recipe: &Recipe, plan: &mut Plan) -> Outcome<()> {
    let tasks = tasks_of(recipe, |package| Ok(package.name.into()))?;
    let episodes = tasks.len() as f64 * f64::from(recipe.eval.samples);
    let candidates = match &recipe.patcher {
        Patcher::Search(settings) => settings.budget,
        // Every repair proposes one patch, or a few.
        Patcher::Model(_) | Patcher::Generate(_) => 4,
    };
    let runs = episodes * candidates as f64;
    let at_once = recipe
        .rollout
        .concurrency
        .min(crate::machine::cores())
        .max(1);
    let tier = recipe.sandbox.backend;
    plan.sandbox_tier = Some(format!("{tier:?}").to_lowercase());
    plan.phase(PhasePlan {
        phase: "eval, at most".to_owned(),
        steps: 0,
        tokens: 0.0,
        sandbox_runs: runs,
        seconds: runs * TEST_RUN / at_once as f64,
    });
    Ok(())
}
