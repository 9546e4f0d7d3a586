//! `etude data`: datasets of others as tasks of our studies, files of tasks looked over, and rows for others.

mod check;
mod critique;
mod export_batch;
mod gold;
mod judging;
pub(crate) mod made;
pub(crate) mod mutate;
mod pair;
mod recall;
mod repair;
mod solved;

pub(crate) use self::recall::formats;

use std::path::Path;

use ::critique::data::Source;
use anyhow::anyhow;
use chat::Tokenizer;
use clap::{Args, Subcommand};
use dataset::RowErrors;

use crate::{
    failure::{Failure, Outcome},
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
    /// Read files of tasks or problems and say what is in them, and everything that is wrong with them. Problems are
    /// judged by their own solutions
    Check(check::CheckArgs),
    /// Pair problems with programs: rows that the critique study is reinforced on, and supervised on where there are
    /// critiques
    Pair(pair::PairArgs),
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
    /// TACO's problems, for the critique study: programs and functions, to train on
    Taco(critique::CritiqueArgs),
    /// CodeContests' problems, for the critique study
    #[command(name = "codecontests")]
    CodeContests(critique::CritiqueArgs),
    /// LiveCodeBench's problems (code_generation_lite), for the critique study
    #[command(name = "livecodebench")]
    LiveCodeBench(critique::CritiqueArgs),
    /// MBPP+'s problems, for the critique study
    #[command(name = "mbppplus")]
    MbppPlus(critique::CritiqueArgs),
    /// APPS' problems, for the critique study: programs and functions, to train on
    Apps(critique::CritiqueArgs),
}

/// Bad rows that are shown; all are counted.
const SHOWN_ERRORS: usize = 50;

pub(crate) fn run(args: &DataArgs, screen: Screen) -> Outcome<()> {
    match &args.command {
        DataCommand::Prepare { study } => {
            let (source, args) = match study {
                Study::Taco(args) => (Source::Taco, args),
                Study::CodeContests(args) => (Source::CodeContests, args),
                Study::LiveCodeBench(args) => (Source::LiveCodeBench, args),
                Study::MbppPlus(args) => (Source::MbppPlus, args),
                Study::Apps(args) => (Source::Apps, args),
                Study::Recall(args) => return recall::run(args, screen),
                Study::Repair(args) => return repair::prepare(args, screen),
            };
            critique::prepare(source, args, screen)
        }
        DataCommand::Register(args) => repair::register(args),
        DataCommand::Check(args) => check::run(args, screen),
        DataCommand::Pair(args) => pair::run(args, screen),
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

/// A `tokenizer.json`, or that of a folder.
fn load_tokenizer(path: &Path) -> anyhow::Result<Tokenizer> {
    let file = if path.is_dir() {
        path.join("tokenizer.json")
    } else {
        path.to_owned()
    };
    Ok(Tokenizer::load(&file)?)
}

/// What a command that rejected rows ends with.
fn rejected(bad: u64) -> Failure {
    let (were, them) = match bad {
        1 => ("1 row was".to_owned(), "it"),
        n => (format!("{n} rows were"), "them"),
    };
    Failure::Asked(anyhow!(
        "{were} rejected and nothing was written; mend {them}, or leave {them} out with --skip-rejected"
    ))
}

/// Every bad row on a line of its own.
fn say_errors(errors: &RowErrors, screen: Screen) {
    if !errors.is_empty() {
        screen.say(errors.to_string());
    }
}
