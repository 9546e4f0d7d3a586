//! Equal seeds give equal bytes, whatever the threads and the concurrency.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{
    etude::{assert_success, committed, etude, learning_recipe},
    runs::{assert_same_metrics, final_weights, series, weights},
};

/// Less of everything than the recipe has, so that several runs fit into a test.
const SMALLER: [&str; 5] = [
    "rl.steps=5",
    "rl.save_every=3",
    "tasks.eval=4",
    "tasks.train=32",
    "sft.save_every=1000",
];

#[test]
fn threads_and_concurrency_change_nothing_and_the_seed_does() {
    let directory = TempDir::new().unwrap();
    let first = train(directory.path(), "one-thread", &["threads=1"]);
    assert!(
        series(&first, "actor/grad_norm")
            .iter()
            .any(|norm| *norm > 0.0)
    );
    assert!(
        final_weights(&first) != weights(&first, "critic-sft"),
        "nothing was learnt"
    );

    let others: [(&str, &[&str]); 2] = [
        (
            "two-threads-all-at-once",
            &["threads=2", "rollout.concurrency=512"],
        ),
        (
            "four-threads-one-at-a-time-and-everything-twice",
            &[
                "threads=4",
                "rollout.concurrency=1",
                "training.gradient_checkpointing=true",
            ],
        ),
    ];
    for (name, sets) in others {
        let other = train(directory.path(), name, sets);
        assert_same_metrics(&other, &first);
        for checkpoint in ["critic-sft", "reviser", "critic-rl"] {
            let same = weights(&other, checkpoint) == weights(&first, checkpoint);
            assert!(same, "{name}: the weights of {checkpoint} differ");
        }
    }

    let reseeded = train(directory.path(), "reseeded", &["threads=2", "seed=1"]);
    assert!(final_weights(&reseeded) != final_weights(&first));
    assert!(
        committed(&reseeded).metrics_without_timings()
            != committed(&first).metrics_without_timings()
    );
}

fn train(directory: &Path, name: &str, sets: &[&str]) -> PathBuf {
    let run = directory.join(name);
    let mut command = etude(directory, ["train".as_ref(), learning_recipe().as_os_str()]);
    command.args(["--run".as_ref(), run.as_os_str()]);
    for set in SMALLER.iter().chain(sets) {
        command.args(["--set", set]);
    }
    assert_success(&command.output().unwrap());
    run
}
