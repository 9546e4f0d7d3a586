//! Episodes of an evaluation on its way outlive the process, whole or not at all.

use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use journal::{KeptEpisodes, RunDir, RunReader};
use record::{Episode, LineLog, LogLine, TaskId};
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

/// Lines in both logs; none of the first episode.
fn log_of(episode: &Episode) -> Vec<LogLine> {
    let group = episode.id.group;
    let run = LogLine::new(LineLog::TestRuns, "test_run", json!({"group": group}));
    let event = LogLine::new(LineLog::Events, "played", json!({"group": group}));
    match group {
        0 => Vec::new(),
        _ => vec![run.clone(), event, run],
    }
}

fn seconds_of(episode: &Episode) -> f64 {
    f64::from(episode.id.group) / 3.0
}

/// A run in the middle of an evaluation of which `n` episodes were kept.
fn begun(directory: &TempDir, n: usize) -> std::path::PathBuf {
    let path = directory.path().join("run");
    let run = RunDir::create(&path, RECIPE, started()).unwrap();
    run.phase_started(&format!("eval/{NAME}")).unwrap();
    let (kept, before) = run.kept_episodes(NAME).unwrap();
    assert!(before.is_empty());
    for episode in &episodes()[..n] {
        keep(&kept, episode);
    }
    path
}

fn keep(kept: &KeptEpisodes<'_>, episode: &Episode) {
    kept.keep(episode, seconds_of(episode), &log_of(episode))
        .unwrap();
}

/// The lines of a log of one kind.
fn lines(path: &Path, log: &str, kind: &str) -> Vec<Value> {
    let text = fs::read_to_string(path.join("logs").join(log)).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["kind"] == kind).collect()
}

/// The groups of the episodes that a log has lines of.
fn groups(path: &Path, log: &str, kind: &str) -> Vec<u64> {
    let lines = lines(path, log, kind);
    lines
        .iter()
        .map(|line| line["group"].as_u64().unwrap())
        .collect()
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
            assert_eq!(before.seconds, seconds_of(&whole));
            assert_eq!(before.episode, whole);
        }
        seen.push(before.len());
        // It goes on behind what is left.
        keep(&kept, &episodes()[3]);
        drop(kept);
        let (_, after) = run.kept_episodes(NAME).unwrap();
        assert_eq!(after.len(), before.len() + 1);
        let last = after.last().unwrap();
        assert_eq!(Some(&last.episode), episodes().last());
        // The logs have the lines of what was kept, whatever was in them.
        let mut logged: Vec<u64> = (0..before.len() as u64)
            .filter(|group| *group > 0)
            .collect();
        logged.push(3);
        assert_eq!(groups(&path, "events.jsonl", "played"), logged);
        let twice: Vec<u64> = logged.iter().flat_map(|group| [*group; 2]).collect();
        assert_eq!(groups(&path, "test_runs.jsonl", "test_run"), twice);
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
    let error = RunDir::open(&path).unwrap_err().to_string();
    assert!(error.contains(&*file.to_string_lossy()), "{error}");
    fs::remove_file(&file).unwrap();
    let (run, _) = RunDir::open(&path).unwrap();
    let (kept, _) = run.kept_episodes("other").unwrap();
    let mut episode = episodes().remove(0);
    episode.calls[0].completion.logprobs[0] = f32::NAN;
    assert!(kept.keep(&episode, 1.0, &[]).is_err());
    assert!(kept.keep(&episodes()[0], f64::NAN, &[]).is_err());
}

