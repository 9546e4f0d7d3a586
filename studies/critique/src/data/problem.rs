//! Problems as problem files have them: a statement and hidden tests, and no program yet.

use std::path::Path;

use dataset::{DatasetError, Row, RowError, RowErrors, Rows};
use judge::{Feedback, Judge, JudgeError, Tests, Verdict, rows};
use record::TaskId;
use serde_json::{Map, Value};

use super::values::{given, name, optional_text, text, texts, time_limit};
use crate::task::{Facts, Gold, Prompter, Public, Task, within};

/// A row of a problem file (spec of the critique study, section 1.1), ours or the original's.
#[derive(Clone, Debug)]
pub struct Problem {
    /// As the file names it, a number or a text.
    pub task_id: String,
    /// What the problem asks for. Of LiveCodeBench the whole prompt, with its headings.
    pub statement: String,
    pub prompter: Prompter,
    pub data_source: Option<String>,
    pub difficulty: Option<String>,
    /// Programs that the dataset says solve it.
    pub solutions: Vec<String>,
    /// Programs that the dataset says do not.
    pub incorrect_solutions: Vec<String>,
    pub(super) tests: Tests,
    pub(super) time_limit_s: Option<f64>,
    columns: Map<String, Value>,
}

/// Reads a problem file, whatever its format.
///
/// # Errors
/// What is wrong with the file, or with its rows: file, row and field of each, of which the first `limit` are
/// kept. Two rows of one name.
pub fn read_problems(path: &Path, limit: usize) -> Result<Vec<Problem>, DatasetError> {
    let mut errors = RowErrors::new(limit);
    let mut problems: Vec<Problem> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for row in Rows::open(path)? {
        let row = row?;
        match Problem::of_row(&row) {
            Ok(problem) => match known.insert(problem.task_id.clone(), row.place()) {
                None => problems.push(problem),
                Some(first) => errors.push(row.error(
                    "task_id",
                    format!("`{}` is that of {first} too", problem.task_id),
                )),
            },
            Err(error) => errors.push(error),
        }
    }
    let problems = errors.or(problems)?;
    if problems.is_empty() {
        return Err(DatasetError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(problems)
}

impl Problem {
    /// Reads a row by its columns: `task_id` or `id`; `problem`, or `content` of LiveCodeBench; tests as
    /// [`rows::problem`] knows them; and where they are there `prompter_type`, `time_limit`, `data_source`,
    /// `difficulty`, `solutions` and `incorrect_solutions`.
    ///
    /// # Errors
    /// The field that is missing or wrong.
    pub fn of_row(row: &Row) -> Result<Self, RowError> {
        let columns = row.object()?;
        let task_id = match name(row, &columns, "task_id")? {
            Some(task_id) => task_id,
            None => name(row, &columns, "id")?.ok_or_else(|| row.error("task_id", "missing"))?,
        };
        Self::named(row, columns, task_id)
    }

    pub(super) fn named(
        row: &Row,
        mut columns: Map<String, Value>,
        task_id: String,
    ) -> Result<Self, RowError> {
        let of_live_code_bench =
            given(&columns, "content").is_some() && given(&columns, "problem").is_none();
        let field = if of_live_code_bench {
            "content"
        } else {
            "problem"
        };
        let statement = text(row, &columns, field)?;
        if statement.trim().is_empty() {
            return Err(row.error(field, "the statement is empty"));
        }
        let tests = tests(row, &columns)?;
        columns.insert("test_digest".to_owned(), Self::digest_of(&tests).into());
        let prompter = match given(&columns, "prompter_type") {
            Some(prompter) => {
                let prompter = row.typed(prompter.clone(), "prompter_type")?;
                fits(prompter, &tests).map_err(|why| row.error("prompter_type", why))?;
                prompter
            }
            None if of_live_code_bench => Prompter::LiveCodeBench,
            None if tests.kind() == "stdio" => Prompter::CodeContests,
            None => Prompter::MbppPlus,
        };
        Ok(Self {
            task_id,
            statement,
            prompter,
            data_source: optional_text(row, &columns, "data_source")?,
            difficulty: difficulty(row, &columns)?,
            solutions: texts(row, &columns, "solutions")?,
            incorrect_solutions: texts(row, &columns, "incorrect_solutions")?,
            tests,
            time_limit_s: time_limit(row, &columns)?,
            columns,
        })
    }

    /// The name that nodes of forests have: that of the dataset, and the problem's in it.
    pub fn full_name(&self) -> String {
        let source = self.data_source.as_deref().unwrap_or("problems");
        format!("{source}/{}", self.task_id)
    }

    /// A task of this problem and a program for it.
    pub fn task(&self, id: TaskId, program: &str, initially_right: bool) -> Task {
        Task {
            id,
            public: Public {
                statement: self.statement.clone(),
                program: program.to_owned(),
                prompter: self.prompter,
            },
            facts: Facts {
                initially_right,
                family: self.prompter.name().to_owned(),
                bug: None,
                function: self.full_name(),
                data_source: self.data_source.clone(),
                difficulty: self.difficulty.clone(),
            },
            gold: Gold {
                tests: self.tests.clone(),
                time_limit_s: self.time_limit_s,
                right_critique: None,
                probes: Default::default(),
            },
        }
    }

    /// The row as its file has it, tests included: for files alone.
    pub fn columns(&self) -> &Map<String, Value> {
        &self.columns
    }

    /// Whether assertions call a function of the program, rather than texts going in and out: which of the two
    /// files beside that of all it belongs to.
    pub fn is_assert(&self) -> bool {
        self.prompter == Prompter::MbppPlus
    }

    /// The number of tests, as far as it is known before they run.
    pub fn test_count(&self) -> usize {
        self.tests.len()
    }

    /// Names tests by their content.
    fn digest_of(tests: &Tests) -> String {
        blake3::Hash::from_bytes(tests.digest()).to_hex()[..32].to_owned()
    }

    /// Judges a program by the hidden tests, within the problem's own time limit where it has one.
    ///
    /// # Errors
    /// Failures of the sandbox, which say nothing about the program.
    pub async fn verdict(&self, judge: &Judge, program: &str) -> Result<Verdict, JudgeError> {
        within(judge, self.time_limit_s)
            .verdict(program, &self.tests)
            .await
    }

    /// The same with what each failed test asked and expected: gold, for hints of teachers alone.
    ///
    /// # Errors
    /// As [`Self::verdict`].
    pub(crate) async fn feedback(
        &self,
        judge: &Judge,
        program: &str,
    ) -> Result<Feedback, JudgeError> {
        within(judge, self.time_limit_s)
            .feedback(program, &self.tests)
            .await
    }
}

/// Whether programs that a prompter asks for can pass tests of this kind: programs that read and write, or functions.
fn fits(prompter: Prompter, tests: &Tests) -> Result<(), String> {
    let reads = tests.kind() == "stdio";
    let (asked, given) = match (prompter, reads) {
        (Prompter::MbppPlus, true) => ("a function", "texts in and out of a program"),
        (Prompter::CodeContests, false) => (
            "a program that reads and writes texts",
            "calls of a function",
        ),
        _ => return Ok(()),
    };
    Err(format!(
        "`{}` asks for {asked}, and the tests of the row are {given}; nothing could pass them",
        prompter.name()
    ))
}

/// A name, or a number that a dataset has in place of one.
fn difficulty(row: &Row, columns: &Map<String, Value>) -> Result<Option<String>, RowError> {
    match given(columns, "difficulty") {
        Some(_) => name(row, columns, "difficulty"),
        // LiveCodeBench keeps it among its labels.
        None => Ok(given(columns, "labels").and_then(|labels| {
            let labels = dataset::unpack(labels.clone());
            labels.get("difficulty")?.as_str().map(str::to_owned)
        })),
    }
}

/// Columns that tests may stand in, the most particular first.
pub(super) const TEST_COLUMNS: [&str; 5] =
    ["selected_uts", "tests", "all_uts", "test", "test_list"];

/// The tests of a row; there must be some.
fn tests(row: &Row, columns: &Map<String, Value>) -> Result<Tests, RowError> {
    let found = TEST_COLUMNS
        .iter()
        .find_map(|column| Some((*column, given(columns, column)?)));
    let Some((column, value)) = found else {
        return Err(row.error("all_uts", "missing: the row has no tests"));
    };
    let mut relevant = Map::from_iter([(column.to_owned(), value.clone())]);
    for beside in ["test_setup_code", "entry_point"] {
        let value = given(columns, beside).map(|value| (beside.to_owned(), value.clone()));
        relevant.extend(value);
    }
    let problem =
        rows::problem(&relevant.into()).map_err(|error| row.error(error.field, error.detail))?;
    if problem.tests.is_empty() {
        return Err(row.error(column, "the row has no tests"));
    }
    Ok(problem.tests)
}
