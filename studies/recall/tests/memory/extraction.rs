//! The rule, on the turns of `tests/cases`.

use std::{fmt::Write, fs, path::Path};

use recall::{
    TurnSpec,
    memory::{FactId, MemoryConfig, RetrieveOptions, ViewBudget, chunks, extract},
};

use crate::{history, manager, words};

/// Each case is a `turn.json` and the facts that the rule makes of it in `facts.txt`: one a line, its kind, its
/// text and its sources.
#[test]
fn turns_become_the_facts_of_their_cases() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut folders: Vec<_> = fs::read_dir(cases)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|folder| folder.join("turn.json").exists())
        .collect();
    folders.sort();
    assert!(folders.len() >= 9);
    for folder in folders {
        let turn = fs::read_to_string(folder.join("turn.json")).unwrap();
        let turn: TurnSpec = serde_json::from_str(&turn).unwrap();
        let wanted = fs::read_to_string(folder.join("facts.txt")).unwrap();
        let mut found = String::new();
        for fact in extract(&turn, 0, false, &words()) {
            let sources = match fact.source_ids.as_slice() {
                [] => "-".to_owned(),
                sources => sources.join(" "),
            };
            writeln!(found, "{} | {} | {sources}", fact.kind.name(), fact.text).unwrap();
        }
        assert_eq!(found, wanted, "{}", folder.display());
    }
}

#[test]
fn what_speakers_say_of_their_own_may_be_said_by_name() {
    let mut turn = history(0, &["Hi! My cat is grey. I love my cat."]);
    turn.utterances[0].speaker = Some("Ann".to_owned());
    let texts = |possessive| -> Vec<String> {
        let facts = extract(&turn, 0, possessive, &words());
        facts.into_iter().map(|fact| fact.text).collect()
    };
    assert_eq!(
        texts(false),
        ["Ann: My cat is grey.", "Ann: I love my cat."]
    );
    assert_eq!(texts(true), ["Ann's cat is grey.", "Ann: I love my cat."]);
}

#[test]
fn long_sentences_become_several_facts_that_lose_no_word() {
    let turn = history(0, &["one two three four five six seven eight"]);
    let facts = extract(&turn, 3, false, &words());
    let texts: Vec<&str> = facts.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(texts, ["one two three", "four five six", "seven eight"]);
}

#[test]
fn chunks_hold_whole_lines_as_long_as_these_fit() {
    let mut turn = history(0, &["one two", "three", "four five six seven eight"]);
    for (index, utterance) in turn.utterances.iter_mut().enumerate() {
        utterance.source_id = Some(format!("D:{index}"));
    }
    turn.session_id = Some("s".to_owned());
    let found = chunks(&turn, 4, &words());
    let texts: Vec<&str> = found.iter().map(|chunk| chunk.text.as_str()).collect();
    assert_eq!(texts, ["one two\nthree", "four five six seven", "eight"]);
    assert_eq!(found[0].source_ids, ["D:0", "D:1", "s"]);
    assert_eq!(found[2].source_ids, ["D:2", "s"]);
}

#[test]
fn what_a_turn_said_is_found_and_shown_with_where_it_came_from() {
    let manager = manager(MemoryConfig {
        window_turns: 1,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    let mut first = history(0, &["Hi Bo! I went to the pottery class yesterday."]);
    first.timestamp = Some("1:56 pm on 8 May, 2023".to_owned());
    first.session_id = Some("s0".to_owned());
    first.utterances[0].source_id = Some("D0:1".to_owned());
    first.utterances[0].speaker = Some("Ana".to_owned());
    let records = manager.extract_facts(&mut state, &first);
    assert_eq!((records.len(), records[0].agent_role.as_str()), (1, "rule"));
    manager.compress_short_term(&mut state, &first);
    let second = history(1, &["The piano was sold."]);
    manager.extract_facts(&mut state, &second);
    manager.compress_short_term(&mut state, &second);
    let options = RetrieveOptions::default();
    let hits = manager
        .retrieve(&state, "When was the pottery class?", &options)
        .unwrap();
    let view = manager.render_view(&state, &hits[..1], &ViewBudget::default());
    assert_eq!(
        view.facts[0].line,
        "f000000 (1:56 pm on 8 May, 2023): Ana: I went to the pottery class yesterday (7 May 2023)."
    );
    assert_eq!(view.window_text(), "The piano was sold.");
    let fact = state.fact(FactId(0)).unwrap();
    assert_eq!(fact.written[0].source_ids, ["D0:1", "s0"]);
}
