//! Files of tasks: as runs keep them, or dialogues in the formats of published datasets.

use std::{fmt, path::Path, str::FromStr, sync::Arc};

use anyhow::anyhow;
use chat::Chat;
use dataset::{RowErrors, Rows};
use recall::{
    ANSWER, Dialogue, Task,
    adapters::{Format, Options, adapt, check_task, divide},
    memory::CountTokens,
};
use record::Seed;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::recipe::Recipe;
use crate::{
    failure::{Classify, Failure, Outcome},
    walk::{model_source::ModelSource, tasks::first_of},
};

/// Rejected rows that are named.
const NAMED: usize = 3;

/// The tasks of files, to train on and to evaluate on; a side without a file is `None`.
pub(super) type FileTasks = (Option<Vec<Task>>, Option<Vec<Task>>);

/// Reads the files that a recipe names. Where there is a file to train on and none to evaluate on, and it
/// holds dialogues, its documents are divided between the two.
pub(super) fn tasks_of_files(recipe: &Recipe) -> Outcome<FileTasks> {
    let tasks = &recipe.tasks;
    match (&tasks.train_file, &tasks.eval_file, tasks.format) {
        (Some(path), None, Some(format)) => {
            let share = tasks.eval as f64 / (tasks.train + tasks.eval) as f64;
            let seed = Seed(recipe.seed).stream("divide", 0);
            let (train, eval) = divide(dialogues(recipe, path, format, "train")?, share, seed);
            if train.is_empty() || eval.is_empty() {
                return Err(one_document(path));
            }
            Ok((
                Some(first_of(episodes(recipe, &train), path, tasks.train)?),
                Some(first_of(episodes(recipe, &eval), path, tasks.eval)?),
            ))
        }
        (train, eval, _) => {
            let read = |path: &Option<_>, split: &str, n: usize| {
                let path = path.as_deref();
                path.map(|path| {
                    let tasks = tasks_of_file(recipe, path, split, recipe.tasks.format)?;
                    first_of(tasks, path, n)
                })
                .transpose()
            };
            Ok((
                read(train, "train", tasks.train)?,
                read(eval, "eval", tasks.eval)?,
            ))
        }
    }
}

fn one_document(path: &Path) -> Failure {
    Failure::Asked(anyhow!(
        "{} is about one document of each dataset: what is trained on and what is evaluated on are divided by \
         document, and one side stays empty; name another file with tasks.eval_file",
        path.display()
    ))
}

/// All tasks of a file that holds dialogues in `format`, or tasks as runs keep them.
pub(super) fn tasks_of_file(
    recipe: &Recipe,
    path: &Path,
    split: &str,
    format: Option<FormatName>,
) -> Outcome<Vec<Task>> {
    match format {
        Some(format) => Ok(episodes(recipe, &dialogues(recipe, path, format, split)?)),
        None => own_tasks(path),
    }
}

/// Tasks as runs keep them and `etude data prepare recall` writes them.
fn own_tasks(path: &Path) -> Outcome<Vec<Task>> {
    let mut errors = RowErrors::new(NAMED);
    let mut tasks = Vec::new();
    let mut bad = 0;
    for row in Rows::open(path).asked()? {
        let row = row.asked()?;
        match row.parse() {
            Ok(task) => {
                let found = check_task(&row, &task);
                bad += usize::from(!found.is_empty());
                found.into_iter().for_each(|error| errors.push(error));
                tasks.push(task);
            }
            Err(error) => {
                bad += 1;
                errors.push(error);
            }
        }
    }
    if !errors.is_empty() {
        let rows = match bad {
            1 => "1 row is no task".to_owned(),
            n => format!("{n} rows are no tasks"),
        };
        return Err(Failure::Asked(anyhow!(
            "{}: {rows} of the recall study: {}; make tasks of a dataset with `etude data prepare recall`, \
             or name the format of its dialogues with tasks.format",
            path.display(),
            named(&errors)
        )));
    }
    if tasks.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "{} has no tasks; make some of a dataset with `etude data prepare recall`",
            path.display()
        )));
    }
    Ok(tasks)
}

/// The first errors, on one line.
fn named(errors: &RowErrors) -> String {
    let named: Vec<String> = errors.kept().iter().map(ToString::to_string).collect();
    named.join("; ")
}

fn episodes(recipe: &Recipe, dialogues: &[Dialogue]) -> Vec<Task> {
    let granularity = recipe.tasks.granularity;
    let tasks = dialogues.iter();
    tasks
        .flat_map(|dialogue| Task::of_dialogue(dialogue, granularity))
        .collect()
}

fn dialogues(
    recipe: &Recipe,
    path: &Path,
    FormatName(format): FormatName,
    split: &str,
) -> Outcome<Vec<Dialogue>> {
    let count = counter(recipe)?;
    let options = Options {
        split: split.to_owned(),
        data_source: None,
        chunk_tokens: recipe.tasks.chunk_tokens,
        multi_target: true,
        prefix: split.to_owned(),
        rejections: NAMED,
    };
    let adapted = adapt(format, path, &options, &*count).asked()?;
    if !adapted.rejected.is_empty() && !recipe.tasks.skip_rejected {
        let rows = match adapted.rejected.count() {
            1 => "1 row is".to_owned(),
            n => format!("{n} rows are"),
        };
        return Err(Failure::Asked(anyhow!(
            "{}: {rows} no {format}: {}; mend them, or leave them out with tasks.skip_rejected = true",
            path.display(),
            named(&adapted.rejected)
        )));
    }
    if adapted.dialogues.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "{} has no dialogues of the format {format}",
            path.display()
        )));
    }
    Ok(adapted.dialogues)
}

/// Counts tokens for chunks, by the tokenizer that the answering policy brings; words, where its vocabulary
/// is yet to be trained on what is read here.
fn counter(recipe: &Recipe) -> Outcome<CountTokens> {
    let policy = recipe.policy_of(ANSWER).asked()?;
    Ok(match recipe.model_of(policy).asked()? {
        ModelSource::Checkpoint(directory) => {
            let chat = Chat::load(directory).asked()?;
            Arc::new(move |text: &str| {
                let tokens = chat.tokenizer().encode(text);
                tokens.map_or(text.len(), |tokens| tokens.len())
            })
        }
        ModelSource::Random(_) => Arc::new(|text: &str| text.split_whitespace().count()),
    })
}

/// A format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormatName(pub(super) Format);

impl fmt::Display for FormatName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for FormatName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for FormatName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        // In serde's words, which the reader of recipes adds the nearest name to.
        let known = Format::ALL.map(|format| format!("`{}`", format.name()));
        let unknown = || {
            let known = known.join(", ");
            D::Error::custom(format!("unknown variant `{name}`, expected one of {known}"))
        };
        Format::from_str(&name).map(Self).map_err(|_| unknown())
    }
}
