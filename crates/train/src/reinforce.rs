//! The reinforcement learning loop: play, judge, update, commit.

use std::{sync::Arc, time::Instant};

use journal::{Replay, RunDir, Step};
use learn::{AlgorithmConfig, OptimizerConfig, Trainer, ValueConfig};
use record::{Group, Seed};
use rollout::{Progress, Runner, Study};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::{
    MiniBatchUnit, StepDone, Stop, TrainError, TrainedPolicy,
    curriculum::tasks_of_step,
    metrics::{check_reproduced, overlap, sampled_tokens},
    policies::Policies,
};

/// How policies are trained by reinforcement.
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
    /// Optimizer updates of each time: what the step has is divided into so many parts, in its order.
    #[serde(default = "one")]
    pub mini_batches: usize,
    /// What is divided into mini-batches.
    #[serde(default, skip_serializing_if = "MiniBatchUnit::is_rows")]
    pub mini_batch_unit: MiniBatchUnit,
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

/// Checkpoints of the phase that stay.
const KEPT: usize = 2;

/// Everything that the loop works with.
pub struct Reinforce<'a, S: Study> {
    /// Phase of the journal, for example `rl`.
    pub phase: &'a str,
    pub run: &'a RunDir,
    /// What was committed when the process began.
    pub replay: &'a Replay,
    pub study: &'a S,
    /// Plays with the policies; those of the trained roles must be the ones that are published to.
    pub runner: &'a Runner<S>,
    pub tasks: &'a [Arc<S::Task>],
    pub config: &'a ReinforceConfig,
    pub seed: Seed,
    pub runtime: &'a Handle,
    pub stop: &'a Stop,
}

impl<S: Study> Reinforce<'_, S> {
    /// Runs to the last step. Every policy's trainer must hold the weights to start from and its
    /// reference, and its value function, where it has one, the one to start from.
    ///
    /// A step is: play its tasks with the published weights; for every policy, turn the groups into a
    /// batch, score the reference, ask the values, and do the updates on the batch; commit; publish all
    /// policies. Steps committed before are updated on again from their journalled episodes.
    ///
    /// Several policies learn from the same episodes: their metrics have the policy's name before them,
    /// save those that speak of the episodes alone, and a checkpoint has a folder for each.
    ///
    /// # Errors
    /// No policy, a role that two of them train, names that are no folders; whatever stops a step.
    pub fn train<T: Trainer>(
        &self,
        policies: &mut [TrainedPolicy<'_, T>],
        mut on_play: impl FnMut(u64, Progress<'_>),
        mut on_step: impl FnMut(StepDone<'_>),
    ) -> Result<(), TrainError> {
        let mut policies = Policies::new(self.config, self.phase, policies)?;
        let mut first = 1;
        if let Some(checkpoint) = self.replay.latest_checkpoint(self.phase) {
            policies.load(&self.run.checkpoint_path(&checkpoint.name)?)?;
            first = checkpoint.step + 1;
            // A process that died after it had saved the last step left one too many, and nothing is saved again.
            self.run.prune(self.phase, KEPT)?;
        }
        let committed: Vec<&Step> = self.replay.steps(self.phase).collect();
        for step in committed.iter().filter(|step| step.step < first) {
            self.recall(step)?;
            policies.follow(&step.metrics);
        }
        let mut again = committed.into_iter().filter(|step| step.step >= first);
        policies.publish()?;
        for step in first..=self.config.steps {
            if self.stop.requested() {
                return Err(TrainError::Stopped);
            }
            let before = again.next();
            let began = Instant::now();
            let counted = self.study.counters();
            self.runner.take_spent();
            let groups = match before {
                Some(before) => self.recall(before)?,
                None => self.play(step, &policies, |progress| on_play(step, progress))?,
            };
            let played = began.elapsed().as_secs_f64();
            let spent = self.runner.take_spent();
            let mut done = policies.update(step, &groups)?;
            if let Some(before) = before {
                check_reproduced(before, &done.metrics)?;
            } else {
                let mut grown = self.study.counters();
                for (name, count) in &mut grown {
                    *count -= counted.get(name).copied().unwrap_or(0.0);
                }
                done.metrics
                    .extend(self.study.step_metrics(&groups, &grown));
                done.timings.extend(overlap(&spent));
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
                self.save(&mut policies, step)?;
            }
            policies.publish()?;
        }
        Ok(())
    }

    /// Plays a step; a requested stop drops it whole. Where groups that teach nothing are resampled,
    /// other tasks are played in their place, round after round.
    fn play<T: Trainer>(
        &self,
        step: u64,
        policies: &Policies<'_, '_, T>,
        mut progress: impl FnMut(Progress<'_>),
    ) -> Result<Vec<Group>, TrainError> {
        let wanted = self.config.tasks_per_step;
        let rounds = match policies.resample() {
            true => self.config.max_rounds.max(1) as u64,
            false => 1,
        };
        let seed = self.seed.stream("step", step);
        let mut groups: Vec<Group> = Vec::new();
        for round in 0..rounds {
            let missing = wanted.saturating_sub(policies.telling(&groups)?);
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

    fn save<T: Trainer>(
        &self,
        policies: &mut Policies<'_, '_, T>,
        step: u64,
    ) -> Result<(), TrainError> {
        let name = format!("{}-{step:06}", self.phase.replace('/', "-"));
        if self.run.replay().checkpoint(&name).is_none() {
            self.run.checkpoint(&name, self.phase, step, |directory| {
                policies.save(directory)
            })?;
        }
        self.run.prune(self.phase, KEPT)?;
        Ok(())
    }
}
