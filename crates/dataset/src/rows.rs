//! The rows of a file, whatever its format, one by one.

use std::{
    borrow::Cow,
    io::BufRead,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    error::{DatasetError, Place, RowError, RowErrors},
    format::{self, Format, Opened, Text},
    json_text::located,
    list::List,
    parquet::Reader,
};

/// The rows of a file in its order. At most a batch of them is in memory.
///
/// The iterator's errors are the file's: it cannot be read, or it is damaged so that the rows behind the
/// damage cannot be told apart; nothing follows them. What is wrong with one row is found by
/// [`Row::parse`], and the next row follows.
pub struct Rows {
    path: Arc<Path>,
    source: Source,
}

enum Source {
    Lines {
        text: Text,
        line: u64,
    },
    List(List),
    Parquet(Box<Reader>),
    /// Behind an error.
    Ended(Format),
}

/// One row, not looked into yet.
#[derive(Clone, Debug)]
pub struct Row {
    path: Arc<Path>,
    place: Place,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Text(Vec<u8>),
    Value(Value),
}

impl Rows {
    /// Opens a file of JSON Lines (`.jsonl`, `.ndjson`), a JSON list (`.json`) or a Parquet file
    /// (`.parquet`), the texts also packed (`.gz`, `.zst`). A JSON file that holds one object has one row.
    ///
    /// # Errors
    /// A file that cannot be read, or whose name and content speak of different formats.
    pub fn open(path: &Path) -> Result<Self, DatasetError> {
        Self::open_keyed(path, None)
    }

    /// The same; of a JSON file that holds an object, the rows are the list that stands there under `key`.
    ///
    /// # Errors
    /// Those of [`Rows::open`].
    pub fn open_list(path: &Path, key: &str) -> Result<Self, DatasetError> {
        Self::open_keyed(path, Some(key.to_owned()))
    }

    fn open_keyed(path: &Path, key: Option<String>) -> Result<Self, DatasetError> {
        let source = match format::open(path, key.is_some())? {
            Opened::Lines(text) => Source::Lines { text, line: 0 },
            Opened::List(text) => Source::List(List::new(path.to_owned(), text, key)),
            Opened::Parquet(file) => Source::Parquet(Box::new(Reader::new(path.to_owned(), file)?)),
        };
        Ok(Self {
            path: path.into(),
            source,
        })
    }

