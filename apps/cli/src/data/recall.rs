//! `etude data prepare recall`: dialogues in the formats of others to tasks of the recall study.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum, builder::PossibleValuesParser, builder::TypedValueParser};
use dataset::JsonlWriter;
use recall::{
    Dialogue, Granularity, Task,
    adapters::{Counts, Format, Options, adapt, divide},
    metrics::Metric,
};
use record::Seed;
use serde::Serialize;

use super::{SHOWN_ERRORS, load_tokenizer, part_of_an_id, rejected as rows_rejected, say_errors};
use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::{Screen, count_of},
};

#[derive(Debug, Args)]
pub(crate) struct RecallArgs {
    /// The dataset's files: .jsonl, .json or .parquet, texts also as .gz or .zst
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How the files write their dialogues (docs/data.md)
    #[arg(long, value_parser = formats())]
    format: Format,
    /// The folder that train.jsonl and eval.jsonl are written to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// One episode a question, or one a dialogue with all its questions
    #[arg(long, value_enum, default_value = "sample")]
    granularity: GranularityArg,
    /// What the dataset calls this part of itself; a part of every task's id
    #[arg(long, value_name = "NAME", default_value = "train", value_parser = part_of_an_id)]
    split: String,
    /// Name the dataset in place of what its rows say: the first part of every task's id. How answers are scored
    /// and how long turns are goes by what the rows say all the same
    #[arg(long, value_name = "NAME", value_parser = part_of_an_id)]
    source: Option<String>,
    /// The fraction of documents to evaluate on; 0 for none, 1 for all
    #[arg(long, value_name = "FRACTION", default_value = "0.1", value_parser = fraction)]
    eval: f64,
    /// Draws the documents to evaluate on
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Most tokens of a history turn [default: 2048; 4096 for MemoryAgentBench; 1024 for test-time learning]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    chunk_tokens: Option<u32>,
    /// Count tokens with this tokenizer.json, or that of this folder [default: four bytes are a token]
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// Rows of the format verl may have more than one target turn
    #[arg(long)]
    multi_target: bool,
    /// Leave bad rows out and say so [default: a bad row fails the command]
    #[arg(long)]
    skip_rejected: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GranularityArg {
    Qa,
    Sample,
}

/// What was made.
#[derive(Serialize)]
struct Prepared {
    format: &'static str,
    out: PathBuf,
    train: Side,
    eval: Side,
    /// Files of an earlier preparation that are written anew, and those that are gone because their side has
    /// no tasks now.
    replaced: Vec<PathBuf>,
    removed: Vec<PathBuf>,
    counts: Counts,
    /// The first of the rejected rows.
    rejected: Vec<String>,
}

/// One of the files.
#[derive(Default, Serialize)]
struct Side {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    tasks: usize,
    documents: usize,
    questions: usize,
    by_source: BTreeMap<String, usize>,
    /// Tasks by how their answers are scored.
    by_metric: BTreeMap<Metric, usize>,
}

pub(crate) fn run(args: &RecallArgs, screen: Screen) -> Outcome<()> {
    let tokenizer = match &args.tokenizer {
        Some(path) => Some(load_tokenizer(path).asked()?),
        None => None,
    };
    let count_tokens = |text: &str| match &tokenizer {
        Some(tokenizer) => tokenizer
            .encode(text)
            .map_or(text.len(), |tokens| tokens.len()),
        None => text.len().div_ceil(BYTES_OF_A_TOKEN),
    };

    let mut dialogues = Vec::new();
    let mut counts = Counts::default();
    let mut rejected = Vec::new();
    for (file, prefix) in args.files.iter().zip(prefixes(&args.files)) {
        let options = Options {
            split: args.split.clone(),
            data_source: args.source.clone(),
            chunk_tokens: args.chunk_tokens.map(|tokens| tokens as usize),
            multi_target: args.multi_target,
            prefix,
            rejections: SHOWN_ERRORS,
        };
        let adapted = adapt(args.format, file, &options, &count_tokens).asked()?;
        if !adapted.counts.0.contains_key("rows") {
            return Err(Failure::Asked(anyhow!("{} has no rows", file.display())));
        }
        say_errors(&adapted.rejected, screen);
        rejected.extend(adapted.rejected.kept().iter().map(ToString::to_string));
        counts.merge(&adapted.counts);
        dialogues.extend(adapted.dialogues);
    }
    let bad = counts.0.get("rejected rows").copied().unwrap_or_default();
    if bad > 0 && !args.skip_rejected {
        return Err(rows_rejected(bad));
    }
    if dialogues.is_empty() {
        return Err(Failure::Asked(anyhow!("no row is left to make tasks of")));
    }

    let (train, eval) = divide(dialogues, args.eval, Seed(args.seed));
    let granularity = match args.granularity {
        GranularityArg::Qa => Granularity::Qa,
        GranularityArg::Sample => Granularity::Sample,
    };
    let train = Made::of(train, granularity);
    let eval = Made::of(eval, granularity);
    unique_ids(train.tasks.iter().chain(&eval.tasks)).asked()?;
    fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {}", args.out.display()))
        .asked()?;
    let [train_file, eval_file] = ["train.jsonl", "eval.jsonl"].map(|name| args.out.join(name));
    let earlier = [(&train_file, &train), (&eval_file, &eval)];
    let earlier = earlier.into_iter().filter(|(file, _)| file.exists());
    let (replaced, removed): (Vec<_>, Vec<_>) =
        earlier.partition(|(_, made)| !made.tasks.is_empty());
    let names = |files: Vec<(&PathBuf, &Made)>| -> Vec<PathBuf> {
        files.into_iter().map(|(file, _)| file.clone()).collect()
    };
    let (replaced, removed) = (names(replaced), names(removed));
    for (files, what) in [
        (&replaced, "replaced what an earlier preparation wrote"),
        (&removed, "removed, for no document is left for it"),
    ] {
        for file in files {
            screen.say(format!("note: {}: {what}", file.display()));
        }
    }
    let prepared = Prepared {
        format: args.format.name(),
        train: train.write(&train_file).failed()?,
        eval: eval.write(&eval_file).failed()?,
        replaced,
        removed,
        out: args.out.clone(),
        counts,
        rejected,
    };
    if args.json {
        print_json(&prepared)
    } else {
        print_text(&text(&prepared))
    }
}

/// Of English text in the vocabularies of today's models, roughly.
const BYTES_OF_A_TOKEN: usize = 4;

pub(crate) fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

fn fraction(text: &str) -> Result<f64, String> {
    let fraction: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (0.0..=1.0).contains(&fraction) {
        Ok(fraction)
    } else {
        Err("expected a number from 0 to 1".to_owned())
    }
}

/// Tells rows without names of their own apart by their file, where there are several.
fn prefixes(files: &[PathBuf]) -> Vec<String> {
    let stem = |file: &PathBuf| file.file_stem().unwrap_or_default().to_owned();
    let prefix = |(index, file): (usize, &PathBuf)| {
        let name = stem(file);
        let name = name.to_string_lossy();
        if files.len() == 1 {
            String::new()
        } else if files
            .iter()
            .filter(|other| stem(other) == stem(file))
            .count()
            == 1
        {
            format!("{name}-")
        } else {
            format!("{name}.{}-", index + 1)
        }
    };
    files.iter().enumerate().map(prefix).collect()
}

/// The tasks of one side.
struct Made {
    tasks: Vec<Task>,
    side: Side,
}

impl Made {
    fn of(dialogues: Vec<Dialogue>, granularity: Granularity) -> Self {
        let mut side = Side::default();
        let mut documents = BTreeSet::new();
        let mut tasks = Vec::new();
        for dialogue in &dialogues {
            documents.insert((&dialogue.data_source, &dialogue.document));
            side.questions += dialogue.questions.len();
            let made = Task::of_dialogue(dialogue, granularity);
            for task in &made {
                *side.by_metric.entry(task.metric()).or_default() += 1;
            }
            *side
                .by_source
                .entry(dialogue.data_source.clone())
                .or_default() += made.len();
            tasks.extend(made);
        }
        side.documents = documents.len();
        side.tasks = tasks.len();
        Self { tasks, side }
    }

