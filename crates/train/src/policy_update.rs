//! One policy's updates on the episodes of a step.

use std::time::Instant;

use journal::Metrics;
use learn::{AlgorithmConfig, BatchStats, Loss, Trainer, metrics, rewards_of_groups, weigh};
use record::{Batch, Group};

use crate::{ReinforceConfig, TrainError, TrainedPolicy, value::Said};

/// What the updates of a step are made from.
pub(crate) struct Update<'a> {
    pub(crate) config: &'a ReinforceConfig,
    pub(crate) phase: &'a str,
    pub(crate) step: u64,
    pub(crate) groups: &'a [Group],
    pub(crate) kl_coefficient: f64,
}

/// What a policy's updates were.
#[derive(Default)]
pub(crate) struct Updated {
    pub(crate) metrics: Metrics,
    pub(crate) stats: BatchStats,
    /// Tokens that were trained on, prompts included.
    pub(crate) trained_tokens: u64,
    /// Seconds until all was known that the updates need.
    scored_s: f64,
    /// Seconds of the value function's updates.
    fitted_s: f64,
    /// Seconds of the policy's updates.
    updated_s: f64,
}

impl Updated {
    pub(crate) fn add(&mut self, other: &Self) {
        self.trained_tokens += other.trained_tokens;
        self.scored_s += other.scored_s;
        self.fitted_s += other.fitted_s;
        self.updated_s += other.updated_s;
    }

    pub(crate) fn timings(&self, has_values: bool) -> Metrics {
        let updating = (self.fitted_s + self.updated_s).max(1e-9);
        let mut timings: Metrics = [
            ("timing_s/ref".to_owned(), self.scored_s),
            ("timing_s/update_actor".to_owned(), self.updated_s),
            (
                "perf/train_tokens_per_s".to_owned(),
                self.trained_tokens as f64 / updating,
            ),
        ]
        .into();
        if has_values {
            timings.insert("timing_s/update_critic".to_owned(), self.fitted_s);
        }
        timings
    }
}

impl Update<'_> {
    pub(crate) fn of<T: Trainer>(
        &self,
        policy: &mut TrainedPolicy<'_, T>,
    ) -> Result<Updated, TrainError> {
        let began = Instant::now();
        let (groups, step, steps) = (self.groups, self.step, self.config.steps);
        let mut algorithm = policy.algorithm.clone();
        algorithm.kl.coefficient = self.kl_coefficient;
        let (mut batch, rewards, stats) = rewards_of_groups(groups, policy.roles, &algorithm)?;
        let mut measured = metrics::calls(groups, policy.roles, &stats);
        if let Some(steps) = &stats.steps {
            measured.extend(metrics::steps(steps));
        }
        if algorithm.needs_reference() {
            policy.trainer.score_reference(&mut batch)?;
        }
        let mut weights = None;
        if let Some(correction) = &algorithm.rollout_correction
            && !batch.data.is_empty()
        {
            let current = policy.trainer.score(&batch)?;
            let (found, told) = correction.apply(&mut batch, &current);
            weights = found;
            measured.extend(told);
        }
        let mut said = Said::default();
        if algorithm.advantage.needs_values() && !batch.data.is_empty() {
            let values = policy.values.as_deref_mut();
            said.values = values.ok_or(learn::TrainError::NoValues)?.values(&batch)?;
        }
        let filled = rewards.fill(&mut batch, &algorithm, self.kl_coefficient, &said.values());
        said.returns = filled.returns;
        if let Some(kl) = filled.kl.filter(|_| !batch.data.is_empty()) {
            measured.insert("actor/kl".to_owned(), kl);
            measured.insert("actor/kl_coef".to_owned(), self.kl_coefficient);
        }
        if let Some(weights) = weights {
            weigh(&mut batch, &weights, algorithm.loss_mode);
        }
        batch.data.retain(|row| row.n_trained() > 0);
        said.retain_trained();
        let scored = began.elapsed().as_secs_f64();
        let rate = policy.optimizer.lr_at(step - 1, steps);
        let trained_tokens = batch.data.iter().map(|row| row.tokens.len() as u64).sum();
        let mut head_start = false;
        if let (Some(values), Some(config)) = (policy.values.as_deref_mut(), &self.config.value)
            && !batch.data.is_empty()
        {
            head_start = step <= config.head_start;
            let rate = config.optimizer.lr_at(step - 1, steps);
            measured.extend(metrics::values(&said.values(), &said.returns));
            measured.extend(said.fit(&batch, self.config.mini_batch_unit, config, rate, values)?);
        }
        let fitted = began.elapsed().as_secs_f64();
        if batch.data.is_empty() || head_start {
            // Nothing to learn from, or not yet: no gradient, no update, and no moment decays.
            measured.extend(metrics::optimizer(rate, 0.0, true));
        } else {
            measured.extend(self.updates(batch, &algorithm, rate, policy)?);
        }
        Ok(Updated {
            metrics: measured,
            stats,
            trained_tokens,
            scored_s: scored,
            fitted_s: fitted - scored,
            updated_s: began.elapsed().as_secs_f64() - fitted,
        })
    }

    /// Every optimizer update of a step, and the means of what they saw.
    fn updates<T: Trainer>(
        &self,
        batch: Batch,
        algorithm: &AlgorithmConfig,
        rate: f64,
        policy: &mut TrainedPolicy<'_, T>,
    ) -> Result<Metrics, TrainError> {
        let loss = Loss::Policy(Box::new(algorithm.clone()));
        let unit = self.config.mini_batch_unit;
        let parts = unit.parts(&batch, self.config.mini_batches);
        let mut seen: Vec<Metrics> = Vec::new();
        for _ in 0..self.config.epochs.max(1) {
            let mut consumed = 0;
            for part in &parts {
                let report = policy.trainer.forward_backward(part, &loss)?;
                consumed += report.scores.len();
                let update = policy.trainer.optim_step(policy.optimizer, rate)?;
                let mut metrics = metrics::policy(part, &report.scores, algorithm);
                metrics.extend(metrics::optimizer(rate, update.grad_norm, update.applied));
                seen.push(metrics);
            }
            if consumed != batch.data.len() {
                return Err(TrainError::RowsLost {
                    phase: self.phase.to_owned(),
                    step: self.step,
                    policy: policy.name.to_owned(),
                    produced: batch.data.len(),
                    consumed,
                });
            }
        }
        Ok(metrics::of_updates("actor", &seen))
    }
}
