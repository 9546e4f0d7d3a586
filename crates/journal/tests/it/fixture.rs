//! A small run with every kind of record, made the same way in every test.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use journal::{Evaluation, Metrics, RunDir, RunStarted, Step, TestResult, TestRun};
use record::Estimate;
use record::{
    Call, Completion, Episode, EpisodeId, Group, Outcome, Reward, Sampling, StopReason, TaskId,
    WeightVersion,
};
use serde_json::json;

pub(crate) const RECIPE: &str = "study = \"critique\"\nseed = 7\n";

pub(crate) fn started() -> RunStarted {
    RunStarted {
        study: "critique".to_owned(),
        name: "tiny".to_owned(),
        seed: 7,
        recipe_hash: "abc123".to_owned(),
        etude: "0.1.0".to_owned(),
        machine: BTreeMap::from([("cores".to_owned(), "2".to_owned())]),
    }
}

pub(crate) fn step(phase: &str, step: u64) -> Step {
    // Thirds have no short decimal form, so a lossy text form of numbers would show.
    let value = step as f64 / 3.0;
    Step {
        phase: phase.to_owned(),
        step,
        tokens: 10 * step,
        metrics: Metrics::from([
            ("actor/kl_loss".to_owned(), value * 1e-7),
            ("critic/rewards/mean".to_owned(), value),
        ]),
        timings: Metrics::from([("timing_s/step".to_owned(), 0.25)]),
        episodes: None,
    }
}

pub(crate) fn groups(step: u64) -> Vec<Group> {
    (0..2)
        .map(|group| {
            let task = TaskId(format!("task-{step}-{group}"));
            let episodes = (0..3)
                .map(|member| episode(&task, step, group, member))
                .collect();
            Group { task, episodes }
        })
        .collect()
}

pub(crate) fn episode(task: &TaskId, step: u64, group: u32, member: u32) -> Episode {
    let response: Vec<u32> = (0..20)
        .map(|i| (step as u32 * 31 + group * 7 + member + i) % 512)
        .collect();
    let logprobs = response
        .iter()
        .map(|&id| -(id as f32 + 0.1).ln() / 3.0)
        .collect();
    Episode {
        id: EpisodeId {
            step,
            group,
            member,
        },
        task: task.clone(),
        calls: vec![Call::new(
            "critic",
            Completion {
                prompt: vec![1, 2, 3],
                response,
                logprobs,
                sampled_logprobs: Vec::new(),
                top_logprobs: Vec::new(),
                prompt_logprobs: Vec::new(),
                stop: StopReason::Stop,
                sampling: Sampling::at(1.0, 20),
                weights: WeightVersion(step),
            },
        )],
        outcome: if member == 2 {
            Outcome::InfraFault {
                message: "the sandbox went away".to_owned(),
            }
        } else {
            Outcome::Graded {
                reward: Reward::of("passed", f64::from(member)),
            }
        },
        retries: 0,
        notes: json!({"critique": "Überall \"gut\"\n", "passed": member == 1}),
    }
}

pub(crate) fn evaluation(name: &str) -> Evaluation {
    Evaluation {
        name: name.to_owned(),
        policy: "rl".to_owned(),
        n_tasks: 500,
        metrics: BTreeMap::from([(
            "pass_at_1".to_owned(),
            Estimate {
                value: 0.61,
                low: 0.57,
                high: 0.65,
            },
        )]),
        ..Evaluation::default()
    }
}

pub(crate) fn test_run() -> TestRun {
    TestRun {
        backend: "local".to_owned(),
        command: "python3 main.py".to_owned(),
        duration_sec: 0.5,
        result: TestResult {
            mode: "stdio".to_owned(),
            rc: Some(0),
            passed: true,
        },
        ..TestRun::default()
    }
}

/// A finished run with every kind of record that a run can have without being killed.
pub(crate) fn whole_run(path: &Path) {
    let run = RunDir::create(path, RECIPE, started()).unwrap();
    run.phase_started("sft/critic").unwrap();
    for number in 1..=3 {
        run.commit_step(step("sft/critic", number), None).unwrap();
    }
    run.checkpoint("sft", "sft/critic", 3, |dir| {
        fs::write(dir.join("w"), [7; 100])
    })
    .unwrap();
    run.phase_ended("sft/critic", 0).unwrap();
    run.commit_evaluation(evaluation("sft"), Some(&groups(0)))
        .unwrap();
    run.phase_started("rl").unwrap();
    for number in 1..=4 {
        run.event(
            "group_done",
            json!({"step": number}).as_object().unwrap().clone(),
        )
        .unwrap();
        run.test_run(&test_run()).unwrap();
        run.commit_step(step("rl", number), Some(&groups(number)))
            .unwrap();
        run.checkpoint(&format!("rl-{number}"), "rl", number, |dir| {
            fill(dir, number)
        })
        .unwrap();
        run.prune("rl", 2).unwrap();
    }
    run.phase_ended("rl", 0).unwrap();
    run.commit_evaluation(evaluation("rl"), None).unwrap();
    run.note("sandbox/tier", "namespaces").unwrap();
    run.finish().unwrap();
}

/// A short run, for tests that go through its log byte by byte.
pub(crate) fn short_run(path: &Path) {
    let run = RunDir::create(path, RECIPE, started()).unwrap();
    run.phase_started("rl").unwrap();
    run.commit_step(step("rl", 1), Some(&groups(1))).unwrap();
    run.checkpoint("rl-1", "rl", 1, |dir| fill(dir, 1)).unwrap();
    run.commit_evaluation(evaluation("rl"), None).unwrap();
    run.finish().unwrap();
}

/// What the fixture's checkpoints hold: a nested file, so that digests look below the top.
pub(crate) fn fill(dir: &Path, number: u64) -> io::Result<()> {
    fs::create_dir(dir.join("policy"))?;
    fs::write(
        dir.join("policy/model.safetensors"),
        vec![number as u8; 5000],
    )?;
    fs::write(dir.join("state.json"), format!("{{\"step\": {number}}}"))
}

/// A copy of a directory tree, for a test to damage.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Every file under a directory with its content, in name order.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let relative = path.strip_prefix(root).unwrap().to_owned();
                found.insert(relative, fs::read(&path).unwrap());
            }
        }
    }
    found
}
