//! LiveCodeBench's lite files: statements, a starter program perhaps, tests in the open and packed (Jain et al.,
//! arXiv 2403.07974).

use dataset::{Row, RowError};
use judge::unpacked;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Made, Reading, as_it_is, number};
use crate::data::values::{given, name, optional_text, text};

#[derive(Deserialize)]
struct Case {
    input: String,
    output: String,
    #[serde(default)]
    testtype: Option<String>,
}

/// How a case is run: by the standard input, or by calling a function.
const STDIN: &str = "stdin";

pub(super) fn read(reading: Reading<'_>) -> Result<Made, RowError> {
    if let Some(made) = as_it_is(&reading, "content", "test") {
        return Ok(made);
    }
    let (row, columns) = (reading.row, reading.columns);
    let question = text(row, columns, "question_content")?;
    let starter =
        optional_text(row, columns, "starter_code")?.filter(|starter| !starter.trim().is_empty());
    let mut cases = cases(row, columns, "public_test_cases")?;
    cases.extend(self::cases(row, columns, "private_test_cases")?);
    let kind = kind(row, &cases)?;
    let named = function(row, columns)?;
    let function = match kind {
        Some(STDIN) | None => None,
        Some(_) => Some(named.ok_or_else(|| {
            row.error(
                "metadata.func_name",
                "missing, but the tests call a function",
            )
        })?),
    };
    let inputs: Vec<&str> = cases.iter().map(|case| case.input.as_str()).collect();
    let outputs: Vec<&str> = cases.iter().map(|case| case.output.as_str()).collect();
    let held = json!({ "inputs": inputs, "outputs": outputs, "fn_name": function });
    let test = json!({ "input_output": held.to_string() });
    let platform = name(row, columns, "platform")?.unwrap_or_default();
    let question_id =
        name(row, columns, "question_id")?.ok_or_else(|| row.error("question_id", "missing"))?;
    let difficulty = name(row, columns, "difficulty")?;
    let labels = json!({
        "task_id": format!("{platform}/{question_id}"),
        "programming_language": "python",
        "execution_language": "python",
        "category": kind.unwrap_or(STDIN),
        "difficulty": difficulty,
        "fewshot": false,
    });
    let mut made = Map::from_iter([
        ("id".to_owned(), number(reading.index)),
        (
            "content".to_owned(),
            content(&question, starter.as_deref()).into(),
        ),
        ("test".to_owned(), test.to_string().into()),
        ("labels".to_owned(), labels.to_string().into()),
    ]);
    if let Some(date) = optional_text(row, columns, "contest_date")? {
        made.insert("contest_date".to_owned(), date.into());
    }
    if let Some(difficulty) = difficulty {
        made.insert("difficulty".to_owned(), difficulty.into());
    }
    Ok(Made {
        columns: made,
        bare_statement: question,
        tests: cases.len(),
    })
}

/// The whole prompt, with the headings that LiveCodeBench has.
fn content(question: &str, starter: Option<&str>) -> String {
    let (format, program) = match starter {
        Some(starter) => (
            "Complete the starter code below, and put all of the program between the fences.",
            starter.trim_end(),
        ),
        None => (
            "Read the input from standard input, write the answer to standard output, and put the program between \
             the fences.",
            "# the program",
        ),
    };
    format!(
        "### Question:\n{question}\n\n### Format: {format}\n```python\n{program}\n```\n\n### Answer:\n\n"
    )
}

/// Cases as a list, as JSON, or packed.
fn cases(row: &Row, columns: &Map<String, Value>, field: &str) -> Result<Vec<Case>, RowError> {
    let value = match given(columns, field) {
        None => return Ok(Vec::new()),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Vec::new()),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(value) => value,
            Err(no_json) if text.trim_start().starts_with(['[', '{']) => {
                return Err(row.error(field, format!("is not JSON: {no_json}")));
            }
            Err(_) => {
                let json =
                    unpacked(text).map_err(|problem| row.error(field, problem.to_string()))?;
                serde_json::from_str(&json)
                    .map_err(|problem| row.error(field, format!("packs no JSON: {problem}")))?
            }
        },
        Some(value) => value.clone(),
    };
    row.typed(value, field)
}

/// How all cases are run.
fn kind<'a>(row: &Row, cases: &'a [Case]) -> Result<Option<&'a str>, RowError> {
    let kind = |case: &'a Case| case.testtype.as_deref().unwrap_or(STDIN);
    let Some(first) = cases.first().map(kind) else {
        return Ok(None);
    };
    match cases.iter().map(kind).find(|other| *other != first) {
        None => Ok(Some(first)),
        Some(other) => Err(row.error(
            "private_test_cases",
            format!("tests of the kinds `{first}` and `{other}` in one problem"),
        )),
    }
}

/// The name of the function that tests may call.
fn function(row: &Row, columns: &Map<String, Value>) -> Result<Option<String>, RowError> {
    let metadata = match given(columns, "metadata") {
        Some(Value::String(text)) if !text.trim().is_empty() => serde_json::from_str(text)
            .map_err(|problem| row.error("metadata", format!("is not JSON: {problem}")))?,
        other => other.cloned().unwrap_or_default(),
    };
    let named = metadata.get("func_name").and_then(Value::as_str);
    Ok(named.map(str::to_owned))
}
