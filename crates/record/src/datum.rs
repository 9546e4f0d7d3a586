//! What the trainer eats.

use serde::{Deserialize, Serialize};

use crate::{EpisodeId, StepKey, TokenId};

/// One training row: a token sequence and what each of its tokens is worth.
///
/// All vectors are as long as `tokens`. Entry `i` of the per-token vectors speaks of predicting
/// `tokens[i]` from `tokens[..i]`; where `mask[i]` is false the other entries mean nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Datum {
    /// The episode it came from; `None` for supervised rows.
    pub episode: Option<EpisodeId>,
    /// Index of its call in the episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    pub tokens: Vec<TokenId>,
    /// True for tokens that the policy sampled (or, supervised, that it should learn to say):
    /// known from where the token came from, never from its id. `mask[0]` is always false.
    pub mask: Vec<bool>,
    /// Log-probs recorded while sampling.
    pub logprobs: Vec<f32>,
    /// Log-probs of the frozen reference policy, when the loss has a KL term.
    pub ref_logprobs: Vec<f32>,
    pub advantages: Vec<f32>,
}

/// The rows of one optimizer step, in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    pub data: Vec<Datum>,
}

impl Datum {
    /// A supervised row: learn to say `response` after `prompt`.
    pub fn supervised(prompt: &[TokenId], response: &[TokenId]) -> Self {
        let n = prompt.len() + response.len();
        let mut mask = vec![false; prompt.len()];
        mask.resize(n, true);
        Self {
            episode: None,
            step: None,
            tokens: [prompt, response].concat(),
            mask,
            logprobs: vec![0.0; n],
            ref_logprobs: vec![0.0; n],
            advantages: vec![0.0; n],
        }
    }

    /// The call that the row was made from.
    pub fn key(&self) -> Option<StepKey> {
        Some(StepKey {
            episode: self.episode?,
            step: self.step?,
        })
    }

    /// Tokens that carry loss.
    pub fn n_trained(&self) -> usize {
        self.mask.iter().filter(|&&sampled| sampled).count()
    }
}
