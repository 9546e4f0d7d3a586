//! The rows that people have, as tests: our own, HumanEval, MBPP, CommonOJ, TACO, LiveCodeBench. Pure.

use serde::Deserialize;
use serde_json::Value as Json;

use crate::{Comparator, Tests, Value, tests::Kind, unpacked};

/// A problem's tests, and what a completion needs to become a program.
#[derive(Clone, Debug)]
pub struct Problem {
    pub tests: Tests,
    /// What the completion goes on from, where it may be the rest of a function.
    prompt: Option<String>,
    entry: Option<String>,
}

/// A row that is no problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {detail}")]
pub struct RowError {
    pub field: String,
    pub detail: String,
}

/// A standard input and the standard output that it calls for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OjCase {
    pub input: OjInput,
    pub output: OjOutput,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OjInput {
    #[serde(default)]
    pub stdin: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OjOutput {
    pub stdout: String,
}

/// Reads a row by the columns that it has:
///
/// - `tests`, an object with a `kind`: [`Tests`] as they are stored;
/// - `test`, `all_uts` or `selected_uts` with `{input: {stdin}, output: {stdout}}` cases, a list or a text of one;
/// - the same with `input_output`, or with `inputs` and `outputs` (LiveCodeBench), as JSON, a text of it, or packed
///   (see [`unpacked`](crate::unpacked));
/// - the same with a list of assertions (TACO), each of them a test of its own;
/// - `test_list` or `test` with a list of lines, `test_setup_code` before them (MBPP);
/// - `test`, a script, with `entry_point` where it calls `candidate` (HumanEval, MBPP+).
///
/// # Errors
/// The field that is missing or wrong.
pub fn problem(row: &Json) -> Result<Problem, RowError> {
    if let Some(tests) = row.get("tests").filter(|tests| tests.get("kind").is_some()) {
        let tests = serde_json::from_value(tests.clone())
            .map_err(|problem| error("tests", problem.to_string()))?;
        asserts_something(&tests)?;
        return Ok(Problem {
            tests,
            prompt: None,
            entry: None,
        });
    }
    let mut data = None;
    for name in ["test", "all_uts", "selected_uts"] {
        let value = match row.get(name) {
            Some(Json::String(text)) => structured(text).map_err(|detail| error(name, detail))?,
            value => value.cloned(),
        };
        data = data.or(value
            .filter(|value| value.is_array() || value.is_object())
            .map(|value| (name, value)));
    }
    let tests = match data {
        Some((field, value))
            if value.get("input_output").is_some() || value.get("inputs").is_some() =>
        {
            live_code_bench(&value).map_err(|problem| error(field, problem.to_string()))?
        }
        Some((field, value))
            if value
                .as_array()
                .is_some_and(|items| items.iter().all(Json::is_object)) =>
        {
            let cases: Vec<OjCase> = serde_json::from_value(value)
                .map_err(|problem| error(field, format!("holds a wrong case: {problem}")))?;
            Tests::stdio(
                cases
                    .into_iter()
                    .map(|case| (case.input.stdin, case.output.stdout)),
            )
        }
        Some((field, value))
            if row.get("test_setup_code").is_none() && lists_assertions(&value) =>
        {
            let asserts: Vec<String> = serde_json::from_value(value)
                .map_err(|problem| error(field, problem.to_string()))?;
            Tests::asserts(asserts)
        }
        _ => {
            let script = script(row)?;
            let (candidate, prompt) = (script.candidate.clone(), script.prompt.clone());
            return Ok(Problem {
                tests: script.tests(),
                prompt,
                entry: candidate,
            });
        }
    };
    Ok(Problem {
        tests,
        prompt: None,
        entry: None,
    })
}

impl Problem {
    /// The program that a completion's code stands for.
    pub fn program(&self, code: &str) -> String {
        continued(self.prompt.as_deref(), self.entry.as_deref(), code)
    }
}

/// The JSON that a text holds, perhaps packed; none in scripts.
fn structured(text: &str) -> Result<Option<Json>, String> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(Some(value));
    }
    if !may_be_packed(text) {
        return Ok(None);
    }
    let json = unpacked(text).map_err(|problem| problem.to_string())?;
    serde_json::from_str(&json)
        .map(Some)
        .map_err(|problem| format!("holds what is not JSON: {problem}"))
}

/// Base64 of what zlib compressed begins with an `e`, and has no character that a script cannot be without.
fn may_be_packed(text: &str) -> bool {
    let text = text.trim();
    let of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    text.starts_with('e') && text.len() >= 16 && text.bytes().all(of_base64)
}

/// Whether a value is a list of statements `assert …`.
fn lists_assertions(value: &Json) -> bool {
    let begins = |item: &Json| {
        item.as_str()
            .is_some_and(|text| text.trim_start().starts_with("assert"))
    };
    value
        .as_array()
        .is_some_and(|items| !items.is_empty() && items.iter().all(begins))
}

