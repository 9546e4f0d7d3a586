//! The rows of files in all the shapes that SWE-bench's tools write: lists, JSON Lines, Parquet, and one
//! object that has its rows by id.

use std::path::Path;

use dataset::{DatasetError, Place, Row, RowError, Rows};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A row, or a value of an object that holds rows by id.
#[derive(Clone, Debug)]
pub struct Record {
    row: Row,
    /// The key, and what stands there.
    within: Option<(String, Value)>,
}

/// The records of a file. A lone object without `id` whose values are all objects holds the rows.
///
/// # Errors
/// What is wrong with the file. What is wrong with a record is found by [`Record::parse`].
pub fn records(
    path: &Path,
    id: &str,
) -> Result<impl Iterator<Item = Result<Record, DatasetError>>, DatasetError> {
    let mut rows = Rows::open(path)?.peekable();
    let first = rows.next();
    let alone = rows.peek().is_none();
    let held = match &first {
        Some(Ok(row)) if alone => held(row, id),
        _ => None,
    };
    let (first, held) = match held {
        Some(held) => (None, held),
        None => (first, Vec::new()),
    };
    let whole = |row: Result<Row, DatasetError>| {
        Ok(Record {
            row: row?,
            within: None,
        })
    };
    Ok(held
        .into_iter()
        .map(Ok)
        .chain(first.into_iter().chain(rows).map(whole)))
}

fn held(row: &Row, id: &str) -> Option<Vec<Record>> {
    let object = row.object().ok()?;
    let holds = !object.contains_key(id) && object.values().all(Value::is_object);
    let record = |(key, value)| Record {
        row: row.clone(),
        within: Some((key, value)),
    };
    holds.then(|| object.into_iter().map(record).collect())
}

impl Record {
    /// # Errors
    /// What is wrong with it, by field.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, RowError> {
        match &self.within {
            None => self.row.parse(),
            Some((key, value)) => self.row.typed(value.clone(), key),
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// It is no object.
    pub fn object(&self) -> Result<Map<String, Value>, RowError> {
        match &self.within {
            None => self.row.object(),
            Some((_, Value::Object(object))) => Ok(object.clone()),
            Some(_) => Err(self.error("", "expected a JSON object")),
        }
    }

    /// What stands in this record at `field`, as a record; `None` where nothing does.
    pub fn at(&self, field: &str) -> Option<Self> {
        let value = self.object().ok()?.remove(field)?;
        Some(Self {
            row: self.row.clone(),
            within: Some((self.field(field), value)),
        })
    }

    /// Where it stands in its file.
    pub fn place(&self) -> Place {
        self.row.place()
    }

    /// An error unless `name`, which stands at `field`, can name a file or a folder of it, and images.
    ///
    /// # Errors
    /// It would lead out of where it is to be.
    pub fn check_name(&self, field: &str, name: &str) -> Result<(), RowError> {
        let leads_out = matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']);
        match leads_out {
            true => Err(self.error(
                field,
                format!("`{name}` cannot name a folder, and logs are kept by it"),
            )),
            false => Ok(()),
        }
    }

    /// The key under which an object holds it.
    pub fn key(&self) -> Option<&str> {
        self.within.as_ref().map(|(key, _)| key.as_str())
    }

    /// An error of this record at `field`, empty where all of it is meant.
    pub fn error(&self, field: &str, message: impl Into<String>) -> RowError {
        self.row.error(self.field(field), message)
    }

    fn field(&self, field: &str) -> String {
        match (&self.within, field) {
            (None, field) => field.to_owned(),
            (Some((key, _)), "") => key.clone(),
            (Some((key, _)), field) => format!("{key}.{field}"),
        }
    }
}
