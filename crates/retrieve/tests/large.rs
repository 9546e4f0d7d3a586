//! A hundred thousand documents: the pruned search finds what the formula does, document by document.

use std::collections::BTreeMap;

use rand::RngExt;
use record::Seed;
use retrieve::{Analyzer, Bm25Config, Bm25Index, DocId, Scored};

const DOCUMENTS: u32 = 100_000;
const WORDS: f64 = 20_000.0;

/// Words by Zipf's law, from 4 to 24 of them; a few documents have one or two rare words besides.
fn text(seed: Seed, doc: DocId) -> String {
    let rng = &mut seed.stream("text", u64::from(doc)).rng();
    let mut words: Vec<String> = (0..rng.random_range(4..25))
        .map(|_| format!("w{}", WORDS.powf(rng.random()) as u32))
        .collect();
    if doc % 9973 == 3 {
        words.extend(["both".to_owned(), "one".to_owned()]);
    } else if doc % 7001 == 5 {
        words.push("one".to_owned());
    }
    words.join(" ")
}

const QUERIES: [&[&str]; 5] = [
    &["w1", "w2", "w3", "w4"],
    &["w1", "w17", "w400", "w9000"],
    &["w15000"],
    &["w1", "both", "one"],
    &["w2", "w300", "w301", "absent", "w5"],
];

/// All documents, and how often each has the terms of the queries.
struct Counts {
    lengths: Vec<f64>,
    counts: BTreeMap<String, Vec<f64>>,
}

impl Counts {
    fn new() -> Self {
        let terms = QUERIES.iter().flat_map(|it| it.iter());
        Self {
            lengths: Vec::new(),
            counts: terms.map(|it| ((*it).to_owned(), Vec::new())).collect(),
        }
    }

    fn push(&mut self, terms: &[String]) {
        self.lengths.push(terms.len() as f64);
        for counts in self.counts.values_mut() {
            counts.push(0.0);
        }
        for term in terms {
            if let Some(count) = self.counts.get_mut(term).and_then(|it| it.last_mut()) {
                *count += 1.0;
            }
        }
    }

    fn by_formula(&self, is_live: &dyn Fn(DocId) -> bool, query: &[&str], k: usize) -> Vec<Scored> {
        let live: Vec<DocId> = (0..DOCUMENTS).filter(|doc| is_live(*doc)).collect();
        let count = live.len() as f64;
        let length = |doc: DocId| self.lengths[doc as usize];
        let average = live.iter().map(|doc| length(*doc)).sum::<f64>() / count;
        let mut scores = vec![0.0; self.lengths.len()];
        for term in query {
            let times = &self.counts[*term];
            let has = |doc: &&DocId| 0.0 < times[**doc as usize];
            let frequency = live.iter().filter(has).count() as f64;
            let idf = (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln();
            for doc in &live {
                let times = times[*doc as usize];
                let norm = 1.2 * (1.0 - 0.75 + 0.75 * length(*doc) / average);
                scores[*doc as usize] += idf * times * 2.2 / (times + norm);
            }
        }
        let scored = live.iter().map(|doc| Scored {
            doc: *doc,
            score: scores[*doc as usize],
        });
        let mut found: Vec<Scored> = scored.filter(|it| 0.0 < it.score).collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.doc.cmp(&a.doc)));
        found.truncate(k);
        found
    }
}

#[test]
fn the_best_of_a_hundred_thousand_are_those_of_the_formula() {
    let seed = Seed(3);
    let analyzer = Analyzer::default();
    let mut index = Bm25Index::new(Bm25Config::default(), analyzer);
    let mut counts = Counts::new();
    for doc in 0..DOCUMENTS {
        let text = text(seed, doc);
        index.insert(doc, &text);
        counts.push(&analyzer.terms(&text));
    }
    let agree = |index: &Bm25Index, is_live: &dyn Fn(DocId) -> bool| {
        for query in QUERIES {
            let expected = counts.by_formula(is_live, query, 20);
            for k in [1, 10, 20] {
                let found = index.search(&query.join(" "), k);
                assert_eq!(found.len(), k.min(expected.len()));
                for (found, expected) in found.iter().zip(&expected) {
                    assert_eq!(found.doc, expected.doc, "{query:?}");
                    assert!((found.score - expected.score).abs() < 1e-12);
                }
            }
        }
    };
    agree(&index, &|_| true);
    // What was best goes.
    for query in QUERIES {
        let mut without = index.clone();
        let best: Vec<DocId> = without
            .search(&query.join(" "), 15)
            .iter()
            .map(|it| it.doc)
            .collect();
        for doc in &best {
            assert!(without.remove(*doc));
        }
        agree(&without, &|doc| !best.contains(&doc));
    }
    // A few go in one snapshot; a third in another, and more in a snapshot of that.
    let (mut thinned, full) = (index.clone(), index.clone());
    for doc in (0..DOCUMENTS).step_by(1000) {
        assert!(thinned.remove(doc));
    }
    for doc in (1..DOCUMENTS).step_by(3) {
        assert!(index.remove(doc));
    }
    let mut snapshot = index.clone();
    for doc in 0..5000 {
        snapshot.remove(doc);
    }
    agree(&full, &|_| true);
    agree(&thinned, &|doc| doc % 1000 != 0);
    agree(&index, &|doc| doc % 3 != 1);
    agree(&snapshot, &|doc| doc % 3 != 1 && 5000 <= doc);
}
