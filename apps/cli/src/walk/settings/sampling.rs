//! How a role is sampled.

use record::Sampling;
use serde::{Deserialize, Serialize};

use super::{is_default, is_one, one};

/// Stop tokens are the chat's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SamplingSettings {
    #[serde(default = "one")]
    pub(crate) temperature: f64,
    /// This and what follows is left out of the resolved recipe where it changes nothing.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) top_p: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) top_k: usize,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) min_p: f64,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) repetition_penalty: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) presence_penalty: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) frequency_penalty: f64,
    pub(crate) max_tokens: usize,
}

impl SamplingSettings {
    pub(crate) fn sampling(&self) -> Sampling {
        Sampling {
            top_p: self.top_p as f32,
            top_k: self.top_k,
            min_p: self.min_p as f32,
            repetition_penalty: self.repetition_penalty as f32,
            presence_penalty: self.presence_penalty as f32,
            frequency_penalty: self.frequency_penalty as f32,
            ..Sampling::at(self.temperature as f32, self.max_tokens)
        }
    }
}
