//! Datasets as others publish them to tasks, and tasks to the rows of others.
//!
//! Nothing of a row is dropped: what has no place in a task is kept as metadata, which no prompt can reach.
//! Gold, hidden tests and all that grades go to [`Gold`](crate::Gold) and nowhere that a policy could see.
//! A row that does not fit is rejected by file, row and field.

mod commit;
mod format;
mod graph_planner;
mod harbor;
mod manifest;
mod r2e_gym;
mod records;
mod reverse;
mod swe_bench;
mod verl;

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use dataset::{DatasetError, Place, RowError, RowErrors};
use record::TaskId;
use serde_json::{Map, Value};

use crate::Task;

pub use format::Format;
pub use graph_planner::{graph_planner_id, graph_planner_instance, graph_planner_row, safe_id};
pub use manifest::{image_manifest, read_image_manifest};
pub use records::{Record, records};
pub use swe_bench::{instance_id, instance_of};
pub use verl::verl_row;

/// What an adapter is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the dataset calls the part of itself that is read: `train`, `test`, …
    pub split: String,
    /// Names the dataset in place of what its rows say.
    pub data_source: Option<String>,
    /// Whose images of SWE-bench are meant where rows name none; `None` is those that are built here.
    pub image_namespace: Option<String>,
    /// Rejections that are kept; all are counted.
    pub rejections: usize,
}

impl Options {
    fn source<'a>(&'a self, data_source: &'a str) -> &'a str {
        self.data_source.as_deref().unwrap_or(data_source)
    }

    fn id(&self, source: &str, instance: &str) -> TaskId {
        let part = |text: &str| text.replace('/', "_");
        TaskId(format!(
            "{}/{}/{}",
            part(source),
            part(&self.split),
            part(instance)
        ))
    }
}

/// What a file gave.
#[derive(Debug)]
pub struct Adapted {
    /// In the order of the file.
    pub tasks: Vec<Task>,
    pub rejected: RowErrors,
    /// How often what happened, by name.
    pub counts: BTreeMap<String, u64>,
    /// What the rows seem to be, where none of them is of the format.
    pub hint: Option<String>,
}

/// Reads a file, or of Harbor a folder, of `format`.
///
/// # Errors
/// What is wrong with the file. What is wrong with its rows is in [`Adapted::rejected`].
pub fn adapt(format: Format, path: &Path, options: &Options) -> Result<Adapted, DatasetError> {
    let mut adapted = Adapted {
        tasks: Vec::new(),
        rejected: RowErrors::new(options.rejections),
        counts: BTreeMap::new(),
        hint: None,
    };
    let mut columns = None;
    let mut known = HashMap::new();
    if format == Format::Harbor {
        for (number, folder) in (1..).zip(harbor::directories(path)?) {
            let place = Place::Row(number);
            let read = harbor::read(&folder, number, options).and_then(|task| {
                once(task, place, &mut known).map_err(|message| RowError {
                    path: folder,
                    place,
                    field: "task.name".to_owned(),
                    message,
                })
            });
            adapted.add(read);
        }
    } else {
        for record in records(path, "instance_id")? {
            let record = record?;
            if columns.is_none() {
                columns = record.object().ok();
            }
            let read = match format {
                Format::R2eGym => r2e_gym::read(&record, options),
                Format::GraphPlanner => graph_planner::read(&record, options, path),
                Format::SweBench | Format::Harbor => swe_bench::read(&record, options),
            };
            let read = read.and_then(|task| {
                let told = once(task, record.place(), &mut known);
                told.map_err(|message| record.error("", message))
            });
            adapted.add(read);
        }
    }
    if adapted.counts.is_empty() {
        return Err(DatasetError::Empty {
            path: path.to_owned(),
        });
    }
    if let Some(columns) = columns.filter(|_| adapted.tasks.is_empty()) {
        adapted.hint = hint(format, &columns);
    }
    Ok(adapted)
}

/// `task`, unless one before has its name; `known` are the names, and where they stand.
fn once(task: Task, place: Place, known: &mut HashMap<String, Place>) -> Result<Task, String> {
    let TaskId(id) = &task.id;
    match known.get(id) {
        Some(before) => Err(format!("{before} is `{id}` too")),
        None => {
            known.insert(id.clone(), place);
            Ok(task)
        }
    }
}

impl Adapted {
    fn add(&mut self, read: Result<Task, RowError>) {
        let mut count = |what: &str| *self.counts.entry(what.to_owned()).or_default() += 1;
        count("rows");
        match read {
            Ok(task) => {
                let gold = &task.gold.patch;
                if gold.is_empty() {
                    count("tasks without a gold patch");
                } else if code::Patch::parse(gold.as_bytes()).is_err() {
                    count("tasks whose gold patch is no diff");
                }
                self.tasks.push(task);
            }
            Err(error) => {
                count("rejected rows");
                self.rejected.push(error);
            }
        }
    }
}

/// What the columns of a row say of its format, where they say that it is another.
fn hint(asked: Format, columns: &Map<String, Value>) -> Option<String> {
    match Format::of_columns(columns) {
        Some(format) if format == asked => None,
        Some(format) => Some(format!(
            "the columns are those of --format {format}, not of {asked}"
        )),
        None => {
            let names: Vec<&str> = columns.keys().map(String::as_str).take(12).collect();
            Some(format!(
                "a row of {asked} has {}; the first row has {}",
                asked.columns().join(", "),
                names.join(", ")
            ))
        }
    }
}

/// Columns that are not null; files with a common set of columns have nulls for those that a row lacks.
fn without_nulls(columns: Map<String, Value>) -> Map<String, Value> {
    columns
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect()
}
