//! Runs that train adapters, in supervision and in reinforcement: same bytes on any number of threads and
//! through a kill, checkpoints of adapters alone, and a base that nothing moves.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    etude::{
        assert_success, committed, etude, last_step, learning_recipe, package, resume_to_end,
        stderr, wait_while_running,
    },
    runs::{RL, assert_same_metrics, series},
};

/// Every supervised step trains the reviser's and the critic's adapters; the critic's go on in
/// reinforcement.
const FROM_THE_START: [&str; 8] = [
    "critic.lora.rank=4",
    "critic.lora.alpha=8",
    "critic.lora.dropout=0.1",
    "reviser.lora.rank=4",
    "reviser.lora.alpha=8",
    "rl.steps=2",
    "eval.gates=false",
    "tasks.eval=4",
];

/// Reinforcement alone trains adapters, over the supervised critic.
const IN_REINFORCEMENT: [&str; 9] = [
    "critic.lora.full_stages=1",
    "critic.lora.rank=4",
    "critic.lora.alpha=8",
    "critic.lora.targets=[\"q_proj\", \"v_proj\", \"down_proj\"]",
    "rl.optimizer.lr=3e-3",
    "rl.steps=11",
    "rl.save_every=3",
    "tasks.eval=4",
    "tasks.train=32",
];

fn train(scratch: &Path, recipe: &Path, run: &Path, sets: &[&str]) -> Command {
    let mut command = etude(scratch, ["train".as_ref(), recipe.as_os_str()]);
    command.args(["--run".as_ref(), run.as_os_str()]);
    for set in sets {
        command.args(["--set", set]);
    }
    command
}

/// Trains, is killed once `phase` has so many steps, and goes on to the end.
fn train_with_a_kill(mut command: Command, run: &Path, phase: &str, steps: u64) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let reached = || last_step(run, phase) >= steps;
    assert!(
        wait_while_running(&mut child, reached),
        "the run ended before the kill"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let scratch = run.parent().unwrap();
    assert_success(&resume_to_end(scratch, run));
}

fn file(run: &Path, checkpoint: &str, file: &str) -> PathBuf {
    run.join("checkpoints").join(checkpoint).join(file)
}

fn adapter(run: &Path, checkpoint: &str) -> Vec<u8> {
    assert!(!file(run, checkpoint, "model.safetensors").exists());
    fs::read(file(run, checkpoint, "adapter_model.safetensors")).unwrap()
}

fn base_of(run: &Path, checkpoint: &str) -> String {
    let text = fs::read(file(run, checkpoint, "adapter_config.json")).unwrap();
    let json: Value = serde_json::from_slice(&text).unwrap();
    json["base_model_name_or_path"].as_str().unwrap().to_owned()
}

fn losses(run: &Path, phase: &str) -> Vec<f64> {
    let replay = committed(run);
    let steps = replay.steps(phase);
    steps.map(|step| step.metrics["sft/loss"]).collect()
}

#[test]
fn supervision_trains_adapters_and_reinforcement_goes_on_with_them() {
    let directory = TempDir::new().unwrap();
    let recipe = package("../../recipes/critique/smoke.toml");
    let (run, other) = (directory.path().join("run"), directory.path().join("other"));
    let sets = |threads| [&FROM_THE_START[..], &[threads]].concat();
    let command = train(directory.path(), &recipe, &run, &sets("threads=1"));
    train_with_a_kill(command, &run, "sft/critic/1", 25);
    let mut command = train(directory.path(), &recipe, &other, &sets("threads=4"));
    assert_success(&command.output().unwrap());

    assert_same_metrics(&run, &other);
    for checkpoint in ["critic-sft", "critic-rl", "reviser"] {
        let same = adapter(&run, checkpoint) == adapter(&other, checkpoint);
        assert!(same, "the adapters of {checkpoint} differ");
    }
    assert_eq!(base_of(&run, "critic-sft"), "../critic-base");
    assert_eq!(base_of(&run, "critic-rl"), "../critic-base");
    assert_eq!(base_of(&run, "reviser"), "../reviser-base");
    for phase in ["sft/critic/1", "sft/reviser/1"] {
        let losses = losses(&run, phase);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (first, last) = (mean(&losses[..5]), mean(&losses[losses.len() - 5..]));
        assert!(last < 0.9 * first, "{phase}: loss from {first} to {last}");
    }
}

#[test]
fn reinforcement_trains_adapters_over_the_supervised_critic() {
    let directory = TempDir::new().unwrap();
    let (run, other) = (directory.path().join("run"), directory.path().join("other"));
    let sets = |threads| [&IN_REINFORCEMENT[..], &[threads]].concat();
    let recipe = learning_recipe();
    let command = train(directory.path(), &recipe, &run, &sets("threads=2"));
    train_with_a_kill(command, &run, RL, 4);
    let mut command = train(directory.path(), &recipe, &other, &sets("threads=4"));
    assert_success(&command.output().unwrap());

    assert_same_metrics(&run, &other);
    assert!(adapter(&run, "critic-rl") == adapter(&other, "critic-rl"));
    assert_eq!(base_of(&run, "critic-rl"), "../critic-sft");
    assert!(file(&run, "critic-sft", "model.safetensors").exists());
    let moved = |metric| series(&run, metric).iter().any(|value| *value > 0.0);
    assert!(moved("actor/grad_norm") && moved("actor/kl_loss"));

    // The checkpoint of adapters is a model for every command, and the run may be moved.
    let moved = directory.path().join("moved");
    fs::rename(&run, &moved).unwrap();
    let model = moved.join("checkpoints/critic-rl");
    let arguments = ["sample".as_ref(), model.as_os_str()];
    let mut command = etude(directory.path(), arguments);
    command.args(["--prompt", "def", "--max-tokens", "3", "--json"]);
    assert_success(&command.output().unwrap());
    // Without its base it is refused by what is missing.
    fs::remove_dir_all(moved.join("checkpoints/critic-sft")).unwrap();
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("no model at `../critic-sft`"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn adapters_that_could_train_nothing_are_refused() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    let cases: [(&[&str], &str); 3] = [
        (
            &["critic.lora.rank=0", "critic.lora.alpha=1"],
            "critic.lora.rank is 0",
        ),
        (
            &[
                "critic.lora.rank=2",
                "critic.lora.alpha=1",
                "critic.lora.full_stages=2",
            ],
            "critic.lora.full_stages is 2",
        ),
        (
            &[
                "reviser.lora.rank=2",
                "reviser.lora.alpha=1",
                "reviser.lora.full_stages=1",
            ],
            "reviser.lora.full_stages is 1",
        ),
    ];
    for (sets, expected) in cases {
        let mut command = train(directory.path(), &learning_recipe(), &run, sets);
        let refused = command.output().unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(expected), "{}", stderr(&refused));
        assert!(!run.exists());
    }
}
