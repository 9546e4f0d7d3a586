//! Rows to JSON Lines.

use std::{io::Write, path::Path};

use serde::Serialize;

use crate::{atomic::Unfinished, error::DatasetError};

/// Writes a file of JSON Lines row by row. The file is there when [`JsonlWriter::finish`] has returned;
/// dropped before, nothing is.
pub struct JsonlWriter {
    file: Unfinished,
    rows: u64,
}

impl JsonlWriter {
    /// # Errors
    /// A place that cannot be written to.
    pub fn create(path: &Path) -> Result<Self, DatasetError> {
        Ok(Self {
            file: Unfinished::create(path)?,
            rows: 0,
        })
    }

    /// # Errors
    /// A full disk, or a row that has no JSON.
    pub fn write<T: Serialize>(&mut self, row: &T) -> Result<(), DatasetError> {
        let written = serde_json::to_writer(&mut self.file, row)
            .map_err(std::io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"));
        written.map_err(DatasetError::unwritable(self.file.path()))?;
        self.rows += 1;
        Ok(())
    }

    /// Puts the file in its place and says how many rows it has.
    ///
    /// # Errors
    /// A full disk.
    pub fn finish(self) -> Result<u64, DatasetError> {
        self.file.finish()?;
        Ok(self.rows)
    }
}
