//! The optional judge: its verdict is the score, its failure a fault, and what it said before is not asked again.

use std::sync::Arc;

use recall::{Granularity, JUDGE, Recall};
use record::{Group, Outcome};
use rollout::Study;
use serde_json::json;

use crate::fixture::{Script, config, notes, play, study, tasks};

fn judged() -> Arc<Recall> {
    study(config(json!({"reward": {"judge": true}})))
}

fn played(study: &Arc<Recall>, script: Script) -> Vec<Group> {
    play(study, &tasks(2, Granularity::Sample), 2, script, 4)
}

/// Everybody answers "something"; the judge finds it right where the question has an even length.
fn lenient(role: &str, prompt: &str) -> Option<String> {
    if role != JUDGE {
        return Some("something".to_owned());
    }
    assert!(prompt.contains("Response: something"), "{prompt}");
    let question = prompt
        .lines()
        .find_map(|line| line.strip_prefix("Question: "));
    let question = question.unwrap();
    Some(if is_even(question) { "Yes." } else { "no" }.to_owned())
}

fn is_even(question: &str) -> bool {
    question.trim().len().is_multiple_of(2)
}

#[test]
fn the_verdict_is_the_score_and_the_metrics_stay() {
    let study = judged();
    assert!(study.config().roles().contains(&JUDGE));
    let groups = played(&study, lenient);
    let mut verdicts = [0, 0];
    for (episode, notes) in groups
        .iter()
        .flat_map(|group| &group.episodes)
        .zip(notes(&groups))
    {
        for event in &notes.events {
            let Some(grade) = &event.grade else { continue };
            let judged = grade.judged.as_ref().unwrap();
            let right = is_even(&event.observation);
            assert_eq!(
                (judged.right, grade.score),
                (right, f64::from(right)),
                "{}",
                event.observation
            );
            assert_eq!(grade.exact_match, 0.0);
            assert_eq!(episode.calls[judged.step_id.unwrap() as usize].role, JUDGE);
            verdicts[usize::from(right)] += 1;
        }
    }
    assert!(verdicts[0] > 0 && verdicts[1] > 0, "{verdicts:?}");
}

#[test]
fn what_is_neither_yes_nor_no_is_a_fault() {
    let groups = played(&judged(), |role, _| {
        Some(
            if role == JUDGE {
                "hard to say"
            } else {
                "something"
            }
            .to_owned(),
        )
    });
    for episode in groups.iter().flat_map(|group| &group.episodes) {
        let Outcome::GraderFault { message } = &episode.outcome else {
            panic!("{:?}", episode.outcome);
        };
        assert!(message.contains("hard to say"), "{message}");
    }
}

#[test]
fn earlier_steps_are_remembered_and_the_running_one_is_not() {
    let study = judged();
    let first = played(&study, lenient);
    // Two members asked the same in one step: both asked the judge.
    let calls = |groups: &[Group]| {
        let episodes = groups.iter().flat_map(|group| &group.episodes);
        episodes.flat_map(|episode| episode.calls_of(JUDGE)).count()
    };
    let answers: usize = notes(&first)
        .iter()
        .map(|notes| {
            notes
                .events
                .iter()
                .filter(|event| event.grade.is_some())
                .count()
        })
        .sum();
    assert_eq!(calls(&first), answers);
    study.step_metrics(&first, &Default::default());
    let second = played(&study, lenient);
    assert_eq!(calls(&second), 0);
    let rewards = |groups: &[Group]| -> Vec<f64> {
        let episodes = groups.iter().flat_map(|group| &group.episodes);
        episodes
            .map(|episode| episode.outcome.reward().unwrap().total)
            .collect()
    };
    assert_eq!(rewards(&first), rewards(&second));
    // A resumed run is shown the episodes of the steps before, and then knows as much.
    let resumed = judged();
    first
        .iter()
        .flat_map(|group| &group.episodes)
        .for_each(|episode| resumed.replay(episode));
    assert_eq!(
        serde_json::to_value(played(&resumed, lenient)).unwrap(),
        serde_json::to_value(second).unwrap()
    );
}

#[test]
fn nobody_judges_unless_asked_to() {
    let study = study(config(json!({})));
    let groups = played(&study, lenient);
    for notes in notes(&groups) {
        assert!(
            notes
                .events
                .iter()
                .flat_map(|event| &event.grade)
                .all(|grade| grade.judged.is_none())
        );
    }
    assert!(!study.config().roles().contains(&JUDGE));
}
