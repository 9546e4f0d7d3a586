//! Making checked tasks from drafts of the tiny world, with the sandbox as the only oracle.

use std::collections::BTreeMap;

use judge::{Comparator, Evaluation, Judge, JudgeError, Tests, Value};
use record::TaskId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    task::{Facts, Gold, Prompter, Public, Task},
    tiny::{self, Draft, Drafts, Kind, probe, right_critique},
};

/// The function that every program of the tiny world defines.
const ENTRY: &str = "f";

/// What became of the drafts that were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub kept: usize,
    /// The right program gives the same output on every hidden call, so a constant would pass.
    pub constant: usize,
    /// The planted bug changes no output on the hidden calls.
    pub harmless: usize,
    /// The right program raised, or did not give the same outputs twice.
    pub broken: usize,
}

#[derive(Debug, Error)]
pub enum MakeError {
    #[error(transparent)]
    Judge(#[from] JudgeError),

    #[error(
        "the tiny world has no more than {made} distinct {split} tasks of this kind, {wanted} were \
         asked for; lower tasks.{split}"
    )]
    Exhausted {
        split: &'static str,
        wanted: usize,
        made: usize,
    },
}

/// A checked task and the draft it was made from, which supervised rows need.
#[derive(Clone, Debug)]
pub struct Made {
    pub draft: Draft,
    pub task: Task,
}

/// Makes the first `n` tasks of `drafts`, in their order, no two alike. The expected outputs are those of the right program, run in the
/// sandbox; a task is kept only if a second run of the right program passes them and the program
/// under criticism passes or fails as its draft says.
pub async fn make_tasks(
    judge: &Judge,
    mut drafts: Drafts,
    n: usize,
    mut progress: impl FnMut(usize),
) -> Result<(Vec<Made>, Checked), MakeError> {
    let mut made = Vec::with_capacity(n);
    let mut checked = Checked::default();
    while made.len() < n {
        // A little more than is missing, as some drafts turn out harmless.
        let wanted = ((n - made.len()) * 11 / 10 + 8).min(CHUNK);
        let batch: Vec<Draft> = drafts.by_ref().take(wanted).collect();
        if batch.is_empty() {
            let split = drafts.split().name();
            return Err(MakeError::Exhausted {
                split,
                wanted: n,
                made: made.len(),
            });
        }
        made.extend(check(judge, batch, &mut checked).await?);
        made.truncate(n);
        progress(made.len());
    }
    checked.kept = made.len();
    Ok((made, checked))
}

/// Drafts that are run before progress is shown.
const CHUNK: usize = 1024;

async fn check(
    judge: &Judge,
    drafts: Vec<Draft>,
    checked: &mut Checked,
) -> Result<Vec<Made>, MakeError> {
    let arguments: Vec<Vec<Vec<Value>>> = drafts.iter().map(arguments_of).collect();
    let run = |program: String, index: usize| Evaluation {
        source: match drafts[index].reads_stdin() {
            true => as_function(&program),
            false => program,
        },
        entry: ENTRY.to_owned(),
        args: arguments[index].clone(),
    };
    let references = drafts
        .iter()
        .enumerate()
        .map(|(i, draft)| run(draft.function.reference(), i));
    let expected = judge.evaluate(references.clone().collect()).await?;
    let again = judge.evaluate(references.collect()).await?;
    let programs = drafts
        .iter()
        .enumerate()
        .map(|(i, draft)| run(draft.program(), i));
    let found = judge.evaluate(programs.collect()).await?;

    let mut made = Vec::new();
    let runs = expected.into_iter().zip(again).zip(found);
    for ((draft, arguments), ((expected, again), found)) in
        drafts.into_iter().zip(arguments).zip(runs)
    {
        let Ok(outputs) = expected.into_iter().collect::<Result<Vec<Value>, String>>() else {
            checked.broken += 1;
            continue;
        };
        let passes = |results: &[Result<Value, String>]| {
            results.len() == outputs.len()
                && results
                    .iter()
                    .zip(&outputs)
                    .all(|(found, output)| found.as_ref() == Ok(output))
        };
        if !passes(&again) {
            checked.broken += 1;
        } else if outputs.iter().all(|output| *output == outputs[0]) {
            checked.constant += 1;
        } else if passes(&found) != draft.planted().is_none() {
            checked.harmless += 1;
        } else {
            let tests = tests_of(&draft, arguments.into_iter().zip(outputs));
            let task = task(&draft, tests);
            made.push(Made { draft, task });
        }
    }
    Ok(made)
}

fn task(draft: &Draft, tests: Tests) -> Task {
    Task {
        id: TaskId(draft.name()),
        public: Public {
            statement: draft.function.statement.clone(),
            program: draft.program(),
            prompter: Prompter::Tiny,
        },
        facts: Facts {
            initially_right: draft.planted().is_none(),
            family: draft.function.family.to_string(),
            bug: draft.planted().map(|planted| planted.bug.to_string()),
            function: draft.function.spec.clone(),
            data_source: None,
            difficulty: None,
        },
        gold: Gold {
            tests,
            time_limit_s: None,
            right_critique: Some(right_critique(draft)),
            probes: probes(draft),
        },
    }
}

/// One critique of every kind, by the kind's name.
fn probes(draft: &Draft) -> BTreeMap<String, String> {
    Kind::ALL
        .iter()
        .map(|kind| (kind.to_string(), probe(draft, *kind).text))
        .collect()
}

/// What each hidden call is made with: of a program that reads standard input, with all of it.
fn arguments_of(draft: &Draft) -> Vec<Vec<Value>> {
    let calls = draft.calls.iter();
    if !draft.reads_stdin() {
        return calls.map(|call| call.iter().map(value).collect()).collect();
    }
    let stdin = |call: &tiny::Call| call.iter().map(|one| one.line() + "\n").collect();
    calls.map(|call| vec![Value::Str(stdin(call))]).collect()
}

fn tests_of(draft: &Draft, cases: impl Iterator<Item = (Vec<Value>, Value)>) -> Tests {
    if !draft.reads_stdin() {
        return Tests::function(ENTRY, cases);
    }
    let text = |value: Value| match value {
        Value::Str(text) => text,
        _ => String::new(),
    };
    let texts = cases.map(|(input, output)| (input.into_iter().map(text).collect(), text(output)));
    Tests::stdio(texts).compared_by(Comparator::Exact)
}

/// A program that reads lines and prints as a function from what is read to what is printed, so that many of them
/// are run in one jail.
fn as_function(program: &str) -> String {
    // A JSON text without other than ASCII characters, as programs of this world are, is a Python text.
    let program = serde_json::Value::from(program);
    format!(
        "import io\nfrom contextlib import redirect_stdout\n\ndef {ENTRY}(stdin):\n    lines = \
         iter(stdin.splitlines())\n    out = io.StringIO()\n    with redirect_stdout(out):\n        \
         exec({program}, {{\"input\": lambda: next(lines)}})\n    return out.getvalue()\n"
    )
}

fn value(argument: &tiny::Value) -> Value {
    match argument {
        tiny::Value::Int(int) => Value::Int(*int),
        tiny::Value::Ints(ints) => Value::List(ints.iter().map(|int| Value::Int(*int)).collect()),
        tiny::Value::Text(text) => Value::Str(text.clone()),
    }
}
