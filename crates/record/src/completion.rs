//! What a policy is asked for and what it answers, in tokens.

use std::collections::BTreeMap;

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
///
/// The logits of a token are changed in this order, the one of `transformers`' logits processors: logit
/// bias, repetition penalty, frequency and presence penalty (which `transformers` lacks; they stand where
/// vLLM has them), temperature, top-k, top-p, min-p. What is left is drawn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// 0 means greedy (arg max after bias and penalties, lowest id wins ties).
    pub temperature: f32,
    /// Nucleus (arXiv 1904.09751): keep the smallest set of tokens whose probability reaches this; 1
    /// keeps all.
    #[serde(default = "one")]
    pub top_p: f32,
    /// Keep this many most probable tokens, and those as probable as the last of them (arXiv
    /// 1805.04833); 0 keeps all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub top_k: usize,
    /// Keep tokens at least this probable relative to the most probable one (arXiv 2407.01082); 0 keeps
    /// all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_p: f32,
    /// Logits of tokens of prompt and response are divided by this where positive and multiplied where
    /// negative (arXiv 1909.05858); 1 leaves them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub repetition_penalty: f32,
    /// Taken off the logits of tokens that are in the response.
    #[serde(default, skip_serializing_if = "is_default")]
    pub presence_penalty: f32,
    /// Taken off the logit of a token for each time that it is in the response.
    #[serde(default, skip_serializing_if = "is_default")]
    pub frequency_penalty: f32,
    /// Added to the logits of these tokens.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logit_bias: BTreeMap<TokenId, f32>,
    /// Most tokens in the response, the stop token included.
    pub max_tokens: usize,
    /// Sampling one of these ends the response; the stop token is part of it.
    #[serde(default)]
    pub stop: Vec<TokenId>,
    /// The response ends with the token that completes one of these in its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_strings: Vec<String>,
}

/// A sampling parameter outside its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BadSampling {
    pub parameter: &'static str,
    pub value: f32,
    /// What to give instead.
    pub expected: &'static str,
}

fn one() -> f32 {
    1.0
}

fn is_one(value: &f32) -> bool {
    *value == 1.0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Sampling {
    pub fn greedy(max_tokens: usize) -> Self {
        Self::at(0.0, max_tokens)
    }

    pub fn at(temperature: f32, max_tokens: usize) -> Self {
        Self {
            temperature,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: BTreeMap::new(),
            max_tokens,
            stop: Vec::new(),
            stop_strings: Vec::new(),
        }
    }

    /// Whether tokens are drawn from the model's own distribution: temperature 1 and nothing else.
    pub fn is_plain(&self) -> bool {
        self.temperature == 1.0
            && self.top_p >= 1.0
            && self.top_k == 0
            && self.min_p == 0.0
            && !self.changes_logits()
    }

    /// Whether logits depend on what was said before, or on a bias.
    pub fn changes_logits(&self) -> bool {
        self.has_penalties() || !self.logit_bias.is_empty()
    }

    /// Whether logits depend on what was said before.
    pub fn has_penalties(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.presence_penalty != 0.0
            || self.frequency_penalty != 0.0
    }

    /// Refuses parameters that make no distribution.
    pub fn check(&self) -> Result<(), BadSampling> {
        let finite = "give a finite number";
        let bias = self.logit_bias.values();
        let bias = bias.copied().find(|bias| !bias.is_finite());
        let checks = [
            (
                "temperature",
                self.temperature,
                self.temperature.is_finite() && self.temperature >= 0.0,
                "give 0 (greedy) or a positive number",
            ),
            (
                "top_p",
                self.top_p,
                self.top_p > 0.0 && self.top_p <= 1.0,
                "give a number above 0 and at most 1",
            ),
            (
                "min_p",
                self.min_p,
                (0.0..=1.0).contains(&self.min_p),
                "give a number from 0 to 1",
            ),
            (
                "repetition_penalty",
                self.repetition_penalty,
                (0.01..=100.0).contains(&self.repetition_penalty),
                "give a number from 0.01 to 100; 1 is no penalty",
            ),
            (
                "presence_penalty",
                self.presence_penalty,
                self.presence_penalty.abs() <= 100.0,
                "give a number from -100 to 100; 0 is no penalty",
            ),
            (
                "frequency_penalty",
                self.frequency_penalty,
                self.frequency_penalty.abs() <= 100.0,
                "give a number from -100 to 100; 0 is no penalty",
            ),
            ("logit_bias", bias.unwrap_or(0.0), bias.is_none(), finite),
        ];
        match checks.into_iter().find(|(_, _, good, _)| !good) {
            None => Ok(()),
            Some((parameter, value, _, expected)) => Err(BadSampling {
                parameter,
                value,
                expected,
            }),
        }
    }
}

/// Why a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A stop token was sampled, or the token that completes a stop string; it is the last id of the
    /// response.
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
    /// The same under the distribution that was drawn from, after penalties, temperature and
    /// truncation. Empty where that is the model's own ([`Sampling::is_plain`]), and `logprobs` holds
    /// it; zeros under greedy sampling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled_logprobs: Vec<f32>,
    /// For each response id the most probable ones, most probable first, as `logprobs`; only when
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub top_logprobs: Vec<Vec<(TokenId, f32)>>,
    /// `log p(prompt[i] | prompt[..i])` for all ids of the prompt but the first; only when asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompt_logprobs: Vec<f32>,
    pub stop: StopReason,
    pub sampling: Sampling,
    /// Weights that every token of this response was sampled from.
    pub weights: WeightVersion,
}
