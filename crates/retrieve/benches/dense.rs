//! Exact dense search over the vectors of a long memory, and a snapshot of it; beside numpy on the same vectors.
//!
//! `cargo bench -p retrieve --bench dense -- [PYTHON] [--facts 100000] [--dimension 256] [--rounds 3]`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark"
)]

use std::{fs, path::Path, process::Command, time::Instant};

use rand::RngExt;
use record::Seed;
use retrieve::{DenseIndex, DocId};
use serde_json::Value;

const QUESTIONS: usize = 50;
const K: usize = 10;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|it| it != "--bench");
    let (mut python, mut facts, mut dimension, mut rounds) = (None, 100_000, 256, 3);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().unwrap().parse().unwrap();
        match argument.as_str() {
            "--facts" => facts = number(),
            "--dimension" => dimension = number(),
            "--rounds" => rounds = number(),
            _ => python = Some(argument),
        }
    }
    let rng = &mut Seed(5).stream("vectors", 0).rng();
    let mut vectors = |count: usize| -> Vec<Vec<f32>> {
        let mut vector = || (0..dimension).map(|_| rng.random::<f32>() - 0.5).collect();
        (0..count).map(|_| vector()).collect()
    };
    let (rows, questions) = (vectors(facts), vectors(QUESTIONS));
    let folder = tempfile::tempdir().unwrap();
    if python.is_some() {
        for (name, vectors) in [("facts", &rows), ("questions", &questions)] {
            let bytes: Vec<u8> = vectors
                .iter()
                .flatten()
                .flat_map(|it| it.to_le_bytes())
                .collect();
            fs::write(folder.path().join(name), bytes).unwrap();
        }
    }

    let (mut build, mut query, mut snapshot, mut theirs) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rounds {
        let started = Instant::now();
        let mut index = DenseIndex::new(dimension);
        for (doc, row) in (0..).zip(&rows) {
            index.insert(doc, row).unwrap();
        }
        build.push(started.elapsed().as_secs_f64());
        let mut found = Vec::new();
        let seconds = questions.iter().map(|question| {
            let started = Instant::now();
            found.push(index.search(question, K).unwrap());
            started.elapsed().as_secs_f64()
        });
        query.push(median(seconds.collect()));
        let seconds = (facts as DocId..).zip(&rows).take(1000).map(|(doc, row)| {
            let started = Instant::now();
            let mut copy = index.clone();
            copy.insert(doc, row).unwrap();
            let seconds = started.elapsed().as_secs_f64();
            index.insert(doc, row).unwrap();
            seconds
        });
        snapshot.push(median(seconds.collect()));
        if let Some(answer) = python
            .as_ref()
            .and_then(|it| peer(it, folder.path(), dimension))
        {
            let seconds: Vec<f64> = serde_json::from_value(answer["seconds"].clone()).unwrap();
            theirs.push(median(seconds));
            let best: Vec<Vec<(DocId, f64)>> =
                serde_json::from_value(answer["best"].clone()).unwrap();
            for (own, best) in found.iter().zip(&best) {
                for (own, (doc, score)) in own.iter().zip(best) {
                    assert!(
                        own.doc == *doc && (own.score - score).abs() < 1e-5,
                        "{own:?}, {doc}, {score}"
                    );
                }
            }
        }
    }
    println!("{facts} vectors of {dimension}, k = {K}; medians of {rounds} rounds");
    let query = median(query);
    println!("build                  {:>10.1} ms", median(build) * 1e3);
    println!("query                  {:>10.2} ms", query * 1e3);
    println!("snapshot and insert    {:>10.2} us", median(snapshot) * 1e6);
    if !theirs.is_empty() {
        let theirs = median(theirs);
        println!(
            "numpy, one thread      {:>10.2} ms, {:.1} times as long",
            theirs * 1e3,
            theirs / query
        );
    }
}

fn peer(python: &str, folder: &Path, dimension: usize) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/dense.py");
    let out = Command::new(python)
        .arg(script)
        .args([
            folder.as_os_str(),
            dimension.to_string().as_ref(),
            K.to_string().as_ref(),
        ])
        .env("OPENBLAS_NUM_THREADS", "1")
        .output();
    match out {
        Ok(out) if out.status.success() => Some(serde_json::from_slice(&out.stdout).unwrap()),
        Ok(out) => {
            println!("peer: {}", String::from_utf8_lossy(&out.stderr));
            None
        }
        Err(error) => {
            println!("peer: {error}");
            None
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
