//! Operations one by one.

use std::collections::BTreeSet;

use recall::memory::{
    Fact, FactId, FactKind, MemoryConfig, MemoryOp, OpFormat, OpKind, OpStatus, RetrieveOptions,
    Store, UpdatePolicy,
};

use crate::{add, at, delete, manager, update};

#[test]
fn an_insertion_is_a_fact_with_where_it_came_from() {
    let manager = manager(MemoryConfig::default());
    let mut state = manager.initialize();
    let op = MemoryOp::Insert {
        kind: FactKind::Episodic,
        text: "  Ana moved to Rome.  ".to_owned(),
        importance: Some(1.5),
        timestamp: Some("8 May 2023".to_owned()),
    };
    let records = manager.apply(&mut state, op, &at(3));
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!((record.op_id, record.kind), (0, OpKind::Add));
    assert_eq!(record.store, Store::Episodic);
    assert_eq!(record.status, OpStatus::Done);
    assert_eq!((record.turn_id, record.step_id), (3, Some(3)));
    assert_eq!(record.tokens, 4);
    let fact = state.fact(FactId(0)).unwrap();
    assert_eq!(fact.text, "Ana moved to Rome.");
    assert_eq!(fact.importance, Some(1.0));
    assert_eq!(fact.timestamp.as_deref(), Some("8 May 2023"));
    assert_eq!(fact.written[0].source_ids, ["D3"]);
    assert_eq!(fact.content_hash.len(), 16);
    assert_eq!((state.len(), state.token_len()), (1, 4));
}

#[test]
fn an_update_replaces_the_text_and_keeps_every_writer() {
    let manager = manager(MemoryConfig::default());
    let mut state = manager.initialize();
    manager.apply(&mut state, add("Ana lives in Rome."), &at(0));
    manager.apply(&mut state, update(0, "Ana lives in Paris now."), &at(4));
    let records = manager.apply(&mut state, update(0, "Ana lives in Oslo."), &at(7));
    assert_eq!(records[0].kind, OpKind::Update);
    assert_eq!(
        records[0].before_text.as_deref(),
        Some("Ana lives in Paris now.")
    );
    assert_eq!(records[0].after_text.as_deref(), Some("Ana lives in Oslo."));
    assert_eq!(records[0].tokens, -1);
    let fact = state.fact(FactId(0)).unwrap();
    let turns: Vec<u32> = fact.written.iter().map(|write| write.turn_id).collect();
    assert_eq!(turns, [0, 4, 7]);
    let records: Vec<u32> = fact.written.iter().map(|write| write.op_id).collect();
    assert_eq!(records, [0, 1, 2]);
    assert_eq!(fact.timestamp.as_deref(), Some("2024-01-01"));
    assert_eq!(state.len(), 1);
    let found = |query: &str| {
        let options = RetrieveOptions::default();
        manager.retrieve(&state, query, &options).unwrap().len()
    };
    assert_eq!((found("Oslo"), found("Paris"), found("Rome")), (1, 0, 0));
}

