//! Finding facts.

use std::collections::{BTreeMap, BTreeSet};

use retrieve::{
    AdditiveFusion, Analyzer, Scored, maximal_marginal_relevance, recency_decay,
    reciprocal_rank_fusion, z_score_fusion,
};

use super::{
    config::{Fusion, Retrieval},
    fact::{Fact, FactId, FactKind},
    manager::{MemoryError, MemoryManager},
    state::MemoryState,
};

/// The constant of reciprocal rank fusion.
const RANK_CONSTANT: f64 = 60.0;
/// What is fused or adjusted is this many times as long as what is wanted, at least [`FUSED_AT_LEAST`].
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

/// How many are ranked where some of them will be left out.
fn deep(k: usize) -> usize {
    k.saturating_mul(FUSED_TIMES).max(FUSED_AT_LEAST)
}

fn last_turn(fact: &Fact) -> u32 {
    fact.written.last().map_or(0, |write| write.turn_id)
}

fn hits(state: &MemoryState, scored: Vec<Scored>, method: Retrieval) -> Vec<Hit> {
    let hit = |Scored { doc, score }| {
        let fact = state.fact(FactId(doc))?;
        Some(Hit {
            item_id: fact.id,
            kind: fact.kind,
            score,
            method,
        })
    };
    scored.into_iter().filter_map(hit).collect()
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
        let oldest = self.oldest_turn(state);
        let keep = |doc: u32| {
            state.fact(FactId(doc)).is_some_and(|fact| {
                options.kind.is_none_or(|kind| fact.kind == kind) && oldest <= last_turn(fact)
            })
        };
        let adjusts = self.config.half_life_turns > 0.0 || self.config.diversity > 0.0;
        let depth = if adjusts { deep(top_k) } else { top_k };
        let found = self.ranked(state, query, (method, depth), &keep)?;
        let scored = if adjusts {
            self.adjusted(state, found, top_k)
        } else {
            found
        };
        Ok(hits(state, scored, method))
    }

    /// The `k` live facts that are closest to a new one, whatever their age and variety.
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
        if let Some(fault) = &state.fault {
            return Err(fault.clone());
        }
        let method = self.config.retrieval;
        let found = self.ranked(state, text, (method, k), &|_| true)?;
        Ok(hits(state, found, method))
    }

    fn ranked(
        &self,
        state: &MemoryState,
        query: &str,
        (method, k): (Retrieval, usize),
        keep: &dyn Fn(u32) -> bool,
    ) -> Result<Vec<Scored>, MemoryError> {
        Ok(match method {
            Retrieval::Bm25 => state.bm25.search_where(query, k, keep),
            Retrieval::Dense => self.nearest(state, query, k, keep)?,
            Retrieval::Hybrid => {
                let lexical = state.bm25.search_where(query, deep(k), keep);
                let semantic = self.nearest(state, query, deep(k), keep)?;
                match self.config.fusion {
                    Fusion::ReciprocalRank => {
                        reciprocal_rank_fusion(&[&lexical, &semantic], RANK_CONSTANT, k)
                    }
                    Fusion::ZScore => z_score_fusion(&[(&lexical, 1.0), (&semantic, 1.0)], k),
                    Fusion::Additive => {
                        let terms = Analyzer::default().terms(query).len();
                        AdditiveFusion::default().fuse(&semantic, &lexical, &[], terms, k)
                    }
                }
            }
        })
    }

    /// The turn before which nothing is retrieved.
    fn oldest_turn(&self, state: &MemoryState) -> u32 {
        let within = self.config.within_turns as u32;
        if within == 0 {
            return 0;
        }
        let live = state.facts().filter(|fact| fact.is_live());
        live.map(last_turn)
            .max()
            .unwrap_or(0)
            .saturating_sub(within)
    }

    /// The best `k` once age and variety count.
    fn adjusted(&self, state: &MemoryState, mut found: Vec<Scored>, k: usize) -> Vec<Scored> {
        let fact = |doc| state.fact(FactId(doc));
        if self.config.half_life_turns > 0.0 {
            let turn = |doc| fact(doc).map_or(0, last_turn);
            // To the newest of those that were found: a greater age of all would change no order.
            let newest = found.iter().map(|it| turn(it.doc)).max().unwrap_or(0);
            let age = |doc| f64::from(newest - turn(doc));
            found = recency_decay(&found, self.config.half_life_turns, age);
        }
        if self.config.diversity > 0.0 {
            let analyzer = Analyzer::default();
            let words: BTreeMap<u32, BTreeSet<String>> = found
                .iter()
                .filter_map(|it| Some((it.doc, analyzer.terms(&fact(it.doc)?.text))))
                .map(|(doc, terms)| (doc, terms.into_iter().collect()))
                .collect();
            let overlap = |one: u32, other: u32| {
                let (one, other) = (&words[&one], &words[&other]);
                let shared = one.intersection(other).count();
                shared as f64 / (one.len() + other.len() - shared).max(1) as f64
            };
            found = maximal_marginal_relevance(&found, 1.0 - self.config.diversity, k, overlap);
        }
        found.truncate(k);
        found
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
