//! When episodes end, and what that costs; and every malformed reply in an episode.

use repair::{
    environment::{EnvironmentConfig, StopReason},
    wire::{Reading, WireFormat},
};

use crate::planner::{
    replies::cases,
    stage::{Stage, block, task},
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
