//! Phase `rl`: the critic learns from what its critiques lead to.

use std::sync::Arc;

use critique::{CRITIC, Purpose, REVISER};
use engine::Model;
use learn::{EngineTrainer, EngineValueTrainer, Trainer, ValueTrainer};
use rollout::{Roles, Runner};
use serde_json::json;
use train::{Reinforce, StepDone};

use super::{
    Walk, adapters::learner_options, supervise::CRITIC_SFT, tasks::TaskSets, vocabulary::Chats,
};
use crate::failure::{Classify, Outcome};

const PHASE: &str = "rl";

/// Checkpoint of the critic after reinforcement.
pub(crate) const CRITIC_RL: &str = "critic-rl";

impl Walk<'_> {
    /// Trains the critic and returns its weights; the reviser and the reference stay as they are.
    pub(super) fn reinforce(
        &self,
        sets: &TaskSets,
        chats: &Chats,
        critic: &Arc<Model>,
        reviser: &Arc<Model>,
    ) -> Outcome<Arc<Model>> {
        let advantage = json!(self.recipe.rl.algorithm.advantage);
        self.screen.headline(format!(
            "Reinforcement: the critic, paid by the revision's tests; advantages by {}",
            advantage.as_str().unwrap_or_default()
        ));
        if self.replay.checkpoint(CRITIC_RL).is_some() {
            self.screen.say("  done before");
            return self.load_model(CRITIC_RL).map(Arc::new);
        }
        let engine = &self.instruments.engine;
        let (reference, stages) = (critic, self.recipe.sft.critic.len());
        let seed = self.seed().stream("rl", 0);
        let role = (CRITIC, &self.recipe.critic, stages);
        let critic = &self.adapted(role, CRITIC_SFT, &chats.critic, reference.clone(), seed)?;
        let options = learner_options(&self.recipe.training, seed);
        let reference = Some(reference.clone());
        let mut trainer = EngineTrainer::new(engine, critic.clone(), reference, options);
        let mut values = self.recipe.rl.value.as_ref().map(|_| {
            // A value function begins as what the policy begins as.
            EngineValueTrainer::new(engine, critic.clone(), options)
        });
        let policy = Arc::new(
            self.instruments
                .policy(CRITIC, &chats.critic, critic.clone())?,
        );
        let frozen = Arc::new(
            self.instruments
                .policy(REVISER, &chats.reviser, reviser.clone())?,
        );
        let roles = Roles::default()
            .bind(CRITIC, policy.clone(), self.recipe.critic.sampling())
            .bind(REVISER, frozen, self.recipe.reviser.sampling());
        let study = self.instruments.study(self.recipe, Purpose::Training);
        let mut runner = Runner::new(study.clone(), roles, self.recipe.rollout.clone());
        if self.recipe.rl.algorithm.advantage.needs_greedy() {
            runner = runner.with_greedy(CRITIC);
        }
        let reinforce = Reinforce {
            phase: PHASE,
            run: self.run,
            chat: &chats.critic,
            replay: self.replay,
            study: study.as_ref(),
            runner: &runner,
            tasks: &sets.train,
            role: CRITIC,
            config: &self.recipe.rl,
            seed,
            runtime: self.instruments.runtime.handle(),
            stop: self.stop,
        };
        self.phase(PHASE, || {
            let work = self.screen.work(PHASE, self.recipe.rl.steps);
            let trained = reinforce.train(
                &mut trainer,
                values
                    .as_mut()
                    .map(|values| values as &mut dyn ValueTrainer),
                |published| policy.publish(published.weights, published.version),
                |_, _| {},
                |done| {
                    work.note(done.step, &line(&done), true);
                },
            );
            self.classify(trained)?;
            work.done(format!("{} steps", self.recipe.rl.steps));
            Ok(0)
        })?;
        if self.replay.phase_ended(PHASE).is_some() {
            self.load_stage(PHASE, &mut trainer)?;
        }
        let model = trainer.publish().failed()?.weights;
        self.save_model(CRITIC_RL, &chats.critic, &model)?;
        Ok(model)
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
