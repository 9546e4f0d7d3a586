//! The four verbs of training: forward_backward, optim_step, publish, save and load.

use std::path::Path;

use engine::RowScores;
use record::{Batch, WeightVersion};

use crate::{Loss, OptimizerConfig, TrainError};

/// Turns batches into weights. The verbs are those of the Tinker API, so that the same loop trains in
/// process or on a remote service.
pub trait Trainer: Send {
    /// What samplers need to use the weights: the model itself in process, a name on a service.
    type Weights;

    /// Adds the gradients of `loss` over the whole `batch` to those of the next
    /// [`Trainer::optim_step`]. On error nothing was added.
    ///
    /// # Errors
    /// An empty batch, rows that the model cannot run, failures of the back end.
    fn forward_backward(&mut self, batch: &Batch, loss: &Loss) -> Result<Pass, TrainError>;

    /// Applies the gradients at learning rate `lr` and clears them. `optimizer.lr`, `schedule` and
    /// the keys of the warm-up are not looked at: the rate of a step is the loop's affair
    /// ([`OptimizerConfig::lr_at`]).
    ///
    /// # Errors
    /// Failures of the back end; a gradient norm that is not finite is a [`Step`] that was not
    /// applied.
    fn optim_step(&mut self, optimizer: &OptimizerConfig, lr: f64) -> Result<Step, TrainError>;

    /// Makes the current weights available to samplers.
    ///
    /// # Errors
    /// Failures of the back end.
    fn publish(&mut self) -> Result<Published<Self::Weights>, TrainError>;

    /// Fills `ref_logprobs` of the trained tokens with their log-probs under the frozen reference.
    ///
    /// # Errors
    /// No reference, rows that the model cannot run, failures of the back end.
    fn score_reference(&mut self, batch: &mut Batch) -> Result<(), TrainError>;

    /// Log-probs of the trained tokens under the weights as they stand, one entry per row.
    ///
    /// # Errors
    /// Rows that the model cannot run, failures of the back end.
    fn score(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, TrainError>;

    /// Writes weights and optimizer into `directory`. Accumulated gradients are not kept: save after
    /// a step.
    ///
    /// # Errors
    /// Files that cannot be written, failures of the back end.
    fn save(&mut self, directory: &Path) -> Result<(), TrainError>;

    /// Goes on from what [`Trainer::save`] wrote, as if it had never stopped. On error nothing
    /// changed.
    ///
    /// # Errors
    /// Files that cannot be read or are of a model of another shape.
    fn load(&mut self, directory: &Path) -> Result<(), TrainError>;
}

/// What a forward and backward pass saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pass {
    /// Log-probs and entropies of the trained tokens, one entry per row of the batch.
    pub scores: Vec<RowScores>,
    pub loss: f64,
}

/// What an optimizer step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Global norm of the gradients before clipping.
    pub grad_norm: f64,
    /// False when the norm was not finite: the weights are as before.
    pub applied: bool,
}

/// Weights that samplers may use.
#[derive(Clone, Debug)]
pub struct Published<W> {
    pub weights: W,
    /// Optimizer steps applied to them.
    pub version: WeightVersion,
}
