//! `etude data`: datasets of others as tasks of our studies, files of tasks looked over, and rows for others.

mod check;
mod export_batch;
pub(crate) mod mutate;
mod recall;
mod repair;

pub(crate) use self::recall::formats;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dataset::RowErrors;

use crate::{
    failure::Outcome,
    screen::Screen,
    walk::critique::synthesize::{self, SynthesizeArgs},
};

#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Debug, Subcommand)]
enum DataCommand {
    /// Make tasks of a dataset
    Prepare {
        #[command(subcommand)]
        study: Study,
    },
    /// Read files of tasks and say what is in them, and everything that is wrong with them
    Check {
        /// Files of tasks, JSON Lines; ids must be unique in all of them together
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Make repair tasks of a Python repository with tests: each has one planted bug that its tests notice
    Mutate(mutate::MutateArgs),
    /// Write the rows of a step of a run for others, as docs/verl.md says
    ExportBatch(export_batch::ExportBatchArgs),
    /// Write critiques to learn from: solutions are sampled and run, and a model that is told what came of it
    /// explains them
    Synthesize(SynthesizeArgs),
    /// Write tasks of the repair study as the Parquet file that verl trains from
    Register(repair::RegisterArgs),
}

/// What the tasks are for.
#[derive(Debug, Subcommand)]
enum Study {
    /// Dialogues and documents with questions about them, for the recall study
    Recall(recall::RecallArgs),
    /// Issues of repositories with the tests that tell their repair, for the repair study
    Repair(repair::RepairArgs),
}

/// Bad rows that are shown; all are counted.
const SHOWN_ERRORS: usize = 50;

pub(crate) fn run(args: &DataArgs, screen: Screen) -> Outcome<()> {
    match &args.command {
        DataCommand::Prepare {
            study: Study::Recall(args),
        } => recall::run(args, screen),
        DataCommand::Prepare {
            study: Study::Repair(args),
        } => repair::prepare(args, screen),
        DataCommand::Register(args) => repair::register(args),
        DataCommand::Check { files, json } => check::run(files, *json, screen),
        DataCommand::Synthesize(args) => synthesize::run(args, screen),
        DataCommand::Mutate(args) => mutate::run(args, screen),
        DataCommand::ExportBatch(args) => export_batch::run(args, screen),
    }
}

/// Ids are `source/split/sample`.
fn part_of_an_id(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains('/') {
        Err("expected a name without `/`".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// Every bad row on a line of its own.
fn say_errors(errors: &RowErrors, screen: Screen) {
    if !errors.is_empty() {
        screen.say(errors.to_string());
    }
}
