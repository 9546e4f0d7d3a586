//! The command line: one binary, `etude`.

mod args;
mod chat;
mod data;
mod doctor;
mod evaluate;
mod evaluator_flags;
mod failure;
mod grade;
mod graph;
mod graph_operation;
mod hub;
mod judge;
mod machine;
mod model;
mod plan;
mod repair;
mod report;
mod runner;
mod sample;
mod sampling;
mod sandbox_command;
mod sandbox_reap;
mod sandbox_run;
mod sandbox_serve;
mod sandboxes;
mod screen;
mod stop;
mod train;
mod validate;
mod voice;
mod walk;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use screen::Screen;

/// Syntax trees are many small pieces, made and given back by all threads at once: the C library's
/// allocator takes a fifth of the time of building a code graph.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let screen = Screen::new();
    let done = match cli.command {
        Command::Train(args) => train::run(&args, screen),
        Command::Eval(args) => evaluate::run(&args, screen),
        Command::Report(args) => report::run(&args, screen),
        Command::Plan(args) => plan::run(&args),
        Command::Judge(args) => judge::run(&args, screen),
        Command::Sample(args) => sample::run(&args),
        Command::Chat(args) => chat::run(&args, screen),
        Command::Model(args) => model::run(&args),
        Command::Sandbox(args) => sandbox_command::run(&args, screen),
        Command::Data(args) => data::run(&args, screen),
        Command::Grade(args) => grade::run(&args, screen),
        Command::Repair(args) => repair::run(&args, screen),
        Command::Graph(args) => graph::run(&args, screen),
        Command::Validate(args) => validate::run(&args.command, screen),
        Command::Runner(args) => runner::run(&args, screen),
        Command::Doctor(args) => doctor::run(&args, screen),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen.say(failure.to_string());
            ExitCode::from(failure.exit_code())
        }
    }
}
