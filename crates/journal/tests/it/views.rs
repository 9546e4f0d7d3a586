//! Views and leftovers after a process died: everything is as the journal says.

use std::fs;

use journal::{Entry, RunDir, RunReader, Summary};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{self, RECIPE, started};

#[test]
fn views_are_rebuilt_byte_for_byte() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let before = fixture::tree(&path);
    let damages: [(&str, Option<&[u8]>); 4] = [
        ("metrics.jsonl", None),
        ("metrics.jsonl", Some(b"{\"phase\":\"rl\",\"step\":99}\n")),
        ("summary.json", None),
        ("summary.json", Some(b"{}")),
    ];
    for (file, damage) in damages {
        match damage {
            None => fs::remove_file(path.join(file)).unwrap(),
            Some(bytes) => fs::write(path.join(file), bytes).unwrap(),
        }
        drop(RunDir::open(&path).unwrap());
        assert_eq!(fixture::tree(&path), before, "{file}");
    }
}

#[test]
fn lines_that_no_commit_covers_are_cut() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let before = fixture::tree(&path);
    for file in ["metrics.jsonl", "logs/events.jsonl", "logs/test_runs.jsonl"] {
        let mut content = fs::read(path.join(file)).unwrap();
        content.extend_from_slice(b"{\"kind\":\"half a li");
        fs::write(path.join(file), content).unwrap();
    }
    drop(RunDir::open(&path).unwrap());
    assert_eq!(fixture::tree(&path), before);
}

#[test]
fn line_logs_have_the_fields_of_the_predecessor() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let lines = |file: &str| -> Vec<Value> {
        let text = fs::read_to_string(path.join(file)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let runs = lines("logs/test_runs.jsonl");
    assert_eq!(runs.len(), 4);
    let keys: Vec<&String> = runs[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "ts",
            "run_id",
            "kind",
            "backend",
            "command",
            "selector",
            "duration_sec",
            "result",
            "stdout"
        ]
    );
    assert_eq!(runs[0]["kind"], "test_run");
    assert_eq!(
        runs[0]["result"],
        json!({"mode": "stdio", "rc": 0, "passed": true})
    );
    let events = lines("logs/events.jsonl");
    assert!(
        events
            .iter()
            .all(|event| event["run_id"] == "tiny" && event["ts"].is_string())
    );
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[..3], ["run_started", "phase_started", "step"]);
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "group_done").count(),
        4
    );
    assert_eq!(kinds.last(), Some(&"finished"));
    let metrics = lines("metrics.jsonl");
    assert_eq!(
        metrics[3],
        json!({"phase": "rl", "step": 1, "tokens": 10, "actor/kl_loss": 1.0 / 3.0 * 1e-7,
               "critic/rewards/mean": 1.0 / 3.0, "timing_s/step": 0.25})
    );
}

#[test]
fn what_an_uncommitted_step_left_is_removed() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    let run = RunDir::create(&path, RECIPE, started()).unwrap();
    run.commit_step(fixture::step("rl", 1), Some(&fixture::groups(1)))
        .unwrap();
    run.checkpoint("rl-1", "rl", 1, |dir| fixture::fill(dir, 1))
        .unwrap();
    // Ahead of the last commit, as when the process dies between checkpoint and step.
    run.checkpoint("rl-2", "rl", 2, |dir| fixture::fill(dir, 2))
        .unwrap();
    drop(run);
    fs::write(
        path.join("episodes/rl/000002.jsonl.zst"),
        "whole but not committed",
    )
    .unwrap();
    fs::write(path.join("episodes/rl/000003.jsonl.zst.unfinished"), "half").unwrap();
    fs::create_dir_all(path.join("episodes/evaluations")).unwrap();
    fs::write(
        path.join("episodes/evaluations/rl.jsonl.zst"),
        "not committed",
    )
    .unwrap();
    fs::create_dir_all(path.join("checkpoints/rl-3.unfinished/policy")).unwrap();
    fs::write(path.join("checkpoints/rl-3.unfinished/policy/w"), "half").unwrap();
    fs::write(path.join("summary.json.unfinished"), "{").unwrap();

    let (run, replay) = RunDir::open(&path).unwrap();
    let expected = [
        "checkpoints/rl-2",
        "checkpoints/rl-3.unfinished",
        "episodes/evaluations/rl.jsonl.zst",
        "episodes/rl/000002.jsonl.zst",
        "episodes/rl/000003.jsonl.zst.unfinished",
        "summary.json.unfinished",
    ];
    assert_eq!(replay.recovered.leftovers, expected);
    for leftover in expected {
        assert!(!path.join(leftover).exists(), "{leftover}");
    }
    assert!(!path.join("episodes/evaluations").exists());
    assert!(path.join("episodes/rl/000001.jsonl.zst").exists());
    assert_eq!(replay.latest_checkpoint("rl").unwrap().name, "rl-1");
    assert_eq!(replay.checkpoints().len(), 1);
    // The name is free again.
    run.commit_step(fixture::step("rl", 2), None).unwrap();
    run.checkpoint("rl-2", "rl", 2, |dir| fixture::fill(dir, 2))
        .unwrap();
    drop(run);
    let (run, replay) = RunDir::open(&path).unwrap();
    assert_eq!(replay.latest_checkpoint("rl").unwrap().name, "rl-2");
    run.checkpoint_path("rl-2").unwrap();
    assert!(replay.recovered.leftovers.is_empty());
}

