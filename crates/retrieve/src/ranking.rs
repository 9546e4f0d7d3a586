//! Scored documents, the order among them, and the best k of a stream.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

/// The caller's own number of a document, unique among the live documents of an index.
pub type DocId = u32;

/// A document and its score. Lists of these are best first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub doc: DocId,
    pub score: f64,
}

/// A scored document with the number of its insertion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) score: f64,
    pub(crate) sequence: u64,
    pub(crate) doc: DocId,
}

/// The greater candidate ranks first: higher score, then later insertion, then lower id.
impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(self.sequence.cmp(&other.sequence))
            .then(other.doc.cmp(&self.doc))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// The best `k` candidates seen so far.
pub(crate) struct Best {
    k: usize,
    /// What the last of the best is known to reach.
    least: f64,
    /// Worst on top.
    heap: BinaryHeap<Reverse<Candidate>>,
}

impl Best {
    pub(crate) fn new(k: usize) -> Self {
        Self {
            k,
            least: f64::NEG_INFINITY,
            heap: BinaryHeap::new(),
        }
    }

    /// The score below which nothing can be among the best.
    pub(crate) fn floor(&self) -> f64 {
        match self.heap.peek() {
            Some(Reverse(worst)) if self.heap.len() == self.k => worst.score.max(self.least),
            _ => self.least,
        }
    }

    /// To be told that `k` candidates of at least this score are still to come.
    pub(crate) fn expect(&mut self, least: f64) {
        self.least = self.least.max(least);
    }

    pub(crate) fn would_take(&self, candidate: &Candidate) -> bool {
        if self.heap.len() < self.k {
            return true;
        }
        self.heap
            .peek()
            .is_some_and(|Reverse(worst)| candidate > worst)
    }

    pub(crate) fn offer(&mut self, candidate: Candidate) {
        if !self.would_take(&candidate) {
            return;
        }
        if self.heap.len() == self.k {
            self.heap.pop();
        }
        self.heap.push(Reverse(candidate));
    }

    pub(crate) fn into_list(self) -> Vec<Scored> {
        // Ascending by `Reverse` is descending by candidate.
        self.heap
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse(Candidate { doc, score, .. })| Scored { doc, score })
            .collect()
    }
}
