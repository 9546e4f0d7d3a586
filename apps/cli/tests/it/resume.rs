//! `kill -9` at random moments of reinforcement, and going on each time: nothing is lost, nothing is
//! there twice, and the end is that of the run that nobody disturbed.

use std::{collections::BTreeSet, fs, thread::sleep, time::Duration};

use journal::Entry;
use record::Seed;
use tempfile::TempDir;

use crate::{
    etude::{assert_success, committed, last_step, resume, resume_to_end, wait_while_running},
    processes::{assert_all_end, descendants},
    runs::{
        RL, assert_same_metrics, files, final_weights, played, series, supervised_copy,
        uninterrupted, weights,
    },
};

const KILLS: u64 = 20;
/// Kills that must have hit a process that had opened the run.
const KILLS_INSIDE: usize = 15;

#[test]
fn twenty_kills_change_nothing() {
    let directory = TempDir::new().unwrap();
    let scratch = directory.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let run = directory.path().join("run");
    supervised_copy(&run);

    let mut inside = 0;
    for kill in 0..KILLS {
        let luck = Seed(20).stream("kill", kill);
        let resumed_before = n_resumed(&run);
        let step_before = last_step(&run, RL);
        let mut child = resume(&scratch, &run);
        // Some die while they start or do updates again, most after new steps: at a random distance
        // behind a commit, so in sampling, judging, the update, the checkpoint or the next commit.
        let new_steps = luck.stream("steps", 0).0 % 3;
        let reached = wait_while_running(&mut child, || {
            if kill % 5 == 0 {
                return true;
            }
            n_resumed(&run) > resumed_before && last_step(&run, RL) >= step_before + new_steps
        });
        sleep(Duration::from_micros(luck.stream("pause", 0).0 % 120_000));
        let children = descendants(child.id());
        assert!(
            reached && child.try_wait().unwrap().is_none(),
            "kill {kill} came after the end"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert_all_end(&children);
        assert!(
            !committed(&run).finished(),
            "kill {kill} came after the end"
        );
        inside += usize::from(n_resumed(&run) > resumed_before);
    }
    assert!(
        inside >= KILLS_INSIDE,
        "only {inside} of {KILLS} kills hit a process inside the run"
    );
    assert_success(&resume_to_end(&scratch, &run));

    let expected = uninterrupted();
    assert_the_recipe_learns(expected);
    let (here, there) = (committed(&run), committed(expected));
    assert!(here.finished());
    assert_same_metrics(&run, expected);
    assert_eq!(
        here.evaluation("rl").unwrap().metrics,
        there.evaluation("rl").unwrap().metrics
    );
    assert!(
        final_weights(&run) == final_weights(expected),
        "the final weights differ"
    );
    assert!(played(&run) == played(expected), "the episodes differ");
    assert_every_step_and_member_once(&run);
    assert_eq!(
        files(&run),
        files(expected),
        "a file too many or too few in the run"
    );
    assert_eq!(
        files(&scratch),
        Vec::<std::path::PathBuf>::new(),
        "temporary files are left"
    );
}

fn n_resumed(run: &std::path::Path) -> usize {
    let is_resumed = |entry: &Entry| matches!(entry, Entry::Resumed(_));
    committed(run)
        .entries
        .iter()
        .filter(|stamped| is_resumed(&stamped.entry))
        .count()
}

/// Otherwise equal weights and metrics would say nothing.
fn assert_the_recipe_learns(run: &std::path::Path) {
    let n_steps = series(run, "actor/lr").len();
    let learnt = series(run, "actor/grad_norm")
        .iter()
        .filter(|norm| **norm > 0.0)
        .count();
    let mixed = series(run, "rollout/zero_variance_share")
        .iter()
        .filter(|share| **share < 1.0)
        .count();
    assert!(
        learnt * 2 > n_steps,
        "only {learnt} of {n_steps} steps have a gradient"
    );
    assert!(
        mixed * 2 > n_steps,
        "only {mixed} of {n_steps} steps have rewards that vary in a group"
    );
    assert!(
        series(run, "critic/advantages/max")
            .iter()
            .any(|advantage| *advantage > 0.0)
    );
    assert!(
        final_weights(run) != weights(run, "critic-sft"),
        "the weights have not moved"
    );
    assert!(
        series(run, "cache/hits").iter().any(|hits| *hits > 0.0),
        "the cache is never hit"
    );
}

fn assert_every_step_and_member_once(run: &std::path::Path) {
    let replay = committed(run);
    let steps: Vec<u64> = replay.steps(RL).map(|step| step.step).collect();
    assert_eq!(steps, (1..=steps.len() as u64).collect::<Vec<u64>>());
    let ids: Vec<_> = played(run).into_iter().map(|(id, ..)| id).collect();
    let distinct: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(ids.len(), distinct.len(), "an episode is there twice");
    assert_eq!(ids.len(), steps.len() * 6 * 4, "an episode is missing");
    assert_eq!(
        ids,
        distinct.into_iter().collect::<Vec<_>>(),
        "episodes are out of order"
    );
}
