//! The value function beside the policy: asked before a step's update, fitted to its returns after.

use journal::Metrics;
use learn::{ClippedValueLoss, ValueConfig, ValueTrainer, metrics};
use record::Batch;

use crate::{TrainError, parts::part_size};

/// Where a checkpoint of the policy keeps the value function.
pub(crate) const DIRECTORY: &str = "value";

/// What a value function said of the rows of a batch when a step began, and what it is fitted to; one
/// entry a trained token of each row.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) values: Vec<Vec<f32>>,
    pub(crate) returns: Vec<Vec<f64>>,
}

impl Said {
    /// The values as advantages are made from them.
    pub(crate) fn values(&self) -> Vec<Vec<f64>> {
        let wide = |row: &Vec<f32>| row.iter().map(|&value| value.into()).collect();
        self.values.iter().map(wide).collect()
    }

    /// Forgets rows without a trained token, as a batch does that is about to be trained on.
    pub(crate) fn retain_trained(&mut self) {
        self.values.retain(|row| !row.is_empty());
        self.returns.retain(|row| !row.is_empty());
    }

    /// Every update of the value function in a step, at learning rate `rate`, and what they saw.
    pub(crate) fn fit(
        &self,
        batch: &Batch,
        config: &ValueConfig,
        rate: f64,
        trainer: &mut dyn ValueTrainer,
    ) -> Result<Metrics, TrainError> {
        let size = part_size(batch.data.len(), config.mini_batches);
        let parts = batch.data.chunks(size);
        let known = self.values.chunks(size).zip(self.returns.chunks(size));
        let parts: Vec<(Batch, ClippedValueLoss)> = parts
            .zip(known)
            .map(|(rows, (values, returns))| {
                let part = Batch {
                    data: rows.to_vec(),
                };
                let loss = ClippedValueLoss::new(&part, values, returns, config);
                (part, loss)
            })
            .collect();
        let mut seen = Vec::new();
        for _ in 0..config.epochs.max(1) {
            for (part, loss) in &parts {
                let pass = trainer.forward_backward(part, loss)?;
                let step = trainer.optim_step(&config.optimizer, rate)?;
                let clipped = loss.clip_fraction(&pass.values);
                seen.push(metrics::value_update(&pass, clipped, rate, step));
            }
        }
        Ok(metrics::of_updates("critic", &seen))
    }
}
