//! Phase `rl`: the critic learns from what its critiques lead to.

use std::sync::Arc;

use anyhow::Context;
use critique::{CRITIC, Purpose, REVISER, Task};
use engine::Model;
use rollout::Roles;
use serde_json::json;
use train::StepDone;

use super::{CritiqueRun, lessons::CRITIC_SFT, players::Weights, role::RoleModel};
use crate::{
    failure::{Classify, Outcome},
    walk::{
        reinforce::{Reinforced, Reinforcement},
        tasks::TaskSets,
        vocabulary::Chats,
    },
};

/// Checkpoint of the critic after reinforcement.
pub(super) const CRITIC_RL: &str = "critic-rl";

impl CritiqueRun<'_> {
    /// Trains the critic and returns its weights; `None` where the recipe trains it no further.
    pub(super) fn reinforce(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        critic: &Weights,
        reviser: &Weights,
    ) -> Outcome<Option<Arc<Model>>> {
        let (frame, recipe) = (self.frame, self.recipe);
        let (Some(rl), Some(model)) = (&recipe.rl, critic) else {
            return Ok(None);
        };
        let advantage = json!(rl.algorithm.advantage);
        frame.screen.headline(format!(
            "Reinforcement: the critic, paid by the revision's tests; advantages by {}",
            advantage.as_str().unwrap_or_default()
        ));
        let common = recipe.common();
        let sampling = recipe.reviser.sampling();
        let mut plays = vec![(CRITIC, recipe.critic.sampling())];
        let mut frozen = Roles::default();
        match recipe.reviser.model {
            // It revises and learns from its critiques alone.
            RoleModel::Critic => plays.push((REVISER, sampling)),
            _ => {
                let reviser = self.reviser(chats, reviser, critic)?;
                frozen = frozen.bind_answers(REVISER, reviser, sampling);
            }
        }
        let trained = Reinforced {
            policy: common.policy(CRITIC)?,
            plays,
            roles: vec![CRITIC],
            algorithm: &rl.algorithm,
            optimizer: &rl.optimizer,
            chat: chats.of(CRITIC)?,
            base: CRITIC_SFT,
            model: model.clone(),
            checkpoint: CRITIC_RL,
        };
        let reinforcement = Reinforcement {
            policies: vec![trained],
            frozen,
            study: self.instruments.study(recipe, Purpose::Training),
            tasks: &sets.train,
            config: rl,
            rollout: &recipe.rollout,
            seed: frame.seed.stream("rl", 0),
        };
        let mut models = frame.reinforce(reinforcement, line)?;
        models
            .pop()
            .context("no critic was trained")
            .failed()
            .map(Some)
    }
}

/// What a person wants to see of a step.
fn line(done: &StepDone<'_>) -> String {
    let metric = |name: &str| done.metrics.get(name).copied().unwrap_or(f64::NAN);
    let timing = |name: &str| done.timings.get(name).copied().unwrap_or(f64::NAN);
    let again = if done.replayed { " (done before)" } else { "" };
    // Of the update; of the episodes where it has no KL term, or there was none.
    let kl = done.metrics.get("actor/kl_loss").copied();
    format!(
        "reward {:.3}, KL {:.4}, judged right {:.2}, mixed groups {:.2}, {:.1} s{again}",
        metric("critic/score/mean"),
        kl.unwrap_or_else(|| metric("actor/kl")),
        metric("judgment_accuracy"),
        1.0 - metric("rollout/zero_variance_share"),
        timing("timing_s/step"),
    )
}
