//! What a failed program did, test by test, gold and all: for teachers that explain failures, never for a prompt of
//! whoever is trained or evaluated without it.

use sandbox::Job;

use crate::{
    CaseResult, Judge, JudgeError, Tests, Value, Verdict, VerdictStatus,
    execute::{judge_output, with_room_for},
    tests::Kind,
};

/// A verdict and the tests that were not passed, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Feedback {
    pub verdict: Verdict,
    pub failures: Vec<FailedTest>,
}

/// One test that a program does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTest {
    /// How this test ended.
    pub status: VerdictStatus,
    /// The standard input, the call, or the statement.
    pub input: String,
    /// The standard output or the value that is right. A statement says it itself.
    pub expected: Option<String>,
    /// What the program printed, of tests that look at that.
    pub printed: Option<String>,
    /// Of programs that raise: standard error or the exception, not cut.
    pub error: Option<String>,
}

impl Judge {
    /// Judges a Python program and says of every test that it fails what was asked, expected and found. The verdict
    /// is that of [`Judge::verdict`]; what programs printed is found by running them on the tests that they failed
    /// once more, so a program that does not do the same twice may be told of a failure that it has no more.
    ///
    /// # Errors
    /// As [`Judge::verdict`].
    pub async fn feedback(&self, program: &str, tests: &Tests) -> Result<Feedback, JudgeError> {
        let verdict = self.verdict(program, tests).await?;
        let failures = match &tests.kind {
            _ if verdict.passed => Vec::new(),
            Kind::Stdio { cases, comparator } => {
                let mut failures = Vec::new();
                for (case, _) in cases.iter().zip(&verdict.cases).filter(failed) {
                    let limits = with_room_for(self.limits, case.expected.len());
                    let job = Job::script(program.as_bytes(), limits);
                    let outcome = self.run(job.with_stdin(case.stdin.as_bytes())).await?;
                    let (_, status) = judge_output(&outcome, case, *comparator);
                    let stderr = outcome.stderr.text();
                    failures.push(FailedTest {
                        status,
                        input: case.stdin.clone(),
                        expected: Some(case.expected.clone()),
                        printed: Some(outcome.stdout.text()),
                        error: (!stderr.trim().is_empty()).then_some(stderr),
                    });
                }
                failures
            }
            Kind::Function { entry, cases } | Kind::Calls { entry, cases } => {
                let cases = cases.iter().zip(&verdict.cases).filter(failed);
                let failure = |(case, result): (&crate::tests::FunctionCase, &CaseResult)| {
                    let arguments: Vec<String> = case.args.iter().map(python).collect();
                    FailedTest {
                        input: format!("{entry}({})", arguments.join(", ")),
                        expected: Some(python(&case.expected)),
                        ..said(&verdict, result)
                    }
                };
                cases.map(failure).collect()
            }
            Kind::Asserts { asserts, .. } => {
                let cases = asserts.iter().zip(&verdict.cases).filter(failed);
                let failure = |(text, result): (&String, &CaseResult)| FailedTest {
                    input: text.clone(),
                    ..said(&verdict, result)
                };
                cases.map(failure).collect()
            }
            Kind::AssertScript { script, .. } => {
                let texts = assertion_texts(script);
                let text = |index: usize| texts.get(index).cloned().unwrap_or_default();
                let cases = verdict.cases.iter().enumerate();
                let cases = cases.filter(|(_, result)| **result != CaseResult::Passed);
                let failure = |(index, result): (usize, &CaseResult)| FailedTest {
                    input: text(index),
                    ..said(&verdict, result)
                };
                cases.map(failure).collect()
            }
            Kind::Pytest(_) | Kind::Script { .. } => {
                let cases = verdict.cases.iter();
                let cases = cases.filter(|result| **result != CaseResult::Passed);
                cases.map(|result| said(&verdict, result)).collect()
            }
        };
        Ok(Feedback { verdict, failures })
    }
}

fn failed<T>((_, result): &(T, &CaseResult)) -> bool {
    **result != CaseResult::Passed
}

/// A failure as far as the verdict tells it.
fn said(verdict: &Verdict, result: &CaseResult) -> FailedTest {
    let (status, error) = match result {
        CaseResult::Passed => (VerdictStatus::Passed, None),
        CaseResult::Wrong => (VerdictStatus::Wrong, None),
        CaseResult::Error(message) => (VerdictStatus::Error, Some(message.clone())),
        CaseResult::Missing => (verdict.status, verdict.message.clone()),
    };
    FailedTest {
        status,
        input: String::new(),
        expected: None,
        printed: None,
        error,
    }
}

/// The tests of a script as `statements` tells them apart.
fn assertion_texts(script: &str) -> Vec<String> {
    let Some(found) = code::assertions(script) else {
        return vec![script.to_owned()];
    };
    let lines: Vec<&str> = script
        .lines()
        .filter(|line| line.starts_with("assert"))
        .collect();
    match lines.len() == found.assertions.len() {
        true => lines.into_iter().map(str::to_owned).collect(),
        // Some go over several lines: what they compute says enough.
        false => found
            .assertions
            .into_iter()
            .map(|assertion| assertion.expression)
            .collect(),
    }
}

/// A value as Python writes it.
fn python(value: &Value) -> String {
    let list = |items: &[Value]| items.iter().map(python).collect::<Vec<_>>().join(", ");
    match value {
        Value::None => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Int(int) => int.to_string(),
        Value::BigInt(hexadecimal) => hexadecimal.clone(),
        Value::Float(float) if float.is_nan() => "float('nan')".to_owned(),
        Value::Float(float) if float.is_infinite() => {
            let sign = if *float < 0.0 { "-" } else { "" };
            format!("float('{sign}inf')")
        }
        Value::Float(float) => format!("{float:?}"),
        // Python reads every escape that JSON writes.
        Value::Str(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
        Value::List(items) => format!("[{}]", list(items)),
        Value::Tuple(items) if items.len() == 1 => format!("({},)", list(items)),
        Value::Tuple(items) => format!("({})", list(items)),
        Value::Set(items) if items.is_empty() => "set()".to_owned(),
        Value::Set(items) => format!("{{{}}}", list(items)),
        Value::Dict(pairs) => {
            let pairs: Vec<String> = pairs
                .iter()
                .map(|(key, value)| format!("{}: {}", python(key), python(value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_python_reads_them() {
        let text = Value::List(vec![
            Value::None,
            true.into(),
            Value::Float(1.0),
            "it's \"x\"\n".into(),
            Value::Bytes(b"a\"\x00".to_vec()),
            Value::Tuple(vec![1.into()]),
            Value::Dict(vec![(1.into(), Value::Set(Vec::new()))]),
            Value::BigInt("-0x1f".to_owned()),
            Value::Float(f64::NEG_INFINITY),
        ]);
        assert_eq!(
            python(&text),
            r#"[None, True, 1.0, "it's \"x\"\n", b"a\"\x00", (1,), {1: set()}, -0x1f, float('-inf')]"#
        );
    }
}
