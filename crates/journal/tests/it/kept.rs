//! Episodes of an evaluation on its way outlive the process, whole or not at all.

use std::fs;

use journal::RunDir;
use record::{Episode, TaskId};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{self, RECIPE, started};

const NAME: &str = "search";

fn episodes() -> Vec<Episode> {
    let task = TaskId("task".to_owned());
    (0..4)
        .map(|group| fixture::episode(&task, 0, group, 0))
        .collect()
}

/// Lines of the second episode, and none of the others.
fn log_of(episode: &Episode) -> Vec<Value> {
    let runs = [json!({"duration_sec": 0.1}), json!({"duration_sec": 2.5})];
    match episode.id.group {
        1 => runs.to_vec(),
        _ => Vec::new(),
    }
}

/// A run in the middle of an evaluation of which `n` episodes were kept.
fn begun(directory: &TempDir, n: usize) -> std::path::PathBuf {
    let path = directory.path().join("run");
    let run = RunDir::create(&path, RECIPE, started()).unwrap();
    run.phase_started(&format!("eval/{NAME}")).unwrap();
    let (kept, before) = run.kept_episodes(NAME).unwrap();
    assert!(before.is_empty());
    for episode in &episodes()[..n] {
        kept.keep(episode, log_of(episode)).unwrap();
    }
    path
}

#[test]
fn what_was_kept_is_there_at_whatever_byte_the_process_died() {
    let directory = TempDir::new().unwrap();
    let path = begun(&directory, 2);
    let file = path.join(format!("episodes/evaluations/{NAME}.kept"));
    let whole = fs::read(&file).unwrap();
    let mut seen = Vec::new();
    // Every place of a frame is met, at one distance or another from its ends.
    for length in (0..whole.len()).step_by(7).chain([whole.len()]) {
        fs::write(&file, &whole[..length]).unwrap();
        let (run, replay) = RunDir::open(&path).unwrap();
        assert!(replay.recovered.leftovers.is_empty());
        let (kept, before) = run.kept_episodes(NAME).unwrap();
        for (before, whole) in before.iter().zip(episodes()) {
            assert_eq!(before.log, log_of(&whole));
            assert_eq!(before.episode, whole);
        }
        seen.push(before.len());
        // It goes on behind what is left.
        kept.keep(&episodes()[3], Vec::new()).unwrap();
        drop(kept);
        let (_, after) = run.kept_episodes(NAME).unwrap();
        assert_eq!(after.len(), before.len() + 1);
        let last = after.last().unwrap();
        assert_eq!(Some(&last.episode), episodes().last());
        assert!(last.log.is_empty());
    }
    assert!(seen.is_sorted());
    assert_eq!((seen[0], seen.last()), (0, Some(&2)));
}

#[test]
fn a_committed_evaluation_keeps_nothing_beside_itself() {
    let directory = TempDir::new().unwrap();
    let path = begun(&directory, 1);
    let file = path.join(format!("episodes/evaluations/{NAME}.kept"));
    let kept = fs::read(&file).unwrap();
    let (run, _) = RunDir::open(&path).unwrap();
    run.commit_evaluation(fixture::evaluation(NAME), None)
        .unwrap();
    assert!(!file.exists());
    drop(run);
    // The process may die between the record and the removal.
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, &kept).unwrap();
    let (_, replay) = RunDir::open(&path).unwrap();
    assert_eq!(
        replay.recovered.leftovers,
        [format!("episodes/evaluations/{NAME}.kept")]
    );
    assert!(!file.exists());
}

#[test]
fn damage_is_told_and_numbers_that_are_none_are_refused() {
    let directory = TempDir::new().unwrap();
    let path = begun(&directory, 2);
    let file = path.join(format!("episodes/evaluations/{NAME}.kept"));
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let (run, _) = RunDir::open(&path).unwrap();
    let error = run.kept_episodes(NAME).unwrap_err().to_string();
    assert!(error.contains(&*file.to_string_lossy()), "{error}");
    let (kept, _) = run.kept_episodes("other").unwrap();
    let mut episode = episodes().remove(0);
    episode.calls[0].completion.logprobs[0] = f32::NAN;
    assert!(kept.keep(&episode, Vec::new()).is_err());
}
