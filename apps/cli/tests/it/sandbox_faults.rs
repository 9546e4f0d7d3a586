//! The sandbox dies under a run: no reward comes of it, and past a threshold the step is an error.

use std::{path::Path, process::Stdio, thread::sleep, time::Duration};

use record::{Episode, Outcome, Seed};
use tempfile::TempDir;

use crate::{
    etude::{MOMENT, assert_success, committed, etude, last_step, resume, resume_to_end, stderr},
    processes::{signal, supervisor_of},
    runs::{RL, final_weights, groups, played, series, supervised_copy, uninterrupted},
};

/// At most one a step, so that no program is hit again when it is retried.
const KILLS: u64 = 25;
/// Kills that the run must have seen.
const KILLS_NEEDED: u64 = 8;

#[test]
fn a_dying_supervisor_costs_retries_and_no_reward() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    supervised_copy(&run);
    let mut child = resume(directory.path(), &run);
    let (mut kills, mut last) = (0, 0);
    while kills < KILLS && child.try_wait().unwrap().is_none() {
        if last_step(&run, RL) > last
            && let Some(supervisor) = supervisor_of(child.id())
        {
            let pause = Seed(6).stream("pause", kills).0 % 40;
            sleep(Duration::from_millis(pause));
            signal("KILL", supervisor.id);
            kills += 1;
            last = last_step(&run, RL);
        }
        sleep(MOMENT);
    }
    assert!(child.wait().unwrap().success());
    assert!(kills >= KILLS_NEEDED, "the run saw only {kills} kills");

    let total = |metric: &str| series(&run, metric).iter().sum::<f64>();
    let retries = total("rollout/retries");
    assert!(retries > 0.0, "no kill hit a program");
    assert!(total("sandbox/errors") >= retries);
    assert_eq!(total("rollout/infra_faults"), 0.0);
    assert!(
        series(uninterrupted(), "rollout/retries")
            .iter()
            .all(|retries| *retries == 0.0)
    );
    assert_no_reward_without_a_verdict(&run);
    // Every program was judged in the end, so the critic learnt the same.
    assert!(
        played(&run) == played(uninterrupted()),
        "a fault changed an episode"
    );
    assert!(final_weights(&run) == final_weights(uninterrupted()));
}

#[test]
fn a_sandbox_that_stays_dead_stops_the_step_and_the_run_can_go_on() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    supervised_copy(&run);
    let arguments = ["train".as_ref(), "--resume".as_ref(), run.as_os_str()];
    let mut child = etude(directory.path(), arguments)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while child.try_wait().unwrap().is_none() {
        if last_step(&run, RL) >= 2
            && let Some(supervisor) = supervisor_of(child.id())
        {
            signal("KILL", supervisor.id);
        }
        sleep(MOMENT);
    }
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(
        last.starts_with("etude: ") && last.contains("without a verdict"),
        "{said}"
    );
    assert!(
        last.contains("rollout.max_fault_share") && last.contains("sandbox"),
        "{said}"
    );
    assert!(!said.contains("panicked"), "{said}");
    let stopped_after = last_step(&run, RL);
    assert!(stopped_after >= 2 && !committed(&run).finished());

    assert_success(&resume_to_end(directory.path(), &run));
    assert_no_reward_without_a_verdict(&run);
    let steps: Vec<u64> = committed(&run).steps(RL).map(|step| step.step).collect();
    assert_eq!(
        steps,
        (1..=last_step(uninterrupted(), RL)).collect::<Vec<u64>>()
    );
}

/// A graded episode has a verdict that ran every test, unless the gate ended it before.
fn assert_no_reward_without_a_verdict(run: &Path) {
    let replay = committed(run);
    let episodes: Vec<Episode> = replay
        .steps(RL)
        .flat_map(|step| groups(run, step))
        .flat_map(|group| group.episodes)
        .collect();
    assert!(!episodes.is_empty());
    for episode in &episodes {
        let Outcome::Graded { reward } = &episode.outcome else {
            assert!(episode.notes.is_null());
            continue;
        };
        let verdict = &episode.notes["verdict"];
        if episode.notes["gate_ok"] == true {
            let n_cases = verdict["cases"].as_array().map_or(0, Vec::len);
            assert!(
                n_cases > 0,
                "episode {} is graded without a verdict",
                episode.id
            );
            let share = verdict["n_passed"].as_f64().unwrap() / n_cases as f64;
            assert_eq!(reward.total, share, "episode {}", episode.id);
            assert_ne!(verdict["status"], "no_tests");
        } else {
            assert!(
                verdict.is_null() && reward.total == 0.0,
                "episode {}",
                episode.id
            );
        }
    }
}
