//! Tests that are Python statements: assertions and whole scripts.
//!
//! Of an assertion that compares with what stands in it, only the computed side enters the jail and
//! the comparison happens here. A script that is more than that runs in the jail as a whole, and so
//! brings what it expects along: in a process of its own, which asks the program's process for what the
//! program does and is out of that one's reach, as are the records.
//!
//! Tests that reach into the program's process themselves, to replace a module or to catch what is
//! printed, have to run beside the program. There, a program that names what could reach the tests is
//! refused, and one statement that must fail is put among theirs, so that claiming to have come to
//! every end is noticed.

use code::{Expectation, assertions};
use sandbox::{Job, RunOutcome};
use serde::Serialize;

use crate::{
    CaseResult, Judge, JudgeError,
    equality::meets,
    execute::Ran,
    harness::{self, Record, Report},
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
    if !statements.reach_into_programs() {
        return run_apart(judge, program, statements).await;
    }
    match code::could_reach_tests(program) {
        Some(name) => Ok(Ran::refused(statements.items.len(), name)),
        None => run_beside(judge, program, statements).await,
    }
}

async fn run_apart(
    judge: &Judge,
    program: &str,
    statements: &Statements,
) -> Result<Ran, JudgeError> {
    let payload = payload_apart(program, statements).map_err(|error| JudgeError::Harness {
        detail: error.to_string(),
    })?;
    let job = Job::harness(harness::APART.clone(), payload, judge.limits);
    let outcome = judge.run(job).await?;
    let mut report = harness::read(&outcome.result, &[statements.items.len()]);
    let records = report.programs.pop().unwrap_or_default();
    Ok(graded(&outcome, &report, records, statements))
}

async fn run_beside(
    judge: &Judge,
    program: &str,
    statements: &Statements,
) -> Result<Ran, JudgeError> {
    let canary = canary_place(program, statements.items.len());
    let sent = payload_beside(program, statements, canary);
    let (payload, token) = sent.map_err(|error| JudgeError::Harness {
        detail: error.to_string(),
    })?;
    let job = Job::harness(harness::BESIDE.clone(), payload, judge.limits);
    let outcome = judge.run(job).await?;
    let n_items = statements.items.len() + 1;
    let mut report = match without_token(&outcome.result, &token) {
        Some(records) => harness::read(&records, &[n_items]),
        None => Report {
            programs: vec![vec![None; n_items]],
            tampered: true,
            ..Report::default()
        },
    };
    let mut records = report.programs.pop().unwrap_or_default();
    let failed_as_it_must = matches!(records.remove(canary), Some(Record::Error(_)) | None);
    report.tampered |= !failed_as_it_must;
    Ok(graded(&outcome, &report, records, statements))
}

fn graded(
    outcome: &RunOutcome,
    report: &Report,
    records: Vec<Option<Record>>,
    statements: &Statements,
) -> Ran {
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
    Ran::of_records(outcome, report, results.collect())
}

/// What tests mention that need the program in their own process.
const REACHING: [&str; 16] = [
    "mock",
    "patch",
    "redirect_std",
    "sys.std",
    "sys.modules",
    "StringIO",
    "builtins",
    "inspect",
    "globals(",
    "locals(",
    "__main__",
    "__dict__",
    "pickle",
    "async",
    "seed(",
    "asdict",
];

impl Statements {
    /// Whether the tests do what only one process can: decided by the tests alone, so that no program
    /// chooses where it runs.
    fn reach_into_programs(&self) -> bool {
        let items = self.items.iter().map(|item| match item {
            Item::Expression { expression, .. } => expression,
            Item::Statement(text) => text,
        });
        let mut texts = items.chain([&self.setup]);
        texts.any(|text| REACHING.iter().any(|name| text.contains(name)))
    }
}

/// Where among the items the canary stands: known to nobody who has not seen the program as a whole.
fn canary_place(program: &str, items: usize) -> usize {
    let hash = blake3::hash(program.as_bytes());
    usize::from(hash.as_bytes()[0]) % (items + 1)
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Sent<'a> {
    Expression(&'a str),
    /// An expression whose value has to be the very object that is expected, not one that is equal.
    Identity(&'a str),
    Statement(&'a str),
}

impl Statements {
    fn sent(&self) -> Vec<Sent<'_>> {
        let items = self.items.iter().map(|item| match item {
            Item::Expression {
                expression,
                expected: Expectation::Is(_),
            } => Sent::Identity(expression),
            Item::Expression { expression, .. } => Sent::Expression(expression),
            Item::Statement(text) => Sent::Statement(text),
        });
        items.collect()
    }
}

/// The length of the first part, the program, and the tests.
fn payload_apart(program: &str, statements: &Statements) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Sections<'a> {
        setup: &'a str,
        candidate: Option<&'a str>,
        items: Vec<Sent<'a>>,
        /// Of what the program is asked besides the tests' own questions.
        seed: u64,
    }
    let source = serde_json::to_vec(program)?;
    let mut sections = Sections {
        setup: &statements.setup,
        candidate: statements.candidate.as_deref(),
        items: statements.sent(),
        seed: 0,
    };
    // Of program and tests together: a program does not know it.
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(&source)
        .update(&serde_json::to_vec(&sections)?);
    sections.seed = u64::from_le_bytes(first_eight(hasher.finalize().as_bytes()));
    let mut payload = (source.len() as u64).to_le_bytes().to_vec();
    payload.extend(source);
    payload.extend(serde_json::to_vec(&sections)?);
    Ok(payload)
}

fn first_eight(bytes: &[u8; 32]) -> [u8; 8] {
    std::array::from_fn(|place| bytes[place])
}

/// The records without what each of them begins with; `None` if one does not.
fn without_token(bytes: &[u8], token: &str) -> Option<Vec<u8>> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    // The run may have been ended in the middle of a record.
    lines.try_fold(Vec::with_capacity(bytes.len()), |mut records, line| {
        match line.strip_prefix(token.as_bytes()) {
            Some(record) => records.extend(record),
            None if line.ends_with(b"\n") => return None,
            None => {}
        }
        Some(records)
    })
}

/// The payload and the token of its records.
fn payload_beside(
    program: &str,
    statements: &Statements,
    canary: usize,
) -> Result<(Vec<u8>, String), serde_json::Error> {
    #[derive(Serialize)]
    struct Payload<'a> {
        token: String,
        source: &'a str,
        setup: &'a str,
        candidate: Option<&'a str>,
        items: Vec<Sent<'a>>,
    }
    let mut items = statements.sent();
    items.insert(canary, Sent::Statement(CANARY));
    let mut payload = Payload {
        token: String::new(),
        source: program,
        setup: &statements.setup,
        candidate: statements.candidate.as_deref(),
        items,
    };
    // Of program and tests together: a program does not know it.
    let token = blake3::hash(&serde_json::to_vec(&payload)?).to_string();
    payload.token.clone_from(&token);
    Ok((serde_json::to_vec(&payload)?, token))
}
