//! The memory of an episode, seen from outside: what may be asked of it, turn by turn.

use std::sync::Arc;

use retrieve::{Analyzer, Bm25Config, Bm25Index, DenseIndex, Embedder};
use rpds::{QueueSync, RedBlackTreeSetSync, VectorSync};

use crate::task::TurnSpec;

use super::{
    apply::Author,
    config::{BadSetting, Extraction, MemoryConfig, Retrieval},
    duplicates::Duplicates,
    extract,
    op::{MemoryOp, OpRecord},
    state::{MemoryState, Text},
};

/// Tokens of a text, by the answering policy's tokenizer.
pub type CountTokens = Arc<dyn Fn(&str) -> usize + Send + Sync>;

/// Changes memories and reads them. It keeps nothing itself: all that is remembered is in the
/// [`MemoryState`] that it is given, so that one manager serves all episodes at once.
#[derive(Clone)]
pub struct MemoryManager {
    pub(super) config: MemoryConfig,
    pub(super) count: CountTokens,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
}

/// Why a memory could not be made or searched. What a policy asks for in vain is no error but a record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MemoryError {
    #[error(transparent)]
    BadSetting(#[from] BadSetting),
    #[error("memory.retrieval is `{}`: that needs an embedder, and there is none", .0.name())]
    NoEmbedder(Retrieval),
    #[error("the embedder failed: {0}")]
    Embedding(String),
}

impl MemoryManager {
    /// `embedder` is asked under `dense` and `hybrid` retrieval only.
    ///
    /// # Errors
    ///
    /// A setting that makes no sense; retrieval by vectors without an embedder.
    pub fn new(
        config: MemoryConfig,
        count: CountTokens,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, MemoryError> {
        config.check()?;
        let embedder = embedder.filter(|_| config.retrieval != Retrieval::Bm25);
        if config.retrieval != Retrieval::Bm25 && embedder.is_none() {
            return Err(MemoryError::NoEmbedder(config.retrieval));
        }
        Ok(Self {
            config,
            count,
            embedder,
        })
    }

    pub fn config(&self) -> &MemoryConfig {
        &self.config
    }

    /// Tokens of a text.
    pub fn count(&self, text: &str) -> usize {
        (self.count)(text)
    }

    /// The memory of an episode that has read nothing.
    pub fn initialize(&self) -> MemoryState {
        let dimension = self.embedder.as_ref().map(|embedder| embedder.dimension());
        MemoryState {
            core: Text::default(),
            summary: Text::default(),
            facts: VectorSync::new_sync(),
            live: RedBlackTreeSetSync::new_sync(),
            leaving: RedBlackTreeSetSync::new_sync(),
            duplicates: Duplicates::new(self.config.near_duplicate, self.config.keep_repeats),
            window: QueueSync::new_sync(),
            fact_tokens: 0,
            window_tokens: 0,
            records: 0,
            bm25: Bm25Index::new(Bm25Config::default(), Analyzer::default()),
            dense: dimension.map(DenseIndex::new),
            fault: None,
        }
    }

    /// Writes the facts of a history turn by rule: sentences, or pieces under `extraction = "chunk"`. Where a
    /// policy or a model extracts, or nobody does, nothing happens.
    pub fn extract_facts(&self, state: &mut MemoryState, turn: &TurnSpec) -> Vec<OpRecord> {
        let extracted = match self.config.extraction {
            Extraction::Rule => extract::extract(
                turn,
                self.config.fact_tokens,
                self.config.resolve_possessive,
                &self.count,
            ),
            Extraction::Chunk => extract::chunks(turn, self.config.chunk_tokens, &self.count),
            Extraction::None | Extraction::Model | Extraction::Policy | Extraction::FourRoles => {
                return Vec::new();
            }
        };
        let mut by = Author::rule(turn);
        let mut records = Vec::new();
        let mut written = Vec::new();
        for fact in extracted {
            by.source_ids = fact.source_ids;
            let op = MemoryOp::Insert {
                kind: fact.kind,
                text: fact.text,
                importance: None,
                timestamp: None,
            };
            self.change(state, op, &by, &mut records, &mut written);
        }
        self.embed(state, &written);
        records
    }

    /// After a target turn: under `remember_answers` the question and its answer join the recent turns, else
    /// questions leave no trace.
    pub fn update_memory(
        &self,
        state: &mut MemoryState,
        turn: &TurnSpec,
        response: &str,
    ) -> Vec<OpRecord> {
        if !self.config.remember_answers {
            return Vec::new();
        }
        let text = format!("{}\n{}", turn.observation(), response.trim());
        self.remember_turn(state, turn, text)
    }
}
