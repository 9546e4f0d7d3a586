//! What a policy is asked for and what it answers, in tokens.

use serde::{Deserialize, Serialize};

/// Index into the vocabulary of the policy's own tokenizer.
pub type TokenId = u32;

/// Counts publications of a role's weights: 0 is what the phase started from, one more per
/// optimizer step published.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct WeightVersion(pub u64);

/// How to draw a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// 0 means greedy (arg max, lowest id wins ties).
    pub temperature: f32,
    /// Nucleus: keep the smallest set of tokens whose probability reaches this; 1 keeps all.
    #[serde(default = "one")]
    pub top_p: f32,
    /// Most tokens in the response, the stop token included.
    pub max_tokens: usize,
    /// Sampling one of these ends the response; the stop token is part of it.
    #[serde(default)]
    pub stop: Vec<TokenId>,
}

fn one() -> f32 {
    1.0
}

impl Sampling {
    pub fn greedy(max_tokens: usize) -> Self {
        Self {
            temperature: 0.0,
            top_p: 1.0,
            max_tokens,
            stop: Vec::new(),
        }
    }
    pub fn at(temperature: f32, max_tokens: usize) -> Self {
        Self {
            temperature,
            top_p: 1.0,
            max_tokens,
            stop: Vec::new(),
        }
    }
}

/// Why a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A stop token was sampled; it is the last id of the response.
    Stop,
    /// `max_tokens` or the context length was reached first.
    Length,
}

/// One answer of a policy: exactly what was sampled, never text turned back into tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    pub prompt: Vec<TokenId>,
    /// Sampled ids, the stop token included when `stop` is [`StopReason::Stop`].
    pub response: Vec<TokenId>,
    /// `log p(response[i] | prompt, response[..i])` at temperature 1 before any truncation; natural
    /// logarithm, one per response id. Empty for policies that have no probabilities (scripted).
    pub logprobs: Vec<f32>,
    pub stop: StopReason,
    pub sampling: Sampling,
    /// Weights that every token of this response was sampled from.
    pub weights: WeightVersion,
}
