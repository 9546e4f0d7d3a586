//! What prompts show, found facts, and baselines.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use proptest::prelude::*;
use recall::memory::{
    Baseline, FactId, FactLine, FactOrder, MemoryConfig, MemoryError, MemoryManager, MemoryOp,
    Retrieval, RetrieveOptions, SnapshotCache, SnapshotKey, ViewBudget,
};
use retrieve::{Analyzer, EmbedError, Embedder, HashedEmbedder};

use crate::{add, at, history, manager, update, words};

#[test]
fn blocks_shrink_in_their_order_facts_window_summary_core() {
    let manager = manager(MemoryConfig {
        fact_order: FactOrder::Written,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    let set = |text: &str| MemoryOp::SetCore {
        text: text.to_owned(),
    };
    manager.apply(&mut state, set("c1 c2 c3"), &at(0));
    let op = MemoryOp::SetSummary {
        text: "s1 s2 s3".to_owned(),
    };
    manager.apply(&mut state, op, &at(0));
    manager.apply(&mut state, add("tea rome rome"), &at(0));
    manager.apply(&mut state, add("tea rome rome rome tea rome"), &at(1));
    manager.compress_short_term(&mut state, &history(2, &["w1 w2", "w3 w4"]));
    manager.compress_short_term(&mut state, &history(3, &["w5"]));
    let options = RetrieveOptions::default();
    let hits = manager.retrieve(&state, "rome", &options).unwrap();
    let view = |total: usize| {
        let budget = ViewBudget {
            total,
            fact_line: FactLine::Text,
            ..ViewBudget::default()
        };
        let view = manager.render_view(&state, &hits, &budget);
        assert!(view.tokens.total() <= total);
        let facts: Vec<u32> = view.facts.iter().map(|fact| fact.id.0).collect();
        let short = format!("{} | {} | {}", view.core, view.summary, view.window_text());
        (facts, short.replace('\n', "/"), view.cut)
    };
    let all = "c1 c2 c3 | s1 s2 s3 | w1 w2/w3 w4/w5";
    let (facts, text, cut) = view(usize::MAX);
    assert_eq!((facts, text.as_str()), (vec![0, 1], all));
    assert!(cut.is_nothing());
    // The worse of the two facts goes first.
    let (worst, best) = (hits[1].item_id.0, hits[0].item_id.0);
    let (facts, text, cut) = view(18);
    assert_eq!((facts, text.as_str()), (vec![best], all));
    assert_eq!(cut.facts, [FactId(worst)]);
    let (facts, text, cut) = view(12);
    assert_eq!((facts, text.as_str()), (vec![], all));
    assert_eq!(cut.facts, [FactId(best), FactId(worst)]);
    assert_eq!(cut.tokens.facts, 9);
    let (_, text, _) = view(10);
    assert_eq!(text, "c1 c2 c3 | s1 s2 s3 | w3 w4/w5");
    let (_, text, _) = view(7);
    assert_eq!(text, "c1 c2 c3 | s1 s2 s3 | w5");
    let (_, text, cut) = view(5);
    assert_eq!(text, "c1 c2 c3 | s1 s2 | ");
    assert_eq!(cut.tokens.summary, 1);
    let (_, text, _) = view(2);
    assert_eq!(text, "c1 c2 |  | ");
    let (_, text, _) = view(0);
    assert_eq!(text, " |  | ");
}

#[test]
fn facts_are_shown_as_written_or_by_relevance() {
    let lines = |fact_order, fact_line| {
        let manager = manager(MemoryConfig {
            fact_order,
            ..MemoryConfig::default()
        });
        let mut state = manager.initialize();
        manager.apply(&mut state, add("rome one two three"), &at(0));
        manager.apply(&mut state, add("rome"), &at(1));
        manager.apply(&mut state, update(0, "rome one two four"), &at(2));
        let options = RetrieveOptions::default();
        let hits = manager.retrieve(&state, "rome", &options).unwrap();
        let budget = ViewBudget {
            fact_line,
            ..ViewBudget::default()
        };
        manager.render_view(&state, &hits, &budget).facts_text()
    };
    assert_eq!(
        lines(FactOrder::Written, FactLine::IdAndTime),
        "f000001 (2024-01-02): rome\nf000000 (2024-01-01): rome one two four"
    );
    assert_eq!(
        lines(FactOrder::Relevance, FactLine::Time),
        "(2024-01-02) rome\n(2024-01-01) rome one two four"
    );
    assert_eq!(
        lines(FactOrder::Written, FactLine::Id),
        "f000001: rome\nf000000: rome one two four"
    );
    assert_eq!(
        lines(FactOrder::Written, FactLine::Text),
        "rome\nrome one two four"
    );
}

#[test]
fn only_live_facts_of_the_wanted_store_are_found() {
    let manager = manager(MemoryConfig::default());
    let mut state = manager.initialize();
    manager.apply(&mut state, add("rome alpha"), &at(0));
    let episodic = |text: &str| MemoryOp::Insert {
        kind: recall::memory::FactKind::Episodic,
        text: text.to_owned(),
        importance: None,
        timestamp: None,
    };
    manager.apply(&mut state, episodic("rome beta"), &at(0));
    manager.apply(&mut state, add("rome gamma"), &at(0));
    manager.apply(&mut state, crate::delete(2), &at(1));
    let found = |kind| {
        let options = RetrieveOptions {
            kind,
            ..RetrieveOptions::default()
        };
        let hits = manager.retrieve(&state, "rome", &options).unwrap();
        let mut ids: Vec<u32> = hits.iter().map(|hit| hit.item_id.0).collect();
        ids.sort();
        ids
    };
    assert_eq!(found(None), [0, 1]);
    assert_eq!(found(Some(recall::memory::FactKind::Episodic)), [1]);
    assert_eq!(
        manager.neighbours(&state, "alpha rome", 1).unwrap()[0].item_id,
        FactId(0)
    );
}

#[test]
fn dense_and_hybrid_search_find_what_shares_no_word() {
    for method in [Retrieval::Dense, Retrieval::Hybrid] {
        let config = MemoryConfig {
            retrieval: method,
            ..MemoryConfig::default()
        };
        let none = MemoryManager::new(config.clone(), words(), None);
        assert_eq!(none.err(), Some(MemoryError::NoEmbedder(method)));
        let embedder = Arc::new(HashedEmbedder::new(256, Analyzer::default()));
        let manager = MemoryManager::new(config, words(), Some(embedder)).unwrap();
        let mut state = manager.initialize();
        manager.apply(&mut state, add("the blue house"), &at(0));
        manager.apply(&mut state, add("photographers meet"), &at(0));
        let options = RetrieveOptions {
            top_k: Some(1),
            ..RetrieveOptions::default()
        };
        let hits = manager.retrieve(&state, "photograph", &options).unwrap();
        assert_eq!(hits[0].item_id, FactId(1));
        assert_eq!(hits[0].method, method);
        manager.apply(&mut state, crate::delete(1), &at(1));
        let hits = manager.retrieve(&state, "photograph", &options).unwrap();
        assert_eq!(hits[0].item_id, FactId(0));
    }
}

/// Fails on texts that have `poison` in them.
struct Fragile(HashedEmbedder);

impl Embedder for Fragile {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.iter().any(|text| text.contains("poison")) {
            return Err(EmbedError::Failed("out of order".into()));
        }
        self.0.embed(texts)
    }

    fn dimension(&self) -> usize {
        self.0.dimension()
    }
}

#[test]
fn a_failing_embedder_fails_the_search_and_no_write() {
    let config = MemoryConfig {
        retrieval: Retrieval::Dense,
        ..MemoryConfig::default()
    };
    let embedder = Arc::new(Fragile(HashedEmbedder::new(32, Analyzer::default())));
    let manager = MemoryManager::new(config, words(), Some(embedder)).unwrap();
    let mut state = manager.initialize();
    manager.apply(&mut state, add("tea"), &at(0));
    let before = state.clone();
    let records = manager.apply(&mut state, add("poison"), &at(1));
    assert_eq!(records[0].status, recall::memory::OpStatus::Done);
    let options = RetrieveOptions::default();
    let error = manager.retrieve(&state, "tea", &options).err();
    let wanted = MemoryError::Embedding("the embedder failed: out of order".to_owned());
    assert_eq!(error, Some(wanted));
    assert_eq!(manager.retrieve(&before, "tea", &options).unwrap().len(), 1);
    assert!(manager.retrieve(&before, "poison", &options).is_err());
}

#[test]
fn every_baseline_is_a_configuration() {
    let learned = MemoryConfig {
        window_turns: 2,
        chunk_tokens: 3,
        ..MemoryConfig::default()
    };
    let shown = |baseline: Baseline| {
        let manager = manager(learned.with_baseline(baseline));
        let mut state = manager.initialize();
        for turn in 0..4 {
            let turn = history(turn, &[&format!("the number is {turn}")]);
            manager.extract_facts(&mut state, &turn);
            manager.compress_short_term(&mut state, &turn);
        }
        let options = RetrieveOptions::default();
        let hits = manager.retrieve(&state, "number", &options).unwrap();
        let budget = ViewBudget {
            total: 15,
            fact_line: FactLine::Text,
            ..ViewBudget::default()
        };
        let view = manager.render_view(&state, &hits, &budget);
        [view.facts_text(), view.window_text()].map(|text| text.replace('\n', "/"))
    };
    assert_eq!(shown(Baseline::NoMemory), ["", ""]);
    assert_eq!(
        shown(Baseline::FullContext),
        ["", "the number is 1/the number is 2/the number is 3"]
    );
    assert_eq!(
        shown(Baseline::LastK),
        ["", "the number is 2/the number is 3"]
    );
    let [chunks, window] = shown(Baseline::RawChunks);
    assert_eq!(window, "");
    assert!(chunks.contains("the number is"), "{chunks}");
}

#[test]
fn histories_that_were_read_before_are_found_again() {
    let config = MemoryConfig::default();
    let manager = manager(config.clone());
    let turns = [
        history(0, &["Ana is in Rome."]),
        history(1, &["Bo is not."]),
    ];
    let cache = SnapshotCache::new(2);
    let made = AtomicUsize::new(0);
    let read = |turns: &[recall::TurnSpec]| {
        let key = SnapshotKey::of(&config, turns, "words");
        cache.get_or_make(key, || {
            made.fetch_add(1, Ordering::Relaxed);
            let mut state = manager.initialize();
            for turn in turns {
                manager.extract_facts(&mut state, turn);
            }
            Ok::<_, MemoryError>(state)
        })
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(read(&turns).unwrap().len(), 2));
        }
    });
    assert_eq!(made.load(Ordering::Relaxed), 1);
    // What one rollout does with it, no other sees.
    let mut own = read(&turns).unwrap();
    manager.apply(&mut own, add("Cy is here."), &at(2));
    assert_eq!(read(&turns).unwrap().len(), 2);
    // Bounded: the one that was not used for longest goes.
    assert_eq!(read(&turns[..1]).unwrap().len(), 1);
    assert_eq!(read(&turns).unwrap().len(), 2);
    assert_eq!(read(&turns[1..]).unwrap().len(), 1);
    assert_eq!(cache.len(), 2);
    read(&turns).unwrap();
    assert_eq!(made.load(Ordering::Relaxed), 3);
    read(&turns[..1]).unwrap();
    assert_eq!(cache.counts().0, 4);
    let other = MemoryConfig {
        near_duplicate: 0.0,
        ..config.clone()
    };
    assert_ne!(
        SnapshotKey::of(&config, &turns, "words"),
        SnapshotKey::of(&other, &turns, "words")
    );
    assert_ne!(
        SnapshotKey::of(&config, &turns, "words"),
        SnapshotKey::of(&config, &turns, "letters")
    );
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let config = MemoryConfig {
        near_duplicate: 0.3,
        ..MemoryConfig::default()
    };
    let error = MemoryManager::new(config, words(), None).err().unwrap();
    assert_eq!(
        error.to_string(),
        "memory.near_duplicate is 0.3: 0 for identical texts only, else from 0.75 to 1"
    );
}

