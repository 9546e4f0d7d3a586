//! Prints what isolation costs: jailed runs, verdicts and batch evaluation against a bare interpreter.
//!
//! `cargo bench -p judge`. CPU time is user and system time of this process and of all its ended
//! descendants, so the supervisor, the slots and the interpreters' start are in it. Wall times depend on
//! what else the machine does.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints"
)]

use std::{
    process::{Command, Stdio},
    time::Instant,
};

use futures::{StreamExt, stream};
use judge::{Evaluation, Judge, JudgeConfig, Tests, Value};
use sandbox::{Config, Job, Limits, Sandbox};

const SLOTS: usize = 2;
const RUNS: usize = 400;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    println!(
        "{:<44} {:>6} {:>9} {:>11} {:>13}",
        "", "n", "n/s", "CPU ms/n", "median ms"
    );
    let bare = measure("python3 -c 'print(1)', no isolation", RUNS / 4, || {
        (0..RUNS / 4)
            .map(|_| timed(|| assert!(bare_python("print(1)"))))
            .collect()
    });
    let jailed = measure("script print(1) in the jail", RUNS, || {
        runtime.block_on(many(RUNS, |sandbox, _| async move {
            let outcome = sandbox
                .run(Job::script("print(1)", Limits::SMALL))
                .await
                .unwrap();
            assert!(outcome.is_ok());
        }))
    });
    println!(
        "  a jailed run takes {:.2} of the CPU time of a bare interpreter",
        jailed / bare
    );
    measure_numpy(&runtime);
    measure("verdict on a function, 10 cases, uncached", RUNS, || {
        runtime.block_on(many(RUNS, |sandbox, i| async move {
            let cases = (0..10).map(|x| (vec![Value::Int(x)], Value::Int(x + i as i64)));
            let judge = Judge::new(sandbox, JudgeConfig::small());
            let program = format!("def f(x):\n    return x + {i}\n");
            assert!(
                judge
                    .verdict(&program, &Tests::function("f", cases))
                    .await
                    .unwrap()
                    .passed
            );
        }))
    });
    measure("verdict on stdin and stdout, 10 cases", RUNS / 4, || {
        runtime.block_on(many(RUNS / 4, |sandbox, i| async move {
            let cases = (0..10).map(|x| (format!("{x}\n"), format!("{}\n", x + i)));
            let judge = Judge::new(sandbox, JudgeConfig::small());
            let program = format!("print(int(input()) + {i})\n");
            let verdict = judge.verdict(&program, &Tests::stdio(cases)).await;
            assert!(verdict.unwrap().passed);
        }))
    });
    measure("program x 20 calls, evaluated in batches", 20_000, || {
        let sandbox = Sandbox::start(Config::new(SLOTS)).unwrap();
        let judge = Judge::new(sandbox, JudgeConfig::small());
        let evaluations = (0..20_000).map(|i| Evaluation {
            source: format!("def f(xs):\n    s = {i}\n    for x in xs:\n        if x % 2 == 0:\n            s += x\n    return s\n"),
            entry: "f".to_owned(),
            args: (0..20).map(|n| vec![Value::List((0..n % 8).map(Value::Int).collect())]).collect(),
        });
        let results = runtime
            .block_on(judge.evaluate(evaluations.collect()))
            .unwrap();
        assert!(results.iter().flatten().all(Result::is_ok));
        Vec::new()
    });
}

/// Skipped where the interpreter has no numpy.
fn measure_numpy(runtime: &tokio::runtime::Runtime) {
    const PROGRAM: &str = "import numpy; print(numpy.arange(10).sum())";
    if !bare_python(PROGRAM) {
        println!("(numpy is not installed for /usr/bin/python3: its rows are left out)");
        return;
    }
    let bare = measure(
        "python3 -c 'import numpy; …', no isolation",
        RUNS / 20,
        || {
            (0..RUNS / 20)
                .map(|_| timed(|| assert!(bare_python(PROGRAM))))
                .collect()
        },
    );
    let jailed = measure("script import numpy; … in the jail", RUNS, || {
        runtime.block_on(many(RUNS, |sandbox, _| async move {
            let outcome = sandbox.run(Job::script(PROGRAM, Limits::SMALL)).await;
            assert!(outcome.unwrap().is_ok());
        }))
    });
    println!(
        "  a jailed numpy program takes 1/{:.0} of the CPU time of a bare interpreter",
        bare / jailed
    );
}

/// Prints a row and returns the CPU milliseconds of one.
fn measure(name: &str, n: usize, work: impl FnOnce() -> Vec<f64>) -> f64 {
    let (cpu_before, started) = (cpu_ms(), Instant::now());
    let mut latencies = work();
    let seconds = started.elapsed().as_secs_f64();
    let cpu = (cpu_ms() - cpu_before) / n as f64;
    latencies.sort_by(f64::total_cmp);
    let median = match latencies.get(latencies.len() / 2) {
        Some(median) => format!("{median:.2}"),
        None => "-".to_owned(),
    };
    println!(
        "{name:<44} {n:>6} {:>9.0} {cpu:>11.3} {median:>13}",
        n as f64 / seconds
    );
    cpu
}

/// `n` runs, as many at a time as there are slots; returns their milliseconds.
async fn many<F: Future<Output = ()>>(n: usize, one: impl Fn(Sandbox, usize) -> F) -> Vec<f64> {
    let sandbox = Sandbox::start(Config::new(SLOTS)).unwrap();
    stream::iter(0..n)
        .map(|i| {
            let run = one(sandbox.clone(), i);
            async move {
                let started = Instant::now();
                run.await;
                started.elapsed().as_secs_f64() * 1e3
            }
        })
        .buffer_unordered(SLOTS)
        .collect()
        .await
}

fn timed(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e3
}

/// Whether the program ended well.
fn bare_python(program: &str) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "the bare process is what is compared with"
    )]
    let mut command = Command::new("/usr/bin/python3");
    let status = command
        .args(["-c", program])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap().success()
}

/// User and system time of this process and its ended descendants.
fn cpu_ms() -> f64 {
    let usage = |who| {
        // SAFETY: the structure is plain data that the call fills.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            [usage.ru_utime, usage.ru_stime]
        }
    };
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .into_iter()
        .flat_map(usage)
        .map(|time| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3)
        .sum()
}
