//! When episodes end, and what that costs; and every malformed reply in an episode.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use record::{Episode, EpisodeId, Fault, Group, Outcome, TaskId};
use repair::{
    Task,
    environment::{EnvironmentConfig, StopReason},
    metrics,
    patch_model::{PatchRequest, Proposal},
    play::Notes,
    repairer::{RepairRecord, Repairer, Selected, TestReport},
    wire::{Reading, WireFormat},
    workplace::Workplace,
};
use rollout::Cx;
use serde_json::json;

use crate::planner::{
    replies::cases,
    stage::{RIGHT, Stage, block, task},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_malformed_reply_has_its_reward_and_ends_nothing() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    for format in [WireFormat::Text, WireFormat::Tools] {
        for reading in [Reading::Strict, Reading::Tolerant] {
            let cases: Vec<_> = cases()
                .into_iter()
                .filter(|case| case.format == format && case.reading == reading)
                .collect();
            stage.config.planner.format = format;
            stage.config.planner.reading = reading;
            stage.config.environment.end.max_steps = Some(cases.len() as u32 + 1);
            let replies: Vec<&str> = cases.iter().map(|case| case.reply.as_str()).collect();
            let notes = stage.play(&replies).await;
            assert_eq!(notes.steps.len(), cases.len() + 1);
            for (case, step) in cases.iter().zip(&notes.steps) {
                assert_eq!(
                    step.info["error"].as_str(),
                    case.code.as_deref(),
                    "{}",
                    case.name
                );
                assert!(
                    (step.reward - case.reward).abs() < 1e-9,
                    "{}: {}",
                    case.name,
                    step.reward
                );
                assert_eq!(step.info["done"], false);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn episodes_end_at_the_limits_that_were_asked_for() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    let noop = block("noop", &[]);
    let noops = [noop.as_str(); 60];
    // What the recipe says, before what the task says, before 40; no floor above any of them.
    let mut task = task("one");
    assert_eq!(stage.play_task(&task, &noops).await.steps.len(), 40);
    task.public.max_steps = Some(5);
    assert_eq!(stage.play_task(&task, &noops).await.steps.len(), 5);
    stage.config.environment.end.max_steps = Some(8);
    let notes = stage.play_task(&task, &noops).await;
    assert_eq!(
        (notes.steps.len(), notes.stop_reason),
        (8, Some(StopReason::MaxSteps))
    );
    let reward = notes.reward();
    assert_eq!(reward.components["timeout"], -0.5);
    assert!((reward.components["step"] + 0.08).abs() < 1e-9);
    assert!(reward.total < 0.0 && !notes.resolved);
    assert!(!notes.steps[6].components.contains_key("timeout"));

    stage.config.environment.end.repository_operations = 2;
    let find = block("explore", &[("query", "total")]);
    let replies = [&noop, &find, &noop, &find, &find].map(String::as_str);
    let notes = stage.play(&replies).await;
    assert_eq!(
        (notes.steps.len(), notes.stop_reason),
        (4, Some(StopReason::RepositoryOperations))
    );
    assert_eq!(notes.steps[3].info["stop_reason"], "repository_operations");

    stage.config.environment = EnvironmentConfig::default();
    stage.config.environment.end.failed_submit = true;
    let notes = stage.play(&[&block("submit", &[])]).await;
    assert_eq!(
        (notes.steps.len(), notes.stop_reason),
        (1, Some(StopReason::FailedSubmit))
    );
    assert_eq!(notes.reward().total, -1.0);
    assert!(!notes.resolved);
}

/// Applies the right patch and never comes back.
#[derive(Debug)]
struct Endless;

#[async_trait]
impl Repairer for Endless {
    async fn repair(
        &self,
        _: &Task,
        _: &PatchRequest,
        workplace: &mut Workplace,
        _: &mut Cx,
    ) -> Result<RepairRecord, Fault> {
        let patch = code::Patch::parse(RIGHT.as_bytes()).unwrap();
        workplace.apply(&patch).await?.unwrap();
        std::future::pending().await
    }

    async fn propose(
        &self,
        _: &Task,
        _: &PatchRequest,
        _: &mut Workplace,
        _: &mut Cx,
    ) -> Result<(RepairRecord, Option<Proposal>), Fault> {
        std::future::pending().await
    }

    async fn settle(
        &self,
        _: &Task,
        _: &PatchRequest,
        _: Proposal,
        _: &mut Workplace,
        _: &mut Cx,
    ) -> Result<RepairRecord, Fault> {
        std::future::pending().await
    }

    async fn test(&self, _: &Task, _: Selected, _: &mut Workplace) -> Result<TestReport, Fault> {
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_episode_whose_time_is_over_has_failed_and_is_no_fault() {
    let Some(mut stage) = Stage::new(&[RIGHT]).await else {
        return;
    };
    let repair = block(
        "repair",
        &[
            ("subplan", "mend"),
            ("focus_ids", "[\"file:calc/core.py\"]"),
        ],
    );
    let commit = block("memory", &[("intent", "commit")]);
    let find = block("explore", &[("query", "symbol:total")]);
    let replies = [&find, &commit, &repair].map(String::as_str);
    // In time, however little that is of so much.
    stage.config.environment.end.max_seconds = Some(1e9);
    let submit = block("submit", &[]);
    let in_time = [replies.as_slice(), &[submit.as_str()]].concat();
    let notes = stage.play(&in_time).await;
    assert!(notes.resolved, "{:?}", notes.steps.last());

    stage.repairer = Some(Arc::new(Endless));
    stage.config.environment.end.max_seconds = Some(5.0);
    stage.config.environment.rewards.timeout = 0.25.try_into().unwrap();
    let notes = stage.play(&replies).await;
    assert_eq!(notes.stop_reason, Some(StopReason::Timeout));
    assert_eq!(notes.steps.len(), 3);
    // What the repair had applied was not tested, and is nobody's answer.
    assert!(!notes.resolved && !notes.gave_up && notes.patch.is_empty());
    let last = notes.steps.last().unwrap();
    assert_eq!(last.info["stop_reason"], "timeout");
    assert_eq!(
        (&last.info["kind"], &last.info["done"]),
        (&"repair".into(), &true.into())
    );
    assert_eq!(last.components["timeout"], -0.25);
    assert_eq!(notes.faults, BTreeMap::new());
    let reward = notes.reward();
    assert!((reward.total + 0.25 + 0.03).abs() < 1e-9, "{reward:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_is_over_too_while_nobody_does_anything() {
    let Some(mut stage) = Stage::new(&[]).await else {
        return;
    };
    // Over before the first reply is read; as a step that is no action ends the episode, so does any.
    stage.config.environment.end.max_seconds = Some(1e-9);
    let notes = stage.play(&[&block("noop", &[])]).await;
    assert_eq!(
        (notes.stop_reason, notes.steps.len()),
        (Some(StopReason::Timeout), 1)
    );
    assert_eq!(notes.reward().components["timeout"], -0.5);
}

/// An episode that ended so, in so many runs of tests.
fn episode(group: u32, repo: &str, stop_reason: Option<StopReason>, test_runs: usize) -> Group {
    let notes = Notes {
        repo: repo.to_owned(),
        family: Some("slice".to_owned()),
        stop_reason,
        gave_up: stop_reason.is_none(),
        resolved: stop_reason == Some(StopReason::Repaired),
        test_runs,
        ..Notes::default()
    };
    let task = TaskId(format!("task-{group}"));
    let id = EpisodeId {
        step: 0,
        group,
        member: 0,
    };
    let episodes = vec![Episode {
        id,
        task: task.clone(),
        calls: Vec::new(),
        outcome: Outcome::Graded {
            reward: notes.reward(),
        },
        retries: 0,
        notes: json!(notes),
    }];
    Group { task, episodes }
}

#[test]
fn ends_and_costs_are_measured_by_group() {
    let groups = [
        episode(0, "bag", Some(StopReason::Repaired), 10),
        episode(1, "bag", Some(StopReason::Timeout), 30),
        episode(2, "cup", None, 7),
        episode(3, "cup", Some(StopReason::Repaired), 8),
    ];
    let measured = metrics::of_evaluation(&groups);
    let value = |name: &str| measured.get(name).map(|found| found.value);
    assert_eq!(value("ended/timeout"), Some(0.25));
    assert_eq!(value("ended/gave_up"), Some(0.25));
    assert_eq!(value("ended/repaired"), Some(0.5));
    assert_eq!(value("ended/max_steps"), None);
    assert_eq!(value("test_runs/repo/bag"), Some(20.0));
    assert_eq!(value("test_runs/repo/cup"), Some(7.5));
    assert_eq!(value("test_runs/family/slice"), Some(13.75));
    assert_eq!(value("resolved/repo/cup"), Some(0.5));
    // Of the last nobody knows how long it took.
    let seconds = groups.iter().zip([2.0, 4.0, 12.0]);
    let seconds = seconds.map(|(group, seconds)| (group.episodes[0].id, seconds));
    let timed = metrics::timings_of_evaluation(&groups, &seconds.collect());
    let value = |name: &str| timed[name].value;
    assert_eq!((value("seconds"), value("seconds/repo/bag")), (6.0, 3.0));
    assert_eq!(value("seconds/repo/cup"), 12.0);
    assert!(timed["seconds"].low <= 6.0 && timed["seconds"].high >= 6.0);
}
