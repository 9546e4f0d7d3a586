//! Reinforcement by other algorithms than the recipes' own: they run, say what they do, and a run that
//! was killed goes on to the same end.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::TempDir;

use crate::{
    etude::{
        assert_success, etude, last_step, learning_recipe, resume, resume_to_end, stderr,
        wait_while_running,
    },
    runs::{
        RL, assert_adapters_lie_over_something, assert_same_metrics, contents, final_weights,
        played, series,
    },
};

/// Many more than a run is killed behind: a busy machine may look late.
const STEPS: usize = 10;

/// Of a run, what its reinforcement came to.
const FINAL: &str = "checkpoints/critic-rl";

/// `etude train` on the learning recipe with these settings, not started yet.
fn train(scratch: &Path, run: &Path, settings: &[&str]) -> std::process::Command {
    let mut arguments: Vec<PathBuf> = vec![
        "train".into(),
        learning_recipe(),
        "--run".into(),
        run.into(),
    ];
    for setting in settings {
        arguments.extend(["--set".into(), setting.into()]);
    }
    etude(scratch, arguments)
}

/// Everything that a step may do beside GRPO's one update, at once.
const MANY: [&str; 10] = [
    "rl.steps=10",
    "rl.save_every=2",
    "rl.epochs=2",
    "rl.mini_batches=2",
    "rl.max_rounds=3",
    "rl.algorithm.advantage=\"remax\"",
    "rl.algorithm.loss_mode=\"kl-cov\"",
    "rl.algorithm.zero_variance=\"resample\"",
    "rl.algorithm.kl={placement=\"reward\",coefficient=0.05,controller={type=\"adaptive\",target=0.001}}",
    "rl.algorithm.rollout_correction={rollout_is={level=\"token\"},rollout_rs=[{by=\"token-k1\",threshold=2.0}]}",
];

#[test]
fn a_killed_run_goes_on_to_the_same_end() {
    let directory = TempDir::new().unwrap();
    let (whole, killed) = (
        directory.path().join("whole"),
        directory.path().join("killed"),
    );
    assert_success(&train(directory.path(), &whole, &MANY).output().unwrap());

    let mut child = train(directory.path(), &killed, &MANY)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Behind the checkpoint of the second step, so the third is updated on again.
    assert!(wait_while_running(&mut child, || last_step(&killed, RL) >= 3));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_success(&resume_to_end(directory.path(), &killed));
    assert_same_metrics(&killed, &whole);
    assert!(
        final_weights(&killed) == final_weights(&whole),
        "the final weights differ"
    );
    assert!(played(&killed) == played(&whole), "the episodes differ");

    let series = |metric: &str| series(&whole, metric);
    assert_eq!(series("rollout/resampled_groups").len(), STEPS);
    assert!(
        series("actor/updates")
            .iter()
            .all(|updates| *updates == 4.0)
    );
    // A greedy episode with each group: none of them is trained on.
    let episodes = played(&whole);
    let greedy = episodes
        .iter()
        .filter(|(id, ..)| id.step > 0 && id.member == 4);
    assert!(greedy.clone().count() >= STEPS * 6);
    let asked = |(_, calls, _): &&(_, Vec<record::Call>, _)| {
        calls
            .iter()
            .all(|call| call.role != "critic" || call.completion.sampling.temperature == 0.0)
    };
    assert!(greedy.clone().all(|episode| asked(&episode)));
    // The policy moves away by more than the target, so the coefficient rises.
    let coefficients = series("actor/kl_coef");
    assert!(
        coefficients.windows(2).all(|pair| pair[0] != pair[1]),
        "{coefficients:?}"
    );
    // Sampler and policy are one engine: every ratio is 1.
    assert!(
        series("rollout_corr/rollout_is_mean")
            .iter()
            .all(|mean| *mean == 1.0)
    );
    assert!(series("rollout_corr/kl").iter().all(|kl| *kl == 0.0));
}

/// PPO: a value function beside the policy, which waits a step for it.
const PPO: [&str; 6] = [
    "rl.steps=16",
    "rl.save_every=2",
    "rl.group_size=2",
    "rl.algorithm={advantage=\"gae\",lambda=0.95,kl={estimator=\"k1\",placement=\"reward\",coefficient=0.05,controller={type=\"adaptive\",target=0.001}}}",
    "rl.value={epochs=3,mini_batches=2,head_start=1,optimizer={lr=3e-3}}",
    "rl.optimizer={lr=1e-3}",
];

#[test]
fn a_killed_run_of_ppo_goes_on_to_the_same_end() {
    let directory = TempDir::new().unwrap();
    let (whole, value) = ppo_whole_and_killed(directory.path(), &PPO);
    assert_eq!(
        value,
        [
            "config.json",
            "model.safetensors",
            "optimizer.safetensors",
            "value_head.safetensors"
        ]
    );
    let series = |metric: &str| series(&whole, metric);
    let explained = series("critic/vf_explained_var");
    // The new head says 0 everywhere, which explains nothing.
    assert!(explained[0].abs() < 1e-9, "{explained:?}");
    assert!(
        explained[1..].iter().any(|share| *share > 0.0),
        "{explained:?}"
    );
    assert!(
        series("critic/updates")
            .iter()
            .all(|updates| *updates == 6.0)
    );
    assert!(series("critic/vf_loss").iter().all(|loss| *loss > 0.0));
    let norms = series("actor/grad_norm");
    assert_eq!(norms[0], 0.0, "the value function has a head start");
    assert!(norms[1..].iter().all(|norm| *norm > 0.0), "{norms:?}");
}

