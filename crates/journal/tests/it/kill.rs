//! A writer that is killed again and again ends with what an undisturbed one ends with.

use std::{
    env, fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use journal::{RunDir, RunReader};
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{self, RECIPE, started};

const CHILD: &str = "ETUDE_JOURNAL_TEST_RUN";
const STEPS: u64 = 30;

/// The whole job of the writer, whatever is done already.
fn write_the_rest(path: &Path) {
    let (run, replay) = if path.join("journal.log").exists() {
        RunDir::open(path).unwrap()
    } else {
        let run = RunDir::create(path, RECIPE, started()).unwrap();
        let replay = run.replay();
        (run, replay)
    };
    if replay.finished() {
        return;
    }
    run.phase_started("rl").unwrap();
    let done = replay.last_step("rl").map_or(0, |step| step.step);
    if done > 0 && replay.checkpoint(&format!("rl-{done}")).is_none() {
        // Killed between the step and its checkpoint.
        run.checkpoint(&format!("rl-{done}"), "rl", done, |dir| {
            fixture::fill(dir, done)
        })
        .unwrap();
    }
    run.prune("rl", 2).unwrap();
    for number in done + 1..=STEPS {
        run.event(
            "group_done",
            json!({"step": number}).as_object().unwrap().clone(),
        )
        .unwrap();
        run.test_run(&fixture::test_run()).unwrap();
        let checkpoint_first = number % 2 == 0;
        let name = format!("rl-{number}");
        if checkpoint_first {
            run.checkpoint(&name, "rl", number, |dir| fixture::fill(dir, number))
                .unwrap();
        }
        run.commit_step(fixture::step("rl", number), Some(&fixture::groups(number)))
            .unwrap();
        if !checkpoint_first {
            run.checkpoint(&name, "rl", number, |dir| fixture::fill(dir, number))
                .unwrap();
        }
        run.prune("rl", 2).unwrap();
    }
    if replay.evaluation("rl").is_none() {
        run.commit_evaluation(fixture::evaluation("rl"), Some(&fixture::groups(0)))
            .unwrap();
    }
    run.phase_ended("rl", 0).unwrap();
    run.finish().unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test kills a process of its own making"
)]
fn start_writer(path: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "kill::a_writer_killed_at_any_moment_loses_and_repeats_nothing",
        ])
        .env(CHILD, path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_writer_killed_at_any_moment_loses_and_repeats_nothing() {
    if let Some(path) = env::var_os(CHILD) {
        return write_the_rest(Path::new(&path));
    }
    let dir = TempDir::new().unwrap();
    let undisturbed = dir.path().join("undisturbed");
    write_the_rest(&undisturbed);
    let killed = dir.path().join("killed");
    let size = |path: &Path| fs::metadata(path.join("journal.log")).map_or(0, |file| file.len());
    let mut kills = 0_u64;
    loop {
        let before = size(&killed);
        let mut child = start_writer(&killed);
        // Every sitting gets a little further before it is killed, by a distance that falls on
        // records, episodes and checkpoints alike.
        let enough = before + 300 + (kills * 613) % 1100;
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if size(&killed) >= enough {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            thread::yield_now();
        };
        if let Some(status) = ended {
            assert!(status.success(), "the writer failed: {status}");
            break;
        }
        kills += 1;
    }
    assert!(kills >= 5, "only {kills} kills");

    let (reader, replay) = RunDir::open(&killed).unwrap();
    assert!(replay.finished());
    let steps: Vec<u64> = replay.steps("rl").map(|step| step.step).collect();
    assert_eq!(steps, (1..=STEPS).collect::<Vec<_>>());
    for step in replay.steps("rl") {
        let groups = reader
            .read_episodes(step.episodes.as_ref().unwrap())
            .unwrap();
        assert_eq!(groups, fixture::groups(step.step));
    }
    let other = RunReader::open(&undisturbed).unwrap();
    let digests = |replay: &journal::Replay| {
        let found = replay.checkpoints().into_iter();
        found
            .map(|one| (one.name.clone(), one.digest.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(digests(&replay), digests(other.replay()));
    assert_eq!(
        replay.metrics_without_timings(),
        other.replay().metrics_without_timings()
    );
    assert!(!replay.metrics_without_timings().contains("timing_s"));
    let (ours, theirs) = (fixture::tree(&killed), fixture::tree(&undisturbed));
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        theirs.keys().collect::<Vec<_>>()
    );
    for (path, content) in &ours {
        let timed = [
            "journal.log",
            "summary.json",
            "logs/events.jsonl",
            "logs/test_runs.jsonl",
        ];
        assert!(
            timed.iter().any(|name| path == Path::new(name)) || *content == theirs[path],
            "{path:?}"
        );
    }
    let runs = fs::read_to_string(killed.join("logs/test_runs.jsonl")).unwrap();
    assert_eq!(runs.lines().count() as u64, STEPS);
}
