//! The datasets that problem files are made from: one module each, the same output.

mod code_contests;
mod live_code_bench;
mod mbpp_plus;
mod taco;

use std::{fmt, str::FromStr};

use dataset::{Row, RowError};
use serde_json::{Map, Value, json};

use super::{counts::Counts, values::given};

/// A dataset that there is a reader for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Taco,
    CodeContests,
    LiveCodeBench,
    MbppPlus,
    Apps,
}

/// A row of a problem file that is to be.
pub(super) struct Made {
    /// As they are written, in order.
    pub(super) columns: Map<String, Value>,
    /// The statement as the dataset has it, before anything was added.
    pub(super) bare_statement: String,
    /// Of its tests, those that were kept.
    pub(super) tests: usize,
}

/// What a reader is told besides the row.
pub(super) struct Reading<'a> {
    pub(super) row: &'a Row,
    pub(super) columns: &'a Map<String, Value>,
    /// Counts rows of all files together, from 0.
    pub(super) index: u64,
    pub(super) counts: &'a mut Counts,
}

impl Source {
    pub const ALL: [Self; 5] = [
        Self::Taco,
        Self::CodeContests,
        Self::LiveCodeBench,
        Self::MbppPlus,
        Self::Apps,
    ];

    /// As commands and files name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Taco => "taco",
            Self::CodeContests => "codecontests",
            Self::LiveCodeBench => "livecodebench",
            Self::MbppPlus => "mbppplus",
            Self::Apps => "apps",
        }
    }

    /// The split that is meant where nobody says: those that the study trains on are `train`.
    pub fn usual_split(self) -> &'static str {
        match self {
            Self::Taco | Self::Apps => "train",
            _ => "test",
        }
    }

    /// Whether a file of each kind of problems is written beside that of all.
    pub fn has_both_kinds(self) -> bool {
        matches!(self, Self::Taco | Self::Apps)
    }

    /// The problem of a row. Rows of problem files stay as they are.
    pub(super) fn read(self, reading: Reading<'_>) -> Result<Made, RowError> {
        match self {
            Self::Taco | Self::Apps => taco::read(self, reading),
            Self::CodeContests => code_contests::read(reading),
            Self::LiveCodeBench => live_code_bench::read(reading),
            Self::MbppPlus => mbpp_plus::read(reading),
        }
    }
}

/// A row that is one of a problem file already: its columns, and how many tests the column `tests` holds.
fn as_it_is(reading: &Reading<'_>, statement: &str, tests: &str) -> Option<Made> {
    let columns = reading.columns;
    let text = given(columns, statement)?.as_str()?.to_owned();
    let held = dataset::unpack(given(columns, tests)?.clone());
    let tests = match &held {
        Value::Array(items) => items.len(),
        _ => 1,
    };
    Some(Made {
        columns: columns.clone(),
        bare_statement: text,
        tests,
    })
}

/// A case of a program that reads and writes texts.
fn stdio_case(input: &str, output: &str) -> Value {
    json!({ "input": { "stdin": input }, "output": { "stdout": output } })
}

/// The index as other datasets name their rows.
fn number(index: u64) -> Value {
    Value::from(index)
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|source| source.name() == text)
            .ok_or_else(|| format!("no dataset `{text}`"))
    }
}
