//! What a session of this machine costs, on a checkout given by its path: medians in milliseconds.
//!
//! `cargo bench -p session --bench local -- CHECKOUT [ROUNDS]`

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and stops at the first surprise"
)]

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use code::RelativePath;
use sandbox::Limits;
use session::{
    Backend, Command, Image,
    lease::{Leases, TIME_TO_LIVE},
    local::{LocalBackend, LocalConfig},
};

const STEPS: [&str; 8] = [
    "start",
    "exec true",
    "exec ls -R",
    "write",
    "read",
    "snapshot",
    "restore",
    "stop",
];

#[tokio::main]
async fn main() {
    let arguments = std::env::args().skip(1);
    let mut arguments = arguments.filter(|argument| !argument.starts_with("--"));
    let Some(checkout) = arguments.next().map(PathBuf::from) else {
        println!("nothing measured: no checkout was given");
        return;
    };
    let rounds = arguments
        .next()
        .map_or(15, |rounds| rounds.parse().unwrap());
    for copy in [false, true] {
        let times = measure(&checkout, rounds, copy).await;
        println!(
            "{rounds} rounds, {}",
            if copy { "copies" } else { "layers" }
        );
        for (step, mut times) in STEPS.into_iter().zip(times) {
            times.sort_by(f64::total_cmp);
            println!("{step:>12} {:9.2} ms", times[times.len() / 2]);
        }
    }
}

async fn measure(checkout: &Path, rounds: usize, copy: bool) -> [Vec<f64>; STEPS.len()] {
    let place = tempfile::tempdir().unwrap();
    let leases = Leases::open(place.path().join("leases"), TIME_TO_LIVE).unwrap();
    let config = LocalConfig {
        copy,
        ..LocalConfig::new(leases, place.path())
    };
    let backend = LocalBackend::open(config).await.unwrap();
    if let (Some(why), false) = (backend.copied_because(), copy) {
        println!("no overlay can be mounted here: {why}");
    }
    let image = Image::checkout(checkout);
    let path = RelativePath::new("some/folder/file").unwrap();
    let mut times: [Vec<f64>; STEPS.len()] = Default::default();
    for _ in 0..rounds {
        let mut clock = Clock(Instant::now());
        let mut session = backend.start(&image).await.unwrap();
        times[0].push(clock.lap());
        let commands = [
            Command::new(["true"], Limits::SMALL),
            Command::new(["ls", "-R"], Limits::SMALL),
        ];
        for (step, command) in (1..).zip(commands) {
            assert!(session.exec(&command).await.unwrap().is_ok());
            times[step].push(clock.lap());
        }
        session.write(&path, &[b'x'; 10_000], 0o644).await.unwrap();
        times[3].push(clock.lap());
        session.read(&path, 1 << 20).await.unwrap();
        times[4].push(clock.lap());
        let snapshot = session.snapshot().await.unwrap();
        times[5].push(clock.lap());
        session.restore(&snapshot).await.unwrap();
        times[6].push(clock.lap());
        session.stop().await.unwrap();
        times[7].push(clock.lap());
    }
    times
}

struct Clock(Instant);

impl Clock {
    /// Milliseconds since the last lap.
    fn lap(&mut self) -> f64 {
        let took = self.0.elapsed().as_secs_f64() * 1e3;
        self.0 = Instant::now();
        took
    }
}
