//! Packing 8 192 rows and their GRPO advantages, beside verl's `core_algos` and `DataProto` in the same run.
//!
//! `cargo bench -p learn --bench pack -- [PYTHON]`; how to install the peer: `benches/peers/README.md`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, starts its peer and stops when something fails"
)]

use std::{fs, path::Path, process::Command, time::Instant};

use learn::{
    AlgorithmConfig, batch_of_groups,
    pack::{Layout, PackOptions, Packed, pack, rows_of},
};
use rand::{Rng, RngExt};
use record::{
    Call, Completion, Episode, EpisodeId, Group, Outcome, Reward, Sampling, Seed, StopReason,
    TaskId, WeightVersion,
};
use serde_json::{Value, json};

const GROUPS: u32 = 1024;
const MEMBERS: u32 = 8;
const PROMPT: std::ops::Range<usize> = 128..1024;
const RESPONSE: std::ops::Range<usize> = 16..256;
const ROUNDS: usize = 7;

fn main() {
    let python = std::env::args()
        .skip(1)
        .find(|argument| argument != "--bench");
    let groups = groups();
    let mut packing = Vec::new();
    let mut advantage = Vec::new();
    let mut found = None;
    for round in 0..=ROUNDS {
        drop(found.take());
        let (seconds, packed) = ours(&groups);
        // The first round warms up.
        if round > 0 {
            packing.push(seconds[1]);
            advantage.push(seconds[0]);
        }
        found = Some(packed);
    }
    let packed = found.unwrap();
    let [rows, width] = packed.input_ids.shape();
    let tokens: i64 = packed.attention_mask.data().iter().sum();
    println!("{rows} rows, {tokens} tokens, input_ids of {rows} x {width}; medians of {ROUNDS}");
    let ours = [median(&mut advantage), median(&mut packing)];
    println!(
        "etude: rows and advantages {:.1} ms, packing {:.1} ms, together {:.1} ms",
        ours[0] * 1e3,
        ours[1] * 1e3,
        (ours[0] + ours[1]) * 1e3
    );
    match python {
        Some(python) => beside(&python, &groups, &packed, ours[0] + ours[1]),
        None => println!("no peer: give a Python with verl, as benches/peers/README.md says"),
    }
}

/// Rows and advantages out of episodes, then matrices; the seconds of each.
fn ours(groups: &[Group]) -> ([f64; 2], Packed) {
    let started = Instant::now();
    let (batch, _) = batch_of_groups(groups, &["policy"], &AlgorithmConfig::default()).unwrap();
    let rows = rows_of(groups, &batch, "bench");
    let made = started.elapsed().as_secs_f64();
    let options = PackOptions {
        layout: Layout::VerlSplit,
        pad_id: 0,
        rows_divisible_by: 1,
    };
    let packed = pack(&rows, options);
    let ended = started.elapsed().as_secs_f64();
    ([made, ended - made], packed)
}

fn beside(python: &str, groups: &[Group], packed: &Packed, ours: f64) {
    let folder = tempfile::tempdir().unwrap();
    let (rows, out) = (
        folder.path().join("rows.json"),
        folder.path().join("out.json"),
    );
    let calls = || groups.iter().flat_map(|group| &group.episodes);
    let completions = || calls().map(|episode| &episode.calls[0].completion);
    let input = json!({
        "prompts": completions().map(|it| &it.prompt).collect::<Vec<_>>(),
        "responses": completions().map(|it| &it.response).collect::<Vec<_>>(),
        "logprobs": completions().map(|it| &it.logprobs).collect::<Vec<_>>(),
        "rewards": calls().map(|it| it.outcome.reward().unwrap().total).collect::<Vec<_>>(),
        "uid": calls().map(|it| it.task.to_string()).collect::<Vec<_>>(),
    });
    fs::write(&rows, input.to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/verl_packing.py");
    let threads = std::thread::available_parallelism().unwrap().to_string();
    let output = Command::new(python)
        .args([&script, &rows, &out])
        .args([ROUNDS.to_string(), threads.clone()])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let answer: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    for (name, rounds) in answer["seconds"].as_object().unwrap() {
        let of = |place: usize| {
            let seconds = rounds.as_array().unwrap().iter();
            let mut seconds: Vec<f64> = seconds
                .map(|round| round[place].as_f64().unwrap())
                .collect();
            median(&mut seconds)
        };
        let (packing, advantage) = (of(0), of(1));
        println!(
            "verl, {threads} threads, {name}: packing {:.1} ms, advantages {:.1} ms, together {:.1} ms, \
             {:.1} times as long",
            packing * 1e3,
            advantage * 1e3,
            (packing + advantage) * 1e3,
            (packing + advantage) / ours
        );
    }
    let checks = &answer["checks"];
    let sum = |matrix: &learn::pack::Matrix<i64>| matrix.data().iter().sum::<i64>();
    assert_eq!(checks["shape"], json!(packed.input_ids.shape()));
    assert_eq!(checks["sum_input_ids"], sum(&packed.input_ids));
    assert_eq!(checks["sum_attention"], sum(&packed.attention_mask));
    assert_eq!(checks["sum_positions"], sum(&packed.position_ids));
    let theirs = checks["advantages"].as_array().unwrap().iter();
    let largest = theirs
        .enumerate()
        .map(|(row, value)| {
            (value.as_f64().unwrap() - f64::from(packed.advantages.row(row)[0])).abs()
        })
        .fold(0.0, f64::max);
    assert!(largest < 1e-4, "advantages differ by {largest}");
    println!("both have the same rows; advantages differ by {largest:.1e} at most");
}

fn groups() -> Vec<Group> {
    let mut rng = Seed(1).stream("rows", 0).rng();
    let group = |group: u32| {
        let length = rng.random_range(PROMPT);
        let prompt: Vec<u32> = (0..length).map(|_| rng.random_range(0..32_000)).collect();
        let mut episode = |member: u32| {
            let length = rng.random_range(RESPONSE);
            let response: Vec<u32> = (0..length).map(|_| rng.random_range(0..32_000)).collect();
            let completion = Completion {
                prompt: prompt.clone(),
                logprobs: response
                    .iter()
                    .map(|_| -3.0 * rng.random::<f32>())
                    .collect(),
                response,
                sampled_logprobs: Vec::new(),
                top_logprobs: Vec::new(),
                prompt_logprobs: Vec::new(),
                stop: StopReason::Stop,
                sampling: Sampling::at(1.0, 256),
                weights: WeightVersion(0),
            };
            Episode {
                id: EpisodeId {
                    step: 1,
                    group,
                    member,
                },
                task: TaskId(format!("task-{group}")),
                calls: vec![Call::new("policy", completion)],
                outcome: Outcome::Graded {
                    reward: Reward::of("score", f64::from(rng.next_u32() % 5) / 4.0),
                },
                retries: 0,
                notes: Value::Null,
            }
        };
        Group {
            task: TaskId(format!("task-{group}")),
            episodes: (0..MEMBERS).map(&mut episode).collect(),
        }
    };
    (0..GROUPS).map(group).collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
