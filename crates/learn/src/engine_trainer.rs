//! Training in process, on the engine.

use std::{path::Path, sync::Arc};

use engine::{AdamW, Engine, Learner, LearnerOptions, Model, TrainRow};
use record::{Batch, Datum, WeightVersion};

use crate::{Loss, OptimizerConfig, Pass, Published, Step, TrainError, Trainer};

/// A [`Trainer`] whose weights are shared with the samplers of the same process: publishing costs
/// nothing.
pub struct EngineTrainer {
    engine: Engine,
    options: LearnerOptions,
    learner: Learner,
    reference: Option<Arc<Model>>,
}

impl EngineTrainer {
    /// Trains a copy of `model`, or of its adapter alone when it has one; `reference` is the frozen policy
    /// of the KL term. A reference with the weights of `model` and another adapter, or none, takes no
    /// memory for them.
    pub fn new(
        engine: &Engine,
        model: Arc<Model>,
        reference: Option<Arc<Model>>,
        options: LearnerOptions,
    ) -> Self {
        let learner = Learner::new(engine, model, options);
        Self {
            engine: engine.clone(),
            options,
            learner,
            reference,
        }
    }

    /// The weights as they stand.
    pub fn model(&self) -> &Model {
        self.learner.model()
    }

    /// Optimizer steps applied to the weights.
    pub fn version(&self) -> WeightVersion {
        WeightVersion(self.learner.step())
    }
}

impl Trainer for EngineTrainer {
    type Weights = Arc<Model>;

    fn forward_backward(&mut self, batch: &Batch, loss: &Loss) -> Result<Pass, TrainError> {
        if batch.data.iter().all(|datum| datum.n_trained() == 0) {
            return Err(TrainError::EmptyBatch);
        }
        let loss = match loss.needs_current() {
            true => loss.at(batch, &self.score(batch)?),
            false => loss.over(batch),
        };
        let report = self.learner.forward_backward(&rows(batch), loss.as_ref())?;
        Ok(Pass {
            scores: report.scores,
            loss: report.loss,
        })
    }

    fn optim_step(&mut self, optimizer: &OptimizerConfig, lr: f64) -> Result<Step, TrainError> {
        let report = self.learner.optim_step(&adam(optimizer, lr));
        Ok(Step {
            grad_norm: report.grad_norm,
            applied: report.applied,
        })
    }

    fn publish(&mut self) -> Result<Published<Arc<Model>>, TrainError> {
        Ok(Published {
            weights: self.learner.publish(),
            version: self.version(),
        })
    }

    fn score_reference(&mut self, batch: &mut Batch) -> Result<(), TrainError> {
        let reference = self.reference.as_ref().ok_or(TrainError::NoReference)?;
        let scores = self.engine.score(reference, &rows(batch))?;
        for (datum, scores) in batch.data.iter_mut().zip(scores) {
            let Datum {
                mask, ref_logprobs, ..
            } = datum;
            let trained = ref_logprobs.iter_mut().zip(mask).filter(|(_, mask)| **mask);
            for ((slot, _), logprob) in trained.zip(scores.logprobs) {
                *slot = logprob;
            }
        }
        Ok(())
    }

    fn score(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, TrainError> {
        let scores = self.engine.score(self.learner.model(), &rows(batch))?;
        Ok(scores.into_iter().map(|row| row.logprobs).collect())
    }

    fn save(&mut self, directory: &Path) -> Result<(), TrainError> {
        Ok(self.learner.save(directory)?)
    }

    fn load(&mut self, directory: &Path) -> Result<(), TrainError> {
        let before = self.learner.model();
        let learner = match before.adapter() {
            Some(_) => Learner::load_over(&self.engine, before, directory, self.options)?,
            None => Learner::load(&self.engine, directory, self.options)?,
        };
        check_shape(before, learner.model(), directory)?;
        self.learner = learner;
        Ok(())
    }
}

/// What training goes on with must be of the shape that it began with, adapters included.
pub(crate) fn check_shape(
    before: &Model,
    found: &Model,
    directory: &Path,
) -> Result<(), TrainError> {
    let lora = |model: &Model| model.adapter().map(|adapter| adapter.config().clone());
    if found.config() == before.config() && lora(found) == lora(before) {
        return Ok(());
    }
    Err(TrainError::AnotherShape {
        directory: directory.to_owned(),
    })
}

pub(crate) fn adam(optimizer: &OptimizerConfig, lr: f64) -> AdamW {
    AdamW {
        learning_rate: lr as f32,
        beta1: optimizer.betas[0] as f32,
        beta2: optimizer.betas[1] as f32,
        epsilon: optimizer.eps as f32,
        weight_decay: optimizer.weight_decay as f32,
        max_grad_norm: optimizer.grad_clip,
    }
}

pub(crate) fn rows(batch: &Batch) -> Vec<TrainRow<'_>> {
    batch
        .data
        .iter()
        .map(|datum| TrainRow {
            tokens: &datum.tokens,
            mask: &datum.mask,
        })
        .collect()
}
