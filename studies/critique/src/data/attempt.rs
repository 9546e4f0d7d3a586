//! Programs that somebody wrote for problems, and their rows for reinforcement (spec of the critique study, section
//! 1.4). They are nodes of the original's forests, or of any file with a name and a program.

use std::path::{Path, PathBuf};

use code::{Fence, extract_python};
use dataset::{DatasetError, Place, Row, RowError, RowErrors, Rows};
use record::TaskId;
use serde_json::{Map, Value, json};

use super::{
    problem::{Problem, TEST_COLUMNS},
    values::{given, name, optional_text, success},
};
use crate::prompts::{critique_prompt, sanitise};

/// A program for a problem, or a critique of one and the program that it led to.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The problem's name.
    pub task_id: String,
    /// The problem's dataset, where the file says it.
    pub data_source: Option<String>,
    /// What the model answered, or a program as it is.
    pub solution: String,
    pub hash: Option<String>,
    /// Of the program that the critique is of.
    pub prev_hash: Option<String>,
    /// `generation` for first programs, `critique_revision` for those that a critique led to.
    pub node_type: String,
    pub critique: Option<String>,
    /// The critique did not come to its end.
    pub cut_off: bool,
    /// Whether it passes, where the file says so.
    pub success: Option<bool>,
    /// Who wrote it.
    pub generator: Option<String>,
    pub file: PathBuf,
    pub place: Place,
}

/// The kind of nodes that are first programs.
pub(crate) const GENERATION: &str = "generation";
/// The kind of nodes that a critique led to.
pub(crate) const REVISION: &str = "critique_revision";

