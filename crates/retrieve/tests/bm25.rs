//! BM25 against hand-computed scores, and against an index built anew after any history.

use std::collections::BTreeMap;

use proptest::prelude::*;
use retrieve::{Analyzer, Bm25Config, Bm25Index, ConfigError, DocId, Scored};

fn index(texts: &[&str]) -> Bm25Index {
    let mut index = Bm25Index::new(Bm25Config::default(), Analyzer::default());
    for (doc, text) in (0..).zip(texts) {
        index.insert(doc, text);
    }
    index
}

#[track_caller]
fn check(found: &[Scored], expected: &[(DocId, f64)]) {
    let docs: Vec<DocId> = found.iter().map(|it| it.doc).collect();
    let wanted: Vec<DocId> = expected.iter().map(|it| it.0).collect();
    assert_eq!(docs, wanted, "{found:?}");
    for (found, (_, score)) in found.iter().zip(expected) {
        assert!(
            (found.score - score).abs() < 1e-12,
            "{found:?}, not {score}"
        );
    }
}

#[test]
fn one_document_scores_above_zero() {
    // N = 1, df = 1: idf = ln(1 + 0.5 / 1.5) = ln(4/3). The only length is the average: the norm is k1.
    let found = index(&["red apple"]).search("apple", 5);
    check(&found, &[(0, (4.0_f64 / 3.0).ln() * 2.2 / 2.2)]);
}

#[test]
fn of_two_documents_a_term_in_one_has_weight() {
    // N = 2, df = 1: idf = ln(1 + 1.5 / 1.5) = ln 2. Lengths 2 and 4, average 3.
    let found = index(&["red apple", "a pear and a"]).search("apple", 5);
    let norm = 1.2 * (0.25 + 0.75 * 2.0 / 3.0);
    check(&found, &[(0, 2.0_f64.ln() * 2.2 / (1.0 + norm))]);
    // df = 2: idf = ln(1 + 0.5 / 2.5) = ln 1.2, and 3 repetitions.
    let found = index(&["tea tea tea", "tea for two"]).search("tea", 5);
    let idf = 1.2_f64.ln();
    check(&found, &[(0, idf * 3.0 * 2.2 / 4.2), (1, idf)]);
}

#[test]
fn terms_of_a_query_add_up_and_repetitions_count() {
    let index = index(&["tom likes tea", "tom likes", "ann likes tea", "rain"]);
    // Lengths 3, 2, 3, 1: average 9 / 4. df: tom 2, tea 2.
    let idf = (1.0 + 2.5 / 2.5_f64).ln();
    let part = |length: f64| 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * length * 4.0 / 9.0));
    let expected = [
        (0, 2.0 * idf * part(3.0) + idf * part(3.0)),
        (1, 2.0 * idf * part(2.0)),
        (2, idf * part(3.0)),
    ];
    check(&index.search("Tom? Tea! TOM", 9), &expected);
    check(&index.search("Tom? Tea! TOM", 2), &expected[..2]);
    check(
        &index.search_where("tom tea tom", 2, |doc| doc != 0),
        &expected[1..],
    );
    assert_eq!(index.search("tom", 0), []);
    assert_eq!(index.search("nothing of it", 5), []);
    assert_eq!(index.search("", 5), []);
}

#[test]
fn equal_scores_rank_by_recency() {
    let mut index = index(&["a cat", "a dog", "a cat", "a dog", "a cat"]);
    let docs = |index: &Bm25Index| -> Vec<DocId> {
        index.search("cat", 9).iter().map(|it| it.doc).collect()
    };
    assert_eq!(docs(&index), [4, 2, 0]);
    index.insert(2, "a cat");
    assert_eq!(docs(&index), [2, 4, 0]);
    assert!(index.remove(4));
    assert!(!index.remove(4));
    index.insert(7, "a cat");
    assert_eq!(docs(&index), [7, 2, 0]);
    assert_eq!(index.len(), 5);
}

