//! Learning to say given tokens.

use engine::{RowScores, TokenLoss};
use record::Batch;

use crate::{
    Aggregation,
    policy_loss::{episodes_of, lengths},
};

/// Cross-entropy of the masked tokens: minus their log-prob, aggregated over the whole batch.
#[derive(Clone, Debug)]
pub struct SupervisedLoss {
    weights: Vec<f64>,
}

impl SupervisedLoss {
    /// The loss of exactly `batch`: its divisors count all of its rows, whatever the micro-batching.
    pub fn new(batch: &Batch, aggregation: Aggregation) -> Self {
        Self {
            weights: aggregation.weights(&lengths(batch), &episodes_of(batch), None),
        }
    }
}

impl TokenLoss for SupervisedLoss {
    fn row(
        &self,
        row: usize,
        scores: &RowScores,
        d_logprobs: &mut [f32],
        _d_entropies: &mut [f32],
    ) -> f64 {
        let weight = self.weights[row];
        d_logprobs.fill(-weight as f32);
        -weight
            * scores
                .logprobs
                .iter()
                .map(|&logprob| f64::from(logprob))
                .sum::<f64>()
    }
}