    /// Writes the tasks; where there are none, a file of an earlier time is removed, of which the caller speaks.
    fn write(mut self, path: &Path) -> anyhow::Result<Side> {
        if self.tasks.is_empty() {
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", path.display()));
                }
                _ => return Ok(self.side),
            }
        }
        let mut file = JsonlWriter::create(path)?;
        for task in &self.tasks {
            file.write(task)?;
        }
        file.finish()?;
        self.side.file = Some(path.to_owned());
        Ok(self.side)
    }
}

/// Tasks with one id would be one group although their prompts differ.
fn unique_ids<'a>(tasks: impl Iterator<Item = &'a Task>) -> anyhow::Result<()> {
    let mut ids = BTreeSet::new();
    for task in tasks {
        if !ids.insert(&task.id.0) {
            return Err(anyhow!(
                "two files have a sample with the id `{}`; prepare each with its own --split or --source",
                task.id.0
            ));
        }
    }
    Ok(())
}

fn text(prepared: &Prepared) -> String {
    let mut lines = Vec::new();
    for side in [&prepared.train, &prepared.eval] {
        if let Some(file) = &side.file {
            lines.push(format!(
                "{}: {}, {}, {}",
                file.display(),
                count_of(side.tasks, "task"),
                count_of(side.questions, "question"),
                count_of(side.documents, "document")
            ));
            let scored = side.by_metric.iter();
            lines.extend(scored.map(|(metric, number)| {
                let what = format!("tasks scored by {metric}");
                format!("  {what:<46} {number:>9}")
            }));
        }
    }
    for (what, number) in &prepared.counts.0 {
        lines.push(format!("  {what:<46} {number:>9}"));
    }
    lines.join("\n")
}
