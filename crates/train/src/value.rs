//! The value function beside the policy: asked before a step's update, fitted to its returns after.

use journal::Metrics;
use learn::{ClippedValueLoss, ValueConfig, ValueTrainer, metrics};
use record::Batch;

use crate::{TrainError, parts::MiniBatchUnit};

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

    /// Every update of the value function in a step, on parts of the batch in `unit`, at learning rate `rate`,
    /// and what they saw.
    pub(crate) fn fit(
        &self,
        batch: &Batch,
        unit: MiniBatchUnit,
        config: &ValueConfig,
        rate: f64,
        trainer: &mut dyn ValueTrainer,
    ) -> Result<Metrics, TrainError> {
        let parts: Vec<(Batch, ClippedValueLoss)> = self
            .parts(batch, unit, config.mini_batches)
            .into_iter()
            .map(|(part, values, returns)| {
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

    /// The batch in so many parts, each with what is known of its rows.
    fn parts(&self, batch: &Batch, unit: MiniBatchUnit, parts: usize) -> Vec<Part<'_>> {
        let mut start = 0;
        let known = |part: Batch| {
            let rows = start..start + part.data.len();
            start = rows.end;
            (part, &self.values[rows.clone()], &self.returns[rows])
        };
        let parts = unit.parts(batch, parts);
        parts.into_iter().map(known).collect()
    }
}

/// Rows, and their values and returns.
type Part<'a> = (Batch, &'a [Vec<f32>], &'a [Vec<f64>]);

#[cfg(test)]
mod tests {
    use record::{Datum, EpisodeId};

    use super::*;

    #[test]
    fn episodes_stay_whole_and_keep_what_is_known_of_their_rows() {
        let row = |(member, step): (u32, u32)| Datum {
            episode: Some(EpisodeId {
                step: 1,
                group: 0,
                member,
            }),
            ..Datum::supervised(&[0], &[member, step])
        };
        // Episodes of one, four and two calls.
        let calls = [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1)];
        let batch = Batch {
            data: calls.map(row).to_vec(),
        };
        let said = Said {
            values: (0..7).map(|row| vec![row as f32; 2]).collect(),
            returns: (0..7).map(|row| vec![f64::from(row) / 2.0; 2]).collect(),
        };
        let sizes = |unit, parts| -> Vec<usize> {
            let parts = said.parts(&batch, unit, parts);
            parts.iter().map(|(part, ..)| part.data.len()).collect()
        };
        assert_eq!(sizes(MiniBatchUnit::Rows, 2), [4, 3]);
        assert_eq!(sizes(MiniBatchUnit::Episodes, 2), [5, 2]);
        assert_eq!(sizes(MiniBatchUnit::Episodes, 3), [1, 4, 2]);
        let mut next = 0;
        for (part, values, returns) in said.parts(&batch, MiniBatchUnit::Episodes, 3) {
            let rows = next..next + part.data.len();
            assert_eq!(part.data, batch.data[rows.clone()]);
            assert_eq!(values, &said.values[rows.clone()]);
            assert_eq!(returns, &said.returns[rows.clone()]);
            next = rows.end;
        }
        assert_eq!(next, 7);
    }
}
