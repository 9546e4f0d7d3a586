//! The value function of PPO: its settings, its loss, and the verbs of its training.

use std::path::Path;

use record::Batch;
use serde::{Deserialize, Serialize};

use crate::{
    Aggregation, ConfigError, OptimizerConfig, Step, TrainError,
    config::require,
    gae::value_loss,
    policy_loss::{episodes_of, lengths},
};

/// How the value function that [`Advantage::Gae`](crate::Advantage::Gae) asks is trained: a decoder of
/// its own, begun as a copy of the policy, under a head that says 0 at first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueConfig {
    pub optimizer: OptimizerConfig,
    /// How far a value may move from what it was when its step began and still be paid for it (verl's
    /// `cliprange_value`).
    #[serde(default = "half")]
    pub clip: f64,
    /// How the losses of tokens become the loss of a batch.
    #[serde(default = "token_mean")]
    pub aggregation: Aggregation,
    /// Times that a step's rows are gone through.
    #[serde(default = "one")]
    pub epochs: usize,
    /// Optimizer updates of each time: the rows are divided into so many parts, in their order.
    #[serde(default = "one")]
    pub mini_batches: usize,
    /// First steps of the run, in which the value function is trained and the policy is not (verl's
    /// `critic_warmup`).
    #[serde(default)]
    pub head_start: u64,
}

fn half() -> f64 {
    0.5
}

fn token_mean() -> Aggregation {
    Aggregation::TokenMean
}

fn one() -> usize {
    1
}

impl ValueConfig {
    /// Checks what types cannot say.
    ///
    /// # Errors
    /// The first key that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.optimizer.check()?;
        let positive = self.clip > 0.0 && !self.clip.is_nan();
        require("clip", self.clip, "more than 0", positive)?;
        for (key, count) in [("epochs", self.epochs), ("mini_batches", self.mini_batches)] {
            require(key, count as f64, "at least 1", count >= 1)?;
        }
        Ok(())
    }
}

/// The clipped squared distance of values to returns (spec of the critique study, section 10.2):
/// `max((v - R)², (clip(v, v_old ± range) - R)²) / 2`, aggregated over the trained tokens of a batch.
#[derive(Clone, Debug)]
pub struct ClippedValueLoss {
    old: Vec<Vec<f32>>,
    returns: Vec<Vec<f64>>,
    weights: Vec<f64>,
    range: f64,
}

impl ClippedValueLoss {
    /// The loss of exactly `batch`: `old` are the values when the step began, `returns` what they are
    /// fitted to; both have one entry a trained token of each row.
    ///
    /// # Panics
    /// When a row has another number of values or returns than of trained tokens.
    pub fn new(
        batch: &Batch,
        old: &[Vec<f32>],
        returns: &[Vec<f64>],
        config: &ValueConfig,
    ) -> Self {
        let lengths = lengths(batch);
        let counts = |rows: Vec<usize>| assert_eq!(rows, lengths, "one a trained token");
        counts(old.iter().map(Vec::len).collect());
        counts(returns.iter().map(Vec::len).collect());
        Self {
            old: old.to_vec(),
            returns: returns.to_vec(),
            weights: config
                .aggregation
                .weights(&lengths, &episodes_of(batch), None),
            range: config.clip,
        }
    }

    /// The share of tokens whose loss the clip holds, at `values`.
    pub fn clip_fraction(&self, values: &[Vec<f32>]) -> f64 {
        let mut tokens = 0;
        let mut clipped = 0;
        for (row, values) in values.iter().enumerate() {
            for (_, _, held) in self.tokens(row, values) {
                tokens += 1;
                clipped += usize::from(held);
            }
        }
        clipped as f64 / f64::from(tokens.max(1))
    }

    fn tokens<'a>(
        &'a self,
        row: usize,
        values: &'a [f32],
    ) -> impl Iterator<Item = (f64, f64, bool)> + 'a {
        let known = self.old[row].iter().zip(&self.returns[row]);
        let range = self.range;
        values
            .iter()
            .zip(known)
            .map(move |(&value, (&old, &target))| {
                value_loss(value.into(), old.into(), target, range)
            })
    }
}

impl engine::ValueLoss for ClippedValueLoss {
    fn row(&self, row: usize, values: &[f32], d_values: &mut [f32]) -> f64 {
        let weight = self.weights[row];
        let mut loss = 0.0;
        for (d_value, (share, slope, _)) in d_values.iter_mut().zip(self.tokens(row, values)) {
            loss += share;
            *d_value = (weight * slope) as f32;
        }
        weight * loss
    }
}

/// Turns returns into a value function; the verbs are those of [`Trainer`](crate::Trainer).
pub trait ValueTrainer: Send {
    /// The value before each trained token, one entry per row.
    ///
    /// # Errors
    /// Rows that the model cannot run, failures of the back end.
    fn values(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, TrainError>;

    /// Adds the gradients of `loss` over the whole `batch` to those of the next
    /// [`ValueTrainer::optim_step`]. On error nothing was added.
    ///
    /// # Errors
    /// An empty batch, rows that the model cannot run, failures of the back end.
    fn forward_backward(
        &mut self,
        batch: &Batch,
        loss: &ClippedValueLoss,
    ) -> Result<ValuePass, TrainError>;

    /// Applies the gradients at learning rate `lr` and clears them, as
    /// [`Trainer::optim_step`](crate::Trainer::optim_step) does.
    ///
    /// # Errors
    /// Failures of the back end.
    fn optim_step(&mut self, optimizer: &OptimizerConfig, lr: f64) -> Result<Step, TrainError>;

    /// Writes decoder, head and optimizer into `directory`.
    ///
    /// # Errors
    /// Files that cannot be written, failures of the back end.
    fn save(&mut self, directory: &Path) -> Result<(), TrainError>;

    /// Goes on from what [`ValueTrainer::save`] wrote, as if it had never stopped. On error nothing
    /// changed.
    ///
    /// # Errors
    /// Files that cannot be read or are of a model of another shape.
    fn load(&mut self, directory: &Path) -> Result<(), TrainError>;
}

/// What a forward and backward pass of a value function saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValuePass {
    /// The value before each trained token, one entry per row of the batch.
    pub values: Vec<Vec<f32>>,
    pub loss: f64,
}
