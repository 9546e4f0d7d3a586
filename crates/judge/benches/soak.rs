//! Judges a hundred thousand programs whose verdicts are known, and shows that memory stays flat.
//!
//! `cargo bench -p judge --bench soak [-- N]`. Exits with 1 when a verdict is wrong.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints"
)]

use std::{fs, time::Instant};

use futures::{StreamExt, stream};
use judge::{Judge, JudgeConfig, Tests, Value, VerdictStatus};
use sandbox::{Config, Sandbox};

const SLOTS: usize = 2;
const CLIENTS: usize = 8;

fn main() {
    let n: usize = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(100_000);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let wrong = runtime.block_on(soak(n));
    println!("{wrong} wrong verdicts of {n}");
    std::process::exit(i32::from(wrong > 0));
}

async fn soak(n: usize) -> usize {
    let sandbox = Sandbox::start(Config::new(SLOTS)).unwrap();
    let judge = Judge::new(
        sandbox.clone(),
        JudgeConfig {
            cache_capacity: 1000,
            ..JudgeConfig::small()
        },
    );
    println!(
        "{:>8} {:>8} {:>7} {:>7} {:>12} {:>14}",
        "verdicts", "n/s", "wrong", "errors", "own RSS MB", "jail PSS MB"
    );
    let (mut wrong, mut errors) = (0, 0);
    let mut started = Instant::now();
    let mut verdicts = stream::iter(0..n)
        .map(|i| {
            let judge = judge.clone();
            async move {
                let (program, tests, expected) = case(i);
                let verdict = judge.verdict(&program, &tests).await;
                verdict.map(|verdict| verdict.status == expected)
            }
        })
        .buffer_unordered(CLIENTS);
    let report = (n / 10).max(1);
    let mut done = 0;
    while let Some(verdict) = verdicts.next().await {
        match verdict {
            Ok(right) => wrong += usize::from(!right),
            Err(_) => errors += 1,
        }
        done += 1;
        if done % report == 0 {
            let rate = report as f64 / started.elapsed().as_secs_f64();
            let (own, jail) = (own_memory(), descendants_memory());
            println!("{done:>8} {rate:>8.0} {wrong:>7} {errors:>7} {own:>12.1} {jail:>14.1}");
            started = Instant::now();
        }
    }
    wrong
}

/// The `i`-th program with its tests and the verdict it must get. All differ, so none is cached.
fn case(i: usize) -> (String, Tests, VerdictStatus) {
    let cases = |entry: &str| {
        let calls = (0..5).map(|x| (vec![Value::Int(x)], Value::Int(x * 3 + i as i64)));
        Tests::function(entry, calls)
    };
    match i % 8 {
        0..=2 => (
            format!("def f(x):\n    return x * 3 + {i}\n"),
            cases("f"),
            VerdictStatus::Passed,
        ),
        3 => (
            format!("def f(x):\n    return x * 3 + {i} + (x == 4)\n"),
            cases("f"),
            VerdictStatus::Wrong,
        ),
        4 => (
            format!("def f(x):\n    return [{i}][x]\n"),
            cases("f"),
            VerdictStatus::Error,
        ),
        5 => (
            format!("import os\ndef f(x):\n    os._exit({i} & 0)\n"),
            cases("f"),
            VerdictStatus::Error,
        ),
        6 => (
            format!("print(int(input()) + {i})\n"),
            Tests::stdio([("4\n".to_owned(), (4 + i).to_string())]),
            VerdictStatus::Passed,
        ),
        _ => (
            format!("print(int(input()) - {i} - 1)\n"),
            Tests::stdio([("4\n".to_owned(), (4 + i).to_string())]),
            VerdictStatus::Wrong,
        ),
    }
}

fn own_memory() -> f64 {
    field("/proc/self/status", "VmRSS:").unwrap_or(0.0)
}

/// Proportional, so that what the warm interpreters share counts once.
fn descendants_memory() -> f64 {
    let mut waiting = vec![std::process::id()];
    let mut total = 0.0;
    while let Some(pid) = waiting.pop() {
        for task in fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|id| id.parse().ok());
            for child in children {
                total += field(&format!("/proc/{child}/smaps_rollup"), "Pss:").unwrap_or(0.0);
                waiting.push(child);
            }
        }
    }
    total
}

/// A value in kB of a file of `/proc`, as MB.
fn field(path: &str, name: &str) -> Option<f64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}
