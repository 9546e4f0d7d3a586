//! Memories that policies write: the role `memory` alone, or three roles in turn.

use recall::{
    FACT_SPLIT, Granularity, LONG_MEM, MEMORY, SHORT_MEM, TurnRole,
    memory::{OpKind, OpStatus},
};
use serde_json::json;

use crate::fixture::{config, notes, play, study, tasks};

#[test]
fn what_the_memory_role_writes_is_stored_with_its_call() {
    let study = study(config(json!({ "memory": { "extraction": "policy" } })));
    let write = |role: &str, _: &str| {
        let text = if role == MEMORY {
            "add: it rained\nfly away"
        } else {
            "rain"
        };
        Some(text.to_owned())
    };
    for notes in notes(&play(&study, &tasks(2, Granularity::Sample), 1, write, 2)) {
        let history: Vec<_> = notes
            .events
            .iter()
            .filter(|event| event.turn_role == TurnRole::History)
            .collect();
        // Calls are counted through the episode, and each is the event's own.
        let steps: Vec<_> = notes.events.iter().map(|event| event.step_id).collect();
        assert_eq!(steps, (0..steps.len() as u32).map(Some).collect::<Vec<_>>());
        let kinds: Vec<Vec<OpKind>> = history
            .iter()
            .map(|event| event.memory_ops.iter().map(|op| op.kind).collect())
            .collect();
        assert_eq!(kinds[0], [OpKind::Add, OpKind::Malformed]);
        assert_eq!(kinds[1], [OpKind::DuplicateSkipped, OpKind::Malformed]);
        let [fact] = notes.facts.as_slice() else {
            panic!("{:?}", notes.facts);
        };
        assert_eq!(fact.text, "it rained");
        assert_eq!(
            (fact.written[0].turn_id, fact.written[0].step_id),
            (0, Some(0))
        );
    }
}

#[test]
fn four_roles_take_a_turn_apart_and_decide_on_every_fact() {
    let study = study(config(json!({ "memory": { "extraction": "four_roles" } })));
    let say = |role: &str, prompt: &str| {
        let text = match role {
            FACT_SPLIT => {
                "important: Ann has a dog.\nimportant: Ben is tall.\nunimportant: It rains."
            }
            // The second time, the dog's fact is among the notes.
            LONG_MEM if prompt.contains("f000000") && prompt.contains("New: Ann has a dog.") => {
                "update f000000: Ann has an old dog."
            }
            LONG_MEM if prompt.contains("New: Ben is tall.") && prompt.contains("f000001") => {
                "noop"
            }
            LONG_MEM => "add",
            SHORT_MEM => "Rain again.",
            _ => "a dog",
        };
        Some(text.to_owned())
    };
    let notes = notes(&play(&study, &tasks(1, Granularity::Sample), 1, say, 1)).remove(0);
    let roles: Vec<&str> = notes
        .events
        .iter()
        .map(|event| event.agent_role.as_str())
        .collect();
    let turn = [FACT_SPLIT, LONG_MEM, LONG_MEM, SHORT_MEM];
    assert_eq!(roles[..8], [turn, turn].concat());
    let done: Vec<(OpKind, OpStatus)> = notes.events[4..8]
        .iter()
        .flat_map(|event| &event.memory_ops)
        .map(|op| (op.kind, op.status))
        .collect();
    assert!(done.contains(&(OpKind::Update, OpStatus::Done)), "{done:?}");
    assert!(
        done.contains(&(OpKind::Noop, OpStatus::Skipped)),
        "{done:?}"
    );
    let texts: Vec<&str> = notes.facts.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(texts, ["Ann has an old dog.", "Ben is tall."]);
    // Updates keep what was written before.
    assert!(notes.facts[0].written.len() >= 2);
    let summary = notes.events[3].memory_ops[0].compressed.unwrap();
    assert_eq!(summary.input_tokens as usize, "It rains.".len());
    assert_eq!(notes.summary, "Rain again.");
}
