//! An exported batch is verl's `DataProto`, whatever verl does to its rows.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a failed unwrap is a failed test"
)]

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use learn::{
    AlgorithmConfig, batch_of_groups,
    pack::{Layout, PackOptions, Packed, Sidecar, pack, rows_of},
};
use record::{
    Call, Completion, Episode, EpisodeId, Group, Outcome, Reward, Sampling, StopReason, TaskId,
    WeightVersion,
};
use serde::Deserialize;
use serde_json::json;

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Told {
    row_key: Option<String>,
    step_reward: Option<f32>,
    sampled: Vec<u32>,
    advantages: Vec<f32>,
    is_pad: bool,
}

#[derive(Deserialize)]
struct Answer {
    rows: Vec<Told>,
    reordered: Vec<Told>,
    repeated: Vec<Told>,
    joined: Vec<Told>,
    grpo_of_first_steps: Vec<f32>,
    loss: f64,
}

/// Three groups of three members with one to three calls each; every second call is scored.
fn groups() -> Vec<Group> {
    let call = |group: u32, member: u32, step: u32| Call {
        turn: Some(step),
        step_reward: (step != 1).then_some(f64::from(member) / 4.0),
        ..Call::new(
            "answer",
            Completion {
                prompt: (0..3 + group + step).collect(),
                response: (0..=member + step).map(|id| id % 3).collect(),
                logprobs: (0..=member + step).map(|id| -0.5 - id as f32).collect(),
                sampled_logprobs: Vec::new(),
                top_logprobs: Vec::new(),
                prompt_logprobs: Vec::new(),
                stop: StopReason::Stop,
                sampling: Sampling::at(1.0, 8),
                weights: WeightVersion(0),
            },
        )
    };
    let episode = |group: u32, member: u32| Episode {
        id: EpisodeId {
            step: 2,
            group,
            member,
        },
        task: TaskId(format!("task-{group}")),
        calls: (0..=(group + member) % 3)
            .map(|step| call(group, member, step))
            .collect(),
        outcome: Outcome::Graded {
            reward: Reward::of("em", f64::from(member * (group + 1)) / 3.0),
        },
        retries: 0,
        notes: json!({ "events": [
            { "turn_id": 0, "turn_role": "history", "agent_role": "rule", "step_reward": 0.5 },
        ] }),
    };
    let group = |group: u32| Group {
        task: TaskId(format!("task-{group}")),
        episodes: (0..3).map(|member| episode(group, member)).collect(),
    };
    (0..3).map(group).collect()
}

fn packed() -> (Packed, Sidecar) {
    let (batch, _) = batch_of_groups(&groups(), &["answer"], &AlgorithmConfig::default()).unwrap();
    let rows = rows_of(&groups(), &batch, "test");
    let options = PackOptions {
        layout: Layout::VerlSplit,
        pad_id: 0,
        rows_divisible_by: 4,
    };
    (pack(&rows, options), Sidecar::of(&groups()).unwrap())
}

/// What should be said of the rows at `places`.
fn expected(packed: &Packed, sidecar: &Sidecar, places: &[usize]) -> Vec<Told> {
    let events = sidecar.by_step().unwrap();
    let mut rows = packed.unpad().into_iter();
    let rows: Vec<_> = packed
        .rows
        .iter()
        .map(|info| info.key.and_then(|_| rows.next()))
        .collect();
    let told = |&place: &usize| match &rows[place] {
        None => Told {
            row_key: None,
            step_reward: None,
            sampled: Vec::new(),
            advantages: Vec::new(),
            is_pad: true,
        },
        Some(row) => Told {
            row_key: Some(row.key.to_string()),
            step_reward: events[&row.key].step_reward,
            sampled: row.response.clone(),
            advantages: row.advantages.clone(),
            is_pad: false,
        },
    };
    places.iter().map(told).collect()
}

#[test]
fn the_script_of_the_documentation_is_the_one_that_is_tested() {
    let script = include_str!("cases/003_data_proto/check.py");
    let lines = script
        .split_once("# begin\n")
        .unwrap()
        .1
        .split_once("# end")
        .unwrap()
        .0;
    assert_eq!(lines.lines().count(), 3);
    let document = include_str!("../../../docs/verl.md");
    assert!(document.contains(lines), "docs/verl.md has other lines");
}

#[test]
fn verl_reads_what_was_packed_and_moves_it_without_loss() {
    let Some(python) = std::env::var_os("ETUDE_TEST_CLIENTS") else {
        eprintln!("skipped: ETUDE_TEST_CLIENTS names no Python with verl");
        return;
    };
    let imports = "import numpy, safetensors.torch, tensordict, verl";
    let probe = Command::new(&python)
        .args(["-c", imports])
        .output()
        .unwrap();
    if !probe.status.success() {
        let complaint = String::from_utf8_lossy(&probe.stderr);
        let last = complaint.lines().last().unwrap_or_default();
        eprintln!("skipped: the Python of ETUDE_TEST_CLIENTS lacks something of verl's: {last}");
        return;
    }
    let (packed, sidecar) = packed();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("batch.safetensors", &packed.to_safetensors().unwrap());
    let json = packed.to_json(&sidecar).unwrap().to_string();
    write("batch.json", json.as_bytes());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/003_data_proto/check.py");
    let output = Command::new(python)
        .arg(script)
        .arg(folder.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let last = String::from_utf8(output.stdout).unwrap();
    let answer: Answer = serde_json::from_str(last.lines().last().unwrap()).unwrap();

    let count = packed.rows.len();
    assert_eq!(count % 4, 0);
    assert!(packed.rows[count - 1].is_pad());
    let straight: Vec<usize> = (0..count).collect();
    assert_eq!(answer.rows, expected(&packed, &sidecar, &straight));
    let back: Vec<usize> = straight.iter().rev().copied().collect();
    assert_eq!(answer.reordered, expected(&packed, &sidecar, &back));
    let twice: Vec<usize> = straight.iter().flat_map(|&row| [row, row]).collect();
    assert_eq!(answer.repeated, expected(&packed, &sidecar, &twice));
    let swapped = [&straight[count / 2..], &straight[..count / 2]].concat();
    assert_eq!(answer.joined, expected(&packed, &sidecar, &swapped));
    let scored: Vec<Option<f32>> = answer.rows.iter().map(|row| row.step_reward).collect();
    assert!(
        scored.contains(&Some(0.0)) && scored.contains(&None),
        "None is not 0"
    );

    // Over one row an episode, verl's advantages are ours.
    let mut ours = BTreeMap::new();
    for row in packed.unpad().iter().filter(|row| row.key.step == 0) {
        ours.insert(row.key, row.advantages[0]);
    }
    assert_eq!(ours.len(), answer.grpo_of_first_steps.len());
    for (ours, theirs) in ours.values().zip(&answer.grpo_of_first_steps) {
        assert!((ours - theirs).abs() < 1e-4, "{ours}, not {theirs}");
    }
    let rows = packed.unpad();
    let sampled = rows.iter().filter(|row| !row.advantages.is_empty());
    let losses = sampled.map(|row| -f64::from(row.advantages[0]) * 0.1_f64.exp());
    let loss = losses.sum::<f64>() / rows.len() as f64;
    assert!(
        (answer.loss - loss).abs() < 1e-5,
        "{}, not {loss}",
        answer.loss
    );
}