#[test]
fn opening_a_finished_run_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let before = fixture::tree(&path);
    drop(RunDir::open(&path).unwrap());
    RunReader::open(&path).unwrap();
    assert_eq!(fixture::tree(&path), before);
}

#[test]
fn pruning_keeps_the_newest_of_its_phase_and_all_of_others() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    let run = RunDir::create(&path, RECIPE, started()).unwrap();
    for (name, phase, step) in [("sft-0", "sft", 0), ("rl-2", "rl", 0), ("rl-1", "rl", 0)] {
        run.checkpoint(name, phase, step, |dir| fixture::fill(dir, 1))
            .unwrap();
    }
    for step in 1..=12 {
        run.commit_step(fixture::step("rl", step), None).unwrap();
        run.checkpoint(&format!("step-{step}"), "rl", step, |dir| {
            fixture::fill(dir, step)
        })
        .unwrap();
    }
    let names = |run: &RunDir| {
        let replay = run.replay();
        replay
            .checkpoints()
            .iter()
            .map(|one| one.name.clone())
            .collect::<Vec<_>>()
    };
    run.prune("rl", 3).unwrap();
    assert_eq!(names(&run), ["sft-0", "step-10", "step-11", "step-12"]);
    run.prune("rl", 0).unwrap();
    assert_eq!(names(&run), ["sft-0", "step-12"]);
    assert_eq!(fs::read_dir(path.join("checkpoints")).unwrap().count(), 2);
}

#[test]
fn the_summary_adds_up_what_the_journal_says() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let text = fs::read_to_string(path.join("summary.json")).unwrap();
    let summary: Summary = serde_json::from_str(&text).unwrap();
    let replay = RunReader::open(&path).unwrap().replay().clone();
    assert_eq!(summary, replay.summary());
    assert_eq!((summary.study.as_str(), summary.seed), ("critique", 7));
    assert_eq!(summary.tokens["sft/critic"], 10 + 20 + 30);
    assert_eq!(summary.tokens["rl"], 10 + 20 + 30 + 40);
    assert_eq!(
        summary.seconds["rl"],
        replay.phase_ended("rl").unwrap().seconds
    );
    let names: Vec<&str> = summary
        .evaluations
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["sft", "rl"]);
    assert_eq!(summary.evaluations[0].metrics["pass_at_1"].low, 0.57);
}

#[test]
fn seconds_of_a_phase_are_the_sum_of_its_sittings() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    let run = RunDir::create(&path, RECIPE, started()).unwrap();
    run.phase_started("rl").unwrap();
    run.commit_step(fixture::step("rl", 1), None).unwrap();
    drop(run);
    let (run, _) = RunDir::open(&path).unwrap();
    run.phase_started("rl").unwrap();
    run.commit_step(fixture::step("rl", 2), None).unwrap();
    run.phase_ended("rl", 5).unwrap();
    let replay = run.replay();
    let at = |pick: fn(&Entry) -> bool| {
        replay
            .entries
            .iter()
            .find(|one| pick(&one.entry))
            .map(|one| one.at)
            .unwrap()
    };
    let first = at(|entry| matches!(entry, Entry::Step(_)))
        .duration_since(at(|entry| matches!(entry, Entry::PhaseStarted(_))));
    let second = replay.phase_ended("rl").unwrap().seconds;
    let summary = replay.summary();
    assert_eq!(summary.seconds["rl"], first.as_secs_f64() + second);
    assert_eq!(summary.tokens["rl"], 10 + 20 + 5);
}