#[test]
fn a_killed_run_of_ppo_over_bf16_and_adapters_goes_on_to_the_same_end() {
    let directory = TempDir::new().unwrap();
    let adapters = [
        "critic.model.dtype=\"bf16\"",
        "critic.lora.full_stages=1",
        "critic.lora.rank=4",
        "critic.lora.alpha=8",
    ];
    let settings = [&PPO[..], &adapters].concat();
    let (whole, value) = ppo_whole_and_killed(directory.path(), &settings);
    // The value function is adapters too, over the weights that the policy's lie over.
    assert_eq!(
        value,
        [
            "adapter_config.json",
            "adapter_model.safetensors",
            "optimizer.safetensors",
            "value_head.safetensors"
        ]
    );
    // In each checkpoint of reinforcement the policy's and the value function's, and at the end the policy's.
    assert_adapters_lie_over_something(&whole, 5);
    let norms = series(&whole, "critic/grad_norm");
    assert!(norms.iter().all(|norm| *norm > 0.0), "{norms:?}");
}

/// Two runs with these settings, one of them on more threads and killed four times, that came to the same
/// bytes. Returns the other one and the names of the files of its value function.
fn ppo_whole_and_killed(scratch: &Path, settings: &[&str]) -> (PathBuf, Vec<String>) {
    let (whole, killed) = (scratch.join("whole"), scratch.join("killed"));
    assert_success(&train(scratch, &whole, settings).output().unwrap());

    let more_threads = [settings, &["threads=3"]].concat();
    let mut child = train(scratch, &killed, &more_threads)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // First behind the checkpoint of the second step, so the third is updated on again; then anywhere.
    for (kill, step) in [3, 4, 4, 5].into_iter().enumerate() {
        let reached = wait_while_running(&mut child, || last_step(&killed, RL) >= step);
        assert!(reached, "kill {kill} came after the end");
        child.kill().unwrap();
        child.wait().unwrap();
        child = resume(scratch, &killed);
    }
    assert!(child.wait().unwrap().success());
    assert_same_metrics(&killed, &whole);
    assert!(
        contents(&killed.join(FINAL)) == contents(&whole.join(FINAL)),
        "the final weights differ"
    );
    assert!(played(&killed) == played(&whole), "the episodes differ");
    // The value function and its moments too.
    let value = Path::new("checkpoints/rl-000016/value");
    let files = contents(&whole.join(value));
    assert!(
        contents(&killed.join(value)) == files,
        "the value functions differ"
    );
    let names = files.keys().map(|name| name.to_str().unwrap().to_owned());
    (whole, names.collect())
}

#[test]
fn settings_that_make_no_sense_together_are_refused() {
    let scratch = TempDir::new().unwrap();
    let run = scratch.path().join("run");
    for (settings, says) in [
        (
            &["rl.group_size=1"][..],
            "fewer have nothing to be compared with",
        ),
        (
            &[
                "rl.group_size=1",
                "rl.algorithm.advantage=\"remax\"",
                "rl.algorithm.zero_variance=\"resample\"",
            ],
            "a group of one never varies",
        ),
        (&["rl.epochs=0"], "must be at least 1"),
        (&["rl.algorithm.advantage=\"gae\""], "go together"),
        (&["rl.value={optimizer={lr=1e-3}}"], "go together"),
        (
            &[
                "rl.algorithm.advantage=\"gae\"",
                "rl.value={clip=0.0,optimizer={lr=1e-3}}",
            ],
            "rl.value: `clip` is 0",
        ),
        (
            &[
                "rl.algorithm.advantage=\"gae\"",
                "rl.value={head_start=40,optimizer={lr=1e-3}}",
            ],
            "rl.value.head_start is 40",
        ),
        (&["critic.temperature=0.0"], "critic.temperature is 0"),
        (&["rl.algorithm.gamma=1.5"], "gamma"),
        (
            &["rl.algorithm.lambda=0.95"],
            "rl.algorithm: `lambda` is 0.95",
        ),
        (
            &[
                "rl.algorithm.loss_mode=\"gspo\"",
                "rl.algorithm.dual_clip=3.0",
            ],
            "rl.algorithm: `dual_clip` is 3",
        ),
        (
            &[
                "rl.algorithm.loss_mode=\"sapo\"",
                "rl.algorithm.aggregation=\"token-mean\"",
            ],
            "rl.algorithm: `aggregation` is token-mean",
        ),
        (
            &["rl.algorithm.kl={coefficient=0.0,controller={type=\"adaptive\"}}"],
            "`kl.coefficient` is 0",
        ),
        (&["rl.algorithm.covariance={ratio=0.0}"], "covariance.ratio"),
        (
            &["rl.algorithm.kl.controller={type=\"adaptive\",target=0.0}"],
            "kl.controller.target",
        ),
        (
            &["rl.algorithm.rollout_correction={rollout_rs=[{by=\"seq-mean-k3\",threshold=-1.0}]}"],
            "rollout_correction.threshold",
        ),
    ] {
        let refused = train(scratch.path(), &run, settings).output().unwrap();
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{settings:?}: {}",
            stderr(&refused)
        );
        assert!(
            stderr(&refused).contains(says),
            "{settings:?}: {}",
            stderr(&refused)
        );
        assert!(!run.exists());
    }
}
