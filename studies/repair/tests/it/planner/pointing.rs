//! Planners that are shown suspects and point at them, and the lessons that teach it.

use std::sync::Arc;

use record::{Outcome, Seed};
use repair::{
    Remembered, Repair, Task,
    action::ActionKind,
    environment::{CountTokens, StopReason},
    metrics::notes_of,
    planner::PlannerKind,
    play::Notes,
    tiny::{Lessons, Mix},
    wire::{Reading, Reply, WireFormat},
};
use rollout::{Options, Roles, Runner};

use super::stage::{RIGHT, Stage, WRONG, block, task};

const TOTAL: &str = "total in calc/core.py: short 1, failing all 1, passing no 1, suspicion highest 1, named 1, raised \
                     elsewhere 1\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspects_are_those_that_failing_tests_run_and_are_named_by_their_number() {
    let Some(mut stage) = Stage::new(&[WRONG, RIGHT]).await else {
        return;
    };
    let environment = &mut stage.config.environment;
    environment.observation.suspects = 4;
    environment.guards.repair_needs_memory = false;
    environment.end.verified_repair = true;
    let point = |number: &str| block("repair", &[("subplan", "mend it"), ("focus_ids", number)]);
    let replies = [point("[\"2\"]"), point("[\"1\"]"), point("\"#1\"")];
    let notes = stage.play(&replies.each_ref().map(String::as_str)).await;
    assert!(
        notes.begin.ends_with(&format!("# Suspects\n{TOTAL}")),
        "{}",
        notes.begin
    );
    assert!(!notes.begin.contains("Guidance"));
    assert_eq!(notes.steps[0].info["error"], "unknown-node");
    assert_eq!(notes.stop_reason, Some(StopReason::Repaired));
    assert!(notes.resolved);
    let asked = stage.patches.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    for request in asked.iter() {
        assert_eq!(request.targets[0].path, "calc/core.py");
        assert_eq!((request.targets[0].start, request.targets[0].end), (21, 26));
    }
}

async fn played(stage: &Stage, episodes: u32, remembering: bool) -> Vec<Notes> {
    let testbed = stage.place.testbed.clone();
    let study = Repair::new(
        stage.config.clone(),
        Arc::new(move |_: &Task| Ok(testbed.clone())),
        stage.patches.clone(),
        Arc::new(str::len),
    );
    let study = match remembering {
        true => study.remembering(Arc::new(Remembered::new(1))),
        false => study,
    };
    let runner = Runner::new(Arc::new(study), Roles::default(), Options::default());
    let tasks = [Arc::new(task("one"))];
    let groups = runner.play(0, &tasks, episodes, Seed(7), |_| {}).await;
    let groups = groups.unwrap();
    let notes = groups[0]
        .episodes
        .iter()
        .map(|episode| match &episode.outcome {
            Outcome::Graded { .. } => notes_of(episode).unwrap(),
            other => panic!("{other:?}"),
        });
    notes.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_remembered_is_what_was_found() {
    // Whoever asks a second time would be given nothing.
    let Some(mut stage) = Stage::new(&[RIGHT]).await else {
        return;
    };
    stage.config.planner.kind = PlannerKind::Suspicion;
    let environment = &mut stage.config.environment;
    environment.observation.suspects = 4;
    environment.guards.repair_needs_memory = false;
    environment.end.verified_repair = true;
    let all = played(&stage, 4, true).await;
    assert_eq!(stage.patches.asked.lock().unwrap().len(), 1);
    for notes in &all {
        assert!(notes.resolved);
        assert_eq!(notes, &all[0]);
    }
    *stage.patches.left.lock().unwrap() = vec![RIGHT.to_owned()];
    assert_eq!(played(&stage, 1, false).await, all[..1]);
}

fn lessons(mix: Mix) -> Lessons {
    let mut config = repair::RepairConfig::default();
    config.planner.kind = PlannerKind::Model;
    config.planner.instructions = false;
    config.environment.observation.suspects = 8;
    let count: CountTokens = Arc::new(|text: &str| text.len() / 4);
    Lessons::new(&config, count, mix, Seed(3))
}

const NOBODY: Mix = Mix {
    suspicion: 0.0,
    passing: 0.0,
    named: 0.0,
    raised: 0.0,
    short: 0.0,
    long: 0.0,
    chance: 0.0,
};

#[test]
fn lessons_are_actions_that_point_at_somebody_listed_for_the_reason_they_say() {
    let grounds = [
        (
            Mix {
                suspicion: 1.0,
                ..NOBODY
            },
            "suspicion",
            "suspicion highest",
        ),
        (
            Mix {
                named: 1.0,
                ..NOBODY
            },
            "issue",
            ", named",
        ),
        (
            Mix {
                raised: 1.0,
                ..NOBODY
            },
            "raised",
            "raised inside",
        ),
        (
            Mix {
                passing: 1.0,
                ..NOBODY
            },
            "passing",
            "passing no",
        ),
        (
            Mix {
                short: 1.0,
                ..NOBODY
            },
            "size",
            ": tiny",
        ),
        (
            Mix {
                long: 1.0,
                ..NOBODY
            },
            "size",
            ": long",
        ),
        (
            Mix {
                chance: 1.0,
                ..NOBODY
            },
            "any",
            "",
        ),
    ];
    let mut places = [0; 9];
    for (mix, ground, sign) in grounds {
        let lessons = lessons(mix);
        for index in 0..150 {
            let lesson = lessons.lesson(index);
            assert_eq!(lesson, lessons.lesson(index));
            let shown = &lesson.prompt[0].content;
            let reply = Reply::read(&lesson.answer, WireFormat::Text, Reading::Strict);
            let action = reply.action.unwrap();
            let (said, what) = action.thought.split_once(' ').unwrap();
            assert_eq!(said, ground);
            let ActionKind::Repair(repair) = action.kind else {
                panic!("{}", lesson.answer);
            };
            let [number] = &repair.focus_ids[..] else {
                panic!("{}", lesson.answer);
            };
            let line = shown
                .lines()
                .find(|line| line.ends_with(&format!(" {number}")));
            let line = line.unwrap_or_else(|| panic!("{number} is not in {shown}"));
            assert!(what == *number || line.contains(what), "{what}: {line}");
            assert!(
                line.contains(sign) || !shown.contains(sign),
                "{line} of {shown}"
            );
            places[number.parse::<usize>().unwrap()] += 1;
        }
    }
    assert!(places[1..].iter().all(|n| *n > 0), "{places:?}");
}

#[test]
fn lessons_speak_of_the_training_packages_and_of_packages_that_there_are_not() {
    let lessons = lessons(Mix::default());
    let mut made_up = 0;
    for index in 0..200 {
        let lesson = lessons.lesson(index);
        let shown = &lesson.prompt[0].content;
        let lines = shown
            .lines()
            .filter_map(|line| line.split_once(" in ")?.1.split_once('/'));
        let packages: std::collections::BTreeSet<&str> =
            lines.map(|(package, _)| package).collect();
        assert_eq!(packages.len(), 1, "{shown}");
        let package = packages.first().unwrap();
        match repair::PACKAGES.iter().find(|known| known.name == *package) {
            Some(known) => assert!(known.is_for_training, "{shown}"),
            None => made_up += 1,
        }
    }
    assert!((40..160).contains(&made_up), "{made_up} of 200");
}
