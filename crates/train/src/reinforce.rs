//! The reinforcement learning loop: play, judge, update, commit.

use std::{sync::Arc, time::Instant};

use chat::Chat;
use journal::{Metrics, Replay, RunDir, Step};
use learn::{
    AlgorithmConfig, BatchStats, Loss, OptimizerConfig, Published, Singleton, Trainer, ValueConfig,
    ValueTrainer, ZeroVariance, metrics, rewards_of_groups, tells_apart, weigh,
};
use record::{Batch, Group, Seed};
use rollout::{Progress, Runner, Study, Tally};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::{
    StepDone, Stop, TrainError,
    curriculum::tasks_of_step,
    metrics::{check_reproduced, sampled_tokens},
    supervised::save_whole,
    value::{self, Said, part_size},
};

/// How a role is trained by reinforcement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReinforceConfig {
    /// Optimizer steps.
    pub steps: u64,
    /// Groups of a step.
    pub tasks_per_step: usize,
    /// Episodes of a group.
    pub group_size: u32,
    /// Times that a step's episodes are gone through; more than one reuses them off policy.
    #[serde(default = "one")]
    pub epochs: usize,
    /// Optimizer updates of each time: the step's rows are divided into so many parts, in their order.
    #[serde(default = "one")]
    pub mini_batches: usize,
    /// With `zero_variance = "resample"`, the most rounds of playing in a step.
    #[serde(default = "ten_rounds")]
    pub max_rounds: usize,
    /// Steps between checkpoints; a resumed run does the updates since the last one again.
    #[serde(default = "ten")]
    pub save_every: u64,
    #[serde(default)]
    pub algorithm: AlgorithmConfig,
    pub optimizer: OptimizerConfig,
    /// The value function of `algorithm.advantage = "gae"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<ValueConfig>,
    /// The roles that are trained; empty in studies that have but one to train.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub train: Vec<String>,
}

fn ten() -> u64 {
    10
}

fn one() -> usize {
    1
}

fn ten_rounds() -> usize {
    10
}

/// Everything that the loop works with.
pub struct Reinforce<'a, S: Study> {
    /// Phase of the journal, for example `rl`.
    pub phase: &'a str,
    pub run: &'a RunDir,
    /// Saved with every checkpoint, so that each is a whole Hugging Face directory.
    pub chat: &'a Chat,
    /// What was committed when the process began.
    pub replay: &'a Replay,
    pub study: &'a S,
    /// Plays with the policies; the trained role's must be the one that the trainer publishes to.
    pub runner: &'a Runner<S>,
    pub tasks: &'a [Arc<S::Task>],
    /// The trained role.
    pub role: &'a str,
    pub config: &'a ReinforceConfig,
    pub seed: Seed,
    pub runtime: &'a Handle,
    pub stop: &'a Stop,
}

