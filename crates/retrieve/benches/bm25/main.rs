//! BM25 over the facts of a long memory: building, inserting, asking, snapshots; beside `rank_bm25` and `bm25s` on the
//! same facts and questions in the same run.
//!
//! `cargo bench -p retrieve --bench bm25 -- [PYTHON] [--facts 100000] [--rounds 3]`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark"
)]

mod facts;

use std::{fs, path::Path, process::Command, time::Instant};

use facts::World;
use record::Seed;
use retrieve::{Analyzer, Bm25Config, Bm25Index, DocId};
use serde_json::{Value, json};

const QUESTIONS: usize = 200;
/// Questions to the slow peer, the first ones of all.
const PEER_QUESTIONS: usize = 20;
const SIZES: [usize; 2] = [10, 20];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|it| it != "--bench");
    let (mut python, mut facts, mut rounds) = (None, 100_000, 3);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().unwrap().parse().unwrap();
        match argument.as_str() {
            "--facts" => facts = number(),
            "--rounds" => rounds = number(),
            _ => python = Some(argument),
        }
    }
    let world = World::new(Seed(5));
    let (texts, questions) = material(&world, facts);
    let folder = tempfile::tempdir().unwrap();
    if python.is_some() {
        write_material(folder.path(), &texts, &questions);
    }
    let mut rows: Vec<Row> = Vec::new();
    for round in 0..rounds {
        own(&mut rows, &texts, &questions);
        let Some(python) = &python else { continue };
        let Some(answer) = peer(python, folder.path()) else {
            continue;
        };
        for (name, seconds) in answer["seconds"].as_object().unwrap() {
            let seconds: Vec<f64> = serde_json::from_value(seconds.clone()).unwrap();
            note(&mut rows, name, median(seconds));
        }
        if round == 0 {
            agree(&texts, &questions, &answer);
        }
    }
    report(facts, rounds, rows);
    if python.is_none() {
        println!("no peer: see benches/peers/README.md for how to run rank_bm25 and bm25s beside");
    }
}

/// A measure and its value in each round, in seconds.
struct Row {
    name: String,
    seconds: Vec<f64>,
}

fn note(rows: &mut Vec<Row>, name: &str, seconds: f64) {
    match rows.iter_mut().find(|it| it.name == name) {
        Some(row) => row.seconds.push(seconds),
        None => rows.push(Row {
            name: name.to_owned(),
            seconds: vec![seconds],
        }),
    }
}

/// Facts, and questions about facts spread over all of them.
fn material(world: &World, facts: usize) -> (Vec<String>, Vec<String>) {
    let all: Vec<facts::Fact> = (0..facts as u64).map(|at| world.fact(at)).collect();
    let step = (facts / QUESTIONS).max(1);
    let questions = all.iter().step_by(step).take(QUESTIONS);
    let questions = questions.map(|it| it.question.clone()).collect();
    (all.into_iter().map(|it| it.text).collect(), questions)
}

fn empty() -> Bm25Index {
    Bm25Index::new(Bm25Config::default(), Analyzer::default())
}

