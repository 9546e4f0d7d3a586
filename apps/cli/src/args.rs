//! What can be asked on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Trains and evaluates code agents by reinforcement learning on verifiable rewards.
#[derive(Debug, Parser)]
#[command(
    name = "etude",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a recipe: make tasks, train, evaluate, report
    Train(TrainArgs),
    /// Evaluate the policies of a run again; the run stays as it is
    Eval(EvalArgs),
    /// Rebuild report.html and summary.json of a run, and print its result
    Report(ReportArgs),
    /// Check a recipe and print what it would do: sizes, tokens, memory, time, sandbox
    Plan(PlanArgs),
    /// Say what this machine offers, and how to get what is missing
    Doctor(DoctorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// The recipe, a TOML file
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) recipe: Option<PathBuf>,
    /// Where the run is written [default: runs/NAME, numbered if it exists]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) run: Option<PathBuf>,
    /// Override a key of the recipe, for example --set rl.steps=10
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    pub(crate) set: Vec<String>,
    /// Go on with the run in DIR from its last committed step
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Print one JSON object on stdout at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// A run directory
    pub(crate) run: PathBuf,
    /// Tasks to evaluate on, a JSONL file [default: the run's own evaluation tasks]
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Option<PathBuf>,
    /// Episodes a task [default: as the recipe says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) samples: Option<u32>,
    /// Seed of the sampling [default: the run's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print one JSON object on stdout at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A run directory; several are compared as seeds of one recipe
    #[arg(required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The recipe, a TOML file
    pub(crate) recipe: PathBuf,
    /// Override a key of the recipe, for example --set rl.steps=10
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}
