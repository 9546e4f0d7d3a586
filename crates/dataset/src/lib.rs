//! JSONL rows to typed tasks; errors name file, row and field.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use thiserror::Error;

/// Reads every row of a JSON-lines file. Blank lines are skipped; row numbers are line numbers.
///
/// # Errors
/// The first row that is not JSON or not a `T`, named by file, line and field. Nothing is dropped
/// silently: one bad row fails the file.
pub fn read_jsonl<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, DatasetError> {
    let unreadable = |source| DatasetError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut rows = Vec::new();
    for (index, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(unreadable)?;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        rows.push(
            parse_row(&line).map_err(|(field, message)| DatasetError::Row {
                path: path.to_owned(),
                line: index + 1,
                field,
                message,
            })?,
        );
    }
    if rows.is_empty() {
        return Err(DatasetError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(rows)
}

fn parse_row<T: DeserializeOwned>(line: &[u8]) -> Result<T, (String, String)> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let row = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let field = match error.path().to_string().as_str() {
            "." | "?" => "the row".to_owned(),
            path => format!("field `{path}`"),
        };
        (field, error.into_inner().to_string())
    })?;
    deserializer
        .end()
        .map_err(|error| ("the row".to_owned(), error.to_string()))?;
    Ok(row)
}

#[derive(Debug, Error)]
pub enum DatasetError {
    #[error("cannot read {path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },

    #[error("{path} has no rows; expected one JSON object a line")]
    Empty { path: PathBuf },

    #[error("{path}, line {line}, {field}: {message}")]
    Row {
        path: PathBuf,
        line: usize,
        field: String,
        message: String,
    },
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Row {
        id: u32,
        tests: Vec<Case>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Case {
        input: String,
    }

    fn read(text: &[u8]) -> Result<Vec<Row>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        read_jsonl(file.path()).map_err(|error| {
            error
                .to_string()
                .replace(&file.path().display().to_string(), "FILE")
        })
    }

    #[test]
    fn rows_in_order_blank_lines_skipped_last_newline_optional() {
        let rows =
            read(b"{\"id\":1,\"tests\":[]}\n\n{\"id\":2,\"tests\":[{\"input\":\"x\"}]}").unwrap();
        assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn errors_name_file_line_and_field() {
        let good = "{\"id\":1,\"tests\":[]}\n";
        for (bad, expected) in [
            ("{\"id\":1}", "FILE, line 2, the row: missing field `tests`"),
            ("{\"id\":\"x\",\"tests\":[]}", "FILE, line 2, field `id`"),
            (
                "{\"id\":1,\"tests\":[{\"input\":3}]}",
                "FILE, line 2, field `tests[0].input`",
            ),
            ("{\"id\":1,\"tests\":[", "FILE, line 2, field `tests`"),
            (
                "{\"id\":1,\"tests\":[]} {}",
                "FILE, line 2, the row: trailing",
            ),
            ("\u{fffd}", "FILE, line 2, the row"),
        ] {
            let error = read(format!("{good}{bad}\n").as_bytes()).unwrap_err();
            assert!(error.starts_with(expected), "{bad}: {error}");
        }
        assert!(read(b"\n").unwrap_err().contains("no rows"));
        assert!(
            read(b"{\"id\":1,\"tests\":[{\"input\":\"\xff\"}]}")
                .unwrap_err()
                .contains("line 1")
        );
    }
}
