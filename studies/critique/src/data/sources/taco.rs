//! TACO and APPS: programs that read and write texts, and functions whose tests become assertions.

use code::syntax_fault;
use dataset::RowError;
use serde_json::{Map, Value, json};

use super::{Made, Reading, Source, as_it_is, number, stdio_case};
use crate::data::{
    python::Python,
    values::{given, name, optional_text, text, texts, time_limit},
};

pub(super) fn read(source: Source, mut reading: Reading<'_>) -> Result<Made, RowError> {
    if let Some(made) = as_it_is(&reading, "problem", "all_uts") {
        return Ok(made);
    }
    let (row, columns) = (reading.row, reading.columns);
    let bare_statement = text(row, columns, "question")?;
    let mut statement = bare_statement.clone();
    let tests = read_tests(&mut reading)?;
    let (all_uts, fn_name, count) = match tests {
        Tests::None => (Value::from("[]"), None, 0),
        Tests::Stdio(cases) => {
            let count = cases.len();
            (Value::from(Value::Array(cases).to_string()), None, count)
        }
        Tests::Function(function, asserts) => {
            if let Some(first) = asserts.first()
                && !statement.contains(&format!("{function}("))
            {
                statement = format!("{}\n\n```python\n{first}\n```\n", statement.trim_end());
                reading.counts.add("statements with an example added", 1);
            }
            let count = asserts.len();
            (json!(asserts), Some(function), count)
        }
    };
    // Where the program begins, and where a function is a method of a class: whoever solves it has to know.
    let starter = optional_text(row, columns, "starter_code")?.unwrap_or_default();
    if !starter.trim().is_empty() {
        statement = format!(
            "{}\n\n```python\n{}\n```\n",
            statement.trim_end(),
            starter.trim_end().trim_start_matches('\n')
        );
        reading
            .counts
            .add("statements with the starter code added", 1);
    }
    let task_id = match source {
        Source::Apps => given(columns, "problem_id").cloned(),
        _ => None,
    };
    let mut made = Map::from_iter([
        (
            "task_id".to_owned(),
            task_id.unwrap_or_else(|| number(reading.index)),
        ),
        ("problem".to_owned(), statement.into()),
        ("all_uts".to_owned(), all_uts),
        ("fn_name".to_owned(), json!(fn_name)),
        ("time_limit".to_owned(), json!(time_limit(row, columns)?)),
    ]);
    if let Some(difficulty) = name(row, columns, "difficulty")? {
        made.insert("difficulty".to_owned(), difficulty.into());
    }
    made.insert(
        "solutions".to_owned(),
        json!(texts(row, columns, "solutions")?),
    );
    Ok(Made {
        columns: made,
        bare_statement,
        tests: count,
    })
}

enum Tests {
    None,
    Stdio(Vec<Value>),
    /// The function's name and the assertions about it.
    Function(String, Vec<String>),
}

const FIELD: &str = "input_output";

fn read_tests(reading: &mut Reading<'_>) -> Result<Tests, RowError> {
    let (row, columns) = (reading.row, reading.columns);
    let held = match given(columns, FIELD) {
        None => return Ok(Tests::None),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Tests::None),
        Some(Value::String(text)) => Python::of_json(text)
            .map_err(|message| row.error(FIELD, format!("in its JSON text, {message}")))?,
        Some(value) => Python::of_value(value),
    };
    match held {
        Python::Dict(_) => {}
        Python::None => return Ok(Tests::None),
        _ => {
            let expected = "expected an object with `inputs` and `outputs`";
            return Err(row.error(FIELD, expected));
        }
    }
    let list = |key: &str| match held.get(key) {
        None | Some(Python::None) => Ok(&[][..]),
        Some(Python::List(items)) => Ok(&items[..]),
        Some(_) => Err(row.error(format!("{FIELD}.{key}"), "expected a list")),
    };
    let (inputs, outputs) = (list("inputs")?, list("outputs")?);
    if inputs.len() != outputs.len() {
        return Err(row.error(
            format!("{FIELD}.outputs"),
            format!(
                "{} entries, but `inputs` has {}",
                outputs.len(),
                inputs.len()
            ),
        ));
    }
    let cases = inputs.iter().zip(outputs);
    match held.get("fn_name") {
        Some(Python::Str(function)) => {
            let mut asserts = Vec::new();
            for (input, output) in cases {
                match assertion(function, input, output) {
                    Ok((text, quoted)) => {
                        asserts.push(text);
                        reading.counts.add(
                            "assertions that keep their quotes to stay Python",
                            usize::from(quoted),
                        );
                    }
                    Err(why) => reading.counts.add(why, 1),
                }
            }
            Ok(Tests::Function(function.clone(), asserts))
        }
        None | Some(Python::None) => {
            let mut kept = Vec::new();
            for (index, (input, output)) in cases.enumerate() {
                match stdio(input, output) {
                    Ok(case) => kept.push(case),
                    Err(Refused::Left(why)) => reading.counts.add(why, 1),
                    Err(Refused::Wrong(message)) => {
                        return Err(row.error(format!("{FIELD}.outputs[{index}]"), message));
                    }
                }
            }
            Ok(Tests::Stdio(kept))
        }
        Some(_) => Err(row.error(format!("{FIELD}.fn_name"), "expected a text")),
    }
}