/// LiveCodeBench's tests: `{input_output: {inputs, outputs, fn_name}}` or what is inside, each perhaps a
/// text of JSON, or packed (see [`unpacked`](crate::unpacked)). With a name, every line of an input is an argument.
///
/// # Errors
/// What is no list of texts, and lists of different lengths.
pub fn live_code_bench(test: &Json) -> Result<Tests, RowError> {
    let parsed = |value: &Json, field: &str| match value {
        Json::String(text) => match structured(text) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(error(field, "is neither JSON nor packed".to_owned())),
            Err(detail) => Err(error(field, detail)),
        },
        value => Ok(value.clone()),
    };
    let test = parsed(test, "test")?;
    let test = match test.get("input_output") {
        Some(inner) => parsed(inner, "input_output")?,
        None => test,
    };
    let list = |field: &str| -> Result<Vec<String>, RowError> {
        let items = test.get(field).cloned().unwrap_or_default();
        serde_json::from_value(items)
            .map_err(|problem| error(field, format!("must be a list of texts: {problem}")))
    };
    let (inputs, outputs) = (list("inputs")?, list("outputs")?);
    if inputs.len() != outputs.len() {
        let detail = format!(
            "has {} items, but `outputs` {}",
            inputs.len(),
            outputs.len()
        );
        return Err(error("inputs", detail));
    }
    let Some(entry) = test.get("fn_name").and_then(Json::as_str) else {
        let cases = inputs.into_iter().zip(outputs);
        return Ok(Tests::stdio(cases).compared_by(Comparator::LiveCodeBench));
    };
    let json = |text: &str, field: &str| {
        serde_json::from_str::<Json>(text)
            .map(|value| Value::of_plain_json(&value))
            .map_err(|problem| error(field, format!("holds what is not JSON: {problem}")))
    };
    let mut cases = Vec::new();
    for (input, output) in inputs.iter().zip(&outputs) {
        let lines = input.lines().filter(|line| !line.trim().is_empty());
        let arguments = lines.map(|line| json(line, "inputs"));
        cases.push((
            arguments.collect::<Result<Vec<_>, _>>()?,
            json(output, "outputs")?,
        ));
    }
    Ok(Tests::calls(entry, cases))
}

/// A test script with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub text: String,
    /// The function that the script calls `candidate`.
    pub candidate: Option<String>,
    prompt: Option<String>,
}

/// The script of a HumanEval, MBPP or AutoEval row: `test`, `tests` or `test_code` (a text, a list of
/// lines, or an object with `code`) or `test_list`, behind `test_setup_code`. A `check` that is defined
/// and not called is called.
///
/// # Errors
/// Rows without tests, and tests of another kind.
pub fn script(row: &Json) -> Result<Script, RowError> {
    let lines = |value: &Json| -> Option<String> {
        let lines = value.as_array()?.iter().map(Json::as_str);
        Some(lines.collect::<Option<Vec<_>>>()?.join("\n"))
    };
    const COLUMNS: [&str; 6] = [
        "test",
        "tests",
        "test_code",
        "all_uts",
        "selected_uts",
        "test_list",
    ];
    let found = COLUMNS
        .iter()
        .find_map(|name| Some((*name, row.get(*name)?)));
    let mut text = match found {
        Some((_, Json::String(text))) => text.clone(),
        Some((_, Json::Object(object))) if object.get("code").is_some_and(Json::is_string) => {
            object["code"].as_str().unwrap_or_default().to_owned()
        }
        Some((name, value)) => lines(value).ok_or_else(|| {
            error(
                name,
                "must be a script, a list of assertions or cases".to_owned(),
            )
        })?,
        None => return Err(error("test", "is missing".to_owned())),
    };
    if !says_something(&text) {
        let name = found.map_or("test", |(name, _)| name);
        return Err(error(name, ASSERTS_NOTHING.to_owned()));
    }
    if let Some(setup) = row.get("test_setup_code").and_then(Json::as_str) {
        text = format!("{setup}\n{text}");
    }
    if text.contains("def check(") && !text.lines().any(|line| line.starts_with("check(")) {
        text.push_str("\ncheck(candidate)\n");
    }
    let named = |row: &Json| row.get("entry_point")?.as_str().map(str::to_owned);
    let entry = named(row).or_else(|| match row.get("labels")? {
        Json::String(text) => named(&serde_json::from_str(text).ok()?),
        labels => named(labels),
    });
    let prompt = ["prompt", "content"]
        .iter()
        .find_map(|column| row.get(*column)?.as_str());
    Ok(Script {
        candidate: entry.filter(|_| text.contains("candidate")),
        text,
        prompt: prompt.map(str::to_owned),
    })
}

const ASSERTS_NOTHING: &str = "asserts nothing, so every program would pass";

/// Whether a test could fail at all: it asserts, raises or calls something.
fn says_something(text: &str) -> bool {
    let code = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(line));
    let mut code = code.filter(|line| !line.trim().is_empty());
    code.any(|line| line.contains("assert") || line.contains("raise") || line.contains('('))
}

