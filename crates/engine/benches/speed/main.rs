//! The speed of the engine against the limits of the machine and against PyTorch, in one run.
//!
//! `cargo bench -p engine --bench speed -- [--peer PYTHON] [--threads N] [--rounds N] [NAME...]` runs
//! the jobs whose name begins with one of the names (all when none is given): `train-a`, `score-b`,
//! `decode32-a`, `decode1-b` and so on. Each candidate is a process of its own that repeats one job on
//! request. Candidates take turns within a round, so that a busier minute hits all of them; numbers
//! are medians over rounds. For two cores, put `taskset -c 0,1` in front.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, starts its peers, and stops when a step fails"
)]

mod jobs;
mod limits;
mod shapes;

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

use shapes::{Job, Size, Task};

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/speed/peer.py");

fn main() {
    let mut options = Options {
        peer: None,
        threads: 2,
        rounds: 7,
        names: Vec::new(),
    };
    let mut serve = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap();
        match &*argument {
            "--peer" => options.peer = Some(value()),
            "--threads" => options.threads = value().parse().unwrap(),
            "--rounds" => options.rounds = value().parse().unwrap(),
            "--serve" => serve = Some((value(), value())),
            "--bench" | "--" => {}
            name => options.names.push(name.to_owned()),
        }
    }
    match serve {
        Some((candidate, job)) => serve_job(&candidate, &job, options.threads),
        None => compare(&options),
    }
}

struct Options {
    peer: Option<String>,
    threads: usize,
    rounds: usize,
    names: Vec<String>,
}

/// Repeats a job for the parent: one line out for each line in.
fn serve_job(candidate: &str, job: &str, threads: usize) {
    let mut repeat = match candidate {
        "gemm" => limits::gemm(threads),
        "memory" => limits::memory(threads),
        _ => jobs::repeat(candidate, &Job::named(job).unwrap(), threads),
    };
    repeat();
    println!("ready");
    for _ in std::io::stdin().lines() {
        let (amount, seconds) = repeat();
        println!("{amount} {seconds}");
    }
}

/// A process that repeats one job.
struct Candidate {
    name: &'static str,
    process: Child,
    answers: BufReader<std::process::ChildStdout>,
    rates: Vec<f64>,
}

impl Candidate {
    fn start(name: &'static str, job: &Job, options: &Options) -> Self {
        let mut command = match (&options.peer, name.starts_with("torch")) {
            (Some(python), true) => {
                let mut command = Command::new(python);
                command.arg(PEER);
                command
            }
            _ => Command::new(std::env::current_exe().unwrap()),
        };
        let threads = options.threads.to_string();
        let mut process = command
            .args(["--serve", name, &job.name(), "--threads", &threads])
            .env("OMP_NUM_THREADS", &threads)
            .env("TRANSFORMERS_VERBOSITY", "error")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut candidate = Self {
            name,
            answers: BufReader::new(process.stdout.take().unwrap()),
            process,
            rates: Vec::new(),
        };
        assert_eq!(candidate.answer(), "ready", "{name}");
        candidate
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// One repetition.
    fn repeat(&mut self) {
        writeln!(self.process.stdin.as_mut().unwrap()).unwrap();
        let answer = self.answer();
        let (amount, seconds) = answer.split_once(' ').unwrap();
        let rate = amount.parse::<f64>().unwrap() / seconds.parse::<f64>().unwrap();
        self.rates.push(rate);
    }

    fn median(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    }

    /// Largest resident memory so far, in MB; not a number where `/proc` is missing.
    fn peak_memory(&self) -> f64 {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
        kilobytes.unwrap_or(f64::NAN) / 1e3
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

/// Runs every chosen job by every candidate, in turn, and prints one line for each.
fn compare(options: &Options) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{} threads, {} rounds, load before {}",
        options.threads,
        options.rounds,
        load.split(' ').next().unwrap_or("unknown")
    );
    println!(
        "{:10} {:11} {:>9} {:>9} {:>9} {:>8} {:>9}",
        "job", "candidate", "tok/s", "best", "of limit", "ratio", "peak MB"
    );
    for job in Task::ALL
        .into_iter()
        .flat_map(|task| Size::ALL.into_iter().map(move |size| Job { task, size }))
    {
        let chosen = |name: &String| job.name().starts_with(&**name);
        if options.names.is_empty() || options.names.iter().any(chosen) {
            compare_job(&job, options);
        }
    }
}

fn compare_job(job: &Job, options: &Options) {
    let limit = match job.task {
        Task::Decode1 => "memory",
        _ => "gemm",
    };
    let mut names = vec![limit, "etude", "etude-bf16"];
    if job.task == Task::Train {
        names.push(jobs::CHECKPOINTED);
    }
    if options.peer.is_some() {
        names.extend(["torch", "torch-bf16"]);
    }
    let mut candidates: Vec<Candidate> = names
        .into_iter()
        .map(|name| Candidate::start(name, job, options))
        .collect();
    for _ in 0..options.rounds {
        candidates.iter_mut().for_each(Candidate::repeat);
    }
    let limit = candidates[0].median();
    // What one token takes of the limit: operations, or bytes of weights that must be read.
    let cost = match job.task {
        Task::Decode1 => job.size.config().bytes_read(),
        task => job.size.config().operations(task),
    };
    let own = candidates[1].median();
    for candidate in &candidates {
        let (median, peak) = (candidate.median(), candidate.peak_memory());
        let best = candidate.rates.iter().copied().fold(0.0, f64::max);
        let name = job.name();
        if candidate.name == limit_name(job) {
            println!("{name:10} {:11} {:>9.1} G/s", candidate.name, median / 1e9);
            continue;
        }
        println!(
            "{name:10} {:11} {median:9.0} {best:9.0} {:7.0} % {:7.2}x {peak:9.0}",
            candidate.name,
            100.0 * median * cost / limit,
            own / median,
        );
    }
}

fn limit_name(job: &Job) -> &'static str {
    match job.task {
        Task::Decode1 => "memory",
        _ => "gemm",
    }
}
