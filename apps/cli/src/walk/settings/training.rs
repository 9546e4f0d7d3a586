//! `[training]`: what bounds the memory of training.

use engine::{LearnerOptions, ModelConfig};
use record::Seed;
use serde::{Deserialize, Serialize};

/// Of all models in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Training {
    /// Tokens that one thread runs forward and backward together. Changes results by rounding.
    pub(crate) micro_batch_tokens: usize,
    /// Keep the inputs of layers alone and compute the rest again: more time, less memory, and the same
    /// results.
    pub(crate) gradient_checkpointing: bool,
}

impl Default for Training {
    fn default() -> Self {
        let LearnerOptions {
            micro_batch_tokens,
            gradient_checkpointing,
            ..
        } = LearnerOptions::default();
        Self {
            micro_batch_tokens,
            gradient_checkpointing,
        }
    }
}

impl Training {
    /// The engine's settings for one phase, its dropout drawn from the phase's own stream.
    pub(crate) fn learner_options(&self, seed: Seed) -> LearnerOptions {
        LearnerOptions {
            micro_batch_tokens: self.micro_batch_tokens,
            gradient_checkpointing: self.gradient_checkpointing,
            seed: seed.stream("dropout", 0),
            ..LearnerOptions::default()
        }
    }

    /// Roughly the numbers that all lanes keep from forward to backward.
    pub(super) fn activations(&self, config: &ModelConfig) -> f64 {
        let (layers, input) = (config.n_layers as f64, config.hidden_size as f64);
        let heads = 2.0 * (config.n_heads + config.n_kv_heads) as f64 * config.head_dim as f64;
        let layer = 2.0 * input + heads + 2.0 * config.intermediate_size as f64;
        let of_token = if self.gradient_checkpointing {
            layers * input + layer
        } else {
            layers * layer
        };
        let lanes = LearnerOptions::default().lanes as f64;
        lanes * self.micro_batch_tokens as f64 * of_token
    }
}
