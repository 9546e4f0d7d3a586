//! `etude data check`: what is in files of tasks, and everything that is wrong with them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use dataset::{DatasetError, Place, Row, RowError, RowErrors, Rows};
use recall::{TurnRole, adapters::check_task};
use serde::Serialize;
use serde_json::{Value, json};

use super::{SHOWN_ERRORS, say_errors};
use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::{Screen, count_of},
};

/// What a file holds.
#[derive(Serialize)]
struct Checked {
    file: PathBuf,
    study: Option<&'static str>,
    tasks: u64,
    documents: usize,
    /// By what their numbers are of: turns, questions by type, …
    counts: BTreeMap<String, u64>,
    bad_rows: u64,
    /// The first of them.
    errors: Vec<String>,
    #[serde(skip)]
    names: BTreeSet<String>,
}

/// Fails where a row is bad.
pub(crate) fn run(files: &[PathBuf], json: bool, screen: Screen) -> Outcome<()> {
    let mut ids = HashMap::new();
    let mut checked = Vec::new();
    let mut bad = 0;
    for file in files {
        let mut errors = RowErrors::new(SHOWN_ERRORS);
        let mut found = check(file, &mut ids, &mut errors).asked()?;
        say_errors(&errors, screen);
        found.errors = errors.kept().iter().map(ToString::to_string).collect();
        bad += found.bad_rows;
        checked.push(found);
    }
    for (index, first) in checked.iter().enumerate() {
        for second in &checked[index + 1..] {
            let shared = first.names.intersection(&second.names).count();
            if shared > 0 {
                screen.say(format!(
                    "note: {} in {} and in {} too; what is evaluated on must not be trained on",
                    count_of(shared, "document"),
                    first.file.display(),
                    second.file.display()
                ));
            }
        }
    }
    if json {
        print_json(&json!({ "files": checked }))?;
    } else {
        print_text(&text(&checked))?;
    }
    if bad > 0 {
        let rows = if bad == 1 { "row is" } else { "rows are" };
        return Err(Failure::Failed(anyhow!("{bad} {rows} bad")));
    }
    Ok(())
}

/// Where each id was first.
type Ids = HashMap<String, (PathBuf, Place)>;

fn check(file: &Path, ids: &mut Ids, errors: &mut RowErrors) -> Result<Checked, DatasetError> {
    let mut checked = Checked {
        file: file.to_owned(),
        study: None,
        tasks: 0,
        documents: 0,
        counts: BTreeMap::new(),
        bad_rows: 0,
        errors: Vec::new(),
        names: BTreeSet::new(),
    };
    for row in Rows::open(file)? {
        let row = row?;
        checked.tasks += 1;
        let found = checked.take(&row, ids);
        checked.bad_rows += u64::from(!found.is_empty());
        found.into_iter().for_each(|error| errors.push(error));
    }
    if checked.tasks == 0 {
        return Err(DatasetError::Empty {
            path: file.to_owned(),
        });
    }
    checked.documents = checked.names.len();
    Ok(checked)
}

impl Checked {
    /// Everything that is wrong with a row.
    fn take(&mut self, row: &Row, ids: &mut Ids) -> Vec<RowError> {
        let mut errors = Vec::new();
        match self.typed(row, &mut errors) {
            Err(error) => errors.push(error),
            Ok(id) => match ids.get(&id) {
                Some((file, place)) => errors.push(row.error(
                    "id",
                    format!("`{id}` is the id of {}, {place} too", file.display()),
                )),
                None => {
                    ids.insert(id, (row.path().to_owned(), row.place()));
                }
            },
        }
        errors
    }

    /// The id of a row that is a task of a study; what is wrong with the task goes to `errors`.
    fn typed(&mut self, row: &Row, errors: &mut Vec<RowError>) -> Result<String, RowError> {
        match row.object()?.get("public") {
            Some(Value::Object(public)) if public.contains_key("turns") => {
                self.is_of("recall", row)?;
                self.take_recall(row, errors)
            }
            Some(Value::Object(public)) if public.contains_key("program") => {
                self.is_of("critique", row)?;
                self.take_critique(row)
            }
            _ => Err(row.error(
                "public",
                "no task of a study: neither `public.turns` (recall) nor `public.program` (critique) is there",
            )),
        }
    }

    fn is_of(&mut self, study: &'static str, row: &Row) -> Result<(), RowError> {
        let known = *self.study.get_or_insert(study);
        if known == study {
            Ok(())
        } else {
            Err(row.error("", format!("a task of {study} among tasks of {known}")))
        }
    }

    fn take_recall(&mut self, row: &Row, errors: &mut Vec<RowError>) -> Result<String, RowError> {
        let task: recall::Task = row.parse()?;
        let found = check_task(row, &task);
        if !found.is_empty() {
            errors.extend(found);
            return Ok(task.id.0);
        }
        self.names.insert(format!(
            "{}/{}",
            task.facts.data_source, task.facts.document
        ));
        for turn in &task.public.turns {
            match turn.turn_role {
                TurnRole::History => self.count("history turns"),
                TurnRole::Target => self.count("target turns"),
            }
        }
        for question in task.facts.questions.values() {
            self.count(&format!("questions of type {}", question.question_type));
        }
        Ok(task.id.0)
    }

    fn take_critique(&mut self, row: &Row) -> Result<String, RowError> {
        let task: critique::Task = row.parse()?;
        self.names.insert(task.facts.function.clone());
        self.count(if task.facts.initially_right {
            "right programs"
        } else {
            "wrong programs"
        });
        self.count(&format!("tasks of family {}", task.facts.family));
        Ok(task.id.0)
    }

    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }
}

fn text(checked: &[Checked]) -> String {
    let mut lines = Vec::new();
    for file in checked {
        lines.push(format!(
            "{}: {} of {}, {}, {}",
            file.file.display(),
            count_of(file.tasks as usize, "task"),
            file.study.unwrap_or("no study"),
            count_of(file.documents, "document"),
            count_of(file.bad_rows as usize, "bad row")
        ));
        for (what, number) in &file.counts {
            lines.push(format!("  {what:<46} {number:>9}"));
        }
    }
    lines.join("\n")
}
