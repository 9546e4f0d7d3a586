//! The best documents of a query: every layer is asked, but terms too common to matter are only looked at for
//! documents that the rarer terms have found (MaxScore: Turtle and Flood, "Query evaluation: strategies and
//! optimizations", 1995). Bounds only decide what is left out; a score is always one sum in the query's order.

use super::{
    Bm25Config, idf,
    postings::{PostingList, Postings, Term},
};
use crate::{
    layers::{Layer, Layers},
    ranking::{Best, Candidate, DocId, Scored},
};

/// By how much a sum of bounds is raised, so that its rounding never leaves a document out.
const SLACK: f64 = 1.0 + 1e-9;
/// Lengths up to which the length's part of the formula is computed once a query.
const COMMON_LENGTHS: u32 = 64;

/// A preview pays where it is of no more than one in this many documents.
const PREVIEWED_SHARE: usize = 64;
/// Documents of a preview, in multiples of `k`.
const PREVIEWS: usize = 4;

/// The query's terms in the order in which they first occur, with their repetitions.
pub(crate) type QueryTerms = Vec<(Term, u32)>;

pub(crate) fn search(
    documents: &Layers<Postings>,
    config: Bm25Config,
    terms: &QueryTerms,
    k: usize,
    keep: impl Fn(DocId) -> bool,
) -> Vec<Scored> {
    let formula = Formula::new(config, documents);
    let tail = TailCounts::new(documents, terms);
    let lists: Vec<Vec<Option<PostingList<'_>>>> = (documents.layers().iter())
        .map(|layer| {
            let find = |(term, _): &(Term, u32)| layer.block().content.find(term);
            terms.iter().map(find).collect()
        })
        .collect();
    let weights: Vec<f64> = (terms.iter().enumerate())
        .map(|(term, (_, repetitions))| {
            let frozen: usize = (documents.layers().iter().zip(&lists))
                .filter_map(|(layer, lists)| Some(live_postings(layer, lists[term].as_ref()?)))
                .sum();
            let frequency = frozen + tail.frequency(term);
            f64::from(*repetitions) * idf(documents.len(), frequency)
        })
        .collect();

    let mut best = Best::new(k);
    let mut offer = |best: &mut Best, candidate: Candidate| {
        if best.would_take(&candidate) && keep(candidate.doc) {
            best.offer(candidate);
        }
    };
    for (at, document) in documents.tail().iter().enumerate() {
        let score = formula.score(&weights, document.entry.length, |term| tail.count(at, term));
        if 0.0 < score {
            let candidate = Candidate {
                score,
                sequence: document.sequence,
                doc: document.doc,
            };
            offer(&mut best, candidate);
        }
    }
    // The latest first, as they win ties.
    let queries: Vec<LayerQuery<'_>> = (documents.layers().iter().zip(&lists).rev())
        .map(|(layer, lists)| LayerQuery::new(layer, lists, &weights, &formula))
        .collect();
    let previewed = k.saturating_mul(PREVIEWS);
    if previewed <= documents.len() / PREVIEWED_SHARE {
        best.expect(preview(&queries, &weights, k, previewed, &keep));
    }
    let mut scores = Vec::new();
    for query in queries {
        query.search(&mut scores, &mut best, &mut offer);
    }
    best.into_list()
}