fn own(rows: &mut Vec<Row>, texts: &[String], questions: &[String]) {
    let started = Instant::now();
    let mut index = empty();
    for (doc, text) in (0..).zip(texts) {
        index.insert(doc, text);
    }
    note(rows, "build", started.elapsed().as_secs_f64());
    for k in SIZES {
        note(rows, &format!("query, k = {k}"), ask(&index, questions, k));
    }

    let mut thinned = index.clone();
    let started = Instant::now();
    for doc in (0..texts.len() as DocId).step_by(10) {
        assert!(thinned.remove(doc));
    }
    let removed = texts.len().div_ceil(10) as f64;
    note(
        rows,
        "remove, every tenth fact",
        started.elapsed().as_secs_f64() / removed,
    );
    note(
        rows,
        "query, k = 10, after these",
        ask(&thinned, questions, 10),
    );

    for size in [30, 1000, texts.len()] {
        let mut index = empty();
        for (doc, text) in (0..).zip(&texts[..size.min(texts.len())]) {
            index.insert(doc, text);
        }
        note(
            rows,
            &format!("query, k = 10, of {size}"),
            ask(&index, questions, 10),
        );
        // The base grows, so that snapshots are taken at every fill of the tail and before every kind of merge.
        let (mut seconds, mut kept) = (Vec::new(), Vec::new());
        let more = (size as DocId..).zip(texts).take(2000);
        let all = Instant::now();
        for (doc, text) in more {
            let started = Instant::now();
            let mut snapshot = index.clone();
            snapshot.insert(doc, text);
            seconds.push(started.elapsed().as_secs_f64());
            kept.push(snapshot);
            index.insert(doc, text);
        }
        let each = all.elapsed().as_secs_f64() / kept.len() as f64;
        let name = format!("snapshot and insert, at {size}");
        note(rows, &format!("{name}, median"), median(seconds.clone()));
        note(
            rows,
            &format!("{name}, longest"),
            seconds.into_iter().fold(0.0, f64::max),
        );
        note(rows, &format!("{name}, and insert in the base, mean"), each);
    }
}

/// The median seconds of a question.
fn ask(index: &Bm25Index, questions: &[String], k: usize) -> f64 {
    let seconds = questions.iter().map(|question| {
        let started = Instant::now();
        let found = index.search(question, k);
        let seconds = started.elapsed().as_secs_f64();
        assert!(!found.is_empty() || index.len() < 1000);
        seconds
    });
    median(seconds.collect())
}

fn write_material(folder: &Path, texts: &[String], questions: &[String]) {
    let analyzer = Analyzer::default();
    let terms = |texts: &[String]| -> Vec<Vec<String>> {
        texts.iter().map(|it| analyzer.terms(it)).collect()
    };
    let config = Bm25Config::default();
    let material = json!({
        "facts": terms(texts),
        "questions": terms(questions),
        "few": PEER_QUESTIONS,
        "sizes": SIZES,
        "k1": config.k1,
        "b": config.b,
    });
    fs::write(folder.join("material.json"), material.to_string()).unwrap();
}

fn peer(python: &str, folder: &Path) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/peers/bm25.py");
    let out = Command::new(python)
        .arg(script)
        .arg(folder.join("material.json"))
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

/// The peer's best documents under the same formula must be the same, scores within 1e-9.
fn agree(texts: &[String], questions: &[String], answer: &Value) {
    let mut index = empty();
    for (doc, text) in (0..).zip(texts) {
        index.insert(doc, text);
    }
    let theirs: Vec<Vec<(DocId, f64)>> = serde_json::from_value(answer["best"].clone()).unwrap();
    assert_eq!(theirs.len(), PEER_QUESTIONS.min(questions.len()));
    for (question, theirs) in questions.iter().zip(&theirs) {
        let found = index.search(question, 10);
        assert_eq!(found.len(), theirs.len(), "{question}");
        for (own, (doc, score)) in found.iter().zip(theirs) {
            let close = (own.score - score).abs() < 1e-9;
            assert!(
                own.doc == *doc && close,
                "{question}: {own:?} where the peer has {doc} at {score}"
            );
        }
    }
    println!(
        "the best 10 of {} questions are those of rank_bm25 with the same idf, scores within 1e-9",
        theirs.len()
    );
}

fn report(facts: usize, rounds: usize, rows: Vec<Row>) {
    println!("{facts} facts, {QUESTIONS} questions; medians of {rounds} rounds");
    let medians: Vec<(String, f64)> = rows
        .into_iter()
        .map(|row| (row.name, median(row.seconds)))
        .collect();
    for (name, seconds) in &medians {
        // Peers call their measures as this benchmark does, behind their own name.
        let own = name
            .split_once(": ")
            .and_then(|(_, measure)| medians.iter().find(|(own, _)| own == measure));
        let ratio = own.map(|(_, own)| format!("{:>10.1} times as long", seconds / own));
        println!(
            "{name:<62} {:>12.2} us{}",
            seconds * 1e6,
            ratio.unwrap_or_default()
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