fn asserts_something(tests: &Tests) -> Result<(), RowError> {
    let empty = match &tests.kind {
        Kind::Asserts { asserts, .. } => {
            let empty = asserts.iter().position(|text| !says_something(text));
            empty.map(|index| format!("tests.asserts[{index}]"))
        }
        Kind::AssertScript { script, .. } if !says_something(script) => {
            Some("tests.script".to_owned())
        }
        _ => None,
    };
    match empty {
        Some(field) => Err(error(&field, ASSERTS_NOTHING.to_owned())),
        None => Ok(()),
    }
}

impl Script {
    pub fn tests(&self) -> Tests {
        Tests::assert_script(self.text.clone(), self.candidate.clone())
    }

    /// The program that a completion's code stands for.
    pub fn program(&self, code: &str) -> String {
        continued(self.prompt.as_deref(), self.candidate.as_deref(), code)
    }
}

/// A completion may be the rest of the prompt's function, or the function without the prompt's imports.
fn continued(prompt: Option<&str>, entry: Option<&str>, code: &str) -> String {
    let (Some(prompt), Some(entry)) = (prompt, entry) else {
        return code.to_owned();
    };
    let definition = format!("def {entry}(");
    if prompt.contains(&definition) && !code.contains(&definition) {
        return format!("{prompt}{code}");
    }
    let imports = prompt
        .lines()
        .filter(|line| line.starts_with("import ") || line.starts_with("from "));
    let imports: String = imports.flat_map(|line| [line, "\n"]).collect();
    format!("{imports}{code}")
}

fn error(field: &str, detail: String) -> RowError {
    RowError {
        field: field.to_owned(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_known_by_their_columns() {
        let cases = [
            (
                json!({"tests": {"kind": "asserts", "asserts": ["assert f(1)"]}}),
                "asserts",
                1,
            ),
            (
                json!({"test": [{"input": {"stdin": "1"}, "output": {"stdout": "2"}}]}),
                "stdio",
                1,
            ),
            (
                json!({"all_uts": "[{\"input\":{\"stdin\":\"1\"},\"output\":{\"stdout\":\"2\"}}]"}),
                "stdio",
                1,
            ),
            (
                json!({"all_uts": ["assert f(1) == 2", "assert f(2) == g(3)"]}),
                "asserts",
                2,
            ),
            (
                json!({"test_list": ["assert f(1) == 2"], "test_setup_code": "import math"}),
                "assert_script",
                1,
            ),
            (
                json!({"test": "def check(candidate):\n    assert candidate(1) == 2\n", "entry_point": "f", "prompt": "def f(x):\n"}),
                "assert_script",
                1,
            ),
            (
                json!({"test": "{\"input_output\": \"{\\\"inputs\\\": [\\\"1\\\"], \\\"outputs\\\": [\\\"2\\\"], \\\"fn_name\\\": null}\"}"}),
                "stdio",
                1,
            ),
            (
                json!({"selected_uts": "eJxrYJkaxgABPUHVSpl5BaUl8fmlJUBKyUpBqToGIlQcA+RFxygZxijF6ijEKEFUwESNoKJpefF5ibmpING80pycWqXaKXoAfcMd3Q=="}),
                "stdio",
                1,
            ),
            (
                json!({"test": {"inputs": ["1\n2"], "outputs": ["3"], "fn_name": "add"}}),
                "calls",
                1,
            ),
        ];
        for (row, kind, n) in cases {
            let found = problem(&row).unwrap();
            assert_eq!((found.tests.kind(), found.tests.len()), (kind, n), "{row}");
        }
    }

    #[test]
    fn wrong_rows_name_their_field() {
        for (row, field) in [
            (json!({}), "test"),
            (json!({"test": 5}), "test"),
            (json!({"tests": {"kind": "magic"}}), "tests"),
            (
                json!({"test": [{"input": {"stdin": 1}, "output": {}}]}),
                "test",
            ),
            (json!({"test": {"inputs": ["1"], "outputs": []}}), "test"),
            (json!({"test_list": [1]}), "test_list"),
            (json!({"test": ""}), "test"),
            (json!({"test_list": []}), "test_list"),
            (json!({"test": "x = 1  # assert"}), "test"),
            (
                json!({"tests": {"kind": "asserts", "asserts": ["assert f(1)", "x = 1"]}}),
                "tests.asserts[1]",
            ),
            (
                json!({"test": [{"input": {"stdin": ""}, "output": {"stdot": "4"}}]}),
                "test",
            ),
        ] {
            assert_eq!(problem(&row).unwrap_err().field, field, "{row}");
        }
    }

    #[test]
    fn a_completion_goes_on_from_its_prompt() {
        let row = json!({"test": "check(candidate)", "entry_point": "f", "prompt": "import math\ndef f(x):\n"});
        let found = problem(&row).unwrap();
        assert_eq!(
            found.program("    return x"),
            "import math\ndef f(x):\n    return x"
        );
        assert_eq!(
            found.program("def f(x): return x"),
            "import math\ndef f(x): return x"
        );
    }
}
