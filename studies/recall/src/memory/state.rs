//! What one rollout of one episode remembers.

use std::sync::Arc;

use retrieve::{Bm25Index, DenseIndex};
use rpds::{QueueSync, RedBlackTreeSetSync, VectorSync};
use serde::{Deserialize, Serialize};

use super::{
    duplicates::Duplicates,
    fact::{Fact, FactId},
    manager::MemoryError,
};

/// A memory as a value: a clone is a snapshot that shares all it can, and neither is ever changed by the
/// other. A clone copies a fixed number of pointers; a change copies the path to what changed.
#[derive(Clone)]
pub struct MemoryState {
    pub(super) core: Text,
    pub(super) summary: Text,
    /// Every fact that was ever written, at its id.
    pub(super) facts: VectorSync<Fact>,
    /// Those that are part of what is remembered.
    pub(super) live: RedBlackTreeSetSync<FactId>,
    /// Live facts in the order in which they would have to go.
    pub(super) leaving: RedBlackTreeSetSync<Leaving>,
    pub(super) duplicates: Duplicates,
    pub(super) window: QueueSync<WindowTurn>,
    pub(super) fact_tokens: u64,
    pub(super) window_tokens: u64,
    /// Records made so far.
    pub(super) records: u32,
    pub(super) bm25: Bm25Index,
    pub(super) dense: Option<DenseIndex>,
    /// Why facts are missing in `dense`: the next retrieval fails with it.
    pub(super) fault: Option<MemoryError>,
}

/// A text and its length in tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Text {
    pub(super) text: Arc<str>,
    pub(super) tokens: u32,
}

/// The key by which live facts leave when there are too many: the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Leaving {
    /// Importance as its bits, which for numbers from 0 to 1 sort alike.
    importance: u32,
    /// The record of its last write.
    op_id: u32,
    id: FactId,
}

/// A recent turn, as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowTurn {
    pub turn_id: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// One line an utterance, behind its speaker.
    pub text: String,
    /// Of `text`.
    pub tokens: u32,
    /// What may be kept of it in a summary; only where there will be one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sentences: Vec<String>,
}

/// Lengths of the parts of a memory or of a prompt's memory blocks, in tokens of the answering policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockTokens {
    pub core: usize,
    pub summary: usize,
    pub facts: usize,
    pub window: usize,
}

impl BlockTokens {
    pub fn total(self) -> usize {
        self.core + self.summary + self.facts + self.window
    }
}

impl MemoryState {
    pub fn core(&self) -> &str {
        &self.core.text
    }

    pub fn summary(&self) -> &str {
        &self.summary.text
    }

    /// Live facts.
    pub fn len(&self) -> usize {
        self.live.size()
    }

    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// A fact, dead or alive.
    pub fn fact(&self, id: FactId) -> Option<&Fact> {
        self.facts.get(id.0 as usize)
    }

    /// Every fact that was ever written, dead ones too, by id.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.facts.iter()
    }

    /// What is remembered, by id.
    pub fn live_facts(&self) -> impl Iterator<Item = &Fact> {
        self.live.iter().filter_map(|id| self.fact(*id))
    }

    /// The live facts that were written last, newest first.
    pub fn newest_facts(&self) -> impl Iterator<Item = &Fact> {
        self.live.iter().rev().filter_map(|id| self.fact(*id))
    }

    /// The recent turns, oldest first.
    pub fn window(&self) -> impl Iterator<Item = &WindowTurn> {
        self.window.iter()
    }

    /// Tokens of everything that is remembered: core, summary, live facts, recent turns.
    pub fn tokens(&self) -> BlockTokens {
        BlockTokens {
            core: self.core.tokens as usize,
            summary: self.summary.tokens as usize,
            facts: self.fact_tokens as usize,
            window: self.window_tokens as usize,
        }
    }

    pub fn token_len(&self) -> usize {
        self.tokens().total()
    }
}

impl Leaving {
    pub(super) fn id(&self) -> FactId {
        self.id
    }

    pub(super) fn of(fact: &Fact) -> Self {
        Self {
            importance: fact.importance.unwrap_or(0.5).to_bits(),
            op_id: fact.last_write(),
            id: fact.id,
        }
    }
}
