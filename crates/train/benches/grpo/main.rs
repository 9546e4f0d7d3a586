//! GRPO end to end, Etude beside TRL: seconds of a step, and of its sampling, scoring and updating.
//!
//! `cargo bench -p train --bench grpo -- [tiny] [a] [b] [--python PYTHON] [--rounds 3] [--steps 5]
//! [--threads 2] [--micro-batch ROWS]`. What is compared, and how to install the peer: `benches/peers/README.md`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, starts its peer and stops when something fails"
)]

mod compare;
mod job;
mod ours;
mod peer;
mod study;
mod table;

use std::process::ExitCode;

use chat::Chat;
use engine::Model;

use job::{Arguments, Size};
use table::Round;

fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            println!("{message}\n\n{}", job::USAGE);
            return ExitCode::from(2);
        }
    };
    let has_peer = peer::is_installed(&arguments.python);
    if !has_peer {
        println!("{}\n", peer::how_to_install(&arguments.python));
    }
    table::machine(&arguments);
    let mut equal = true;
    for size in &arguments.sizes {
        equal &= measure(&arguments, size, has_peer);
    }
    if equal {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs both sides in turn and prints what they took; whether they did the same work.
fn measure(arguments: &Arguments, size: &Size, has_peer: bool) -> bool {
    let scratch = tempfile::tempdir().unwrap();
    let checkpoint = scratch.path().join("checkpoint");
    let chat = study::chat(size);
    let prompts = study::prompts(&chat, size);
    size.model(&chat).save(&checkpoint).unwrap();
    chat.save(&checkpoint).unwrap();
    table::size(arguments, size, &Model::load(&checkpoint).unwrap());

    let (mut rounds, mut equal) = (Vec::new(), true);
    for round in 0..arguments.rounds {
        let folder = scratch.path().join(format!("round-{round}"));
        std::fs::create_dir(&folder).unwrap();
        let load = table::load();
        let ours = ours::run(arguments, size, &checkpoint, &prompts, &folder);
        let theirs = has_peer
            .then(|| peer::run(arguments, size, &checkpoint, &prompts, &folder))
            .flatten();
        if let Some(answer) = theirs.as_ref().filter(|_| round == 0) {
            let chat = Chat::load(&checkpoint).unwrap();
            equal &= compare::replay(arguments, size, &checkpoint, &chat, answer);
        }
        let theirs = theirs.map(|answer| answer.steps).unwrap_or_default();
        rounds.push(Round { ours, theirs, load });
    }
    table::print(size, &rounds);
    equal
}
