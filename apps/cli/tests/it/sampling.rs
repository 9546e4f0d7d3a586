//! Runs whose critic is sampled with every setting that recipes have: the same on any number of threads
//! and through a kill, trained on the log-probs of its weights.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    etude::{
        assert_success, etude, last_step, learning_recipe, resume_to_end, stderr,
        wait_while_running,
    },
    runs::{RL, assert_same_metrics, final_weights, played, series},
};

const SETTINGS: [&str; 11] = [
    "critic.temperature=0.8",
    "critic.top_p=0.95",
    "critic.top_k=20",
    "critic.min_p=0.02",
    "critic.repetition_penalty=1.05",
    "critic.presence_penalty=0.1",
    "critic.frequency_penalty=0.05",
    "rl.steps=10",
    "rl.save_every=2",
    "tasks.eval=4",
    "tasks.train=32",
];

fn train(scratch: &Path, run: &Path, settings: &[&str]) -> Command {
    let mut arguments: Vec<PathBuf> = vec![
        "train".into(),
        learning_recipe(),
        "--run".into(),
        run.into(),
    ];
    for setting in SETTINGS.iter().chain(settings) {
        arguments.extend(["--set".into(), setting.into()]);
    }
    etude(scratch, arguments)
}

#[test]
fn a_run_samples_as_its_recipe_says_and_is_the_same_through_a_kill() {
    let directory = TempDir::new().unwrap();
    let place = |name: &str| directory.path().join(name);
    let (whole, killed) = (place("whole"), place("killed"));
    let one_thread = train(directory.path(), &whole, &["threads=1"]).output();
    assert_success(&one_thread.unwrap());

    let concurrent = ["threads=2", "rollout.concurrency=1"];
    let mut child = train(directory.path(), &killed, &concurrent)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait_while_running(&mut child, || last_step(&killed, RL) >= 3));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_success(&resume_to_end(directory.path(), &killed));
    assert_same_metrics(&killed, &whole);
    assert!(final_weights(&killed) == final_weights(&whole));
    assert!(played(&killed) == played(&whole), "the episodes differ");

    let episodes = played(&whole);
    let calls = episodes.iter().flat_map(|(_, calls, _)| calls);
    let (critic, others): (Vec<_>, Vec<_>) = calls.partition(|call| call.role == "critic");
    for call in &critic {
        let completion = &call.completion;
        let sampling = &completion.sampling;
        assert_eq!((sampling.top_k, sampling.min_p), (20, 0.02));
        assert_eq!((sampling.temperature, sampling.top_p), (0.8, 0.95));
        assert_eq!(
            (
                sampling.repetition_penalty,
                sampling.presence_penalty,
                sampling.frequency_penalty
            ),
            (1.05, 0.1, 0.05)
        );
        assert_eq!(completion.sampled_logprobs.len(), completion.response.len());
    }
    assert!(!critic.is_empty() && !others.is_empty());
    let plain = |call: &&record::Call| !call.completion.sampling.changes_logits();
    assert!(others.iter().all(plain));
    let gaps = series(&whole, "training/logprob_gap_max");
    assert!(gaps.iter().all(|gap| *gap == 0.0), "{gaps:?}");
}

#[test]
fn settings_that_make_no_distribution_are_refused_by_name() {
    let scratch = TempDir::new().unwrap();
    let run = scratch.path().join("run");
    for (setting, key) in [
        ("reviser.top_p=0", "reviser.top_p"),
        ("critic.min_p=1.5", "critic.min_p"),
        ("critic.top_k=-1", "top_k"),
        ("critic.repetition_penalty=0", "critic.repetition_penalty"),
        ("critic.presence_penalty=inf", "critic.presence_penalty"),
        ("critic.frequency_penalty=nan", "critic.frequency_penalty"),
    ] {
        let output = train(scratch.path(), &run, &[setting]).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{setting}: {said}");
        assert!(said.contains(key), "{said}");
        assert!(!run.exists());
    }
}