    /// JSON Lines whatever the name of the file.
    pub(crate) fn open_lines(path: &Path) -> Result<Self, DatasetError> {
        Ok(Self {
            path: path.into(),
            source: Source::Lines {
                text: format::open_text(path)?,
                line: 0,
            },
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn format(&self) -> Format {
        match &self.source {
            Source::Lines { .. } => Format::Lines,
            Source::List(_) => Format::List,
            Source::Parquet(_) => Format::Parquet,
            Source::Ended(format) => *format,
        }
    }

    /// All rows, typed.
    ///
    /// # Errors
    /// The first thing that is wrong: with the file, or with a row. A file without rows.
    pub fn read<T: DeserializeOwned>(self) -> Result<Vec<T>, DatasetError> {
        let path = self.path.clone();
        let rows = self
            .map(|row| Ok(row?.parse()?))
            .collect::<Result<Vec<T>, DatasetError>>()?;
        some(&path, rows)
    }

    /// All rows, typed; every bad row is reported.
    ///
    /// # Errors
    /// What is wrong with the file, or all that is wrong with its rows, of which the first `limit` errors
    /// are kept. A file without rows.
    pub fn read_reporting<T: DeserializeOwned>(self, limit: usize) -> Result<Vec<T>, DatasetError> {
        let path = self.path.clone();
        let mut errors = RowErrors::new(limit);
        let mut rows = Vec::new();
        for row in self {
            match row?.parse() {
                Ok(row) => rows.push(row),
                Err(error) => errors.push(error),
            }
        }
        some(&path, errors.or(rows)?)
    }
}

fn some<T>(path: &Path, rows: Vec<T>) -> Result<Vec<T>, DatasetError> {
    if rows.is_empty() {
        Err(DatasetError::Empty {
            path: path.to_owned(),
        })
    } else {
        Ok(rows)
    }
}

impl Iterator for Rows {
    type Item = Result<Row, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = match &mut self.source {
            Source::Lines { text, line } => next_line(&self.path, text, line)
                .map(|found| found.map(|(place, text)| (place, Content::Text(text)))),
            Source::List(list) => list
                .next()
                .map(|found| found.map(|(place, text)| (place, Content::Text(text)))),
            Source::Parquet(reader) => reader
                .next()
                .map(|found| found.map(|(place, value)| (place, Content::Value(value)))),
            Source::Ended(_) => None,
        };
        if matches!(found, Some(Err(_))) {
            self.source = Source::Ended(self.format());
        }
        found.map(|found| {
            found.map(|(place, content)| Row {
                path: self.path.clone(),
                place,
                content,
            })
        })
    }
}

/// The next line that is not blank, and its number.
fn next_line(
    path: &Path,
    text: &mut Text,
    line: &mut u64,
) -> Option<Result<(Place, Vec<u8>), DatasetError>> {
    loop {
        let mut content = Vec::new();
        match text.read_until(b'\n', &mut content) {
            Err(source) => return Some(Err(DatasetError::unreadable(path)(source))),
            Ok(0) => return None,
            Ok(_) => *line += 1,
        }
        if !content.trim_ascii().is_empty() {
            return Some(Ok((Place::Line(*line), content)));
        }
    }
}

impl Row {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn place(&self) -> Place {
        self.place
    }

    /// The row as a `T`.
    ///
    /// # Errors
    /// What is wrong with it, by field.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, RowError> {
        // Keeping track of fields costs more than parsing does, so it is done for rows that are wrong.
        let parsed = match &self.content {
            Content::Text(text) => serde_json::from_slice(text),
            Content::Value(value) => T::deserialize(value),
        };
        parsed.map_err(|error| self.located_error::<T>(&error))
    }

    /// What keeps the row from being a `T`, with the field; `found` is that without it.
    fn located_error<T: DeserializeOwned>(&self, found: &serde_json::Error) -> RowError {
        match &self.content {
            Content::Text(text) => {
                let mut deserializer = serde_json::Deserializer::from_slice(text);
                match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
                    Err(error) => self.misfit(&error),
                    Ok(_) => match deserializer.end() {
                        Err(_) => self.error("", "something stands behind the JSON value"),
                        Ok(()) => self.error("", found.to_string()),
                    },
                }
            }
            Content::Value(value) => match serde_path_to_error::deserialize::<_, T>(value) {
                Err(error) => self.misfit(&error),
                Ok(_) => self.error("", found.to_string()),
            },
        }
    }

    /// The row as a JSON object.
    ///
    /// # Errors
    /// A row that is no JSON, or no object.
    pub fn object(&self) -> Result<Map<String, Value>, RowError> {
        let value = match &self.content {
            Content::Text(_) => Cow::Owned(self.parse()?),
            Content::Value(value) => Cow::Borrowed(value),
        };
        match value.into_owned() {
            Value::Object(object) => Ok(object),
            _ => Err(self.error("", "expected a JSON object")),
        }
    }

    /// A value that stands in this row at `field`, as a `T`.
    ///
    /// # Errors
    /// What is wrong with it, by field.
    pub fn typed<T: DeserializeOwned>(&self, value: Value, field: &str) -> Result<T, RowError> {
        serde_path_to_error::deserialize(value).map_err(|error| {
            let (inner, message) = located(&error.path().to_string(), &error.inner().to_string());
            let separator = if inner.is_empty() || inner.starts_with('[') {
                ""
            } else {
                "."
            };
            self.error(format!("{field}{separator}{inner}"), message)
        })
    }

    /// An error of this row. `field` is a path into the row, empty where the row as a whole is meant.
    pub fn error(&self, field: impl Into<String>, message: impl Into<String>) -> RowError {
        RowError {
            path: PathBuf::from(&*self.path),
            place: self.place,
            field: field.into(),
            message: message.into(),
        }
    }

    fn misfit(&self, error: &serde_path_to_error::Error<serde_json::Error>) -> RowError {
        let inner = error.inner();
        let (field, message) = located(&error.path().to_string(), &inner.to_string());
        // Where a row is no JSON, its fields do not say where.
        let message = if inner.is_eof() {
            format!("not JSON: it ends too early: {message}")
        } else if !inner.is_syntax() {
            message
        } else if let Place::Line(_) = self.place {
            format!("not JSON: {message} (column {})", inner.column())
        } else {
            let (line, column) = (inner.line(), inner.column());
            format!("not JSON: {message} (line {line}, column {column} of the row)")
        };
        self.error(field, message)
    }
}
