//! Reading and writing rows as verl's trainer has them, against Python's json and pyarrow in the same run.
//!
//! `cargo bench -p dataset --bench rows -- [PYTHON]`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark"
)]

use std::{collections::BTreeMap, fs, path::Path, process::Command, time::Instant};

use dataset::{JsonlWriter, Rows, write_parquet};
use serde_json::{Map, Value, json};

const ROWS: usize = 20_000;
const ROUNDS: usize = 5;

fn main() {
    let python = std::env::args()
        .skip(1)
        .find(|argument| argument != "--bench");
    let python = python.as_deref().unwrap_or("python3");
    let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/rows.py");
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let rows: Vec<Map<String, Value>> = (0..ROWS).map(row).collect();

    let mut writer = JsonlWriter::create(&at("rows.jsonl")).unwrap();
    rows.iter().for_each(|row| writer.write(row).unwrap());
    writer.finish().unwrap();
    fs::write(at("rows.json"), json!(rows).to_string()).unwrap();

    let mut ours: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut theirs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let mut timed = |name, work: &mut dyn FnMut()| {
            let started = Instant::now();
            work();
            ours.entry(name)
                .or_default()
                .push(started.elapsed().as_secs_f64());
        };
        timed("write Parquet", &mut || {
            write_parquet(&at("rows.parquet"), &rows, &[]).unwrap();
        });
        for (name, file) in [
            ("read JSON Lines", "rows.jsonl"),
            ("read a JSON list", "rows.json"),
            ("read Parquet", "rows.parquet"),
        ] {
            timed(name, &mut || {
                let read: Vec<Value> = Rows::open(&at(file)).unwrap().read().unwrap();
                assert_eq!(read.len(), ROWS);
            });
        }
        let output = Command::new(python).arg(&peer).arg(folder.path()).output();
        match output {
            Ok(output) if output.status.success() => {
                let seconds: BTreeMap<String, f64> =
                    serde_json::from_slice(&output.stdout).unwrap();
                for (name, seconds) in seconds {
                    theirs.entry(name).or_default().push(seconds);
                }
            }
            Ok(output) => println!("peer: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => println!("peer: {error}"),
        }
    }

    let bytes = fs::metadata(at("rows.jsonl")).unwrap().len() as f64 / 1e6;
    println!("{ROWS} rows, {bytes:.0} MB of JSON Lines, one thread, medians of {ROUNDS}");
    println!("{:<18} {:>9} {:>9} {:>7}", "", "here", "Python", "ratio");
    for (name, seconds) in &mut ours {
        let own = median(seconds);
        match theirs.get_mut(*name) {
            Some(peer) => {
                let peer = median(peer);
                println!("{name:<18} {own:>7.3} s {peer:>7.3} s {:>6.1}x", peer / own);
            }
            None => println!("{name:<18} {own:>7.3} s {:>9} {:>7}", "-", "-"),
        }
    }
}

/// About three kilobytes: a dialogue of ten messages with what is said of each.
fn row(index: usize) -> Map<String, Value> {
    let messages: Vec<Value> = (0..10)
        .map(|turn| {
            let words =
                format!("In session {turn} of row {index} somebody moved to \"Oslo\". ").repeat(4);
            json!({"role": if turn % 2 == 0 { "user" } else { "assistant" }, "content": words})
        })
        .collect();
    let notes: Vec<Value> = (0..10)
        .map(|turn| json!({"chunk_idx": turn, "token_count": 50 + turn, "role": "history"}))
        .collect();
    let row = json!({
        "data_source": "made",
        "prompt": messages,
        "reward_model": {"style": "rule", "ground_truth": [index.to_string()]},
        "extra_info": {"index": index, "turn_metadata": notes, "target_answer": null, "weight": 0.5},
    });
    match row {
        Value::Object(row) => row,
        _ => Map::new(),
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