#[test]
fn under_append_supersede_the_old_fact_stays_on_record() {
    let manager = manager(MemoryConfig {
        update_policy: UpdatePolicy::AppendSupersede,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    manager.apply(&mut state, add("Ana lives in Rome."), &at(0));
    let records = manager.apply(&mut state, update(0, "Ana lives in Oslo."), &at(4));
    assert_eq!(records[0].item_id, Some(FactId(1)));
    assert_eq!(records[0].replaced, Some(FactId(0)));
    let old = state.fact(FactId(0)).unwrap();
    assert_eq!(old.superseded_by, Some(FactId(1)));
    assert_eq!(old.text, "Ana lives in Rome.");
    let new = state.fact(FactId(1)).unwrap();
    assert_eq!(new.timestamp.as_deref(), Some("2024-01-05"));
    let turns: Vec<u32> = new.written.iter().map(|write| write.turn_id).collect();
    assert_eq!(turns, [0, 4]);
    let live: Vec<FactId> = state.live_facts().map(|fact| fact.id).collect();
    assert_eq!(live, [FactId(1)]);
    assert_eq!(state.facts().count(), 2);
    let again = manager.apply(&mut state, update(0, "Ana lives in Bonn."), &at(5));
    assert_eq!(again[0].status, OpStatus::Failed);
    assert_eq!(
        again[0].error.as_deref(),
        Some("f000000 is no longer: f000001 took its place")
    );
}

#[test]
fn a_deleted_fact_is_a_tombstone() {
    let manager = manager(MemoryConfig::default());
    let mut state = manager.initialize();
    manager.apply(&mut state, add("Ana lives in Rome."), &at(0));
    let records = manager.apply(&mut state, delete(0), &at(1));
    assert_eq!(records[0].kind, OpKind::Delete);
    assert_eq!(
        records[0].before_text.as_deref(),
        Some("Ana lives in Rome.")
    );
    assert_eq!(
        (records[0].after_text.as_ref(), records[0].tokens),
        (None, -4)
    );
    assert!(state.is_empty());
    assert_eq!(state.token_len(), 0);
    assert!(state.fact(FactId(0)).unwrap().deleted);
    let options = RetrieveOptions::default();
    assert!(
        manager
            .retrieve(&state, "Rome", &options)
            .unwrap()
            .is_empty()
    );
    for op in [delete(0), update(0, "Ana lives in Oslo.")] {
        let records = manager.apply(&mut state, op, &at(2));
        assert_eq!(records[0].status, OpStatus::Failed);
        let error = records[0].error.as_deref();
        assert_eq!(error, Some("f000000 is no longer: it was deleted"));
    }
    // The same text may be learnt again, and is another fact.
    let records = manager.apply(&mut state, add("Ana lives in Rome."), &at(3));
    assert_eq!(records[0].item_id, Some(FactId(1)));
}

#[test]
fn what_is_there_already_is_skipped() {
    let manager = manager(MemoryConfig::default());
    let mut state = manager.initialize();
    manager.apply(&mut state, add("Ana lives in Rome with two cats."), &at(0));
    for (text, is_duplicate) in [
        ("Ana lives in Rome with two cats.", true),
        ("ana lives in Rome, with two cats", true),
        // Another order, another number, another word: another fact.
        ("Rome lives in Ana with two cats.", false),
        ("Ana lives in Rome with two dogs.", false),
    ] {
        let record = manager.apply(&mut state, add(text), &at(1)).remove(0);
        assert_eq!(
            record.kind == OpKind::DuplicateSkipped,
            is_duplicate,
            "{text}"
        );
        if is_duplicate {
            assert_eq!(record.status, OpStatus::Skipped);
            assert_eq!(record.item_id, Some(FactId(0)));
            assert_eq!(record.tokens, 0);
        }
    }
    // In the other store it is no duplicate.
    let op = MemoryOp::Insert {
        kind: FactKind::Episodic,
        text: "Ana lives in Rome with two cats.".to_owned(),
        importance: None,
        timestamp: None,
    };
    let records = manager.apply(&mut state, op, &at(1));
    assert_eq!(records[0].kind, OpKind::Add);
}

#[test]
fn numbers_tell_facts_apart_however_much_else_they_share() {
    let manager = manager(MemoryConfig {
        near_duplicate: 0.75,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    let text = |day: u32| format!("The long awaited concert in the old town hall is on {day} May.");
    manager.apply(&mut state, add(&text(3)), &at(0));
    let records = manager.apply(&mut state, add(&text(4)), &at(1));
    assert_eq!(records[0].kind, OpKind::Add);
    let near = text(4).replace("old", "new");
    let records = manager.apply(&mut state, add(&near), &at(1));
    assert_eq!(records[0].kind, OpKind::DuplicateSkipped);
    assert_eq!(records[0].item_id, Some(FactId(1)));
}

#[test]
fn with_repeats_kept_a_text_of_another_time_is_another_fact() {
    let manager = manager(MemoryConfig {
        keep_repeats: true,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    manager.apply(&mut state, add("Ana lives in Rome."), &at(0));
    let later = manager.apply(&mut state, add("Ana lives in Rome."), &at(9));
    assert_eq!(later[0].kind, OpKind::Add);
    let again = manager.apply(&mut state, add("Ana lives in Rome."), &at(9));
    assert_eq!(again[0].kind, OpKind::DuplicateSkipped);
}

#[test]
fn an_update_to_what_is_there_already_writes_nothing() {
    let manager = manager(MemoryConfig::default());
    let mut state = manager.initialize();
    manager.apply(&mut state, add("Ana lives in Rome."), &at(0));
    manager.apply(&mut state, add("Bo likes tea."), &at(0));
    for (op, same) in [
        (update(0, "Ana lives in Rome."), 0),
        (update(0, "Bo likes tea."), 1),
    ] {
        let records = manager.apply(&mut state, op, &at(1));
        assert_eq!(records[0].kind, OpKind::DuplicateSkipped);
        assert_eq!(records[0].item_id, Some(FactId(same)));
    }
    assert_eq!(state.fact(FactId(0)).unwrap().written.len(), 1);
}

#[test]
fn what_cannot_be_done_is_a_record_that_says_why() {
    let manager = manager(MemoryConfig {
        fact_tokens: 4,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    manager.apply(&mut state, add("Ana lives in Rome."), &at(0));
    let wrong_store =
        |op: fn(FactId, Option<FactKind>) -> MemoryOp| op(FactId(0), Some(FactKind::Episodic));
    let cases = [
        (update(7, "x"), OpKind::Update, "there is no fact f000007"),
        (delete(7), OpKind::Delete, "there is no fact f000007"),
        (
            wrong_store(|id, kind| MemoryOp::Delete { id, kind }),
            OpKind::Delete,
            "f000000 is in the semantic store, not in the episodic one",
        ),
        (
            wrong_store(|id, kind| MemoryOp::Update {
                id,
                text: "x".to_owned(),
                kind,
            }),
            OpKind::Update,
            "f000000 is in the semantic store, not in the episodic one",
        ),
        (
            add("one two three four five"),
            OpKind::Add,
            "a fact has at most 4 tokens, and this one has 5: write several",
        ),
        (
            update(0, "one two three four five"),
            OpKind::Update,
            "a fact has at most 4 tokens, and this one has 5: write several",
        ),
        (
            add(" \n "),
            OpKind::Add,
            "a fact needs a text; to forget one, delete it",
        ),
        (
            update(0, ""),
            OpKind::Update,
            "a fact needs a text; to forget one, delete it",
        ),
    ];
    let before: Vec<Fact> = state.facts().cloned().collect();
    for (index, (op, kind, error)) in cases.into_iter().enumerate() {
        let records = manager.apply(&mut state, op, &at(1));
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].op_id as usize, index + 1);
        assert_eq!(records[0].kind, kind);
        assert_eq!(records[0].status, OpStatus::Failed);
        assert_eq!(records[0].error.as_deref(), Some(error));
        assert_eq!(records[0].tokens, 0);
    }
    let after: Vec<Fact> = state.facts().cloned().collect();
    assert_eq!(before, after);
}

#[test]
fn core_and_summary_are_cut_where_a_word_ends() {
    let manager = manager(MemoryConfig {
        core_tokens: 3,
        summary_tokens: 2,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    let set = |text: &str| MemoryOp::SetCore {
        text: text.to_owned(),
    };
    let records = manager.apply(&mut state, set("one two"), &at(0));
    assert_eq!(
        (records[0].kind, records[0].store),
        (OpKind::Update, Store::Core)
    );
    assert_eq!((records[0].error.as_ref(), records[0].tokens), (None, 2));
    let records = manager.apply(&mut state, set("one two three four"), &at(0));
    assert_eq!(state.core(), "one two three");
    assert_eq!(records[0].before_text.as_deref(), Some("one two"));
    assert_eq!(records[0].after_text.as_deref(), Some("one two three"));
    assert_eq!(
        records[0].error.as_deref(),
        Some("the core holds at most 3 tokens: what is over was cut off behind a word")
    );
    let records = manager.apply(&mut state, set(""), &at(0));
    assert_eq!((records[0].kind, records[0].tokens), (OpKind::Delete, -3));
    assert_eq!(state.core(), "");

    let op = MemoryOp::SetSummary {
        text: "a b c".to_owned(),
    };
    let mut by = at(1);
    by.observation_tokens = 40;
    let records = manager.apply(&mut state, op, &by);
    assert_eq!(state.summary(), "a b");
    let compressed = records[0].compressed.unwrap();
    assert_eq!((compressed.input_tokens, compressed.output_tokens), (40, 2));
}

#[test]
fn the_least_important_fact_goes_when_there_are_too_many() {
    let manager = manager(MemoryConfig {
        max_facts: 2,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    let weighed = |text: &str, importance: Option<f32>| MemoryOp::Insert {
        kind: FactKind::Semantic,
        text: text.to_owned(),
        importance,
        timestamp: None,
    };
    manager.apply(&mut state, weighed("alpha", Some(0.9)), &at(0));
    manager.apply(&mut state, weighed("beta", None), &at(0));
    let records = manager.apply(&mut state, weighed("gamma", Some(0.1)), &at(1));
    // Never the fact that has just been written.
    assert_eq!(records.len(), 2);
    assert_eq!(
        (records[0].kind, records[1].kind),
        (OpKind::Add, OpKind::Evict)
    );
    assert_eq!(records[1].item_id, Some(FactId(1)));
    assert_eq!(records[1].before_text.as_deref(), Some("beta"));
    assert_eq!(records[1].tokens, -1);
    let records = manager.apply(&mut state, weighed("delta", Some(0.1)), &at(2));
    assert_eq!(records[1].item_id, Some(FactId(2)));
    // Among equals the last write decides, and an update is one.
    manager.apply(&mut state, delete(0), &at(3));
    manager.apply(&mut state, weighed("epsilon", Some(0.1)), &at(4));
    manager.apply(&mut state, update(3, "delta again"), &at(5));
    let records = manager.apply(&mut state, weighed("zeta", Some(0.1)), &at(6));
    assert_eq!(records[1].item_id, Some(FactId(4)));
    assert_eq!(state.len(), 2);
}

#[test]
fn what_a_policy_wrote_becomes_records_and_unreadable_parts_do_too() {
    let manager = manager(MemoryConfig::default());
    let mut state = manager.initialize();
    let text = "add: Ana lives in Rome.\nI will also remember this\ndelete f000009\nnoop";
    let records = manager.apply_written(&mut state, text, OpFormat::Lines, &at(0));
    let kinds: Vec<(OpKind, OpStatus)> = records
        .iter()
        .map(|record| (record.kind, record.status))
        .collect();
    assert_eq!(
        kinds,
        [
            (OpKind::Add, OpStatus::Done),
            (OpKind::Malformed, OpStatus::Failed),
            (OpKind::Delete, OpStatus::Failed),
            (OpKind::Noop, OpStatus::Skipped),
        ]
    );
    assert_eq!(
        records[1].after_text.as_deref(),
        Some("I will also remember this")
    );
}

#[test]
fn ids_are_unique_over_a_million_operations() {
    let manager = manager(MemoryConfig {
        near_duplicate: 0.0,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    let by = at(0);
    let mut ids = BTreeSet::new();
    let mut last_record = None;
    let mut inserted = 0_u32;
    for step in 0..1_000_000_u32 {
        // A small live store, so that the test is about ids.
        let op = match step % 4 {
            0 | 2 => add(&format!("{step}")),
            1 => update(inserted - 1, &format!("again {step}")),
            _ => delete(inserted - 2 + step % 2),
        };
        let is_insert = matches!(op, MemoryOp::Insert { .. });
        let records = manager.apply(&mut state, op, &by);
        assert!(last_record < Some(records[0].op_id));
        last_record = records.last().map(|record| record.op_id);
        if is_insert {
            inserted += 1;
            assert!(ids.insert(records[0].item_id.unwrap()));
        }
    }
    assert_eq!(ids.len(), 500_000);
    assert_eq!(state.facts().count(), 500_000);
    assert_eq!(FactId(499_999).to_string(), "f499999");
    assert!(
        state
            .facts()
            .zip(0..)
            .all(|(fact, id)| fact.id == FactId(id))
    );
}
