//! BM25 over a changing set of short texts.

mod postings;
mod search;

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::{
    postings::{Document, Postings, Term},
    search::QueryTerms,
};
use crate::{
    Analyzer,
    layers::Layers,
    ranking::{DocId, Scored},
};

/// The parameters of BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
/// 2009, section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bm25Config {
    /// How slowly a term's repetitions in a document saturate. Not negative.
    pub k1: f64,
    /// How much a document's length counts, from 0 to 1.
    pub b: f64,
}

/// Parameters for which BM25 does not rank.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum ConfigError {
    #[error("k1 of BM25 is {0}; it must be finite and not negative (1.2 is usual)")]
    K1(f64),
    #[error("b of BM25 is {0}; it must be from 0 to 1 (0.75 is usual)")]
    B(f64),
}

/// A BM25 index of live documents.
///
/// The score of a document is the sum over the query's terms, repetitions included, of
/// `idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average length))`, where `f` is how often the document has
/// the term, lengths are in terms, and `idf = ln(1 + (N - df + 0.5) / (df + 0.5))`, which is never negative. `N`,
/// `df` and the average are those of the live documents, so a score equals to the bit that of an index built from
/// these alone.
///
/// A clone is a snapshot: it costs two pointers, shares what is frozen, and neither sees the other's later changes.
/// The cost of an insertion is bounded whatever the number of documents.
#[derive(Clone)]
pub struct Bm25Index {
    config: Bm25Config,
    analyzer: Analyzer,
    documents: Layers<Postings>,
}

impl Default for Bm25Config {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75 }
    }
}

impl Bm25Config {
    /// # Errors
    /// A parameter out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(self.k1.is_finite() && 0.0 <= self.k1) {
            return Err(ConfigError::K1(self.k1));
        }
        if !(0.0..=1.0).contains(&self.b) {
            return Err(ConfigError::B(self.b));
        }
        Ok(())
    }
}

impl fmt::Debug for Bm25Index {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Bm25Index");
        shown
            .field("config", &self.config)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl Bm25Index {
    /// An empty index. Configurations from outside should pass [`Bm25Config::check`] first.
    pub fn new(config: Bm25Config, analyzer: Analyzer) -> Self {
        Self {
            config,
            analyzer,
            documents: Layers::new(),
        }
    }

    /// Adds a document as the most recent one, in place of the live document of that id if there is one.
    pub fn insert(&mut self, doc: DocId, text: &str) {
        self.documents
            .insert(doc, Document::new(&self.analyzer, text));
    }

    /// Removes a document; false if no live one has the id.
    pub fn remove(&mut self, doc: DocId) -> bool {
        self.documents.remove(doc)
    }

    pub fn contains(&self, doc: DocId) -> bool {
        self.documents.contains(doc)
    }

    /// The number of live documents.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The best `k` documents that have a term of the query, best first; among equals the one inserted last.
    pub fn search(&self, query: &str, k: usize) -> Vec<Scored> {
        self.search_where(query, k, |_| true)
    }

    /// The best `k` of the documents that `keep` accepts. Scores are those of the whole index.
    pub fn search_where(&self, query: &str, k: usize, keep: impl Fn(DocId) -> bool) -> Vec<Scored> {
        let terms = self.query_terms(query);
        if k == 0 || terms.is_empty() || self.is_empty() {
            return Vec::new();
        }
        search::search(&self.documents, self.config, &terms, k, keep)
    }

    fn query_terms(&self, query: &str) -> QueryTerms {
        let mut terms = QueryTerms::new();
        self.analyzer.for_each_term(query, |term| {
            match terms.iter_mut().find(|(known, _)| known.text == term) {
                Some((_, repetitions)) => *repetitions += 1,
                None => terms.push((Term::new(term.to_owned()), 1)),
            }
        });
        terms
    }
}

/// Never negative, also where most documents have the term.
fn idf(documents: usize, frequency: usize) -> f64 {
    let (documents, frequency) = (documents as f64, frequency as f64);
    ((documents - frequency + 0.5) / (frequency + 0.5)).ln_1p()
}

impl Term {
    fn new(text: String) -> Self {
        Self {
            hash: crate::hash::hash(text.as_bytes()),
            text,
        }
    }
}