/// Why a case is no test.
enum Refused {
    /// On purpose.
    Left(&'static str),
    Wrong(&'static str),
}

fn stdio(input: &Python, output: &Python) -> Result<Value, Refused> {
    let Python::Str(input) = input else {
        return Err(Refused::Left("tests left out: input is no text"));
    };
    if input.contains(" = ") {
        return Err(Refused::Left("tests left out: input contains ` = `"));
    }
    if input.contains("[]") {
        return Err(Refused::Left("tests left out: input contains `[]`"));
    }
    let output = match output {
        Python::Str(text) => text.clone(),
        // Some rows hold their output line by line.
        Python::List(lines) => lines
            .iter()
            .map(|line| match line {
                Python::Str(text) => Ok(text.as_str()),
                _ => Err(Refused::Wrong("expected a text or a list of lines")),
            })
            .collect::<Result<Vec<_>, _>>()?
            .join("\n"),
        _ => return Err(Refused::Wrong("expected a text or a list of lines")),
    };
    Ok(stdio_case(input, &output))
}

/// `assert function(arguments) == expected`, and whether it had to keep quotes that are otherwise taken off: texts
/// that are quoted twice, `'"a"'`, stand for `"a"`.
fn assertion(
    function: &str,
    input: &Python,
    output: &Python,
) -> Result<(String, bool), &'static str> {
    let arguments = match input {
        Python::List(arguments) => arguments,
        Python::Str(_) => return Err("tests left out: arguments are a text"),
        _ => return Err("tests left out: arguments are no list"),
    };
    let expected = match output {
        Python::List(items) => items.first().unwrap_or(output),
        other => other,
    };
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| argument.clone().with_integer_keys().to_string())
        .collect();
    let expected = expected.clone().with_integer_keys();
    let plain = format!("assert {function}({}) == {expected}", arguments.join(", "));
    let collapsed = plain.replace("'\"", "\"").replace("\"'", "\"");
    if collapsed == plain || syntax_fault(&collapsed).is_none() {
        return match syntax_fault(&collapsed) {
            None => Ok((collapsed, false)),
            Some(_) => Err("tests left out: the assertion is no Python"),
        };
    }
    match syntax_fault(&plain) {
        None => Ok((plain, true)),
        Some(_) => Err("tests left out: the assertion is no Python"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(input: &str, output: &str) -> Result<(String, bool), &'static str> {
        let value = |text| Python::of_json(text).unwrap();
        assertion("f", &value(input), &value(output))
    }

    #[test]
    fn function_tests_become_assertions() {
        for (input, output, text) in [
            // Outputs stand in a list of one.
            ("[1, [2, 3]]", "[5]", "assert f(1, [2, 3]) == 5"),
            ("[\"a\"]", "[[\"b\", 1.5]]", "assert f('a') == ['b', 1.5]"),
            ("[]", "true", "assert f() == True"),
            ("[null]", "[]", "assert f(None) == []"),
            // JSON has no integer keys.
            (
                "[{\"1\": \"a\"}]",
                "[{\"2\": 3}]",
                "assert f({1: 'a'}) == {2: 3}",
            ),
            // Texts that were quoted twice.
            (
                "[\"\\\"ab\\\"\"]",
                "[\"\\\"x\\\"\"]",
                "assert f(\"ab\") == \"x\"",
            ),
            (
                "[12345678901234567890123]",
                "[1]",
                "assert f(12345678901234567890123) == 1",
            ),
        ] {
            assert_eq!(made(input, output), Ok((text.to_owned(), false)), "{input}");
        }
        // `'say "hi"'` without its last quotes would be no Python.
        assert_eq!(
            made("[\"say \\\"hi\\\"\"]", "[1]"),
            Ok(("assert f('say \"hi\"') == 1".to_owned(), true))
        );
        assert!(made("\"1\\n2\"", "[3]").is_err());
        assert!(made("{\"a\": 1}", "[3]").is_err());
        assert!(assertion("no name", &Python::List(Vec::new()), &Python::None).is_err());
    }
}
