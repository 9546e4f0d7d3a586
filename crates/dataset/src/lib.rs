//! Rows of JSON Lines, JSON lists and Parquet files; errors name file, row and field.
//!
//! One way in for all formats: [`Rows::open`], then rows one by one, typed by [`Row::parse`], or all at
//! once by [`Rows::read`] and [`Rows::read_reporting`]. Nothing is dropped silently: a row that does not
//! fit is an error. [`JsonlWriter`] and [`write_parquet`] write files that are whole or not there.

mod atomic;
mod error;
mod format;
mod json_text;
mod list;
mod parquet;
mod rows;
mod write;

use std::path::Path;

use serde::de::DeserializeOwned;

pub use error::{DatasetError, Place, RowError, RowErrors};
pub use format::Format;
pub use json_text::{json_text, unpack};
pub use parquet::write_parquet;
pub use rows::{Row, Rows};
pub use write::JsonlWriter;

/// Reads every row of a file; its format is found as [`Rows::open`] does.
///
/// # Errors
/// The first thing that is wrong, named by file, row and field. Nothing is dropped silently: one bad
/// row fails the file.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, DatasetError> {
    Rows::open(path)?.read()
}

/// Reads every row of a file of JSON Lines, whatever its name. Blank lines are skipped; row numbers are
/// line numbers.
///
/// # Errors
/// The first row that is not JSON or not a `T`, named by file, line and field. Nothing is dropped
/// silently: one bad row fails the file.
pub fn read_jsonl<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, DatasetError> {
    Rows::open_lines(path)?.read()
}
