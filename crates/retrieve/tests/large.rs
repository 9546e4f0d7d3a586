//! A hundred thousand documents: the pruned search finds what the formula does, document by document.

use std::collections::BTreeMap;

use rand::RngExt;
use record::Seed;
use retrieve::{Analyzer, Bm25Config, Bm25Index, DocId, Scored};

const DOCUMENTS: u32 = 100_000;
const WORDS: f64 = 20_000.0;

/// Words by Zipf's law, from 4 to 24 of them.
fn text(seed: Seed, doc: DocId) -> String {
    let rng = &mut seed.stream("text", u64::from(doc)).rng();
    let words: Vec<String> = (0..rng.random_range(4..25))
        .map(|_| format!("w{}", WORDS.powf(rng.random()) as u32))
        .collect();
    words.join(" ")
}

struct Counts {
    doc: DocId,
    length: f64,
    counts: BTreeMap<String, f64>,
}

fn by_formula(live: &[&Counts], query: &[&str], k: usize) -> Vec<Scored> {
    let count = live.len() as f64;
    let average = live.iter().map(|it| it.length).sum::<f64>() / count;
    let mut scores = vec![0.0; live.len()];
    for term in query {
        let has = |it: &&&Counts| it.counts.contains_key(*term);
        let frequency = live.iter().filter(has).count() as f64;
        let idf = (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln();
        for (score, document) in scores.iter_mut().zip(live) {
            let times = document.counts.get(*term).copied().unwrap_or(0.0);
            let norm = 1.2 * (1.0 - 0.75 + 0.75 * document.length / average);
            *score += idf * times * 2.2 / (times + norm);
        }
    }
    let mut order: Vec<usize> = (0..live.len()).filter(|at| 0.0 < scores[*at]).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(b.cmp(a)));
    let best = order.into_iter().take(k);
    best.map(|at| Scored {
        doc: live[at].doc,
        score: scores[at],
    })
    .collect()
}

#[test]
fn the_best_of_a_hundred_thousand_are_those_of_the_formula() {
    let seed = Seed(3);
    let analyzer = Analyzer::default();
    let mut index = Bm25Index::new(Bm25Config::default(), analyzer);
    let mut all = Vec::new();
    for doc in 0..DOCUMENTS {
        let text = text(seed, doc);
        index.insert(doc, &text);
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        let terms = analyzer.terms(&text);
        let length = terms.len() as f64;
        for term in terms {
            *counts.entry(term).or_default() += 1.0;
        }
        all.push(Counts {
            doc,
            length,
            counts,
        });
    }
    let queries = [
        vec!["w1", "w2", "w3", "w4"],
        vec!["w1", "w17", "w400", "w9000"],
        vec!["w15000"],
        vec!["w2", "w300", "w301", "absent", "w5"],
    ];
    let agree = |index: &Bm25Index, is_live: &dyn Fn(DocId) -> bool| {
        let live: Vec<&Counts> = all.iter().filter(|it| is_live(it.doc)).collect();
        for query in &queries {
            let expected = by_formula(&live, query, 20);
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
