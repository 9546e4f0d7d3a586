//! The files beside the journal that only repeat it: `metrics.jsonl` and the line logs.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use crate::{
    entry::{Entry, Stamped, Step},
    error::{IoContext, Result},
    files,
};

pub(crate) const METRICS: &str = "metrics.jsonl";
pub(crate) const SUMMARY: &str = "summary.json";
pub(crate) const EVENTS: &str = "logs/events.jsonl";
pub(crate) const TEST_RUNS: &str = "logs/test_runs.jsonl";

/// A file that grows by whole lines and can be cut to an earlier size.
#[derive(Debug)]
pub(crate) struct LineFile {
    file: File,
    path: PathBuf,
    size: u64,
}

impl LineFile {
    /// Opens the file and cuts what was written after `size`. A file that is shorter than that, or
    /// absent, is taken as it is: its lines are a convenience that nothing is computed from.
    pub(crate) fn cut_to(path: PathBuf, size: u64) -> Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .at(&path, "open")?;
        let found = file.metadata().at(&path, "inspect")?.len();
        if found > size {
            file.set_len(size).at(&path, "cut to the last commit")?;
        }
        Ok(Self {
            file,
            path,
            size: found.min(size),
        })
    }

    /// Opens the file with exactly this content.
    pub(crate) fn rebuilt(path: PathBuf, content: &str) -> Result<Self> {
        if fs::read(&path).ok().as_deref() != Some(content.as_bytes()) {
            files::write_atomically(&path, content.as_bytes())?;
        }
        Self::cut_to(path, content.len() as u64)
    }

    pub(crate) fn append(&mut self, line: &str) -> Result<()> {
        let line = format!("{line}\n");
        self.file
            .write_all(line.as_bytes())
            .at(&self.path, "append a line")?;
        self.size += line.len() as u64;
        Ok(())
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

/// All of `metrics.jsonl`.
pub(crate) fn metrics_file<'a>(steps: impl Iterator<Item = &'a Step>) -> String {
    steps.map(|step| metrics_line(step) + "\n").collect()
}

/// `{"phase", "step", metric: value …, timing: value …}`, metrics and timings in name order.
pub(crate) fn metrics_line(step: &Step) -> String {
    let mut line = Map::new();
    line.insert("phase".to_owned(), json!(step.phase));
    line.insert("step".to_owned(), json!(step.step));
    line.insert("tokens".to_owned(), json!(step.tokens));
    line.extend(
        step.metrics
            .iter()
            .chain(&step.timings)
            .map(|(name, value)| (name.clone(), json!(value))),
    );
    Value::Object(line).to_string()
}

/// Column names of `metrics.jsonl` that no metric may take.
pub(crate) const RESERVED_METRICS: [&str; 3] = ["phase", "step", "tokens"];

/// The line of `logs/events.jsonl` that speaks of a record.
pub(crate) fn event_of(run: &str, stamped: &Stamped) -> String {
    let mut fields = Map::new();
    let kind = match &stamped.entry {
        Entry::RunStarted(started) => {
            fields.insert("study".to_owned(), json!(started.study));
            fields.insert("seed".to_owned(), json!(started.seed));
            "run_started"
        }
        Entry::Stopped => "stopped",
        Entry::Resumed(resumed) => {
            fields.insert("torn_bytes".to_owned(), json!(resumed.torn_bytes));
            fields.insert("leftovers".to_owned(), json!(resumed.leftovers));
            "resumed"
        }
        Entry::PhaseStarted(started) => {
            fields.insert("phase".to_owned(), json!(started.phase));
            "phase_started"
        }
        Entry::PhaseEnded(ended) => {
            fields.insert("phase".to_owned(), json!(ended.phase));
            fields.insert("duration_sec".to_owned(), json!(ended.seconds));
            "phase_ended"
        }
        Entry::Step(step) => {
            fields.insert("phase".to_owned(), json!(step.phase));
            fields.insert("step".to_owned(), json!(step.step));
            "step"
        }
        Entry::Checkpoint(checkpoint) => {
            fields.insert("name".to_owned(), json!(checkpoint.name));
            fields.insert("phase".to_owned(), json!(checkpoint.phase));
            fields.insert("step".to_owned(), json!(checkpoint.step));
            "checkpoint"
        }
        Entry::CheckpointRemoved { name } => {
            fields.insert("name".to_owned(), json!(name));
            "checkpoint_removed"
        }
        Entry::Evaluation(evaluation) => {
            fields.insert("name".to_owned(), json!(evaluation.name));
            fields.insert("policy".to_owned(), json!(evaluation.policy));
            "evaluation"
        }
        Entry::Note { name, .. } => {
            fields.insert("name".to_owned(), json!(name));
            "note"
        }
        Entry::Finished => "finished",
    };
    event(stamped.at, run, kind, fields)
}

/// A line of a log: `ts`, `run_id` and `kind`, then the fields; a field of one of these three names
/// gives way.
pub(crate) fn event(
    at: jiff::Timestamp,
    run: &str,
    kind: &str,
    fields: impl IntoIterator<Item = (String, Value)>,
) -> String {
    let mut line = Map::new();
    line.insert("ts".to_owned(), json!(at));
    line.insert("run_id".to_owned(), json!(run));
    line.insert("kind".to_owned(), json!(kind));
    for (name, value) in fields {
        line.entry(name).or_insert(value);
    }
    Value::Object(line).to_string()
}

/// Writes `summary.json`.
pub(crate) fn write_summary(root: &Path, summary: &crate::Summary) -> Result<()> {
    let path = root.join(SUMMARY);
    let text = serde_json::to_string_pretty(summary)
        .map_err(std::io::Error::from)
        .at(&path, "encode")?;
    files::write_atomically(&path, (text + "\n").as_bytes())
}