#[test]
fn files_that_are_no_memory_are_refused_with_their_line() {
    let manager = manager(MemoryConfig::default());
    let mut state = manager.initialize();
    manager.apply(&mut state, add("Ana is in Rome."), &at(0));
    manager.compress_short_term(&mut state, &history(0, &["x"]));
    let mut written = Vec::new();
    state.write(&mut written).unwrap();
    let text = String::from_utf8(written).unwrap();
    assert!(manager.read(text.as_bytes()).is_ok());
    let lines: Vec<&str> = text.lines().collect();
    for (broken, line) in [
        (lines[..2].join("\n"), 3),
        (lines[1..].join("\n"), 1),
        (text.replace("Rome", "Oslo"), 3),
        (text.replace("f000000", "f000001"), 3),
        (text.replace("etude-memory/1", "etude-memory/9"), 1),
        (String::new(), 1),
        (format!("{text}{{}}\n"), 4),
    ] {
        let error = manager.read(broken.as_bytes()).err().unwrap().to_string();
        assert!(
            error.starts_with(&format!("line {line} of the memory: ")),
            "{error}"
        );
    }
}

proptest! {
    #[test]
    fn no_view_is_over_its_budget(
        texts in proptest::collection::vec("[a-d]{1,3}( [a-d]{1,3}){0,12}", 1..12),
        total in 0..60_usize,
        facts in 0..40_usize,
        window in 0..40_usize,
    ) {
        let manager = manager(MemoryConfig::default());
        let mut state = manager.initialize();
        for (turn, text) in (0..).zip(&texts) {
            let turn = history(turn, &[text, "a b"]);
            manager.extract_facts(&mut state, &turn);
            manager.compress_short_term(&mut state, &turn);
        }
        let options = RetrieveOptions::default();
        let hits = manager.retrieve(&state, "a b c", &options).unwrap();
        let budget = ViewBudget { total, facts, window, ..ViewBudget::default() };
        let view = manager.render_view(&state, &hits, &budget);
        prop_assert!(view.tokens.total() <= total);
        prop_assert!(view.tokens.facts <= facts && view.tokens.window <= window);
        prop_assert_eq!(view.tokens.facts, manager.count(&view.facts_text()));
        prop_assert_eq!(view.tokens.window, manager.count(&view.window_text()));
        prop_assert_eq!(view.facts.len() + view.cut.facts.len(), hits.len());
    }
}