/// What the last of the best `k` reaches at least: that many documents of the strongest terms are scored ahead.
fn preview(
    queries: &[LayerQuery<'_>],
    weights: &[f64],
    k: usize,
    previewed: usize,
    keep: &impl Fn(DocId) -> bool,
) -> f64 {
    let mut strongest: Vec<usize> = (0..weights.len()).collect();
    strongest.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
    let mut sample = Best::new(k);
    let mut left = previewed;
    for (at, term) in strongest.iter().enumerate() {
        for query in queries {
            let Some(list) = query.lists[*term] else {
                continue;
            };
            for place in list.places.iter().rev() {
                let place = usize::from(*place);
                let known = strongest[..at]
                    .iter()
                    .any(|term| query.count(*term, place) > 0);
                if known || !query.layer.is_live(place) {
                    continue;
                }
                let candidate = query.candidate(place, query.score(place));
                if keep(candidate.doc) {
                    sample.offer(candidate);
                }
                left -= 1;
                if left == 0 {
                    return sample.floor();
                }
            }
        }
    }
    sample.floor()
}

/// Live documents of a posting list.
fn live_postings(layer: &Layer<Postings>, list: &PostingList<'_>) -> usize {
    let Some(removed) = layer.removed() else {
        return list.places.len();
    };
    let live = |place: &&u16| !removed.contains(usize::from(**place));
    list.places.iter().filter(live).count()
}

/// The formula's part of one term, at the average length of the live documents.
struct Formula {
    config: Bm25Config,
    average: f64,
    /// By length.
    norms: Vec<f64>,
}

impl Formula {
    fn new(config: Bm25Config, documents: &Layers<Postings>) -> Self {
        let mut formula = Self {
            config,
            average: documents.total_weight() as f64 / documents.len() as f64,
            norms: Vec::new(),
        };
        formula.norms = (0..COMMON_LENGTHS)
            .map(|length| formula.norm_anew(length))
            .collect();
        formula
    }

    /// What is added to a count below the line.
    fn norm(&self, length: u32) -> f64 {
        match self.norms.get(length as usize) {
            Some(norm) => *norm,
            None => self.norm_anew(length),
        }
    }

    fn norm_anew(&self, length: u32) -> f64 {
        let Bm25Config { k1, b } = self.config;
        k1 * (1.0 - b + b * f64::from(length) / self.average)
    }

    fn part(&self, weight: f64, count: u32, length: u32) -> f64 {
        let count = f64::from(count);
        weight * (count * (self.config.k1 + 1.0) / (count + self.norm(length)))
    }

    /// A document's score: the one order of additions.
    fn score(&self, weights: &[f64], length: u32, count: impl Fn(usize) -> u32) -> f64 {
        let mut score = 0.0;
        for (term, weight) in weights.iter().enumerate() {
            let count = count(term);
            if 0 < count {
                score += self.part(*weight, count, length);
            }
        }
        score
    }
}

/// How often the documents of the tail have the terms.
struct TailCounts {
    terms: usize,
    counts: Vec<u32>,
}

impl TailCounts {
    fn new(documents: &Layers<Postings>, terms: &QueryTerms) -> Self {
        let tail = documents.tail().iter();
        Self {
            terms: terms.len(),
            counts: tail
                .flat_map(|document| terms.iter().map(|(term, _)| document.entry.count(term)))
                .collect(),
        }
    }

    fn count(&self, document: usize, term: usize) -> u32 {
        self.counts[document * self.terms + term]
    }

    fn frequency(&self, term: usize) -> usize {
        let counts = self.counts.iter().skip(term).step_by(self.terms);
        counts.filter(|count| 0 < **count).count()
    }
}

/// A query's terms in one layer.
struct LayerQuery<'a> {
    layer: &'a Layer<Postings>,
    lists: &'a [Option<PostingList<'a>>],
    weights: &'a [f64],
    formula: &'a Formula,
    /// Terms that the layer has, and the most that each adds to a score; the least first.
    bounds: Vec<(f64, usize)>,
}

impl<'a> LayerQuery<'a> {
    fn new(
        layer: &'a Layer<Postings>,
        lists: &'a [Option<PostingList<'a>>],
        weights: &'a [f64],
        formula: &'a Formula,
    ) -> Self {
        let mut bounds: Vec<(f64, usize)> = (lists.iter().enumerate())
            .filter_map(|(term, list)| {
                let list = list.as_ref()?;
                let most = formula.part(weights[term], list.highest_count, list.least_length);
                Some((most, term))
            })
            .collect();
        bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            layer,
            lists,
            weights,
            formula,
            bounds,
        }
    }

    /// Offers what can be among the best. `scores` is zero at every place before and after.
    fn search(
        &self,
        scores: &mut Vec<f64>,
        best: &mut Best,
        offer: &mut impl FnMut(&mut Best, Candidate),
    ) {
        // Terms that even together do not reach the best only matter beside others.
        let (mut optional, mut optional_most) = (0, 0.0);
        for (most, _) in &self.bounds {
            if best.floor() <= (optional_most + most) * SLACK {
                break;
            }
            optional += 1;
            optional_most += most;
        }
        let mut needed: Vec<usize> = self.bounds[optional..].iter().map(|it| it.1).collect();
        if needed.is_empty() {
            return;
        }
        // In the query's order, so that without optional terms the sum is the score.
        needed.sort_unstable();
        let lists = || {
            needed
                .iter()
                .filter_map(|term| Some((*term, self.lists[*term]?)))
        };

        let block = self.layer.block();
        let lengths = block.content.lengths();
        if scores.len() < block.len() {
            scores.resize(block.len(), 0.0);
        }
        for (term, list) in lists() {
            for (place, count) in list.places.iter().zip(list.counts) {
                let place = usize::from(*place);
                scores[place] += self
                    .formula
                    .part(self.weights[term], *count, lengths[place]);
            }
        }
        for (_, list) in lists() {
            for place in list.places {
                let place = usize::from(*place);
                // Zero where an earlier list has been here.
                let sum = std::mem::take(&mut scores[place]);
                if sum == 0.0
                    || (sum + optional_most) * SLACK < best.floor()
                    || !self.layer.is_live(place)
                {
                    continue;
                }
                let score = if optional == 0 {
                    sum
                } else {
                    self.score(place)
                };
                offer(best, self.candidate(place, score));
            }
        }
    }

    fn candidate(&self, place: usize, score: f64) -> Candidate {
        let block = self.layer.block();
        Candidate {
            score,
            sequence: block.sequence(place),
            doc: block.id(place),
        }
    }

    fn score(&self, place: usize) -> f64 {
        let length = self.layer.block().content.lengths()[place];
        let count = |term| self.count(term, place);
        self.formula.score(self.weights, length, count)
    }

    fn count(&self, term: usize, place: usize) -> u32 {
        self.lists[term].map_or(0, |list| list.count(place))
    }
}
