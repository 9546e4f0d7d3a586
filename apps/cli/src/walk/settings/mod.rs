//! The pieces that recipes of every study are made of, and their checks.

mod check;
mod policy;
mod sampling;
mod stage;
mod training;

use anyhow::Context;
use rollout::Options as RolloutOptions;
use serde::{Deserialize, Serialize};
use train::ReinforceConfig;

use crate::failure::{Classify, Outcome};

pub(crate) use check::check_seconds;
pub(crate) use policy::{PolicySettings, prompt_tokens};
pub(crate) use sampling::SamplingSettings;
pub(crate) use stage::{Stage, StageSize};
pub(crate) use training::Training;

/// Longer than any context: what bounds texts that are said whole.
pub(crate) const LONGEST_CONTEXT: usize = 1 << 20;

/// What the recipes of all studies say.
pub(crate) struct Common<'a> {
    pub(crate) name: &'a str,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    pub(crate) training: Training,
    pub(crate) tokenizer: Option<&'a Tokenizer>,
    /// Every model of the run.
    pub(crate) policies: Vec<PolicySettings<'a>>,
    /// Of recipes that reinforce something.
    pub(crate) rl: Option<&'a ReinforceConfig>,
    pub(crate) rollout: &'a RolloutOptions,
}

impl<'a> Common<'a> {
    pub(crate) fn policy(&self, name: &str) -> Outcome<&PolicySettings<'a>> {
        let found = self.policies.iter().find(|policy| policy.name == name);
        found
            .with_context(|| format!("no policy is named {name}"))
            .failed()
    }
}

/// Byte-level BPE, trained on what the study's roles read and write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tokenizer {
    /// Entries in all: 256 bytes, special tokens, merges.
    pub(crate) vocabulary: usize,
}

/// Left out of the resolved recipe, so that recipes without it keep their hash.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
pub(crate) fn one() -> f64 {
    1.0
}
pub(crate) fn is_one(value: &f64) -> bool {
    *value == 1.0
}
pub(crate) fn two() -> usize {
    2
}
pub(crate) fn yes() -> bool {
    true
}
