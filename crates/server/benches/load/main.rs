//! Prints what serving costs: the same jobs by bare interpreters, in process, and over HTTP with 1, 8 and
//! 32 clients.
//!
//! `cargo bench -p server [-- --rounds N --runs N --sandbox-fusion URL]`. Places take turns within a round,
//! so that a busier minute hits all of them; numbers are medians over rounds. CPU time is user and system
//! time of this process and of all its ended descendants: clients, server, supervisor, slots and the
//! start of the interpreters. That of a server at a URL is not seen. Two programs run at a time; for two
//! cores, put `taskset -c 0,1` in front.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark prints"
)]

mod http;
mod jobs;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use judge::{Judge, JudgeConfig};
use sandbox::{Config, Language, Sandbox, Toolchains};
use server::{Options, Service, serve};
use tokio::{net::TcpListener, runtime::Runtime, sync::oneshot};

use http::Connection;
use jobs::Kind;

const SLOTS: usize = 2;
const CLIENTS: [usize; 3] = [1, 8, 32];

/// Where jobs run, and how many of them are asked for at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Bare,
    InProcess(usize),
    Http(usize),
    Elsewhere(usize),
}

/// Of one round.
struct Measured {
    rate: f64,
    latency_ms: f64,
    cpu_ms: f64,
}

struct Asked {
    rounds: usize,
    runs: usize,
    elsewhere: Option<SocketAddr>,
}

fn main() {
    let asked = asked();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{} rounds, {SLOTS} slots, load average {}",
        asked.rounds,
        load.trim()
    );
    for kind in Kind::ALL {
        if !jobs::bare_works(kind) {
            println!(
                "({}: bare python3 cannot run it here, left out)",
                kind.name()
            );
            continue;
        }
        let mut measured: BTreeMap<Place, Vec<Measured>> = BTreeMap::new();
        for round in 0..asked.rounds {
            for place in places(asked.elsewhere.is_some()) {
                let n = match place {
                    Place::Bare | Place::Elsewhere(_) => asked.runs / 4,
                    _ => asked.runs,
                };
                let n = (n / kind.programs()).max(SLOTS);
                let first = round * asked.runs;
                let one = measure(kind, place, first..first + n, asked.elsewhere);
                measured.entry(place).or_default().push(one);
            }
        }
        print(kind, &measured);
    }
}

fn asked() -> Asked {
    let mut asked = Asked {
        rounds: 5,
        runs: 400,
        elsewhere: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let missing = || panic!("{argument} needs a value");
            arguments.next().unwrap_or_else(missing)
        };
        match argument.as_str() {
            "--rounds" => asked.rounds = value().parse().unwrap(),
            "--runs" => asked.runs = value().parse().unwrap(),
            "--sandbox-fusion" => asked.elsewhere = Some(http::address(&value())),
            // `cargo bench` says so.
            "--bench" => {}
            other => panic!("unknown argument {other}"),
        }
    }
    asked
}

fn places(elsewhere: bool) -> Vec<Place> {
    let mut places = vec![Place::Bare];
    places.extend(CLIENTS.map(Place::InProcess));
    places.extend(CLIENTS.map(Place::Http));
    if elsewhere {
        places.extend(CLIENTS.map(Place::Elsewhere));
    }
    places
}

fn measure(
    kind: Kind,
    place: Place,
    jobs: std::ops::Range<usize>,
    elsewhere: Option<SocketAddr>,
) -> Measured {
    let n = jobs.len();
    let cpu_before = jobs::cpu_ms();
    let runtime = Runtime::new().unwrap();
    let (seconds, mut latencies) = runtime.block_on(async {
        match (place, elsewhere) {
            (Place::Bare, _) => together(jobs, SLOTS, |i| jobs::bare(kind, i)).await,
            (Place::InProcess(clients), _) => {
                let sandbox = start();
                let judge = Judge::new(sandbox.clone(), JudgeConfig::small());
                jobs::in_process(&sandbox, &judge, kind, usize::MAX).await;
                together(jobs, clients, |i| {
                    jobs::in_process(&sandbox, &judge, kind, i)
                })
                .await
            }
            (Place::Http(clients), _) => over_http(kind, clients, jobs).await,
            (Place::Elsewhere(clients), Some(address)) => ask(address, kind, clients, jobs).await,
            (Place::Elsewhere(_), None) => (1.0, Vec::new()),
        }
    });
    // What still holds the sandbox ends with it, and the sandbox's processes are then counted.
    drop(runtime);
    latencies.sort_by(f64::total_cmp);
    Measured {
        rate: n as f64 / seconds,
        latency_ms: median(&latencies),
        cpu_ms: (jobs::cpu_ms() - cpu_before) / n as f64,
    }
}

