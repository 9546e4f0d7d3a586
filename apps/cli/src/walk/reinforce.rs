//! Phase `rl`: policies learn from what their responses lead to.

use std::sync::Arc;

use chat::Chat;
use engine::Model;
use learn::{
    AlgorithmConfig, EngineTrainer, EngineValueTrainer, OptimizerConfig, Trainer, ValueTrainer,
};
use policy::{EnginePolicy, Policy};
use record::{Sampling, Seed};
use rollout::{Options as RolloutOptions, Roles, Runner, Study};
use train::{Reinforce, ReinforceConfig, StepDone, TrainedPolicy};

use super::{Frame, adapters::seen_from, settings::PolicySettings};
use crate::failure::{Classify, Outcome};

pub(crate) const PHASE: &str = "rl";

/// Policies that are reinforced together, and all that they are played with.
pub(crate) struct Reinforcement<'a, S: Study> {
    pub(crate) policies: Vec<Reinforced<'a>>,
    /// The roles that stay as they are.
    pub(crate) frozen: Roles,
    pub(crate) study: Arc<S>,
    pub(crate) tasks: &'a [Arc<S::Task>],
    pub(crate) config: &'a ReinforceConfig,
    pub(crate) rollout: &'a RolloutOptions,
    pub(crate) seed: Seed,
}

/// A policy that is reinforced.
pub(crate) struct Reinforced<'a> {
    pub(crate) policy: &'a PolicySettings<'a>,
    /// Every role that it plays, and how.
    pub(crate) plays: Vec<(&'a str, Sampling)>,
    /// Those of them whose calls it learns from.
    pub(crate) roles: Vec<&'a str>,
    pub(crate) algorithm: &'a AlgorithmConfig,
    pub(crate) optimizer: &'a OptimizerConfig,
    pub(crate) chat: &'a Chat,
    /// What it begins as: the checkpoint's name, and the weights.
    pub(crate) base: &'a str,
    pub(crate) model: Arc<Model>,
    /// Where it ends up.
    pub(crate) checkpoint: &'a str,
}

/// What a policy is trained and played with.
struct Training {
    trainer: EngineTrainer,
    values: Option<EngineValueTrainer>,
    player: Arc<EnginePolicy>,
}

impl Training {
    fn of<'a>(&'a mut self, one: &'a Reinforced<'_>) -> TrainedPolicy<'a, EngineTrainer> {
        let player = self.player.clone();
        TrainedPolicy {
            name: one.policy.name,
            roles: &one.roles,
            chat: one.chat,
            trainer: &mut self.trainer,
            algorithm: one.algorithm,
            optimizer: one.optimizer,
            values: self
                .values
                .as_mut()
                .map(|values| values as &mut dyn ValueTrainer),
            publish: Box::new(move |published| {
                player.publish(published.weights, published.version);
            }),
        }
    }
}

impl Frame<'_> {
    /// Trains the policies and returns their weights in the same order; references and frozen roles stay as
    /// they are. `line` says a step to people.
    pub(crate) fn reinforce<S: Study>(
        &self,
        of: Reinforcement<'_, S>,
        line: impl Fn(&StepDone<'_>) -> String,
    ) -> Outcome<Vec<Arc<Model>>> {
        let done = |one: &Reinforced<'_>| self.replay.checkpoint(one.checkpoint).is_some();
        if of.policies.iter().all(done) {
            self.screen.say("  done before");
            let models = of
                .policies
                .iter()
                .map(|one| self.load_model(one.checkpoint));
            return models.map(|model| model.map(Arc::new)).collect();
        }
        let config = of.config;
        let several = of.policies.len() > 1;
        let mut trainings = Vec::new();
        let mut roles = of.frozen;
        for one in &of.policies {
            let training = self.prepare(one, config, several, of.seed)?;
            for (role, sampling) in &one.plays {
                let player = training.player.clone() as Arc<dyn Policy>;
                roles = roles.bind(role, player, sampling.clone());
            }
            trainings.push(training);
        }
        let mut runner = Runner::new(of.study.clone(), roles, of.rollout.clone());
        if config.algorithm.advantage.needs_greedy() {
            let learning = of.policies.iter().flat_map(|one| &one.roles);
            runner = runner.with_greedy(&learning.copied().collect::<Vec<_>>());
        }
        let reinforce = Reinforce {
            phase: PHASE,
            run: self.run,
            replay: self.replay,
            study: of.study.as_ref(),
            runner: &runner,
            tasks: of.tasks,
            config,
            seed: of.seed,
            runtime: self.engines.runtime.handle(),
            stop: self.stop,
        };
        self.phase(PHASE, || {
            let work = self.screen.work(PHASE, config.steps);
            let pairs = of.policies.iter().zip(&mut trainings);
            let mut policies: Vec<_> = pairs.map(|(one, training)| training.of(one)).collect();
            let trained = reinforce.train(
                &mut policies,
                |_, _| {},
                |done| {
                    work.note(done.step, &line(&done), true);
                },
            );
            self.classify(trained)?;
            work.done(format!("{} steps", config.steps));
            Ok(0)
        })?;
        let mut models = Vec::new();
        for (one, Training { trainer, .. }) in of.policies.iter().zip(&mut trainings) {
            if self.replay.phase_ended(PHASE).is_some() {
                let folder = several.then_some(one.policy.name);
                self.load_stage(PHASE, folder, trainer)?;
            }
            let model = seen_from(&trainer.publish().failed()?.weights, 0)?;
            self.save_model(one.checkpoint, one.chat, &model)?;
            models.push(model);
        }
        Ok(models)
    }

    /// Where there are `several` policies, each has a folder of its own in the checkpoints of the phase, and
    /// the value function has one in that of its policy.
    fn prepare(
        &self,
        one: &Reinforced<'_>,
        config: &ReinforceConfig,
        several: bool,
        seed: Seed,
    ) -> Outcome<Training> {
        let engine = &self.engines.engine;
        let (policy, chat) = (one.policy, one.chat);
        let stages = policy.stages.len();
        let model = self.adapted(policy, stages, one.base, chat, one.model.clone(), seed)?;
        let options = self.training.learner_options(seed);
        let below = usize::from(several);
        let (model, valued) = (seen_from(&model, below)?, seen_from(&model, below + 1)?);
        let reference = Some(one.model.clone());
        Ok(Training {
            trainer: EngineTrainer::new(engine, model.clone(), reference, options),
            // A value function begins as what the policy begins as.
            values: config
                .value
                .as_ref()
                .map(|_| EngineValueTrainer::new(engine, valued, options)),
            player: Arc::new(self.engines.policy(policy.name, chat, model)?),
        })
    }
}