#[test]
fn chinese_is_found_by_pairs_of_characters() {
    let index = index(&["小明养了一只黑猫。", "小红喜欢喝茶。", "茶"]);
    // 7 + 5 + 1 terms. 喜欢 is in one document of three, 茶 stands alone in one.
    let idf = (1.0 + 2.5 / 1.5_f64).ln();
    let part = |length: f64| 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * length * 3.0 / 13.0));
    check(&index.search("黑猫", 5), &[(0, idf * part(7.0))]);
    check(&index.search("谁喜欢？", 5), &[(1, idf * part(5.0))]);
    check(&index.search("茶", 5), &[(2, idf * part(1.0))]);
}

#[test]
fn empty_texts_are_documents_without_terms() {
    let mut index = index(&["", "...", ""]);
    assert_eq!(index.len(), 3);
    assert_eq!(index.search("a", 5), []);
    index.insert(1, "a b");
    // N = 3, average 2/3.
    let idf = (1.0 + 2.5 / 1.5_f64).ln();
    let norm = 1.2 * (0.25 + 0.75 * 2.0 / (2.0 / 3.0));
    check(&index.search("a", 5), &[(1, idf * 2.2 / (1.0 + norm))]);
}

#[test]
fn configurations_out_of_range_are_refused() {
    let config = |k1, b| Bm25Config { k1, b }.check();
    assert_eq!(config(0.0, 1.0), Ok(()));
    assert_eq!(config(-0.1, 0.5), Err(ConfigError::K1(-0.1)));
    assert!(config(f64::NAN, 0.5).is_err());
    assert_eq!(config(1.0, 1.5), Err(ConfigError::B(1.5)));
    let read: Bm25Config = serde_json::from_str(r#"{"b": 0.5}"#).unwrap();
    assert_eq!(read, Bm25Config { k1: 1.2, b: 0.5 });
    assert!(serde_json::from_str::<Bm25Config>(r#"{"k": 0.5}"#).is_err());
}

#[test]
fn indices_cross_threads_and_show_no_texts() {
    fn check<T: Send + Sync + std::fmt::Debug>(value: &T) -> String {
        format!("{value:?}")
    }
    let shown = check(&index(&["a cat"]));
    assert!(
        shown.contains("len: 1") && !shown.contains("cat"),
        "{shown}"
    );
}

/// What is done to an index.
#[derive(Clone, Debug)]
enum Change {
    Insert(DocId, String),
    Remove(DocId),
}

/// Texts of a small vocabulary, so that terms are shared, among them one in many documents and rare ones.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => Just("the".to_owned()),
        8 => (0..20_u32).prop_map(|it| format!("common{it}")),
        2 => (0..1000_u32).prop_map(|it| format!("rare{it}")),
        1 => Just("茶叶".to_owned()),
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

fn changes(most: usize) -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        3 => (0..300_u32, text()).prop_map(|(doc, text)| Change::Insert(doc, text)),
        1 => (0..300_u32).prop_map(Change::Remove),
        // Runs of removals at one place make whole layers shrink.
        1 => (0..60_u32).prop_map(Change::Remove),
    ];
    prop::collection::vec(change, 0..most)
}

/// The live documents in the order of their last insertion.
fn apply(index: &mut Bm25Index, live: &mut Vec<(DocId, String)>, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Insert(doc, text) => {
                live.retain(|(it, _)| it != doc);
                live.push((*doc, text.clone()));
                index.insert(*doc, text);
            }
            Change::Remove(doc) => {
                let before = live.len();
                live.retain(|(it, _)| it != doc);
                assert_eq!(index.remove(*doc), live.len() < before);
            }
        }
        assert_eq!(index.len(), live.len());
    }
}