/// Reads attempts, whatever the file's format. Root nodes of forests are no attempts.
///
/// # Errors
/// What is wrong with the file, or with its rows, of which the first `limit` errors are kept.
pub fn read_attempts(path: &Path, limit: usize) -> Result<Vec<Attempt>, DatasetError> {
    let mut errors = RowErrors::new(limit);
    let mut attempts = Vec::new();
    for row in Rows::open(path)? {
        match Attempt::of_row(&row?) {
            Ok(attempt) => attempts.extend(attempt),
            Err(error) => errors.push(error),
        }
    }
    let attempts = errors.or(attempts)?;
    if attempts.is_empty() {
        return Err(DatasetError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(attempts)
}

impl Attempt {
    fn of_row(row: &Row) -> Result<Option<Self>, RowError> {
        let columns = row.object()?;
        let node_type = optional_text(row, &columns, "node_type")?;
        if node_type.as_deref() == Some("root") {
            return Ok(None);
        }
        let task_id = match name(row, &columns, "task_id")? {
            Some(task_id) => task_id,
            None => name(row, &columns, "id")?.ok_or_else(|| row.error("task_id", "missing"))?,
        };
        let mut solution = None;
        for field in ["solution", "completion", "sanitized_solution"] {
            solution = solution.or(optional_text(row, &columns, field)?);
        }
        let solution =
            solution.ok_or_else(|| row.error("solution", "missing: the row has no program"))?;
        let critique = optional_text(row, &columns, "critique")?;
        let usual = if critique.is_some() {
            REVISION
        } else {
            GENERATION
        };
        Ok(Some(Self {
            task_id,
            data_source: optional_text(row, &columns, "data_source")?,
            solution,
            hash: optional_text(row, &columns, "hash")?,
            prev_hash: optional_text(row, &columns, "prev_hash")?,
            node_type: node_type.unwrap_or_else(|| usual.to_owned()),
            critique,
            cut_off: false,
            success: success(row, &columns)?,
            generator: optional_text(row, &columns, "generator")?,
            file: row.path().to_owned(),
            place: row.place(),
        }))
    }

    /// Whether a critique of it is a task: it is a first program.
    pub fn is_first(&self) -> bool {
        self.node_type == GENERATION
    }

    /// The program in the answer.
    pub fn program(&self) -> &str {
        extract_python(&self.solution, Fence::First).program
    }
}

impl Problem {
    /// The programs that come with the problem itself as attempts at it.
    pub fn own_attempts(&self, file: &Path, place: Place) -> Vec<Attempt> {
        let source = self.data_source.as_deref().unwrap_or("dataset");
        let lists = [
            ("solutions", &self.solutions),
            ("incorrect_solutions", &self.incorrect_solutions),
        ];
        lists
            .into_iter()
            .flat_map(|(field, programs)| {
                programs.iter().map(move |program| Attempt {
                    task_id: self.task_id.clone(),
                    data_source: self.data_source.clone(),
                    solution: program.clone(),
                    hash: None,
                    prev_hash: None,
                    node_type: GENERATION.to_owned(),
                    critique: None,
                    cut_off: false,
                    success: None,
                    generator: Some(format!("{source}/{field}")),
                    file: file.to_owned(),
                    place,
                })
            })
            .collect()
    }

    /// The row of this problem and a program for it, under an `id` that is its alone: columns of the original, and
    /// `data_source`, `split`, `test_digest` and `generator`. `passed` are the tests that passed, of all.
    pub fn pair(
        &self,
        attempt: &Attempt,
        id: &str,
        success: bool,
        share: f64,
    ) -> Map<String, Value> {
        let program = attempt.program();
        let public = self.task(TaskId(id.to_owned()), program, success).public;
        let columns = self.columns();
        let hash = match &attempt.hash {
            Some(hash) => hash.clone(),
            None => blake3::hash(id.as_bytes()).to_hex()[..40].to_owned(),
        };
        let task_id = columns.get("task_id").or_else(|| columns.get("id"));
        let mut row = Map::from_iter([
            ("task_id".to_owned(), json!(task_id)),
            ("hash".to_owned(), hash.into()),
            ("prev_hash".to_owned(), json!(attempt.prev_hash)),
            ("node_type".to_owned(), attempt.node_type.clone().into()),
            ("solution".to_owned(), attempt.solution.clone().into()),
            (
                "sanitized_solution".to_owned(),
                sanitise(&attempt.solution).into(),
            ),
            ("success".to_owned(), f64::from(success).into()),
            ("success_float".to_owned(), share.into()),
        ]);
        let left_out = [
            "id",
            "task_id",
            "solutions",
            "incorrect_solutions",
            "critique",
            "metadata",
        ];
        let others = columns.iter().filter(|(name, _)| {
            !left_out.contains(&name.as_str())
                && !TEST_COLUMNS.contains(&name.as_str())
                && !name.ends_with("_uts")
                && !row.contains_key(*name)
        });
        let others: Vec<_> = others
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        row.extend(others);
        for always in ["data_source", "split"] {
            row.entry(always).or_insert(Value::Null);
        }
        let selected = TEST_COLUMNS
            .iter()
            .find_map(|column| given(columns, column))
            .cloned()
            .unwrap_or_default();
        let messages: Vec<Value> = critique_prompt(&public)
            .iter()
            .map(|message| json!({ "role": message.role, "content": message.content }))
            .collect();
        let more = [
            ("prompter_type", self.prompter.name().into()),
            ("prompt", Value::Array(messages)),
            ("selected_uts", selected),
            ("problem_id", id.into()),
            ("id", id.into()),
            ("generator", json!(attempt.generator)),
        ];
        row.extend(more.map(|(name, value)| (name.to_owned(), value)));
        row
    }
}

/// Makes rows fit into the columns of one file: where some names are numbers and others texts, all are texts; where
/// some tests are lists and others texts, lists become their JSON text.
pub(super) fn fit_columns(rows: &mut [Map<String, Value>]) {
    for column in ["task_id", "selected_uts"] {
        let mut values = rows.iter().filter_map(|row| given(row, column));
        let texts = values.clone().any(Value::is_string);
        if texts && values.any(|value| !value.is_string()) {
            for value in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
                if !value.is_string() && !value.is_null() {
                    *value = value.to_string().into();
                }
            }
        }
    }
}
