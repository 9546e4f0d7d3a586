//! Walks through turns: every target is reached, and nothing depends on order or concurrency.

use std::sync::Arc;

use proptest::prelude::*;
use recall::{ANSWER, Dialogue, Granularity, Question, Recall, Session, Task, TurnRole, Utterance};
use record::Outcome;
use serde_json::json;

use crate::fixture::{config, notes, play, study, tasks};

/// `sessions` sessions and `questions` questions, all of them alike.
fn dialogue(sample: usize, sessions: usize, questions: usize) -> Dialogue {
    let session = |number: usize| Session {
        session_id: Some(format!("s{number}")),
        timestamp: Some(format!("day {number}")),
        utterances: vec![Utterance {
            source_id: Some(format!("u{number}")),
            speaker: Some("Ann".to_owned()),
            text: format!("The code of box {number} is {}.", 100 + number),
        }],
    };
    let question = |number: usize| {
        let text = format!("What is the code of box {number}?");
        Question::new(
            &format!("q{number}"),
            &text,
            "code",
            vec![format!("{}", 100 + number)],
        )
    };
    Dialogue {
        sample_id: sample.to_string(),
        data_source: "boxes".to_owned(),
        split: "test".to_owned(),
        document: sample.to_string(),
        metric: None,
        sessions: (0..sessions).map(session).collect(),
        questions: (0..questions).map(question).collect(),
        chunk_questions: Vec::new(),
        metadata: Default::default(),
    }
}

/// Answers with the code of the asked box if the prompt shows it.
fn look_up(role: &str, prompt: &str) -> Option<String> {
    assert_eq!(role, ANSWER);
    let number = prompt.rsplit("box ").next()?.split('?').next()?;
    let told = format!("The code of box {number} is ");
    let code = prompt.split(&told).nth(1).map(|rest| &rest[..3]);
    Some(code.unwrap_or("not said").to_owned())
}

fn by_rule() -> Arc<Recall> {
    study(config(json!({ "memory": { "extraction": "rule" } })))
}

#[test]
fn every_target_is_reached_whatever_comes_before_it() {
    let shapes = [(0, 1), (1, 1), (4, 1), (4, 2), (9, 3), (0, 2)];
    let tasks: Vec<Arc<Task>> = shapes
        .iter()
        .enumerate()
        .flat_map(|(sample, &(sessions, questions))| {
            Task::of_dialogue(&dialogue(sample, sessions, questions), Granularity::Sample)
        })
        .map(Arc::new)
        .collect();
    let groups = play(&by_rule(), &tasks, 1, look_up, 4);
    for ((sessions, questions), notes) in shapes.into_iter().zip(notes(&groups)) {
        let of = |role| {
            notes
                .events
                .iter()
                .filter(move |event| event.turn_role == role)
        };
        assert_eq!(of(TurnRole::History).count(), sessions);
        assert_eq!(of(TurnRole::Target).count(), questions);
        for (number, event) in of(TurnRole::Target).enumerate() {
            let grade = event.grade.as_ref().unwrap();
            let told = f64::from(u8::from(number < sessions));
            assert_eq!(grade.exact_match, told, "{sessions} sessions: {event:?}");
        }
    }
}

#[test]
fn one_episode_a_question_or_one_a_dialogue_answer_alike() {
    let dialogue = dialogue(0, 5, 3);
    let whole: Vec<_> = Task::of_dialogue(&dialogue, Granularity::Sample)
        .into_iter()
        .map(Arc::new)
        .collect();
    let apart: Vec<_> = Task::of_dialogue(&dialogue, Granularity::Qa)
        .into_iter()
        .map(Arc::new)
        .collect();
    assert_eq!((whole.len(), apart.len()), (1, 3));
    let ids: Vec<&str> = apart.iter().map(|task| task.id.0.as_str()).collect();
    assert_eq!(
        ids,
        ["boxes/test/0-q0", "boxes/test/0-q1", "boxes/test/0-q2"]
    );
    let answers = |tasks: &[Arc<Task>]| -> Vec<Option<String>> {
        let notes = notes(&play(&by_rule(), tasks, 1, look_up, 2));
        let events = notes.into_iter().flat_map(|notes| notes.events);
        events
            .filter(|event| event.turn_role == TurnRole::Target)
            .map(|event| event.response)
            .collect()
    };
    assert_eq!(answers(&whole), answers(&apart));
}

#[test]
fn a_prompt_that_no_policy_takes_ends_its_own_episode_alone() {
    let tasks: Vec<Arc<Task>> = (0..2)
        .flat_map(|sample| Task::of_dialogue(&dialogue(sample, sample, 1), Granularity::Sample))
        .map(Arc::new)
        .collect();
    // Box 0 is told of in the second dialogue only; the script has no word for the first.
    let groups = play(
        &by_rule(),
        &tasks,
        3,
        |_, prompt| prompt.contains("The code").then(|| "100".to_owned()),
        4,
    );
    let faulted = &groups[0].episodes;
    assert!(faulted.iter().all(|one| one.outcome.reward().is_none()));
    let graded = &groups[1].episodes;
    assert!(
        graded
            .iter()
            .all(|one| matches!(one.outcome, Outcome::Graded { .. }))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Order of the tasks and concurrency change nothing of an episode.
    #[test]
    fn episodes_depend_on_their_task_alone(turn in 0usize..6, concurrency in 1usize..9) {
        let given = tasks(6, Granularity::Sample);
        let mut turned = given.clone();
        turned.rotate_left(turn);
        let answer = |_: &str, prompt: &str| Some(prompt.lines().last()?.to_owned());
        let first = notes(&play(&by_rule(), &given, 1, answer, 1));
        let mut second = notes(&play(&by_rule(), &turned, 1, answer, concurrency));
        second.rotate_right(turn);
        prop_assert_eq!(first, second);
    }
}