/// The formula, document by document.
fn by_formula(config: Bm25Config, live: &[(DocId, String)], query: &str) -> Vec<Scored> {
    let analyzer = Analyzer::default();
    let terms: Vec<Vec<String>> = live.iter().map(|(_, it)| analyzer.terms(it)).collect();
    let count = live.len() as f64;
    let average = terms.iter().map(Vec::len).sum::<usize>() as f64 / count;
    let mut query_terms: Vec<(String, f64)> = Vec::new();
    for term in analyzer.terms(query) {
        match query_terms.iter_mut().find(|(known, _)| *known == term) {
            Some((_, repetitions)) => *repetitions += 1.0,
            None => query_terms.push((term, 1.0)),
        }
    }
    let mut found: Vec<(usize, Scored)> = Vec::new();
    for (at, (doc, _)) in live.iter().enumerate() {
        let mut score = 0.0;
        for (term, repetitions) in &query_terms {
            let frequency = terms.iter().filter(|it| it.contains(term)).count() as f64;
            let times = terms[at].iter().filter(|it| *it == term).count() as f64;
            let idf = (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln();
            let Bm25Config { k1, b } = config;
            let norm = k1 * (1.0 - b + b * terms[at].len() as f64 / average);
            if 0.0 < times {
                score += repetitions * idf * times * (k1 + 1.0) / (times + norm);
            }
        }
        if 0.0 < score {
            found.push((at, Scored { doc: *doc, score }));
        }
    }
    found.sort_by(|(a, x), (b, y)| y.score.total_cmp(&x.score).then(b.cmp(a)));
    found.into_iter().map(|it| it.1).collect()
}

const QUERIES: [&str; 5] = [
    "common1 common2 the common3",
    "the",
    "rare1 rare2 rare3 rare4 the the common19",
    "茶叶 common5",
    "absent rare7 common7",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn after_any_history_scores_are_those_of_an_index_built_anew(
        history in changes(700),
        k in 1..25_usize,
        k1 in prop_oneof![Just(1.2), Just(0.0), 0.0..3.0],
        b in prop_oneof![Just(0.75), Just(0.0), Just(1.0)],
    ) {
        let config = Bm25Config { k1, b };
        let mut index = Bm25Index::new(config, Analyzer::default());
        let mut live = Vec::new();
        apply(&mut index, &mut live, &history);
        let mut anew = Bm25Index::new(config, Analyzer::default());
        for (doc, text) in &live {
            anew.insert(*doc, text);
        }
        for query in QUERIES {
            let found = index.search(query, k);
            // To the bit.
            prop_assert_eq!(&found, &anew.search(query, k));
            let even = |doc: DocId| doc.is_multiple_of(2);
            let all = index.search(query, usize::MAX);
            prop_assert_eq!(&found[..], &all[..k.min(all.len())]);
            let kept: Vec<Scored> =
                all.iter().filter(|it| even(it.doc)).take(k).copied().collect();
            prop_assert_eq!(index.search_where(query, k, even), kept);
            let expected = by_formula(config, &live, query);
            prop_assert_eq!(all.len(), expected.len());
            let expected: BTreeMap<DocId, f64> =
                expected.iter().map(|it| (it.doc, it.score)).collect();
            for scored in all {
                prop_assert!((scored.score - expected[&scored.doc]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn snapshots_are_isolated(
        before in changes(300),
        left in changes(200),
        right in changes(200),
    ) {
        let mut base = Bm25Index::new(Bm25Config::default(), Analyzer::default());
        let mut live = Vec::new();
        apply(&mut base, &mut live, &before);
        let results = |index: &Bm25Index| QUERIES.map(|query| index.search(query, 20));
        let base_results = results(&base);
        let (mut one, mut other) = (base.clone(), base.clone());
        let (mut one_live, mut other_live) = (live.clone(), live.clone());
        apply(&mut one, &mut one_live, &left);
        let one_results = results(&one);
        apply(&mut other, &mut other_live, &right);
        prop_assert_eq!(&results(&base), &base_results);
        prop_assert_eq!(&results(&one), &one_results);
        // Neither branch is a matter of who went first.
        let mut alone = Bm25Index::new(Bm25Config::default(), Analyzer::default());
        apply(&mut alone, &mut Vec::new(), &before);
        apply(&mut alone, &mut live, &right);
        prop_assert_eq!(results(&other), results(&alone));
    }
}
