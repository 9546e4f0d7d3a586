//! Finding facts.

use retrieve::{Scored, reciprocal_rank_fusion};

use super::{
    config::Retrieval,
    fact::{FactId, FactKind},
    manager::{MemoryError, MemoryManager},
    state::MemoryState,
};

/// The constant of reciprocal rank fusion.
const RANK_CONSTANT: f64 = 60.0;
/// What is fused is this many times as long as what is wanted, at least [`FUSED_AT_LEAST`].
const FUSED_TIMES: usize = 4;
const FUSED_AT_LEAST: usize = 50;

/// A fact that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    pub item_id: FactId,
    /// The store it lies in.
    pub kind: FactKind,
    /// Of its method: comparable within one search only.
    pub score: f64,
    pub method: Retrieval,
}

/// How to search; absent fields as the configuration says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RetrieveOptions {
    pub top_k: Option<usize>,
    pub method: Option<Retrieval>,
    /// Facts of this store only.
    pub kind: Option<FactKind>,
}

impl MemoryManager {
    /// The live facts that answer `query` best, best first; among equals the one written last. BM25 finds only
    /// facts that share a word with it.
    ///
    /// # Errors
    ///
    /// The embedder failed, now or when a fact was written; vectors are asked for and there is no embedder.
    pub fn retrieve(
        &self,
        state: &MemoryState,
        query: &str,
        options: &RetrieveOptions,
    ) -> Result<Vec<Hit>, MemoryError> {
        if let Some(fault) = &state.fault {
            return Err(fault.clone());
        }
        let method = options.method.unwrap_or(self.config.retrieval);
        let top_k = options.top_k.unwrap_or(self.config.top_k);
        let keep = |doc: u32| {
            options.kind.is_none_or(|kind| {
                state
                    .fact(FactId(doc))
                    .is_some_and(|fact| fact.kind == kind)
            })
        };
        let scored = match method {
            Retrieval::Bm25 => state.bm25.search_where(query, top_k, keep),
            Retrieval::Dense => self.nearest(state, query, top_k, &keep)?,
            Retrieval::Hybrid => {
                let depth = top_k.saturating_mul(FUSED_TIMES).max(FUSED_AT_LEAST);
                let lexical = state.bm25.search_where(query, depth, keep);
                let semantic = self.nearest(state, query, depth, &keep)?;
                reciprocal_rank_fusion(&[&lexical, &semantic], RANK_CONSTANT, top_k)
            }
        };
        let hits = scored.into_iter().filter_map(|Scored { doc, score }| {
            let fact = state.fact(FactId(doc))?;
            Some(Hit {
                item_id: fact.id,
                kind: fact.kind,
                score,
                method,
            })
        });
        Ok(hits.collect())
    }

    /// The `k` live facts that are closest to a new one.
    ///
    /// # Errors
    ///
    /// As [`MemoryManager::retrieve`].
    pub fn neighbours(
        &self,
        state: &MemoryState,
        text: &str,
        k: usize,
    ) -> Result<Vec<Hit>, MemoryError> {
        let options = RetrieveOptions {
            top_k: Some(k),
            ..RetrieveOptions::default()
        };
        self.retrieve(state, text, &options)
    }

    fn nearest(
        &self,
        state: &MemoryState,
        query: &str,
        k: usize,
        keep: &dyn Fn(u32) -> bool,
    ) -> Result<Vec<Scored>, MemoryError> {
        let (Some(embedder), Some(dense)) = (&self.embedder, &state.dense) else {
            return Err(MemoryError::NoEmbedder(Retrieval::Dense));
        };
        if query.trim().is_empty() {
            return Ok(Vec::new());
        }
        let failed = |error: &dyn std::fmt::Display| MemoryError::Embedding(error.to_string());
        let vectors = embedder.embed(&[query]).map_err(|error| failed(&error))?;
        let Some(vector) = vectors.first() else {
            return Err(failed(&"it gave no vector for the query"));
        };
        dense
            .search_where(vector, k, keep)
            .map_err(|error| failed(&error))
    }
}
