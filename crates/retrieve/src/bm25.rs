//! BM25 over a changing set of short texts.

mod postings;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::postings::{Document, PostingList, Postings, Term};
use crate::{
    Analyzer,
    layers::Layers,
    ranking::{Best, Candidate, DocId, Scored},
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
        let mut length = 0;
        let mut terms: BTreeMap<String, u32> = BTreeMap::new();
        self.analyzer.for_each_term(text, |term| {
            length += 1;
            *terms.entry(term.to_owned()).or_default() += 1;
        });
        let terms = terms
            .into_iter()
            .map(|(text, count)| (Term::new(text), count))
            .collect();
        self.documents.insert(doc, Document::new(length, terms));
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
        let mut best = Best::new(k);
        let terms = self.query_terms(query);
        if k == 0 || terms.is_empty() {
            return Vec::new();
        }
        let average = self.documents.total_weight() as f64 / self.len() as f64;
        let Bm25Config { k1, b } = self.config;
        let part = |weight: f64, count: u32, length: u32| {
            let count = f64::from(count);
            let norm = k1 * (1.0 - b + b * f64::from(length) / average);
            weight * (count * (k1 + 1.0) / (count + norm))
        };
        let lists: Vec<Vec<Option<PostingList<'_>>>> = (self.documents.layers().iter())
            .map(|layer| {
                let find = |(term, _): &(Term, u32)| layer.block().content.find(term);
                terms.iter().map(find).collect()
            })
            .collect();
        let weights: Vec<f64> = (terms.iter().enumerate())
            .map(|(at, (term, repetitions))| {
                let frequency = self.document_frequency(term, lists.iter().map(|it| it[at]));
                f64::from(*repetitions) * idf(self.len(), frequency)
            })
            .collect();

        for document in self.documents.tail() {
            let mut score = 0.0;
            for ((term, _), weight) in terms.iter().zip(&weights) {
                let count = document.entry.count(term);
                if 0 < count {
                    score += part(*weight, count, document.entry.length);
                }
            }
            let candidate = Candidate {
                score,
                sequence: document.sequence,
                doc: document.doc,
            };
            if 0.0 < score && best.would_take(&candidate) && keep(document.doc) {
                best.offer(candidate);
            }
        }
        for (layer, lists) in self.documents.layers().iter().zip(&lists) {
            let block = layer.block();
            let parts = lists.iter().zip(&weights);
            let most: f64 = parts
                .filter_map(|(list, weight)| {
                    let list = list.as_ref()?;
                    Some(part(*weight, list.highest_count, list.least_length))
                })
                .sum();
            if most * (1.0 + 1e-9) < best.floor() {
                continue;
            }
            let lengths = block.content.lengths();
            let mut scores = vec![0.0; block.len()];
            for (list, weight) in lists.iter().zip(&weights) {
                let Some(list) = list else { continue };
                for (place, count) in list.places.iter().zip(list.counts) {
                    let place = usize::from(*place);
                    scores[place] += part(*weight, *count, lengths[place]);
                }
            }
            for (place, score) in scores.into_iter().enumerate() {
                if score <= 0.0 || score < best.floor() || !layer.is_live(place) {
                    continue;
                }
                let candidate = Candidate {
                    score,
                    sequence: block.sequence(place),
                    doc: block.id(place),
                };
                if best.would_take(&candidate) && keep(candidate.doc) {
                    best.offer(candidate);
                }
            }
        }
        best.into_list()
    }

    /// The query's terms in the order in which they first occur, with their repetitions.
    fn query_terms(&self, query: &str) -> Vec<(Term, u32)> {
        let mut terms: Vec<(Term, u32)> = Vec::new();
        self.analyzer.for_each_term(query, |term| {
            match terms.iter_mut().find(|(known, _)| known.text == term) {
                Some((_, repetitions)) => *repetitions += 1,
                None => terms.push((Term::new(term.to_owned()), 1)),
            }
        });
        terms
    }

    /// Live documents that have the term, whose postings in each layer are given.
    fn document_frequency<'a>(
        &self,
        term: &Term,
        lists: impl Iterator<Item = Option<PostingList<'a>>>,
    ) -> usize {
        let layers = self.documents.layers().iter().zip(lists);
        let frozen: usize = layers
            .map(|(layer, list)| {
                let places = list.map_or(&[][..], |it| it.places);
                match layer.removed() {
                    None => places.len(),
                    Some(removed) => places
                        .iter()
                        .filter(|place| !removed.contains(usize::from(**place)))
                        .count(),
                }
            })
            .sum();
        let tail = self.documents.tail().iter();
        frozen + tail.filter(|it| 0 < it.entry.count(term)).count()
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