fn start() -> Sandbox {
    Sandbox::start(Config::new(SLOTS)).unwrap()
}

/// Against a server of this process.
async fn over_http(kind: Kind, clients: usize, jobs: std::ops::Range<usize>) -> (f64, Vec<f64>) {
    let toolchains = Toolchains::probe(&[Language::Python], None, &["/usr/bin".into()]);
    let service = Service::new(start(), toolchains, 512 << 20, None, BTreeMap::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, service, Options::default(), async {
        // Dropped is as good as sent.
        let _ = stopped.await;
    }));
    let done = ask(address, kind, clients, jobs).await;
    drop(stop);
    serving.await.unwrap();
    done
}

/// Each client keeps its connection.
async fn ask(
    address: SocketAddr,
    kind: Kind,
    clients: usize,
    jobs: std::ops::Range<usize>,
) -> (f64, Vec<f64>) {
    // The first request finds the interpreters started, as it does in the other places.
    let mut first = Connection::open(address).await;
    jobs::over_http(&mut first, kind, usize::MAX).await;
    drop(first);
    let started = Instant::now();
    let shares = (0..clients).map(|client| {
        let mine: Vec<usize> = jobs.clone().skip(client).step_by(clients).collect();
        async move {
            let mut latencies = Vec::new();
            if mine.is_empty() {
                return latencies;
            }
            let mut connection = Connection::open(address).await;
            for i in mine {
                let started = Instant::now();
                jobs::over_http(&mut connection, kind, i).await;
                latencies.push(milliseconds(started.elapsed()));
            }
            latencies
        }
    });
    let latencies = futures::future::join_all(shares).await.concat();
    (started.elapsed().as_secs_f64(), latencies)
}

async fn together<F: Future<Output = ()>>(
    jobs: std::ops::Range<usize>,
    at_a_time: usize,
    one: impl Fn(usize) -> F,
) -> (f64, Vec<f64>) {
    let started = Instant::now();
    let latencies = stream::iter(jobs)
        .map(|i| {
            let job = one(i);
            async move {
                let started = Instant::now();
                job.await;
                milliseconds(started.elapsed())
            }
        })
        .buffer_unordered(at_a_time)
        .collect()
        .await;
    (started.elapsed().as_secs_f64(), latencies)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median over rounds of `number`, which sees the round's bare measurement too.
fn over_rounds(
    rows: &[Measured],
    bare: &[Measured],
    number: impl Fn(&Measured, &Measured) -> f64,
) -> f64 {
    let mut numbers: Vec<f64> = rows.iter().zip(bare).map(|(a, b)| number(a, b)).collect();
    numbers.sort_by(f64::total_cmp);
    median(&numbers)
}

fn print(kind: Kind, measured: &BTreeMap<Place, Vec<Measured>>) {
    println!(
        "\n{:<34} {:>8} {:>11} {:>9} {:>9} {:>9}",
        kind.name(),
        "jobs/s",
        "median ms",
        "CPU ms",
        "x rate",
        "x CPU"
    );
    let Some(bare) = measured.get(&Place::Bare) else {
        return;
    };
    for (place, rows) in measured {
        let name = match place {
            Place::Bare => format!("bare python3, {SLOTS} at a time"),
            Place::InProcess(clients) => format!("in process, {clients} at a time"),
            Place::Http(clients) => format!("HTTP, {clients} clients"),
            Place::Elsewhere(clients) => format!("--sandbox-fusion, {clients} clients"),
        };
        let (cpu, cpu_ratio) = if matches!(place, Place::Elsewhere(_)) {
            ("-".to_owned(), "-".to_owned())
        } else {
            let cpu = over_rounds(rows, bare, |row, _| row.cpu_ms);
            let ratio = over_rounds(rows, bare, |row, bare| row.cpu_ms / bare.cpu_ms);
            (format!("{cpu:.2}"), format!("{ratio:.2}"))
        };
        println!(
            "{name:<34} {:>8.1} {:>11.2} {cpu:>9} {:>9.2} {cpu_ratio:>9}",
            over_rounds(rows, bare, |row, _| row.rate),
            over_rounds(rows, bare, |row, _| row.latency_ms),
            over_rounds(rows, bare, |row, bare| row.rate / bare.rate),
        );
    }
    for clients in CLIENTS {
        let places = (Place::Http(clients), Place::Elsewhere(clients));
        if let (Some(ours), Some(theirs)) = (measured.get(&places.0), measured.get(&places.1)) {
            let ratio = over_rounds(ours, theirs, |ours, theirs| ours.rate / theirs.rate);
            println!("  {clients} clients: {ratio:.1} times the rate of --sandbox-fusion");
        }
    }
}
