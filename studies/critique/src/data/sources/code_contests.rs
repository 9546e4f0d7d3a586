//! CodeContests: tests in three lists, solutions in many languages (Li et al., arXiv 2203.07814).

use dataset::{Row, RowError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Made, Reading, as_it_is, number, stdio_case};
use crate::data::values::{given, optional_text, text, time_limit};

/// Tests of all lists together that a program is judged by.
const JUDGED: usize = 10;

/// Inputs and outputs side by side, or one by one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Cases {
    Lists {
        input: Vec<String>,
        output: Vec<String>,
    },
    Pairs(Vec<Pair>),
}

#[derive(Deserialize)]
struct Pair {
    input: String,
    output: String,
}

/// Programs with their languages.
#[derive(Deserialize)]
struct Programs {
    language: Vec<Value>,
    solution: Vec<String>,
}

pub(super) fn read(reading: Reading<'_>) -> Result<Made, RowError> {
    if let Some(made) = as_it_is(&reading, "problem", "all_uts") {
        return Ok(made);
    }
    let (row, columns) = (reading.row, reading.columns);
    let statement = text(row, columns, "description")?;
    let mut lists = Vec::new();
    for field in ["public_tests", "private_tests", "generated_tests"] {
        lists.push(cases(row, columns, field)?);
    }
    let all: Vec<&Value> = lists.iter().flatten().collect();
    let judged: Vec<&Value> = all.iter().take(JUDGED).copied().collect();
    reading.counts.add(
        "tests left out: past the first ten",
        all.len() - judged.len(),
    );
    let text_of = |cases: &[Value]| Value::from(json!(cases).to_string());
    let mut made = Map::from_iter([
        ("task_id".to_owned(), number(reading.index)),
        ("problem".to_owned(), statement.clone().into()),
        ("public_uts".to_owned(), text_of(&lists[0])),
        ("private_uts".to_owned(), text_of(&lists[1])),
        ("generated_uts".to_owned(), text_of(&lists[2])),
        ("all_uts".to_owned(), json!(judged).to_string().into()),
        ("time_limit".to_owned(), json!(time_limit(row, columns)?)),
    ]);
    if let Some(name) = optional_text(row, columns, "name")? {
        made.insert("name".to_owned(), name.into());
    }
    if let Some(difficulty) = difficulty(columns) {
        made.insert("difficulty".to_owned(), difficulty.into());
    }
    for field in ["solutions", "incorrect_solutions"] {
        let (python, other) = programs(row, columns, field)?;
        reading
            .counts
            .add(&format!("{field} left out: no Python 3"), other);
        made.insert(field.to_owned(), json!(python));
    }
    Ok(Made {
        tests: judged.len(),
        columns: made,
        bare_statement: statement,
    })
}

fn cases(row: &Row, columns: &Map<String, Value>, field: &str) -> Result<Vec<Value>, RowError> {
    let Some(value) = given(columns, field) else {
        return Ok(Vec::new());
    };
    let found: Cases = row
        .typed(dataset::unpack(value.clone()), field)
        .map_err(|_| {
            row.error(
                field,
                "expected {input: […], output: […]} or a list of {input, output}, all of them texts",
            )
        })?;
    match found {
        Cases::Lists { input, output } if input.len() != output.len() => Err(row.error(
            format!("{field}.output"),
            format!("{} entries, but `input` has {}", output.len(), input.len()),
        )),
        Cases::Lists { input, output } => Ok(input
            .iter()
            .zip(&output)
            .map(|(input, output)| stdio_case(input, output))
            .collect()),
        Cases::Pairs(pairs) => Ok(pairs
            .iter()
            .map(|pair| stdio_case(&pair.input, &pair.output))
            .collect()),
    }
}

/// The programs in Python 3, and the number of the others. Languages are named, or numbered as the dataset
/// does: 1 is Python 2, 2 C++, 3 Python 3, 4 Java.
fn programs(
    row: &Row,
    columns: &Map<String, Value>,
    field: &str,
) -> Result<(Vec<String>, usize), RowError> {
    let Some(value) = given(columns, field) else {
        return Ok((Vec::new(), 0));
    };
    let value = dataset::unpack(value.clone());
    if value.is_array() {
        return Ok((row.typed(value, field)?, 0));
    }
    let Programs { language, solution } = row.typed(value, field)?;
    if language.len() != solution.len() {
        return Err(row.error(
            format!("{field}.solution"),
            format!(
                "{} entries, but `language` has {}",
                solution.len(),
                language.len()
            ),
        ));
    }
    let is_python = |language: &Value| match language {
        Value::Number(number) => number.as_u64() == Some(3),
        Value::String(name) => name.eq_ignore_ascii_case("python3"),
        _ => false,
    };
    let total = solution.len();
    let python: Vec<String> = language
        .iter()
        .zip(solution)
        .filter(|(language, _)| is_python(language))
        .map(|(_, solution)| solution)
        .collect();
    let other = total - python.len();
    Ok((python, other))
}

/// The dataset's name for the number that stands for it: difficulties from 7 on are letters of Codeforces.
fn difficulty(columns: &Map<String, Value>) -> Option<String> {
    const NAMES: [&str; 7] = [
        "unknown", "easy", "medium", "hard", "harder", "hardest", "external",
    ];
    match given(columns, "difficulty")? {
        Value::String(name) => Some(name.to_lowercase()),
        Value::Number(number) => {
            let number = usize::try_from(number.as_u64()?).ok()?;
            match NAMES.get(number) {
                Some(name) => Some((*name).to_owned()),
                None => {
                    let letter = u8::try_from(number - NAMES.len()).ok()?;
                    let letter = b'A'.checked_add(letter).filter(u8::is_ascii_uppercase)?;
                    Some((letter as char).to_string())
                }
            }
        }
        _ => None,
    }
}
