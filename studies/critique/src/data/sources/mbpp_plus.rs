//! MBPP+ of EvalPlus: a sentence that asks for a function, and a script of tests (Liu et al., arXiv 2305.01210).

use dataset::RowError;
use serde_json::json;

use super::{Made, Reading};
use crate::data::values::{optional_text, text, texts};

/// Stands before the test that a statement ends with.
const LEAD_IN: &str = "The code must pass this test:";

pub(super) fn read(reading: Reading<'_>) -> Result<Made, RowError> {
    let (row, columns) = (reading.row, reading.columns);
    let bare_statement = text(row, columns, "prompt")?;
    let script = optional_text(row, columns, "test")?.unwrap_or_default();
    let mut made = columns.clone();
    if optional_text(row, columns, "problem")?.is_none() {
        let examples = texts(row, columns, "test_list")?;
        let mut statement = bare_statement.trim_end().to_owned();
        if let Some(first) = examples.first() {
            statement = format!("{statement}\n{LEAD_IN}\n{first}");
        }
        made.insert("problem".to_owned(), statement.into());
    }
    if let (Some(code), None) = (
        optional_text(row, columns, "code")?,
        columns.get("solutions"),
    ) {
        made.insert("solutions".to_owned(), json!([code]));
    }
    Ok(Made {
        columns: made,
        bare_statement,
        tests: usize::from(!script.trim().is_empty()),
    })
}
