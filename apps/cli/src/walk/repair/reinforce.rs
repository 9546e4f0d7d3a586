//! Phase `rl`: the planner learns from what its plans lead to.

use repair::{Task, planner::PLANNER};
use train::StepDone;

use super::{
    RepairRun,
    players::{cast, study},
};
use crate::{
    failure::{Classify, Outcome},
    walk::{
        checkpoints::{Models, reinforced_checkpoint, supervised_checkpoint},
        reinforce::{Reinforced, Reinforcement},
        tasks::TaskSets,
        vocabulary::Chats,
    },
};

impl RepairRun<'_> {
    /// Trains the planner and returns the weights of all local policies.
    pub(super) fn reinforce(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        models: &Models,
    ) -> Outcome<Models> {
        let (frame, recipe) = (self.frame, self.recipe);
        let Some(config) = &recipe.rl else {
            return Ok(models.clone());
        };
        frame
            .screen
            .headline("Reinforcement: the planner is paid for what its plans lead to");
        let common = recipe.common();
        let trained = common.policies.iter().find(|policy| policy.reinforced);
        let policy = trained
            .ok_or_else(|| anyhow::anyhow!("no policy is trained"))
            .failed()?;
        let (base, checkpoint) = (
            supervised_checkpoint(policy.name),
            reinforced_checkpoint(policy.name),
        );
        let own = &recipe.policies[policy.name];
        let plays = own.roles.iter();
        let plays = plays.map(|(role, sampling)| (role.as_str(), sampling.sampling()));
        let mut others = models.clone();
        others.remove(policy.name);
        let reinforcement = Reinforcement {
            policies: vec![Reinforced {
                policy,
                roles: vec![PLANNER],
                plays: plays.collect(),
                algorithm: &config.algorithm,
                optimizer: &config.optimizer,
                chat: chats.of(policy.name)?,
                base: &base,
                model: models[policy.name].clone(),
                checkpoint: &checkpoint,
            }],
            frozen: cast(frame.engines, recipe, chats, &others, None)?,
            study: study(recipe, recipe.config(), chats, self.instruments)?,
            tasks: &sets.train,
            config,
            rollout: &recipe.rollout,
            seed: frame.seed.stream("rl", 0),
        };
        let learnt = frame.reinforce(reinforcement, line)?;
        others.extend(
            learnt
                .into_iter()
                .map(|model| (policy.name.to_owned(), model)),
        );
        Ok(others)
    }
}

/// What a person wants to see of a step.
fn line(done: &StepDone<'_>) -> String {
    let metric = |name: &str| done.metrics.get(name).copied().unwrap_or(f64::NAN);
    let timing = |name: &str| done.timings.get(name).copied().unwrap_or(f64::NAN);
    let again = if done.replayed { " (done before)" } else { "" };
    let kl = done.metrics.get("actor/kl_loss");
    let kl = kl.map_or_else(String::new, |kl| format!(", KL {kl:.4}"));
    format!(
        "reward {:.3}, resolved {:.2}, {:.1} candidates{kl}, mixed groups {:.2}, {:.1} s{again}",
        metric("critic/score/mean"),
        metric("resolved"),
        metric("candidates"),
        1.0 - metric("rollout/zero_variance_share"),
        timing("timing_s/step"),
    )
}
