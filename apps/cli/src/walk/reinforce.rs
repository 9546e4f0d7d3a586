//! Phase `rl`: a policy learns from what its responses lead to.

use std::sync::Arc;

use chat::Chat;
use engine::Model;
use learn::{EngineTrainer, EngineValueTrainer, Trainer, ValueTrainer};
use record::{Sampling, Seed};
use rollout::{Options as RolloutOptions, Roles, Runner, Study};
use train::{Reinforce, ReinforceConfig, StepDone};

use super::{Frame, settings::PolicySettings};
use crate::failure::{Classify, Outcome};

const PHASE: &str = "rl";

/// A policy that is reinforced, and all that it is played with.
pub(crate) struct Reinforcement<'a, S: Study> {
    pub(crate) policy: &'a PolicySettings<'a>,
    pub(crate) role: &'a str,
    pub(crate) sampling: Sampling,
    pub(crate) chat: &'a Chat,
    /// What it begins as: the checkpoint's name, and the weights.
    pub(crate) base: &'a str,
    pub(crate) model: Arc<Model>,
    /// Where it ends up.
    pub(crate) checkpoint: &'a str,
    /// The roles that stay as they are.
    pub(crate) frozen: Roles,
    pub(crate) study: Arc<S>,
    pub(crate) tasks: &'a [Arc<S::Task>],
    pub(crate) config: &'a ReinforceConfig,
    pub(crate) rollout: &'a RolloutOptions,
    pub(crate) seed: Seed,
}

impl Frame<'_> {
    /// Trains the policy and returns its weights; the reference and the frozen roles stay as they are.
    /// `line` says a step to people.
    pub(crate) fn reinforce<S: Study>(
        &self,
        of: Reinforcement<'_, S>,
        line: impl Fn(&StepDone<'_>) -> String,
    ) -> Outcome<Arc<Model>> {
        if self.replay.checkpoint(of.checkpoint).is_some() {
            self.screen.say("  done before");
            return self.load_model(of.checkpoint).map(Arc::new);
        }
        let (policy, config, seed) = (of.policy, of.config, of.seed);
        let engine = &self.engines.engine;
        let stages = policy.stages.len();
        let model = self.adapted(policy, stages, of.base, of.chat, of.model.clone(), seed)?;
        let options = self.training.learner_options(seed);
        let mut trainer = EngineTrainer::new(engine, model.clone(), Some(of.model), options);
        let mut values = config.value.as_ref().map(|_| {
            // A value function begins as what the policy begins as.
            EngineValueTrainer::new(engine, model.clone(), options)
        });
        let player = Arc::new(self.engines.policy(of.role, of.chat, model)?);
        let roles = of.frozen.bind(of.role, player.clone(), of.sampling);
        let mut runner = Runner::new(of.study.clone(), roles, of.rollout.clone());
        if config.algorithm.advantage.needs_greedy() {
            runner = runner.with_greedy(of.role);
        }
        let reinforce = Reinforce {
            phase: PHASE,
            run: self.run,
            chat: of.chat,
            replay: self.replay,
            study: of.study.as_ref(),
            runner: &runner,
            tasks: of.tasks,
            role: of.role,
            config,
            seed,
            runtime: self.engines.runtime.handle(),
            stop: self.stop,
        };
        self.phase(PHASE, || {
            let work = self.screen.work(PHASE, config.steps);
            let trained = reinforce.train(
                &mut trainer,
                values
                    .as_mut()
                    .map(|values| values as &mut dyn ValueTrainer),
                |published| player.publish(published.weights, published.version),
                |_, _| {},
                |done| {
                    work.note(done.step, &line(&done), true);
                },
            );
            self.classify(trained)?;
            work.done(format!("{} steps", config.steps));
            Ok(0)
        })?;
        if self.replay.phase_ended(PHASE).is_some() {
            self.load_stage(PHASE, &mut trainer)?;
        }
        let model = trainer.publish().failed()?.weights;
        self.save_model(of.checkpoint, of.chat, &model)?;
        Ok(model)
    }
}
