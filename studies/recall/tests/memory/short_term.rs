//! The window, and what becomes of turns that leave it.

use recall::memory::{Compression, MemoryConfig, OpKind, Store};

use crate::{history, manager};

fn config(compression: Compression, window_turns: usize, summary_tokens: usize) -> MemoryConfig {
    MemoryConfig {
        compression,
        window_turns,
        summary_tokens,
        ..MemoryConfig::default()
    }
}

#[test]
fn a_window_keeps_the_last_turns_as_they_are() {
    let manager = manager(config(Compression::Window, 2, 100));
    let mut state = manager.initialize();
    for turn in 0..5 {
        let text = format!("turn number {turn}");
        let records = manager.compress_short_term(&mut state, &history(turn, &[&text]));
        let left: Vec<_> = records
            .iter()
            .map(|it| (it.kind, it.store, it.tokens))
            .collect();
        let wanted: &[_] = if turn < 2 {
            &[]
        } else {
            &[(OpKind::Evict, Store::Window, -3)]
        };
        assert_eq!(left, wanted);
    }
    let kept: Vec<&str> = state.window().map(|turn| turn.text.as_str()).collect();
    assert_eq!(kept, ["turn number 3", "turn number 4"]);
    assert_eq!((state.summary(), state.tokens().window), ("", 6));
}

#[test]
fn without_short_term_memory_nothing_is_kept() {
    let manager = manager(config(Compression::None, 2, 100));
    let mut state = manager.initialize();
    assert!(
        manager
            .compress_short_term(&mut state, &history(0, &["x"]))
            .is_empty()
    );
    assert_eq!(state.token_len(), 0);
}

#[test]
fn extractive_summaries_keep_the_central_sentences_in_their_order() {
    let manager = manager(config(Compression::Extractive, 0, 12));
    let mut state = manager.initialize();
    let first = [
        "Ana paints the old harbour.",
        "Zebras sleep standing up quietly.",
        "Ana sells pictures of the harbour.",
    ];
    let records = manager.compress_short_term(&mut state, &history(0, &first));
    // Two of three sentences fit, a line break each; the one that has nothing in common with the others goes.
    assert_eq!(
        state.summary(),
        "Ana paints the old harbour.\nAna sells pictures of the harbour."
    );
    assert_eq!(
        (records[1].kind, records[1].store),
        (OpKind::Summarize, Store::Summary)
    );
    let compressed = records[1].compressed.unwrap();
    assert_eq!(
        (compressed.input_tokens, compressed.output_tokens),
        (16, 11)
    );
    // Central, whenever it was said: the older sentence gives way.
    let second = ["The harbour pictures of Ana paints."];
    manager.compress_short_term(&mut state, &history(1, &second));
    assert!(
        state
            .summary()
            .ends_with("The harbour pictures of Ana paints.")
    );
    assert!(state.tokens().summary <= 12);
}

#[test]
fn rolling_summaries_drop_the_oldest_first() {
    let manager = manager(config(Compression::Rolling, 1, 8));
    let mut state = manager.initialize();
    for turn in 0..8 {
        let text = format!("Day {turn}.");
        let records = manager.compress_short_term(&mut state, &history(turn, &[&text]));
        for record in records.iter().filter(|it| it.kind == OpKind::Summarize) {
            let compressed = record.compressed.unwrap();
            let before = usize::try_from(compressed.output_tokens).unwrap() as i64 - record.tokens;
            assert_eq!(i64::from(compressed.input_tokens), before + 2);
        }
    }
    assert_eq!(state.summary(), "Day 4.\nDay 5.\nDay 6.");
    let kept: Vec<&str> = state.window().map(|turn| turn.text.as_str()).collect();
    assert_eq!(kept, ["Day 7."]);
}

#[test]
fn a_sentence_that_is_longer_than_its_share_is_cut() {
    for (compression, kept) in [
        (Compression::Extractive, "one two three four five six"),
        // A quarter of eight for each turn.
        (Compression::Rolling, "one two"),
    ] {
        let manager = manager(config(compression, 0, 8));
        let mut state = manager.initialize();
        let text = ["one two three four five six"];
        manager.compress_short_term(&mut state, &history(0, &text));
        assert_eq!(state.summary(), kept);
    }
}

#[test]
fn questions_leave_no_trace_unless_they_are_to_be_remembered() {
    let ask = |remember_answers| {
        let manager = manager(MemoryConfig {
            remember_answers,
            ..MemoryConfig::default()
        });
        let mut state = manager.initialize();
        manager.update_memory(&mut state, &history(5, &["Where is Ana?"]), " In Rome.\n");
        let window: Vec<String> = state.window().map(|turn| turn.text.clone()).collect();
        window
    };
    assert!(ask(false).is_empty());
    assert_eq!(ask(true), ["Where is Ana?\nIn Rome."]);
}