#[test]
fn lines_are_there_as_episodes_end_and_once_after_any_number_of_kills() {
    let directory = TempDir::new().unwrap();
    let path = begun(&directory, 1);
    let mut before = Vec::new();
    for round in 1..4 {
        // A line that was being written when the process died, and lines that no record has.
        for log in ["events.jsonl", "test_runs.jsonl"] {
            let file = path.join("logs").join(log);
            let torn = [
                fs::read(&file).unwrap(),
                b"{\"kind\":\"played\"}\n{\"ts\"".to_vec(),
            ];
            fs::write(&file, torn.concat()).unwrap();
        }
        let (run, _) = RunDir::open(&path).unwrap();
        let opened = fs::read_to_string(path.join("logs/events.jsonl")).unwrap();
        assert!(opened.starts_with(&before.concat()), "{opened}");
        assert_eq!(
            groups(&path, "events.jsonl", "played"),
            (1..round).collect::<Vec<_>>()
        );
        run.phase_started(&format!("eval/{NAME}")).unwrap();
        let (kept, _) = run.kept_episodes(NAME).unwrap();
        keep(&kept, &episodes()[round as usize]);
        assert_eq!(
            groups(&path, "events.jsonl", "played"),
            (1..=round).collect::<Vec<_>>()
        );
        let text = fs::read_to_string(path.join("logs/events.jsonl")).unwrap();
        before = text.lines().map(|line| format!("{line}\n")).collect();
    }
    let (run, _) = RunDir::open(&path).unwrap();
    run.commit_evaluation(fixture::evaluation(NAME), None)
        .unwrap();
    run.phase_ended(&format!("eval/{NAME}"), 0).unwrap();
    run.finish().unwrap();
    drop(run);
    let whole = fs::read(path.join("logs/events.jsonl")).unwrap();
    drop(RunDir::open(&path).unwrap());
    assert_eq!(fs::read(path.join("logs/events.jsonl")).unwrap(), whole);
    assert_eq!(groups(&path, "events.jsonl", "played"), [1, 2, 3]);
    assert_eq!(
        groups(&path, "test_runs.jsonl", "test_run"),
        [1, 1, 2, 2, 3, 3]
    );
    assert_eq!(lines(&path, "events.jsonl", "resumed").len(), 4);
    assert_eq!(lines(&path, "events.jsonl", "phase_started").len(), 4);
}

#[test]
fn the_time_of_an_evaluation_is_that_of_all_its_sittings() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("run");
    let phase = format!("eval/{NAME}");
    let began = Instant::now();
    let run = RunDir::create(&path, RECIPE, started()).unwrap();
    run.phase_started(&phase).unwrap();
    let (kept, _) = run.kept_episodes(NAME).unwrap();
    sleep(Duration::from_millis(60));
    keep(&kept, &episodes()[0]);
    // Killed: what was kept is the last that is known of it.
    drop(kept);
    drop(run);
    sleep(Duration::from_millis(500));
    let (run, _) = RunDir::open(&path).unwrap();
    let first = run.summary().seconds[&phase];
    assert!(first >= 0.059, "{first}");
    run.phase_started(&phase).unwrap();
    sleep(Duration::from_millis(60));
    // Stopped when asked to: until then.
    run.stopped().unwrap();
    drop(run);
    let second = run_seconds(&path, &phase);
    let view = fs::read_to_string(path.join("summary.json")).unwrap();
    let view: Value = serde_json::from_str(&view).unwrap();
    assert_eq!(view["seconds"][&phase], second);
    assert!(second >= first + 0.059, "{first} {second}");
    sleep(Duration::from_millis(500));
    let (run, _) = RunDir::open(&path).unwrap();
    run.phase_started(&phase).unwrap();
    run.commit_evaluation(fixture::evaluation(NAME), None)
        .unwrap();
    run.phase_ended(&phase, 0).unwrap();
    let all = run.summary().seconds[&phase];
    assert!(all >= second, "{second} {all}");
    // The pauses between the sittings are in none.
    let pauses = Duration::from_millis(1_000).as_secs_f64();
    assert!(all < began.elapsed().as_secs_f64() - pauses + 0.01, "{all}");
}

fn run_seconds(path: &Path, phase: &str) -> f64 {
    RunReader::open(path).unwrap().replay().summary().seconds[phase]
}