/// The value function of a run that has one.
type Values<'a> = Option<&'a mut (dyn ValueTrainer + 'static)>;

/// Optimizer steps in a row that may be skipped for a gradient that is not finite.
const MAX_SKIPPED: u64 = 3;

impl<S: Study> Reinforce<'_, S> {
    /// Runs to the last step. `trainer` must hold the weights to start from and its reference, `values`
    /// the value function to start from where the recipe has one; `publish` hands weights to the policy
    /// that `runner` plays the trained role with.
    ///
    /// A step is: play its tasks with the published weights; turn the groups into a batch; score the
    /// reference, and ask the values; the updates on the batch; publish; commit. Steps committed before
    /// are updated on again from their journalled episodes.
    pub fn train<T: Trainer>(
        &self,
        trainer: &mut T,
        mut values: Values,
        mut publish: impl FnMut(Published<T::Weights>),
        mut on_play: impl FnMut(u64, Progress),
        mut on_step: impl FnMut(StepDone<'_>),
    ) -> Result<(), TrainError> {
        let mut first = 1;
        if let Some(checkpoint) = self.replay.latest_checkpoint(self.phase) {
            let directory = self.run.checkpoint_path(&checkpoint.name)?;
            trainer.load(&directory)?;
            if let Some(values) = values.as_deref_mut() {
                values.load(&directory.join(value::DIRECTORY))?;
            }
            first = checkpoint.step + 1;
        }
        let committed: Vec<&Step> = self.replay.steps(self.phase).collect();
        let mut kl_coefficient = self.config.algorithm.kl.coefficient;
        for step in committed.iter().filter(|step| step.step < first) {
            self.recall(step)?;
            kl_coefficient = self.next_kl_coefficient(kl_coefficient, &step.metrics);
        }
        let mut again = committed.into_iter().filter(|step| step.step >= first);
        publish(trainer.publish()?);
        let mut skipped = 0;
        for step in first..=self.config.steps {
            if self.stop.requested() {
                return Err(TrainError::Stopped);
            }
            let before = again.next();
            let began = Instant::now();
            let counted = self.study.counters();
            let groups = match before {
                Some(before) => self.recall(before)?,
                None => self.play(step, |progress| on_play(step, progress))?,
            };
            let played = began.elapsed().as_secs_f64();
            let beside = values.as_deref_mut();
            let mut done = self.update(step, &groups, kl_coefficient, trainer, beside)?;
            kl_coefficient = self.next_kl_coefficient(kl_coefficient, &done.metrics);
            skipped = if done.metrics.get("actor/skipped_steps") == Some(&0.0) {
                0
            } else {
                skipped + 1
            };
            if skipped >= MAX_SKIPPED {
                return Err(TrainError::Diverged {
                    phase: self.phase.to_owned(),
                    step,
                    skipped,
                });
            }
            if let Some(before) = before {
                check_reproduced(before, &done.metrics)?;
            } else {
                let mut grown = self.study.counters();
                for (name, count) in &mut grown {
                    *count -= counted.get(name).copied().unwrap_or(0.0);
                }
                done.metrics
                    .extend(self.study.step_metrics(&groups, &grown));
            }
            let total = began.elapsed().as_secs_f64();
            let sampled = sampled_tokens(&groups) as f64;
            done.timings.insert("timing_s/gen".to_owned(), played);
            done.timings.insert("timing_s/step".to_owned(), total);
            done.timings.insert(
                "perf/sample_tokens_per_s".to_owned(),
                sampled / played.max(1e-9),
            );
            on_step(StepDone {
                step,
                steps: self.config.steps,
                // Those of playing were measured when the step was committed.
                metrics: before.map_or(&done.metrics, |before| &before.metrics),
                timings: &done.timings,
                replayed: before.is_some(),
            });
            if before.is_none() {
                self.run.commit_step(done, Some(&groups))?;
            }
            if step.is_multiple_of(self.config.save_every.max(1)) || step == self.config.steps {
                self.save(trainer, values.as_deref_mut(), step)?;
            }
            publish(trainer.publish()?);
        }
        Ok(())
    }

    /// Plays a step; a requested stop drops it whole. Where groups that teach nothing are resampled,
    /// other tasks are played in their place, round after round.
    fn play(
        &self,
        step: u64,
        mut progress: impl FnMut(Progress),
    ) -> Result<Vec<Group>, TrainError> {
        let wanted = self.config.tasks_per_step;
        let algorithm = &self.config.algorithm;
        let rounds = match algorithm.zero_variance {
            ZeroVariance::Resample => self.config.max_rounds.max(1) as u64,
            _ => 1,
        };
        let seed = self.seed.stream("step", step);
        let mut groups: Vec<Group> = Vec::new();
        for round in 0..rounds {
            let mut telling = 0;
            for group in &groups {
                telling += usize::from(tells_apart(group, &[self.role], algorithm)?);
            }
            let missing = wanted.saturating_sub(telling);
            if missing == 0 {
                break;
            }
            // Further rounds draw from an order of their own, so that steps go on where they would.
            let chosen = match round {
                0 => {
                    let order = self.seed.stream("curriculum", 0);
                    tasks_of_step(order, self.tasks.len(), wanted, step)
                }
                _ => {
                    let order = self.seed.stream("resampling", step);
                    tasks_of_step(order, self.tasks.len(), missing, round)
                }
            };
            let tasks: Vec<Arc<S::Task>> = chosen
                .into_iter()
                .map(|index| self.tasks[index].clone())
                .collect();
            let first = groups.len() as u32;
            let size = self.config.group_size;
            let play = self
                .runner
                .play_from(first, step, &tasks, size, seed, &mut progress);
            let played = self.runtime.block_on(async {
                tokio::select! {
                    groups = play => Ok(groups?),
                    () = self.stop.wait() => Err(TrainError::Stopped),
                }
            })?;
            groups.extend(played);
        }
        Ok(groups)
    }

    /// The journalled episodes of a committed step, shown to the study on the way.
    fn recall(&self, step: &Step) -> Result<Vec<Group>, TrainError> {
        let Some(reference) = &step.episodes else {
            return Ok(Vec::new());
        };
        let groups = self.run.read_episodes(reference)?;
        for episode in groups.iter().flat_map(|group| &group.episodes) {
            self.study.replay(episode);
        }
        Ok(groups)
    }

    /// The weight of the KL penalty after a step with these metrics.
    fn next_kl_coefficient(&self, coefficient: f64, metrics: &Metrics) -> f64 {
        let controller = &self.config.algorithm.kl.controller;
        match (metrics.get("actor/kl"), metrics.get("rollout/graded")) {
            (Some(kl), Some(graded)) => controller.next(coefficient, *kl, *graded as usize),
            _ => coefficient,
        }
    }

    /// The updates on the groups of a step. The metrics are functions of the groups and the weights
    /// alone, so a step done again has the same.
    fn update<T: Trainer>(
        &self,
        step: u64,
        groups: &[Group],
        kl_coefficient: f64,
        trainer: &mut T,
        mut values: Values,
    ) -> Result<Step, TrainError> {
        let began = Instant::now();
        let mut algorithm = self.config.algorithm.clone();
        algorithm.kl.coefficient = kl_coefficient;
        let (mut batch, rewards, stats) = rewards_of_groups(groups, &[self.role], &algorithm)?;
        let mut measured = self.played(groups, &stats);
        if algorithm.needs_reference() {
            trainer.score_reference(&mut batch)?;
        }
        let mut weights = None;
        if let Some(correction) = &algorithm.rollout_correction
            && !batch.data.is_empty()
        {
            let current = trainer.score(&batch)?;
            let (found, told) = correction.apply(&mut batch, &current);
            weights = found;
            measured.extend(told);
        }
        let mut said = Said::default();
        if algorithm.advantage.needs_values() && !batch.data.is_empty() {
            let trainer = values.as_deref_mut().ok_or(learn::TrainError::NoValues)?;
            said.values = trainer.values(&batch)?;
        }
        let filled = rewards.fill(&mut batch, &algorithm, kl_coefficient, &said.values());
        said.returns = filled.returns;
        if let Some(kl) = filled.kl.filter(|_| !batch.data.is_empty()) {
            measured.insert("actor/kl".to_owned(), kl);
            measured.insert("actor/kl_coef".to_owned(), kl_coefficient);
        }
        if let Some(weights) = weights {
            weigh(&mut batch, &weights, algorithm.loss_mode);
        }
        batch.data.retain(|row| row.n_trained() > 0);
        said.retain_trained();
        let scored = began.elapsed().as_secs_f64();
        let rate = self.config.optimizer.lr_at(step - 1, self.config.steps);
        let trained: u64 = batch.data.iter().map(|row| row.tokens.len() as u64).sum();
        let mut head_start = false;
        if let (Some(values), Some(config)) = (values, &self.config.value)
            && !batch.data.is_empty()
        {
            head_start = step <= config.head_start;
            let rate = config.optimizer.lr_at(step - 1, self.config.steps);
            measured.extend(metrics::values(&said.values(), &said.returns));
            measured.extend(said.fit(&batch, config, rate, values)?);
        }
        let fitted = began.elapsed().as_secs_f64();
        if batch.data.is_empty() || head_start {
            // Nothing to learn from, or not yet: no gradient, no update, and no moment decays.
            measured.extend(metrics::optimizer(rate, 0.0, true));
        } else {
            measured.extend(self.updates(batch, &algorithm, rate, trainer)?);
        }
        let seconds = began.elapsed().as_secs_f64();
        let update_seconds = (seconds - scored).max(1e-9);
        let mut timings: Metrics = [
            ("timing_s/ref".to_owned(), scored),
            ("timing_s/update_actor".to_owned(), seconds - fitted),
            (
                "perf/train_tokens_per_s".to_owned(),
                trained as f64 / update_seconds,
            ),
        ]
        .into();
        if self.config.value.is_some() {
            timings.insert("timing_s/update_critic".to_owned(), fitted - scored);
        }
        Ok(Step {
            phase: self.phase.to_owned(),
            step,
            tokens: sampled_tokens(groups) + trained,
            metrics: measured,
            timings,
            episodes: None,
        })
    }

    /// What a step's groups were, whatever is learnt from them.
    fn played(&self, groups: &[Group], stats: &BatchStats) -> Metrics {
        let mut measured: Metrics = metrics::groups(groups, &[self.role], stats);
        let retries = Tally::of(groups).retries as f64;
        measured.insert("rollout/retries".to_owned(), retries);
        let algorithm = &self.config.algorithm;
        if algorithm.singleton != Singleton::Keep || algorithm.step.is_some() {
            measured.extend(metrics::group_sizes(stats));
        }
        if let Some(steps) = &stats.steps {
            measured.extend(metrics::steps(steps));
        }
        if self.config.algorithm.zero_variance == ZeroVariance::Resample {
            let more = groups.len().saturating_sub(self.config.tasks_per_step);
            measured.insert("rollout/resampled_groups".to_owned(), more as f64);
        }
        measured
    }

    /// Every optimizer update of a step, and the means of what they saw.
    fn updates<T: Trainer>(
        &self,
        batch: Batch,
        algorithm: &AlgorithmConfig,
        rate: f64,
        trainer: &mut T,
    ) -> Result<Metrics, TrainError> {
        let size = part_size(batch.data.len(), self.config.mini_batches);
        let loss = Loss::Policy(Box::new(algorithm.clone()));
        let parts: Vec<Batch> = batch
            .data
            .chunks(size)
            .map(|rows| Batch {
                data: rows.to_vec(),
            })
            .collect();
        let mut seen: Vec<Metrics> = Vec::new();
        for _ in 0..self.config.epochs.max(1) {
            for part in &parts {
                let report = trainer.forward_backward(part, &loss)?;
                let update = trainer.optim_step(&self.config.optimizer, rate)?;
                let mut metrics = metrics::policy(part, &report.scores, algorithm);
                metrics.extend(metrics::optimizer(rate, update.grad_norm, update.applied));
                seen.push(metrics);
            }
        }
        Ok(metrics::of_updates("actor", &seen))
    }

    fn save<T: Trainer>(
        &self,
        trainer: &mut T,
        values: Values,
        step: u64,
    ) -> Result<(), TrainError> {
        let name = format!("{}-{step:06}", self.phase.replace('/', "-"));
        if self.run.replay().checkpoint(&name).is_none() {
            self.run.checkpoint(&name, self.phase, step, |directory| {
                save_whole(trainer, self.chat, directory)?;
                match values {
                    Some(values) => Ok(values.save(&directory.join(value::DIRECTORY))?),
                    None => Ok::<(), TrainError>(()),
                }
            })?;
        }
        self.run.prune(self.phase, 2)?;
        Ok(())
    }
}
