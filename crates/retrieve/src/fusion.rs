//! Several ranked lists into one.
//!
//! Fused lists are best first; among equal scores the document that an earlier list has, or has further up, is
//! first. A list is expected to name a document once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ranking::{DocId, Scored};

/// Reciprocal rank fusion: the sum over lists of `1 / (constant + rank)`, ranks from 1 (Cormack, Clarke and
/// Büttcher, SIGIR 2009, where `constant` is 60). Only ranks count, so the lists' scores need not compare.
pub fn reciprocal_rank_fusion(lists: &[&[Scored]], constant: f64, k: usize) -> Vec<Scored> {
    let mut sums = Sums::default();
    for list in lists {
        for (rank, scored) in (1_u32..).zip(*list) {
            sums.add(scored.doc, 1.0 / (constant + f64::from(rank)));
        }
    }
    sums.into_best(k)
}

/// The weighted sum of each list's standard scores: `(score - mean) / deviation` over that list.
///
/// A document that a list lacks counts as the list's last one does. A list of equal scores says nothing about its
/// documents, so all of them, and those it lacks, get 0 from it.
pub fn z_score_fusion(lists: &[(&[Scored], f64)], k: usize) -> Vec<Scored> {
    let mut sums = Sums::default();
    for scored in lists.iter().flat_map(|(list, _)| *list) {
        sums.add(scored.doc, 0.0);
    }
    for (list, weight) in lists {
        // Rounding can give equal scores a deviation, so equality is asked for itself.
        if list.windows(2).all(|pair| pair[0].score == pair[1].score) {
            continue;
        }
        let count = list.len() as f64;
        let mean = list.iter().map(|it| it.score).sum::<f64>() / count;
        let square = list.iter().map(|it| (it.score - mean).powi(2)).sum::<f64>();
        let deviation = (square / count).sqrt();
        let standard: BTreeMap<DocId, f64> = list
            .iter()
            .map(|it| (it.doc, (it.score - mean) / deviation))
            .collect();
        let least = standard.values().copied().fold(f64::INFINITY, f64::min);
        for (doc, sum) in sums.each() {
            *sum += weight * standard.get(&doc).copied().unwrap_or(least);
        }
    }
    sums.into_best(k)
}

/// Additive fusion: cosine, plus BM25 squeezed into 0 to 1, plus a boost, divided by what the parts that are
/// present could sum to (the scoring of Mem0's version 3, spec of the recall study, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdditiveFusion {
    /// Documents of a lower cosine are out, whatever else speaks for them.
    pub threshold: f64,
    /// The most that a boost, such as that of a shared name, can add.
    pub boost: f64,
}

impl Default for AdditiveFusion {
    fn default() -> Self {
        Self {
            threshold: 0.1,
            boost: 0.5,
        }
    }
}

impl AdditiveFusion {
    /// Fuses lists for a query of `query_terms` terms. `semantic` are cosines, `lexical` are BM25 scores, `boosts`
    /// are from 0 to 1; the last two may be empty. Fused scores are at most 1.
    pub fn fuse(
        &self,
        semantic: &[Scored],
        lexical: &[Scored],
        boosts: &[Scored],
        query_terms: usize,
        k: usize,
    ) -> Vec<Scored> {
        let scores = |list: &[Scored]| -> BTreeMap<DocId, f64> {
            list.iter().map(|it| (it.doc, it.score)).collect()
        };
        let (by_terms, by_boost) = (scores(lexical), scores(boosts));
        let (midpoint, steepness) = squeeze(query_terms);
        let most = 1.0
            + if lexical.is_empty() { 0.0 } else { 1.0 }
            + if boosts.is_empty() { 0.0 } else { self.boost };
        let mut sums = Sums::default();
        for scored in semantic.iter().filter(|it| self.threshold <= it.score) {
            let terms = by_terms.get(&scored.doc).map_or(0.0, |score| {
                1.0 / (1.0 + (-steepness * (score - midpoint)).exp())
            });
            let boost = self.boost * by_boost.get(&scored.doc).copied().unwrap_or(0.0);
            sums.add(scored.doc, ((scored.score + terms + boost) / most).min(1.0));
        }
        sums.into_best(k)
    }
}

/// Where the sigmoid of BM25 scores has its middle, and how steep it is: long queries score higher.
fn squeeze(query_terms: usize) -> (f64, f64) {
    match query_terms {
        0..=3 => (5.0, 0.7),
        4..=6 => (7.0, 0.6),
        7..=9 => (9.0, 0.5),
        10..=15 => (10.0, 0.5),
        _ => (12.0, 0.5),
    }
}

/// Sums by document, in the order in which documents are first seen.
#[derive(Default)]
struct Sums {
    places: BTreeMap<DocId, usize>,
    sums: Vec<Scored>,
}

impl Sums {
    fn add(&mut self, doc: DocId, score: f64) {
        let next = self.sums.len();
        let place = *self.places.entry(doc).or_insert(next);
        if place == next {
            self.sums.push(Scored { doc, score });
        } else {
            self.sums[place].score += score;
        }
    }

    fn each(&mut self) -> impl Iterator<Item = (DocId, &mut f64)> {
        self.sums.iter_mut().map(|it| (it.doc, &mut it.score))
    }

    fn into_best(mut self, k: usize) -> Vec<Scored> {
        // Stable: equals stay in the order of first sight.
        self.sums.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.sums.truncate(k);
        self.sums
    }
}
