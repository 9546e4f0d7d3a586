//! What can be wrong with a file of rows: errors name file, row and field.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use thiserror::Error;

/// Where a row stands in its file. Both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Of a file of JSON Lines.
    Line(u64),
    /// Of a JSON list or a Parquet file.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(formatter, "line {number}"),
            Self::Row(number) => write!(formatter, "row {number}"),
        }
    }
}

/// One thing that is wrong with one row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}, {place}, {}: {message}", shown_field(field))]
pub struct RowError {
    pub path: PathBuf,
    pub place: Place,
    /// As a path into the row, `sessions[0].text`; empty where the row as a whole is meant.
    pub field: String,
    pub message: String,
}

fn shown_field(field: &str) -> String {
    if field.is_empty() {
        "the row".to_owned()
    } else {
        format!("field `{field}`")
    }
}

/// Everything that is wrong with the rows of a file, in the order of the file.
///
/// The first `limit` errors are kept and all are counted, so that a large file in a wrong format
/// neither fills the memory nor looks better than it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowErrors {
    kept: Vec<RowError>,
    limit: usize,
    count: u64,
}

impl RowErrors {
    pub fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit,
            count: 0,
        }
    }

    pub fn push(&mut self, error: RowError) {
        self.count += 1;
        if self.kept.len() < self.limit {
            self.kept.push(error);
        }
    }

    /// The first ones, at most as many as the limit.
    pub fn kept(&self) -> &[RowError] {
        &self.kept
    }

    /// All of them, kept or not.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// `value` where nothing was wrong.
    ///
    /// # Errors
    /// These errors.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl fmt::Display for RowErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.kept.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(formatter, "{newline}{error}")?;
        }
        match self.count - self.kept.len() as u64 {
            0 => Ok(()),
            1 => write!(formatter, "\nand 1 more error"),
            more => write!(formatter, "\nand {more} more errors"),
        }
    }
}

impl std::error::Error for RowErrors {}

/// Why a file gives no rows, or cannot be written.
#[derive(Debug, Error)]
pub enum DatasetError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },

    #[error("{path} has no rows; expected JSON objects: one a line, or a list of them")]
    Empty { path: PathBuf },

    #[error(transparent)]
    Row(#[from] RowError),

    #[error(transparent)]
    Rows(#[from] RowErrors),

    /// The name of the file says one format and its first bytes another.
    #[error("{path}: {message}")]
    Format { path: PathBuf, message: String },

    /// Structure that rows cannot be told apart without is damaged: from `place` on nothing is known.
    #[error("{path}, {place}: {message}; no row from there on can be read")]
    Broken {
        path: PathBuf,
        place: Place,
        message: String,
    },

    #[error("{path}: no rows to write")]
    NothingToWrite { path: PathBuf },

    #[error("cannot write {path}: {source}")]
    Unwritable { path: PathBuf, source: io::Error },

    /// Rows that fit into no common columns.
    #[error("cannot write {path}, row {row}, column `{column}`: {message}")]
    Column {
        path: PathBuf,
        row: u64,
        column: String,
        message: String,
    },
}

impl DatasetError {
    pub(crate) fn unreadable(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Unreadable {
            path: path.clone(),
            source,
        }
    }

    pub(crate) fn unwritable(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Unwritable {
            path: path.clone(),
            source,
        }
    }

    pub(crate) fn format(path: &Path, message: impl Into<String>) -> Self {
        Self::Format {
            path: path.to_owned(),
            message: message.into(),
        }
    }
}
