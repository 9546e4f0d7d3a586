//! A memory through the life of an episode.

use std::sync::Arc;

use super::*;
use crate::{
    dialogue::Utterance,
    task::{TurnRole, TurnSpec},
};

pub(super) fn words() -> CountTokens {
    Arc::new(|text: &str| text.split_whitespace().count())
}

pub(super) fn manager(config: MemoryConfig) -> MemoryManager {
    MemoryManager::new(config, words(), None).unwrap()
}

pub(super) fn turn(turn_id: u32, timestamp: &str, lines: &[(&str, &str)]) -> TurnSpec {
    TurnSpec {
        turn_id,
        turn_role: TurnRole::History,
        timestamp: Some(timestamp.to_owned()),
        session_id: Some(format!("s{turn_id}")),
        utterances: lines
            .iter()
            .enumerate()
            .map(|(index, (speaker, text))| Utterance {
                source_id: Some(format!("D{turn_id}:{index}")),
                speaker: Some((*speaker).to_owned()),
                text: (*text).to_owned(),
            })
            .collect(),
    }
}

#[test]
fn history_is_extracted_found_again_and_shown_within_its_budget() {
    let manager = manager(MemoryConfig {
        window_turns: 1,
        ..MemoryConfig::default()
    });
    let mut state = manager.initialize();
    let first = turn(
        0,
        "1:56 pm on 8 May, 2023",
        &[
            ("Ana", "Hi Bo! I went to the pottery class yesterday."),
            ("Bo", "Hello Ana! My sister likes jazz."),
        ],
    );
    let records = manager.extract_facts(&mut state, &first);
    assert_eq!(records.len(), 2);
    manager.compress_short_term(&mut state, &first);
    let second = turn(1, "9 May, 2023", &[("Bo", "The piano was sold.")]);
    manager.extract_facts(&mut state, &second);
    let left = manager.compress_short_term(&mut state, &second);
    assert_eq!(left[0].kind, OpKind::Evict);
    assert_eq!(left[0].store, Store::Window);

    let hits = manager
        .retrieve(
            &state,
            "When was the pottery class?",
            &RetrieveOptions::default(),
        )
        .unwrap();
    assert_eq!(hits[0].item_id, FactId(0));
    let view = manager.render_view(&state, &hits[..1], &ViewBudget::default());
    assert_eq!(
        view.facts[0].line,
        "f000000 (1:56 pm on 8 May, 2023): Ana: I went to the pottery class yesterday (7 May 2023)."
    );
    assert_eq!(view.window[0].text, "Bo: The piano was sold.");
    assert!(view.cut.is_nothing());
    assert_eq!(
        state.fact(FactId(0)).unwrap().written[0].source_ids,
        ["D0:0", "s0"]
    );
}
