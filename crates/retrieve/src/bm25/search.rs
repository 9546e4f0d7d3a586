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
/// Lengths up to which the share of one occurrence is computed once a query.
const COMMON_LENGTHS: u32 = 64;

/// How many postings can be passed in the time that one takes to be found among many.
const LOOK_UP: usize = 12;
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

/// Live documents of a posting list: of the list or of what was removed, the shorter is gone through.
fn live_postings(layer: &Layer<Postings>, list: &PostingList<'_>) -> usize {
    let all = list.places.len();
    let Some(removed) = layer.removed() else {
        return all;
    };
    let steps_of_a_look_up = (usize::BITS - all.leading_zeros()) as usize;
    if removed.count() * steps_of_a_look_up < all {
        all - removed
            .places()
            .filter(|place| 0 < list.count(*place))
            .count()
    } else {
        let live = |place: &&u16| !removed.contains(usize::from(**place));
        list.places.iter().filter(live).count()
    }
}

/// The formula's part of one term, at the average length of the live documents.
struct Formula {
    config: Bm25Config,
    average: f64,
    /// What weight 1 gives for one occurrence, by length.
    once: Vec<f64>,
}

impl Formula {
    fn new(config: Bm25Config, documents: &Layers<Postings>) -> Self {
        let mut formula = Self {
            config,
            average: documents.total_weight() as f64 / documents.len() as f64,
            once: Vec::new(),
        };
        formula.once = (0..COMMON_LENGTHS)
            .map(|length| formula.share(1, length))
            .collect();
        formula
    }

    fn part(&self, weight: f64, count: u32, length: u32) -> f64 {
        let share = match self.once.get(length as usize) {
            Some(once) if count == 1 => *once,
            // At k1 = 0 nothing is added below the line either.
            _ if count == 0 => 0.0,
            _ => self.share(count, length),
        };
        weight * share
    }

    fn share(&self, count: u32, length: u32) -> f64 {
        let Bm25Config { k1, b } = self.config;
        let norm = k1 * (1.0 - b + b * f64::from(length) / self.average);
        let count = f64::from(count);
        count * (k1 + 1.0) / (count + norm)
    }

    /// A document's score: the one order of additions.
    fn score(&self, weights: &[f64], length: u32, count: impl Fn(usize) -> u32) -> f64 {
        let parts = weights.iter().enumerate();
        parts.fold(0.0, |score, (term, weight)| {
            score + self.part(*weight, count(term), length)
        })
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
    /// Of the terms that the layer has, the weakest first.
    bounds: Vec<Bound<'a>>,
}

/// What a term, and all weaker ones with it, can add to a score at most.
struct Bound<'a> {
    term: usize,
    list: PostingList<'a>,
    most: f64,
    most_so_far: f64,
    weight_so_far: f64,
    highest_count_so_far: u32,
}

/// A document that can still be among the best, with what the terms looked at so far give it.
struct Survivor {
    place: usize,
    sum: f64,
}

impl<'a> LayerQuery<'a> {
    fn new(
        layer: &'a Layer<Postings>,
        lists: &'a [Option<PostingList<'a>>],
        weights: &'a [f64],
        formula: &'a Formula,
    ) -> Self {
        let mut bounds: Vec<Bound<'a>> = (lists.iter().enumerate())
            .filter_map(|(term, list)| {
                let list = (*list)?;
                Some(Bound {
                    term,
                    list,
                    most: formula.part(weights[term], list.highest_count, list.least_length),
                    most_so_far: 0.0,
                    weight_so_far: 0.0,
                    highest_count_so_far: 0,
                })
            })
            .collect();
        bounds.sort_by(|a, b| a.most.total_cmp(&b.most));
        let (mut most, mut weight, mut highest_count) = (0.0, 0.0, 0);
        for bound in &mut bounds {
            most += bound.most;
            weight += weights[bound.term];
            highest_count = bound.list.highest_count.max(highest_count);
            bound.most_so_far = most;
            bound.weight_so_far = weight;
            bound.highest_count_so_far = highest_count;
        }
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
        let floor = best.floor();
        let optional = self
            .bounds
            .partition_point(|it| it.most_so_far * SLACK < floor);
        let mut needed: Vec<&Bound<'_>> = self.bounds[optional..].iter().collect();
        if needed.is_empty() {
            return;
        }
        // In the query's order, so that without optional terms the sum is the score.
        needed.sort_by_key(|it| it.term);

        let block = self.layer.block();
        if scores.len() < block.len() {
            scores.resize(block.len(), 0.0);
        }
        for bound in &needed {
            self.add(bound, scores, |_| true);
        }
        let mut survivors = Vec::new();
        for place in needed.iter().flat_map(|it| it.list.places) {
            let place = usize::from(*place);
            // Zero where an earlier list has been here.
            let sum = std::mem::take(&mut scores[place]);
            let survivor = Survivor { place, sum };
            if sum == 0.0
                || !self.can_reach(best.floor(), &survivor, optional)
                || !self.layer.is_live(place)
            {
                continue;
            }
            if optional == 0 {
                offer(best, self.candidate(place, sum));
            } else {
                survivors.push(survivor);
            }
        }
        for (weaker, bound) in self.bounds[..optional].iter().enumerate().rev() {
            self.add_to(&mut survivors, bound, scores);
            survivors.retain(|it| self.can_reach(best.floor(), it, weaker));
        }
        for survivor in survivors {
            if self.can_reach(best.floor(), &survivor, 0) {
                offer(
                    best,
                    self.candidate(survivor.place, self.score(survivor.place)),
                );
            }
        }
    }

    /// Adds a term's part to the scores of its documents for which `counts` says so.
    fn add(&self, bound: &Bound<'_>, scores: &mut [f64], counts: impl Fn(f64) -> bool) {
        let weight = self.weights[bound.term];
        let lengths = self.layer.block().content.lengths();
        for (place, count) in bound.list.places.iter().zip(bound.list.counts) {
            let place = usize::from(*place);
            if counts(scores[place]) {
                scores[place] += self.formula.part(weight, *count, lengths[place]);
            }
        }
    }

    /// Adds a term's part to the survivors' sums, the cheaper way: each is looked up, or all postings are passed.
    fn add_to(&self, survivors: &mut [Survivor], bound: &Bound<'_>, scores: &mut [f64]) {
        if survivors.len() * LOOK_UP < bound.list.places.len() {
            let lengths = self.layer.block().content.lengths();
            for Survivor { place, sum } in survivors {
                let count = bound.list.count(*place);
                *sum += self
                    .formula
                    .part(self.weights[bound.term], count, lengths[*place]);
            }
        } else {
            for Survivor { place, sum } in &*survivors {
                scores[*place] = *sum;
            }
            self.add(bound, scores, |score| score != 0.0);
            for Survivor { place, sum } in survivors {
                *sum = std::mem::take(&mut scores[*place]);
            }
        }
    }

    /// Whether a document can reach `floor` by the `weaker` weakest terms.
    fn can_reach(&self, floor: f64, survivor: &Survivor, weaker: usize) -> bool {
        let more = weaker.checked_sub(1).map_or(0.0, |last| {
            let Bound {
                most_so_far,
                weight_so_far,
                highest_count_so_far,
                ..
            } = self.bounds[last];
            let length = self.layer.block().content.lengths()[survivor.place];
            let at_length = self
                .formula
                .part(weight_so_far, highest_count_so_far, length);
            most_so_far.min(at_length)
        });
        floor <= (survivor.sum + more) * SLACK
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
