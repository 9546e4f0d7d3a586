//! The losses by name: what a trainer is asked to minimise.

use engine::TokenLoss;
use record::Batch;
use serde::{Deserialize, Serialize};

use crate::{Aggregation, AlgorithmConfig, PolicyLoss, SupervisedLoss};

/// A loss as data, so that trainers on other machines can be asked for it too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Cross-entropy of the masked tokens.
    Supervised { aggregation: Aggregation },
    /// The clipped policy gradient with its KL and entropy terms.
    Policy(Box<AlgorithmConfig>),
}

impl Loss {
    /// Cross-entropy averaged over all masked tokens of the batch.
    pub fn supervised() -> Self {
        Self::Supervised {
            aggregation: Aggregation::TokenMean,
        }
    }

    /// Whether [`Self::at`] must be told the log-probs of the weights that are updated.
    pub fn needs_current(&self) -> bool {
        matches!(self, Self::Policy(config) if config.loss_mode.needs_covariances())
    }

    /// As [`Self::over`], given the current log-probs of the trained tokens of each row.
    pub fn at(&self, batch: &Batch, current: &[Vec<f32>]) -> Box<dyn TokenLoss> {
        match self {
            Self::Supervised { .. } => self.over(batch),
            Self::Policy(config) => Box::new(PolicyLoss::at(batch, config, current)),
        }
    }

    /// The loss of exactly `batch`.
    pub fn over(&self, batch: &Batch) -> Box<dyn TokenLoss> {
        match self {
            Self::Supervised { aggregation } => Box::new(SupervisedLoss::new(batch, *aggregation)),
            Self::Policy(config) => Box::new(PolicyLoss::new(batch, config)),
        }
    }
}
