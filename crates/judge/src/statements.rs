//! Tests that are Python statements: assertions and whole scripts.
//!
//! Of an assertion that compares with what stands in it, only the computed side enters the jail and
//! the comparison happens here. A script that is more than that runs in the jail as a whole, and so
//! brings what it expects along; one statement that must fail is put among its statements, so that
//! claiming to have come to every end is noticed.

use code::{Expectation, assertions};
use sandbox::Job;
use serde::Serialize;

use crate::{
    CaseResult, Judge, JudgeError,
    equality::meets,
    execute::Ran,
    harness::{self, Record},
};

/// What runs after a program.
#[derive(Debug)]
pub(crate) struct Statements {
    setup: String,
    /// The function that the statements know as `candidate`.
    candidate: Option<String>,
    items: Vec<Item>,
}

#[derive(Debug)]
enum Item {
    Expression {
        expression: String,
        expected: Expectation,
    },
    Statement(String),
}

/// `assert` statements, each a test, after `setup`.
pub(crate) fn of_asserts(setup: &str, asserts: &[String]) -> Statements {
    let item = |text: &String| match assertions(text) {
        Some(mut found) if found.setup.is_empty() && found.assertions.len() == 1 => {
            let assertion = found.assertions.remove(0);
            Item::Expression {
                expression: assertion.expression,
                expected: assertion.expected,
            }
        }
        _ => Item::Statement(text.clone()),
    };
    Statements {
        setup: setup.to_owned(),
        candidate: None,
        items: asserts.iter().map(item).collect(),
    }
}

/// A whole script: its assertions one by one where they come last, else a single test.
pub(crate) fn of_script(script: &str, candidate: Option<&str>) -> Statements {
    let candidate = candidate.map(str::to_owned);
    match assertions(script) {
        Some(found) => Statements {
            setup: found.setup,
            candidate,
            items: found
                .assertions
                .into_iter()
                .map(|assertion| Item::Expression {
                    expression: assertion.expression,
                    expected: assertion.expected,
                })
                .collect(),
        },
        None => Statements {
            setup: String::new(),
            candidate,
            items: vec![Item::Statement(script.to_owned())],
        },
    }
}

/// Fails in every program.
const CANARY: &str = "raise AssertionError";

pub(crate) async fn run(
    judge: &Judge,
    program: &str,
    statements: &Statements,
) -> Result<Ran, JudgeError> {
    if statements.items.is_empty() {
        return Ok(Ran::nothing());
    }
    let canary = canary_place(program, statements.items.len());
    let payload = payload(program, statements, canary).map_err(|error| JudgeError::Harness {
        detail: error.to_string(),
    })?;
    let source = harness::STATEMENTS.clone();
    let job = Job::harness(source, payload, judge.limits);
    let outcome = judge.run(job).await?;
    let mut report = harness::read(&outcome.result, &[statements.items.len() + 1]);
    let mut records = report.programs.pop().unwrap_or_default();
    let failed_as_it_must = matches!(records.remove(canary), Some(Record::Error(_)) | None);
    report.tampered |= !failed_as_it_must;
    let results = records.into_iter().zip(&statements.items);
    let results = results.map(|(record, item)| match (record, item) {
        _ if report.tampered => CaseResult::Missing,
        (None, _) => CaseResult::Missing,
        (Some(Record::Error(message)), _) => CaseResult::Error(message),
        (Some(Record::Value(value)), Item::Expression { expected, .. })
            if meets(&value, expected) =>
        {
            CaseResult::Passed
        }
        (Some(Record::Done), Item::Statement(_)) => CaseResult::Passed,
        (Some(_), _) => CaseResult::Wrong,
    });
    Ok(Ran::of_records(&outcome, &report, results.collect()))
}

/// Where among the items the canary stands: known to nobody who has not seen the program as a whole.
fn canary_place(program: &str, items: usize) -> usize {
    let hash = blake3::hash(program.as_bytes());
    usize::from(hash.as_bytes()[0]) % (items + 1)
}

fn payload(
    program: &str,
    statements: &Statements,
    canary: usize,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Payload<'a> {
        source: &'a str,
        setup: &'a str,
        candidate: Option<&'a str>,
        items: Vec<Sent<'a>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Sent<'a> {
        Expression(&'a str),
        Statement(&'a str),
    }
    let mut items: Vec<Sent<'_>> = statements
        .items
        .iter()
        .map(|item| match item {
            Item::Expression { expression, .. } => Sent::Expression(expression),
            Item::Statement(text) => Sent::Statement(text),
        })
        .collect();
    items.insert(canary, Sent::Statement(CANARY));
    serde_json::to_vec(&Payload {
        source: program,
        setup: &statements.setup,
        candidate: statements.candidate.as_deref(),
        items,
    })
}
