//! What is read back is what was committed, or an error that says so.

use std::fs;

use journal::{Entry, Error, RunDir, RunReader};
use proptest::prelude::*;
use record::{Outcome, Reward};
use tempfile::TempDir;

use crate::fixture::{self, RECIPE, started};

#[test]
fn a_whole_run_reads_back() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let run = RunReader::open(&path).unwrap();
    let replay = run.replay();
    assert_eq!(replay.started(), Some(&started()));
    assert!(replay.finished());
    assert_eq!(run.recipe().unwrap(), RECIPE);
    assert_eq!(
        fs::read_to_string(path.join("recipe.hash")).unwrap(),
        "abc123\n"
    );
    assert_eq!(replay.phases(), ["sft/critic", "rl"]);
    assert_eq!(replay.last_step("rl").unwrap().step, 4);
    assert_eq!(
        replay.last_step("rl").unwrap().metrics,
        fixture::step("rl", 4).metrics
    );
    assert_eq!(replay.last_step("none"), None);
    let names: Vec<&str> = replay
        .checkpoints()
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["sft", "rl-3", "rl-4"]);
    assert_eq!(replay.latest_checkpoint("rl").unwrap().name, "rl-4");
    assert_eq!(replay.note("sandbox/tier").unwrap(), "namespaces");
    for step in replay.steps("rl") {
        let groups = run.read_episodes(step.episodes.as_ref().unwrap()).unwrap();
        assert_eq!(groups, fixture::groups(step.step));
    }
    let episodes = replay.evaluation("sft").unwrap().episodes.as_ref().unwrap();
    assert_eq!((episodes.groups, episodes.episodes), (2, 6));
    let checkpoint = run.checkpoint_path("rl-3").unwrap();
    assert_eq!(
        fs::read(checkpoint.join("policy/model.safetensors")).unwrap(),
        vec![3; 5000]
    );
    assert!(!path.join("checkpoints/rl-1").exists());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..Default::default() })]

    /// Every finite 32-bit pattern of a log-prob and 64-bit pattern of a number survives.
    #[test]
    fn numbers_keep_every_bit(
        logprobs in prop::collection::vec(any::<u32>(), 1..400),
        total in any::<u64>(),
    ) {
        let logprobs: Vec<f32> =
            logprobs.into_iter().map(f32::from_bits).filter(|value| value.is_finite()).collect();
        let total = f64::from_bits(total);
        prop_assume!(total.is_finite());
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("run");
        let run = RunDir::create(&path, RECIPE, started()).unwrap();
        let mut groups = fixture::groups(1);
        groups[0].episodes[0].calls[0].completion.logprobs = logprobs.clone();
        groups[0].episodes[0].outcome = Outcome::Graded { reward: Reward::of("r", total) };
        let mut step = fixture::step("rl", 1);
        step.metrics.insert("m".to_owned(), total);
        run.commit_step(step, Some(&groups)).unwrap();
        drop(run);

        let reader = RunReader::open(&path).unwrap();
        let step = reader.replay().last_step("rl").unwrap();
        prop_assert_eq!(step.metrics["m"].to_bits(), total.to_bits());
        let read = reader.read_episodes(step.episodes.as_ref().unwrap()).unwrap();
        let episode = &read[0].episodes[0];
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&episode.calls[0].completion.logprobs), bits(&logprobs));
        prop_assert_eq!(episode.outcome.reward().unwrap().total.to_bits(), total.to_bits());
    }
}

#[test]
fn episodes_that_were_changed_are_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let run = RunReader::open(&path).unwrap();
    let reference = run
        .replay()
        .last_step("rl")
        .unwrap()
        .episodes
        .clone()
        .unwrap();
    let file = path.join(&reference.file);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let error = run.read_episodes(&reference).unwrap_err();
    assert!(
        matches!(&error, Error::Digest { path, .. } if *path == file),
        "{error}"
    );
}

#[test]
fn checkpoints_that_were_changed_are_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let run = RunReader::open(&path).unwrap();
    let weights = path.join("checkpoints/rl-4/policy/model.safetensors");
    let stray = path.join("checkpoints/rl-3/stray");
    let mut bytes = fs::read(&weights).unwrap();
    bytes[0] ^= 1;
    fs::write(weights, bytes).unwrap();
    fs::write(stray, "x").unwrap();
    for name in ["rl-3", "rl-4"] {
        let error = run.checkpoint_path(name).unwrap_err();
        assert!(matches!(error, Error::Digest { .. }), "{error}");
    }
    let error = run.checkpoint_path("rl-1").unwrap_err().to_string();
    assert!(
        error.contains("`rl-1`") && error.contains("sft, rl-3, rl-4"),
        "{error}"
    );
}

