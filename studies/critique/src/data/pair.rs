//! Problems paired with a program each: the rows that reinforcement reads (spec of the critique study,
//! section 1.4), as tasks.

use std::{collections::HashMap, path::Path};

use code::{Fence, extract_python};
use dataset::{DatasetError, Row, RowError, RowErrors, Rows};
use record::TaskId;

use super::{
    problem::Problem,
    values::{name, optional_text, success},
};
use crate::task::Task;

/// Reads tasks from JSON Lines, a JSON list or a Parquet file: our own, with `public`, `facts` and `gold`, or rows
/// of problem and program with the columns of the original.
///
/// # Errors
/// What is wrong with the file, or with its rows: file, row and field of each, of which the first `limit` are
/// kept. Two rows of one id.
pub fn read_tasks(path: &Path, limit: usize) -> Result<Vec<Task>, DatasetError> {
    let mut errors = RowErrors::new(limit);
    let mut tasks: Vec<Task> = Vec::new();
    let mut known = HashMap::new();
    for row in Rows::open(path)? {
        let row = row?;
        match task_of_row(&row) {
            Ok(task) => match known.insert(task.id.clone(), row.place()) {
                None => tasks.push(task),
                Some(first) => {
                    errors.push(row.error("id", format!("`{}` is that of {first} too", task.id)))
                }
            },
            Err(error) => errors.push(error),
        }
    }
    let tasks = errors.or(tasks)?;
    if tasks.is_empty() {
        return Err(DatasetError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(tasks)
}

/// A row with any of these is a pair; our own tasks have none of them.
const PAIRED: [&str; 9] = [
    "problem",
    "problem_id",
    "prompter_type",
    "sanitized_solution",
    "solution",
    "success",
    "all_uts",
    "selected_uts",
    "content",
];

/// Columns of rows as datasets are published.
const RAW: [&str; 6] = [
    "question",
    "input_output",
    "description",
    "question_content",
    "test_list",
    "prompt",
];

/// A row as a task. Columns of pairs: those of [`Problem::of_row`], `id` or `problem_id`, `sanitized_solution` or
/// `solution`, and `success`.
///
/// # Errors
/// The field that is missing or wrong.
pub fn task_of_row(row: &Row) -> Result<Task, RowError> {
    let columns = row.object()?;
    if !PAIRED.iter().any(|column| columns.contains_key(*column)) {
        // Rows of datasets have a statement by another name.
        if RAW.iter().any(|column| columns.contains_key(*column)) && !columns.contains_key("public")
        {
            return Err(row.error(
                "public",
                "missing; rows of datasets become problem files with `etude data prepare`, and these become tasks \
                 with `etude data pair`",
            ));
        }
        return row.parse();
    }
    let (field, answer) = match optional_text(row, &columns, "sanitized_solution")? {
        Some(answer) => ("sanitized_solution", answer),
        None => (
            "solution",
            optional_text(row, &columns, "solution")?.ok_or_else(|| {
                row.error(
                    "sanitized_solution",
                    "missing; a task is a problem with a program for it. Rows of problem files become tasks with \
                     `etude data pair`, and rows of datasets become problem files with `etude data prepare`",
                )
            })?,
        ),
    };
    let id = match name(row, &columns, "id")? {
        Some(id) => id,
        None => name(row, &columns, "problem_id")?
            .ok_or_else(|| row.error("id", "missing; ids tell the pairs of a run apart"))?,
    };
    let program = extract_python(&answer, Fence::First).program;
    if program.trim().is_empty() {
        return Err(row.error(field, "the program is empty"));
    }
    let right = success(row, &columns)?.ok_or_else(|| {
        row.error(
            "success",
            "missing; `etude data pair` judges programs and says whether they pass",
        )
    })?;
    let task_id = name(row, &columns, "task_id")?.unwrap_or_else(|| id.clone());
    let problem = Problem::named(row, columns, task_id)?;
    Ok(problem.task(TaskId(id), program, right))
}
