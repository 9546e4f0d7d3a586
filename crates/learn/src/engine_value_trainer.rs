//! Training a value function in process, on the engine.

use std::{path::Path, sync::Arc};

use engine::{Engine, LearnerOptions, Model, ValueLearner};
use record::Batch;

use crate::{
    ClippedValueLoss, OptimizerConfig, Step, TrainError, ValuePass, ValueTrainer,
    engine_trainer::{adam, check_shape, rows},
};

/// A [`ValueTrainer`] over a decoder of its own.
pub struct EngineValueTrainer {
    engine: Engine,
    options: LearnerOptions,
    learner: ValueLearner,
}

impl EngineValueTrainer {
    /// Trains a copy of `decoder` under a new head.
    pub fn new(engine: &Engine, decoder: Arc<Model>, options: LearnerOptions) -> Self {
        Self {
            engine: engine.clone(),
            options,
            learner: ValueLearner::new(engine, decoder, options),
        }
    }
}

impl ValueTrainer for EngineValueTrainer {
    fn values(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, TrainError> {
        Ok(self.learner.values(&rows(batch))?)
    }

    fn forward_backward(
        &mut self,
        batch: &Batch,
        loss: &ClippedValueLoss,
    ) -> Result<ValuePass, TrainError> {
        if batch.data.iter().all(|datum| datum.n_trained() == 0) {
            return Err(TrainError::EmptyBatch);
        }
        let report = self.learner.forward_backward(&rows(batch), loss)?;
        Ok(ValuePass {
            values: report.values,
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

    fn save(&mut self, directory: &Path) -> Result<(), TrainError> {
        Ok(self.learner.save(directory)?)
    }

    fn load(&mut self, directory: &Path) -> Result<(), TrainError> {
        let before = self.learner.decoder();
        let learner = match before.adapter() {
            Some(_) => ValueLearner::load_over(&self.engine, before, directory, self.options)?,
            None => ValueLearner::load(&self.engine, directory, self.options)?,
        };
        check_shape(before, learner.decoder(), directory)?;
        self.learner = learner;
        Ok(())
    }
}
