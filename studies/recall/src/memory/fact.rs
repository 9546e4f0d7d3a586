//! A fact of the long-term memory, and where it came from.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Counts the facts of one episode; written `f000012`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId(pub u32);

/// Which of the two long-term stores a fact lies in (spec, section 2.1).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// What holds: traits, preferences, relations.
    #[default]
    Semantic,
    /// What happened.
    Episodic,
}

/// One remembered statement. Deleted and superseded facts stay for as long as their episode, so that
/// whoever wrote them can still be credited or blamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    pub id: FactId,
    pub text: String,
    pub kind: FactKind,
    /// Between 0 and 1, where whoever wrote it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<f32>,
    /// Of the session that it was learnt in, unless its writer gave another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Every write, oldest first; never empty. Updates add to it and lose nothing.
    pub written: Vec<Write>,
    /// The fact that took its place, under `append_supersede`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<FactId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// BLAKE3 of `text`, the first 16 hex digits.
    pub content_hash: String,
    /// Of `text`, in tokens of the answering policy.
    pub tokens: u32,
}

/// One write of a fact: its provenance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    pub turn_id: u32,
    /// The record of it.
    pub op_id: u32,
    /// The policy call that asked for it (index in the episode's calls); absent for rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<u32>,
    /// Utterances of the turn that it was made from, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_ids: Vec<String>,
}

impl FactKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Episodic => "episodic",
        }
    }
}

impl Fact {
    /// Whether it is still part of what is remembered.
    pub fn is_live(&self) -> bool {
        !self.deleted && self.superseded_by.is_none()
    }

    /// The record of its last write: what was written later has a higher one.
    pub fn last_write(&self) -> u32 {
        self.written.last().map_or(0, |write| write.op_id)
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{:06}", self.0)
    }
}

/// A text that names no fact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no id of a fact; ids look like f000012")]
pub struct BadFactId(pub String);

impl FromStr for FactId {
    type Err = BadFactId;

    fn from_str(text: &str) -> Result<Self, BadFactId> {
        let digits = text.strip_prefix('f').filter(|digits| {
            digits.len() >= 6 && digits.bytes().all(|digit| digit.is_ascii_digit())
        });
        digits
            .and_then(|digits| digits.parse().ok())
            .map(Self)
            .ok_or_else(|| BadFactId(text.to_owned()))
    }
}

impl Serialize for FactId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FactId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
