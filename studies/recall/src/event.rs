//! What happened in an episode, turn by turn: what step rewards, metrics and reports are made from.

use std::collections::BTreeMap;

use record::Episode;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{Fact, FactId, OpRecord},
    metrics::Metric,
    model_judge::Judged,
    step_reward::Likelihoods,
    task::TurnRole,
};

/// One thing that an episode did: a rule that wrote to the memory, or a call of a policy.
/// History turns without a call have events too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    pub turn_id: u32,
    pub turn_role: TurnRole,
    /// `rule`, or the role that was asked.
    pub agent_role: String,
    /// The call: its index in the episode's calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<u32>,
    /// What was read: the session, or the question.
    pub observation: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// What the policy said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_ops: Vec<OpRecord>,
    /// What was retrieved for it, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retrieved: Vec<Retrieved>,
    /// Tokens of every block of its prompt.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budget: BTreeMap<String, u32>,
    /// Tokens of what was read.
    pub observation_tokens: u32,
    /// Of the whole memory, after the event.
    pub memory_tokens: u32,
    /// Live facts after the event.
    pub memory_items: u32,
    /// Of a target turn: how its answer was graded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// By name; unscored ones are absent, which is not 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub step_rewards: BTreeMap<String, f64>,
    /// Their weighted sum; absent when none of them scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_reward: Option<f64>,
}

/// An item that retrieval found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrieved {
    pub item_id: FactId,
    pub score: f64,
    /// Whether it fitted into the prompt.
    pub shown: bool,
}

/// How an answer was graded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grade {
    pub question_type: String,
    /// What was read out of the response.
    pub answer: String,
    /// Of the gold answers, the one that it came closest to; empty where the right answer is to abstain.
    pub gold: String,
    /// Whether the right answer is to abstain.
    pub abstain: bool,
    /// Whether the answer abstains.
    pub abstained: bool,
    pub metric: Metric,
    /// What `metric` says: between 0 and 1, save for counts of objectives. Where a judge was asked, what it
    /// says.
    pub score: f64,
    pub exact_match: f64,
    pub f1: f64,
    /// What the answer follows from, as far as the dataset says it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
    /// Of the gold answer, where a step reward needs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihoods: Option<Likelihoods>,
}

/// An answer, from the memory after a turn, to a question about what was read in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkAnswer {
    pub turn_id: u32,
    /// The call: its index in the episode's calls.
    pub step_id: u32,
    pub question: String,
    pub response: String,
    pub grade: Grade,
}

/// Something said that an answer follows from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The turn it was read in.
    pub turn_id: u32,
    /// The utterance; the whole turn where the dataset says no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
}

/// What an episode's `notes` hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notes {
    pub data_source: String,
    /// What intervals are clustered by: episodes about one document are one draw.
    #[serde(default)]
    pub document: String,
    /// In the order in which they happened.
    pub events: Vec<Event>,
    /// Every fact that was ever written, dead ones too, by id.
    pub facts: Vec<Fact>,
    pub core: String,
    pub summary: String,
    /// What was answered about single turns, right behind each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunk_answers: Vec<ChunkAnswer>,
    /// Prompts that had to be cut because blocks did not fit their budgets.
    pub truncated: u32,
}

impl Notes {
    /// Of an episode that reached its verdict.
    pub fn of(episode: &Episode) -> Option<Self> {
        episode.outcome.reward()?;
        serde_json::from_value(episode.notes.clone()).ok()
    }
}

impl Evidence {
    /// Whether `fact` was made from it before the turn `before`. Of a write whose utterances are not known
    /// only the turn counts, and no evidence that names an utterance.
    pub fn is_in(&self, fact: &Fact, before: u32) -> bool {
        fact.written.iter().any(|write| {
            write.turn_id < before
                && write.turn_id == self.turn_id
                && self
                    .source_id
                    .as_ref()
                    .is_none_or(|source| write.source_ids.contains(source))
        })
    }
}
