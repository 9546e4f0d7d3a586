//! Questions about what was just read: asked of the memory right behind it, they pay those who wrote it.

use std::{collections::BTreeSet, sync::Arc};

use recall::{
    ANSWER, CHUNK_QA, Granularity, MEMORY, Task,
    tiny::{Draft, Split},
};
use record::Seed;
use serde_json::json;

use crate::fixture::{Script, config, notes, play, study};

const MOST: usize = 2;

fn tasks() -> Vec<Arc<Task>> {
    let draft = Draft::new(Seed(3), Split::Train, 0, 1);
    let mut dialogue = draft.dialogue();
    dialogue.chunk_questions = draft.chunk_questions(MOST);
    let sessions = dialogue.sessions.len();
    assert!(dialogue.chunk_questions.len() > sessions);
    for asked in &dialogue.chunk_questions {
        assert!(asked.session < sessions);
    }
    let tasks = Task::of_dialogue(&dialogue, Granularity::Sample);
    tasks.into_iter().map(Arc::new).collect()
}

/// Writes every line down, save of the first two months of a year, and answers with all that it is shown.
const WRITE: Script = |role, prompt| {
    let lines = prompt.lines().filter(|line| line.contains(": "));
    let text: Vec<String> = match role {
        MEMORY if prompt.contains("uary)") => return Some("noop".to_owned()),
        MEMORY => lines.map(|line| format!("add: {line}")).collect(),
        _ => lines.map(str::to_owned).collect(),
    };
    Some(text.join("\n"))
};

fn settings(ask: bool) -> serde_json::Value {
    json!({
        "memory": { "extraction": "policy", "compression": "none", "shown_neighbours": 0, "top_k": 50 },
        "prompt": { "instructions": false, "context_tokens": 100000 },
        "reward": { "metric": "substring_exact_match" },
        "step_rewards": { "chunk_qa": { "weight": 1.0, "ask": ask } },
    })
}

#[test]
fn a_turn_is_paid_for_what_is_answered_about_it_right_behind_it() {
    let study = study(config(settings(true)));
    assert_eq!(study.config().roles(), [MEMORY, ANSWER, CHUNK_QA]);
    let played = play(&study, &tasks(), 1, WRITE, 1);
    let calls = &played[0].episodes[0].calls;
    let notes = notes(&played).remove(0);
    assert!(!notes.chunk_answers.is_empty());
    for answer in &notes.chunk_answers {
        let call = &calls[answer.step_id as usize];
        assert_eq!(call.role, CHUNK_QA);
        assert_eq!(call.step_reward, None, "answers about a turn pay others");
        // What was written later was not there yet.
        let written = |now: bool| {
            let events = notes
                .events
                .iter()
                .filter(|event| event.agent_role == MEMORY);
            let events = events.filter(move |event| (event.turn_id <= answer.turn_id) == now);
            let ops = events.flat_map(|event| &event.memory_ops);
            ops.filter_map(|op| op.after_text.clone())
                .collect::<BTreeSet<_>>()
        };
        for text in written(false).difference(&written(true)) {
            assert!(!answer.response.contains(text), "{text}");
        }
    }
    let mut scores = Vec::new();
    for event in notes
        .events
        .iter()
        .filter(|event| event.agent_role == MEMORY)
    {
        let about = notes
            .chunk_answers
            .iter()
            .filter(|answer| answer.turn_id == event.turn_id);
        let grades: Vec<f64> = about.map(|answer| answer.grade.score).collect();
        assert!(grades.len() <= MOST);
        let mean = (!grades.is_empty()).then(|| grades.iter().sum::<f64>() / grades.len() as f64);
        assert_eq!(event.step_rewards.get("chunk_qa").copied(), mean);
        assert_eq!(calls[event.step_id.unwrap() as usize].step_reward, mean);
        // Whoever writes a session down can be asked about it.
        if let Some(mean) = mean {
            assert_eq!(
                mean,
                f64::from(!event.memory_ops.iter().all(|op| op.after_text.is_none()))
            );
            scores.push(mean);
        }
    }
    assert!(scores.contains(&1.0), "{scores:?}");
    // Targets are what the episode is paid for, as ever.
    let targets = notes.events.iter().filter(|event| event.grade.is_some());
    assert!(targets.clone().count() > 0);
    assert!(targets.clone().all(|event| event.agent_role == ANSWER));
}

#[test]
fn without_asking_the_questions_of_the_episode_count_and_no_call_is_made() {
    let study = study(config(settings(false)));
    assert_eq!(study.config().roles(), [MEMORY, ANSWER]);
    let notes = notes(&play(&study, &tasks(), 1, WRITE, 1)).remove(0);
    assert_eq!(notes.chunk_answers, []);
    let scored = notes
        .events
        .iter()
        .filter(|event| event.step_rewards.contains_key("chunk_qa"));
    assert!(scored.count() > 0);
}
