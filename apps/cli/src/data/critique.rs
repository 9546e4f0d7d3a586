//! `etude data prepare taco|codecontests|livecodebench|mbppplus|apps`: datasets of problems to problem files of the
//! critique study.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ::train::Stop;
use anyhow::{Context, anyhow};
use clap::Args;
use critique::data::{CountTokens, HeldOut, Options, Preparation, Prepared, Problem, Source};
use dataset::{JsonlWriter, RowErrors, Rows};
use serde::Serialize;

use super::{SHOWN_ERRORS, load_tokenizer, part_of_an_id, rejected as rows_rejected, say_errors};
use crate::{
    failure::{Classify, Failure, Outcome},
    hub::{HubId, gather},
    report::{print_json, print_text},
    screen::{Screen, count_of},
    train::stop_on_request,
};

#[derive(Debug, Args)]
pub(crate) struct CritiqueArgs {
    /// The dataset's files: .jsonl, .json or .parquet, texts also as .gz or .zst; or OWNER/NAME[@REVISION][:PATH] on the
    /// Hugging Face hub, in builds with the feature `hub`
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Where files from the hub are kept [default: hub below --out]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The folder that the problem files and their manifest are written to
    #[arg(long, alias = "to", value_name = "DIR")]
    out: PathBuf,
    /// What the dataset calls this part of itself; `train` is filtered for training [default: train for TACO and
    /// APPS, else test]
    #[arg(long, value_name = "NAME", value_parser = part_of_an_id)]
    split: Option<String>,
    /// Name the dataset in place of its usual name
    #[arg(long, value_name = "NAME", value_parser = part_of_an_id)]
    source: Option<String>,
    /// Count tokens with this tokenizer.json, or that of this folder [default: no filter by length]
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// Keep statements for training with more tokens than this
    #[arg(long, value_name = "N", default_value_t = 64, requires = "tokenizer")]
    min_tokens: usize,
    /// Keep statements for training with fewer tokens than this
    #[arg(long, value_name = "N", default_value_t = 2048, requires = "tokenizer")]
    max_tokens: usize,
    /// Drop problems whose statement is in this file, a problem file or one of a dataset; may be given again
    #[arg(long, value_name = "FILE")]
    held_out: Vec<PathBuf>,
    /// Drop also those that differ from a held-out one in case, punctuation and layout alone, or share N words in
    /// a row with one
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        default_missing_value = "13",
        requires = "held_out",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    overlap: Option<u32>,
    /// Of LiveCodeBench: the first day of contests whose problems are kept [default: 2024-08-01]
    #[arg(long, value_name = "DATE", value_parser = date)]
    from: Option<String>,
    /// Of LiveCodeBench: the last day [default: 2024-11-01]
    #[arg(long, value_name = "DATE", value_parser = date)]
    until: Option<String>,
    /// Of LiveCodeBench: keep problems of all dates
    #[arg(long, conflicts_with_all = ["from", "until"])]
    all_dates: bool,
    /// Keep so many of a row's own programs for `etude data check` and `etude data pair`, right and wrong ones each
    #[arg(long, value_name = "N", default_value_t = 4)]
    solutions: usize,
    /// Leave bad rows out and say so [default: a bad row fails the command]
    #[arg(long)]
    skip_rejected: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// A preparation from its files to its files.
#[derive(Serialize)]
struct Manifest {
    dataset: &'static str,
    data_source: String,
    split: String,
    files: Vec<Read>,
    /// Where files are from, each with its commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hub: Vec<HubId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokenizer: Option<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held_out: Vec<PathBuf>,
    #[serde(flatten)]
    prepared: Prepared,
    written: Vec<Written>,
}

#[derive(Serialize)]
struct Read {
    file: PathBuf,
    rows: u64,
}

#[derive(Serialize)]
struct Written {
    file: PathBuf,
    rows: u64,
}

pub(super) fn prepare(source: Source, args: &CritiqueArgs, screen: Screen) -> Outcome<()> {
    let tokenizer = match &args.tokenizer {
        Some(path) => Some(load_tokenizer(path).asked()?),
        None => None,
    };
    let count = tokenizer.as_ref().map(|tokenizer| {
        move |text: &str| {
            let tokens = tokenizer.encode(text);
            tokens.map_or(text.len(), |tokens| tokens.len())
        }
    });
    let split = args.split.clone();
    let split = split.unwrap_or_else(|| source.usual_split().to_owned());
    let data_source = args.source.clone();
    let data_source = data_source.unwrap_or_else(|| source.name().to_owned());
    let cache = args.cache.clone();
    let cache = cache.unwrap_or_else(|| args.out.join("hub"));
    let gathered = gather(&args.files, &split, &cache, screen)?;
    let mut preparation = Preparation::new(Options {
        source,
        split: split.clone(),
        data_source: data_source.clone(),
        count_tokens: count.as_ref().map(|count| count as &CountTokens<'_>),
        tokens: (args.min_tokens, args.max_tokens),
        held_out: held_out(args)?,
        dates: dates(source, args)?,
        solutions: args.solutions,
    });
    fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {}", args.out.display()))
        .asked()?;
    // Files that are not whole are removed, so a signal must not end the process in the middle of them.
    let runtime = tokio::runtime::Runtime::new().failed()?;
    let stop = Stop::default();
    stop_on_request(&runtime, &stop, screen)?;
    let mut outputs = Outputs::create(source, &args.out, &split)?;
    let mut files = Vec::new();
    let mut bad = RowErrors::new(SHOWN_ERRORS);
    for file in &gathered.files {
        let mut rows = 0;
        for row in Rows::open(file).asked()? {
            rows += 1;
            if stop.requested() {
                return Err(Failure::Stopped);
            }
            match preparation.take(&row.asked()?) {
                Ok(Some(problem)) => outputs.write(&problem)?,
                Ok(None) => {}
                Err(error) => bad.push(error),
            }
        }
        if rows == 0 {
            return Err(Failure::Asked(anyhow!("{} has no rows", file.display())));
        }
        files.push(Read {
            file: file.clone(),
            rows,
        });
    }
    say_errors(&bad, screen);
    if !bad.is_empty() && !args.skip_rejected {
        return Err(rows_rejected(bad.count()));
    }
    let prepared = preparation.finish();
    if prepared.rows_out == 0 {
        return Err(Failure::Asked(anyhow!(
            "no row is left to make problems of, so nothing was written:\n{}",
            table(&prepared)
        )));
    }
    let manifest = Manifest {
        dataset: source.name(),
        data_source,
        written: outputs.finish()?,
        files,
        hub: gathered.datasets,
        tokenizer: args.tokenizer.clone(),
        held_out: args.held_out.clone(),
        prepared,
        split,
    };
    write_manifest(&args.out, &manifest).failed()?;
    if args.json {
        print_json(&manifest)
    } else {
        print_text(&text(&manifest))
    }
}

fn held_out(args: &CritiqueArgs) -> Outcome<HeldOut> {
    let mut held_out = HeldOut::new(args.overlap.map(|width| width as usize));
    for file in &args.held_out {
        held_out.read(file).asked()?;
    }
    Ok(held_out)
}

/// The days that LiveCodeBench's contests must be on.
fn dates(source: Source, args: &CritiqueArgs) -> Outcome<Option<(String, String)>> {
    let given = args.from.is_some() || args.until.is_some() || args.all_dates;
    if source != Source::LiveCodeBench {
        return match given {
            true => Err(Failure::Asked(anyhow!(
                "--from, --until and --all-dates are for livecodebench; rows of {source} have no dates"
            ))),
            false => Ok(None),
        };
    }
    let day = |given: &Option<String>, usual: &str| given.clone().unwrap_or(usual.to_owned());
    let days = (
        day(&args.from, "2024-08-01"),
        day(&args.until, "2024-11-01"),
    );
    if days.0 > days.1 {
        return Err(Failure::Asked(anyhow!(
            "--from {} is behind --until {}",
            days.0,
            days.1
        )));
    }
    Ok((!args.all_dates).then_some(days))
}

fn date(text: &str) -> Result<String, String> {
    match text.parse::<jiff::civil::Date>() {
        Ok(date) => Ok(date.to_string()),
        Err(_) => Err("expected a date, 2024-08-01".to_owned()),
    }
}

/// The problem files on their way: all, and where the dataset has both kinds, one of each kind.
struct Outputs {
    all: (PathBuf, JsonlWriter),
    kinds: Option<[(PathBuf, JsonlWriter); 2]>,
}

impl Outputs {
    fn create(source: Source, folder: &Path, split: &str) -> Outcome<Self> {
        let open = |kind: &str| -> Outcome<(PathBuf, JsonlWriter)> {
            let path = folder.join(format!("{source}_{split}{kind}.jsonl"));
            let writer = JsonlWriter::create(&path).asked()?;
            Ok((path, writer))
        };
        Ok(Self {
            all: open("")?,
            kinds: match source.has_both_kinds() {
                true => Some([open("_assert")?, open("_io")?]),
                false => None,
            },
        })
    }

    fn write(&mut self, problem: &Problem) -> Outcome<()> {
        self.all.1.write(problem.columns()).failed()?;
        if let Some([asserts, io]) = &mut self.kinds {
            let kind = if problem.is_assert() { asserts } else { io };
            kind.1.write(problem.columns()).failed()?;
        }
        Ok(())
    }

    fn finish(self) -> Outcome<Vec<Written>> {
        let files = [self.all]
            .into_iter()
            .chain(self.kinds.into_iter().flatten());
        files
            .map(|(file, writer)| {
                let rows = writer.finish().failed()?;
                Ok(Written { file, rows })
            })
            .collect()
    }
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let name = format!("{}_{}.manifest.json", manifest.dataset, manifest.split);
    let path = folder.join(name);
    let text = serde_json::to_string_pretty(manifest)? + "\n";
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn text(manifest: &Manifest) -> String {
    let mut lines: Vec<String> = manifest
        .written
        .iter()
        .map(|written| {
            let rows = count_of(written.rows as usize, "problem");
            format!("{}: {rows}", written.file.display())
        })
        .collect();
    lines.push(table(&manifest.prepared));
    lines.join("\n")
}

/// Rows in, what each step dropped, rows out.
fn table(prepared: &Prepared) -> String {
    let line = |what: &str, number: u64| format!("  {what:<46} {number:>9}");
    let mut lines = vec![line("rows in", prepared.rows_in)];
    for step in &prepared.steps {
        lines.push(match &step.not_applied {
            None => line(&format!("− {}", step.step), step.dropped),
            Some(why) => format!("  {:<46} not applied: {why}", format!("− {}", step.step)),
        });
    }
    lines.push(line("rows out", prepared.rows_out));
    lines.push(line("tests of those", prepared.tests));
    let counts = prepared.counts.0.iter();
    lines.extend(counts.map(|(what, number)| line(what, *number)));
    lines.join("\n")
}
