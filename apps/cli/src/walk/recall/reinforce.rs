//! Phase `rl`: the trained roles learn from how questions are answered.

use recall::Task;
use serde_json::json;
use train::StepDone;

use super::{
    RecallRun,
    evaluate::of_budget,
    players::{cast, study},
    recipe::Recipe,
};
use crate::{
    failure::Outcome,
    screen::count_of,
    walk::{
        checkpoints::{Models, reinforced_checkpoint, supervised_checkpoint},
        reinforce::{Reinforced, Reinforcement},
        tasks::TaskSets,
        vocabulary::Chats,
    },
};

impl RecallRun<'_> {
    /// Trains the policies with a trained role and returns the weights of all.
    pub(super) fn reinforce(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        models: &Models,
    ) -> Outcome<Models> {
        let (frame, recipe) = (self.frame, self.recipe);
        let advantage = json!(recipe.rl.algorithm.advantage);
        frame.screen.headline(format!(
            "Reinforcement: {}, paid by the answers; advantages by {}",
            recipe.rl.train.join(" and "),
            advantage.as_str().unwrap_or_default()
        ));
        let common = recipe.common();
        let (trained, frozen): (Vec<_>, Vec<_>) =
            common.policies.iter().partition(|policy| policy.reinforced);
        let names =
            |policies: &[&crate::walk::PolicySettings<'_>]| -> Vec<(String, String, String)> {
                let name = |policy: &&crate::walk::PolicySettings<'_>| {
                    let name = policy.name;
                    (
                        name.to_owned(),
                        supervised_checkpoint(name),
                        reinforced_checkpoint(name),
                    )
                };
                policies.iter().map(name).collect()
            };
        let mut others = Models::new();
        for policy in frozen {
            others.extend(
                models
                    .get_key_value(policy.name)
                    .map(|(name, model)| (name.clone(), model.clone())),
            );
        }
        let names = names(&trained);
        let mut policies = Vec::new();
        for (policy, (name, base, checkpoint)) in trained.iter().zip(&names) {
            let plays = recipe.samplings(name);
            policies.push(Reinforced {
                policy,
                roles: plays
                    .iter()
                    .map(|(role, _)| *role)
                    .filter(|role| recipe.rl.train.iter().any(|trained| trained == role))
                    .collect(),
                plays,
                algorithm: recipe.algorithm(name),
                optimizer: recipe.optimizer(name),
                chat: chats.of(name)?,
                base,
                model: models[name].clone(),
                checkpoint,
            });
        }
        let reinforcement = Reinforcement {
            policies,
            frozen: cast(frame.engines, recipe, chats, &others, None)?,
            study: study(recipe.config(), chats, recipe)?,
            tasks: &sets.train,
            config: &recipe.rl,
            rollout: &recipe.rollout,
            seed: frame.seed.stream("rl", 0),
        };
        let learnt = frame.reinforce(reinforcement, |done| line(recipe, done))?;
        let learnt = names.into_iter().map(|(name, ..)| name).zip(learnt);
        Ok(others.into_iter().chain(learnt).collect())
    }
}

/// What a person wants to see of a step.
fn line(recipe: &Recipe, done: &StepDone<'_>) -> String {
    let metric = |name: &str| done.metrics.get(name).copied();
    let timing = |name: &str| done.timings.get(name).copied().unwrap_or(f64::NAN);
    let again = if done.replayed { " (done before)" } else { "" };
    let mut said = format!(
        "reward {:.3}",
        metric("critic/score/mean").unwrap_or(f64::NAN)
    );
    for (label, name) in [("F1", "f1"), ("exact match", "exact_match")] {
        if let Some(value) = metric(name) {
            said += &format!(", {label} {value:.2}");
        }
    }
    for (name, value) in done.metrics {
        // Of one policy, or of each of several behind its name.
        if let Some(policy) = name.strip_suffix("actor/kl_loss") {
            said += &format!(", {}KL {value:.4}", policy.replace('/', " "));
        }
    }
    if let Some(tokens) = metric("context_tokens") {
        said += &format!(", {}", of_budget(recipe, tokens));
    }
    if let Some(alone) = metric("rollout/singleton_groups").filter(|alone| *alone > 0.0) {
        let groups = count_of(alone as usize, "group");
        said += &format!(", {groups} with one verdict alone to learn nothing from");
    }
    let mixed = 1.0 - metric("rollout/zero_variance_share").unwrap_or(f64::NAN);
    said + &format!(
        ", mixed groups {mixed:.2}, {:.1} s{again}",
        timing("timing_s/step")
    )
}