#[test]
fn numbers_that_json_cannot_hold_are_refused_and_nothing_is_committed() {
    let dir = TempDir::new().unwrap();
    let run = RunDir::create(&dir.path().join("run"), RECIPE, started()).unwrap();
    let mut step = fixture::step("rl", 1);
    step.metrics.insert("actor/entropy".to_owned(), f64::NAN);
    let error = run.commit_step(step, None).unwrap_err().to_string();
    assert!(
        error.contains("actor/entropy") && error.contains("step 1"),
        "{error}"
    );

    let mut groups = fixture::groups(1);
    groups[1].episodes[1].calls[0].completion.logprobs[3] = f32::NEG_INFINITY;
    let error = run
        .commit_step(fixture::step("rl", 1), Some(&groups))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("episode 1/1/1") && error.contains("critic"),
        "{error}"
    );

    let mut groups = fixture::groups(1);
    groups[0].episodes[0].outcome = Outcome::Graded {
        reward: Reward::of("r", f64::INFINITY),
    };
    assert!(
        run.commit_step(fixture::step("rl", 1), Some(&groups))
            .is_err()
    );

    let mut evaluation = fixture::evaluation("rl");
    evaluation.metrics.get_mut("pass_at_1").unwrap().high = f64::NAN;
    assert!(run.commit_evaluation(evaluation, None).is_err());
    assert_eq!(run.replay().entries.len(), 1);
}

#[test]
fn names_that_would_leave_the_run_are_refused() {
    let dir = TempDir::new().unwrap();
    let run = RunDir::create(&dir.path().join("run"), RECIPE, started()).unwrap();
    for name in [
        "",
        "..",
        "../x",
        "a/../b",
        "/a",
        "a//b",
        "a b",
        "a.unfinished",
        ".hidden",
        "ü",
    ] {
        let refused = |result: Result<(), Error>| matches!(result, Err(Error::Name { .. }));
        assert!(refused(run.phase_started(name)), "{name:?}");
        assert!(
            refused(run.commit_step(fixture::step(name, 1), None).map(drop)),
            "{name:?}"
        );
        let evaluation = fixture::evaluation(name);
        assert!(
            refused(run.commit_evaluation(evaluation, None).map(drop)),
            "{name:?}"
        );
        let checkpoint = run.checkpoint(name, "rl", 1, |_| Ok::<(), String>(()));
        assert!(refused(checkpoint.map(drop)), "{name:?}");
        assert!(refused(run.write_tasks(name, b"").map(drop)), "{name:?}");
    }
    for metric in ["phase", "step", "tokens", "timing_s/step"] {
        let mut step = fixture::step("rl", 1);
        step.metrics.insert(metric.to_owned(), 1.0);
        assert!(
            matches!(run.commit_step(step, None), Err(Error::Name { .. })),
            "{metric}"
        );
    }
    assert_eq!(run.replay().entries.len(), 1);
}

#[test]
fn a_checkpoint_whose_filling_fails_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    let run = RunDir::create(&path, RECIPE, started()).unwrap();
    let failed = run.checkpoint("rl-1", "rl", 0, |dir| {
        fs::write(dir.join("half"), "x").unwrap();
        Err("no space")
    });
    assert!(failed.unwrap_err().to_string().contains("no space"));
    assert_eq!(fs::read_dir(path.join("checkpoints")).unwrap().count(), 0);
    assert!(
        !run.replay()
            .entries
            .iter()
            .any(|one| matches!(one.entry, Entry::Checkpoint(_)))
    );
    run.checkpoint("rl-1", "rl", 0, |dir| fixture::fill(dir, 1))
        .unwrap();
}

#[test]
fn a_digest_depends_on_content_and_not_on_the_run() {
    let dir = TempDir::new().unwrap();
    let mut digests = Vec::new();
    for (name, number) in [("a", 1), ("b", 1), ("c", 2)] {
        let run = RunDir::create(&dir.path().join(name), RECIPE, started()).unwrap();
        let checkpoint = run
            .checkpoint(name, "rl", 0, |dir| fixture::fill(dir, number))
            .unwrap();
        digests.push(checkpoint.digest);
    }
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[1], digests[2]);
}
