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
    /// Sample responses from a checkpoint: the quickest way to see that a model works
    Sample(SampleArgs),
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

#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// A directory in the Hugging Face layout, such as a run's checkpoints/critic-rl
    pub(crate) model: PathBuf,
    /// The text to go on from
    #[arg(
        long,
        value_name = "TEXT",
        required_unless_present = "prompt_file",
        conflicts_with = "prompt_file"
    )]
    pub(crate) prompt: Option<String>,
    /// A file with the text to go on from; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Take the text for a user's message and render it with the model's chat template
    #[arg(long)]
    pub(crate) chat: bool,
    /// Samples of the prompt
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) samples: u32,
    /// Most tokens of a response
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: u32,
    /// 0 takes the most probable token each time
    #[arg(
        long,
        value_name = "T",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    pub(crate) temperature: f32,
    /// Keep the most probable tokens that together reach this probability
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub(crate) top_p: f32,
    /// The same seed draws the same samples, whatever their number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Go on past the tokens that end a turn
    #[arg(long)]
    pub(crate) ignore_eos: bool,
    /// Print one JSON object a sample: prompt_ids, response_ids, logprobs, text, stop
    #[arg(long)]
    pub(crate) json: bool,
}
