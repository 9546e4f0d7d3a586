//! `etude model`: checkpoints in the Hugging Face layout, looked at, brought in and handed on.

mod copy;
mod findings;
mod text;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) use findings::Findings;

use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
};

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    command: ModelCommand,
}

#[derive(Debug, Subcommand)]
enum ModelCommand {
    /// Read all of a checkpoint and say what it is, and everything that keeps it from being used
    Inspect {
        /// A directory in the Hugging Face layout, or of peft
        #[arg(value_parser = model_directory)]
        model: PathBuf,
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Check a checkpoint of another program and write it as Etude's own
    Import {
        #[command(flatten)]
        copy: CopyArgs,
        /// What products are computed in; bf16 also rounds the weights [default: f32, the weights as
        /// they are stored]
        #[arg(long, value_enum)]
        dtype: Option<ComputeArg>,
    },
    /// Write a checkpoint for other programs: transformers, peft, servers
    Export {
        #[command(flatten)]
        copy: CopyArgs,
        /// What weights are stored as [default: as they are stored now]
        #[arg(long, value_enum)]
        dtype: Option<StoreArg>,
    },
}

#[derive(Debug, Args)]
struct CopyArgs {
    /// A directory in the Hugging Face layout, or of peft
    #[arg(value_parser = model_directory)]
    model: PathBuf,
    /// The directory to write; it must not exist
    #[arg(long, value_name = "OUT")]
    to: PathBuf,
    /// What becomes of an adapter: folded into the weights, or kept beside its base in OUT/base
    /// [default: merged]
    #[arg(long, value_enum, value_name = "FORM")]
    adapter: Option<AdapterForm>,
    /// With --adapter separate: the directory or hub name that the adapter calls its base, which is then
    /// not written
    #[arg(long, value_name = "NAME")]
    base: Option<String>,
    /// Most MiB of weights in one file [default: all in one]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    shard_size: Option<u64>,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// `hf:` may stand before a directory, as in recipes.
fn model_directory(text: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(PathBuf::from(text.strip_prefix("hf:").unwrap_or(text)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AdapterForm {
    Merged,
    Separate,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ComputeArg {
    F32,
    Bf16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StoreArg {
    F32,
    Bf16,
    F16,
}

pub(crate) fn run(args: &ModelArgs) -> Outcome<()> {
    match &args.command {
        ModelCommand::Inspect { model, json } => inspect(model, *json),
        ModelCommand::Import { copy, dtype } => copy::import(copy, *dtype),
        ModelCommand::Export { copy, dtype } => copy::export(copy, *dtype),
    }
}

/// Exit code 0 when the checkpoint can be used, 1 when something keeps it from that.
fn inspect(directory: &std::path::Path, json: bool) -> Outcome<()> {
    let findings = Findings::of(directory).asked()?;
    if json {
        print_json(&findings)?;
    } else {
        print_text(&findings.text())?;
    }
    match findings.problems.len() {
        0 => Ok(()),
        n => Err(Failure::Failed(anyhow::anyhow!(
            "{}: cannot be used; {}",
            directory.display(),
            if n == 1 {
                "see the problem above".to_owned()
            } else {
                format!("see the {n} problems above")
            }
        ))),
    }
}
