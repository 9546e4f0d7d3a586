//! `etude validate patches`: a file of patches, each read and none applied.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use code::Patch;
use dataset::{DatasetError, RowError};
use repair::adapters::{Record, records};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::Screen,
};

#[derive(Debug, Args)]
pub(crate) struct PatchesArgs {
    /// Rows with a `model_patch`, or a `patch`: a text in any form that patches have, or an object with `edits`
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Validated {
    file: PathBuf,
    patches: usize,
    valid: usize,
    /// Counted, and neither valid nor invalid.
    empty: usize,
    invalid: Vec<Invalid>,
}

#[derive(Serialize)]
struct Invalid {
    /// From 1, among the rows.
    row: u64,
    /// Where it stands in the file.
    place: String,
    /// What the row calls itself.
    id: Option<String>,
    /// Why a patch is refused, or `invalid-row`, of what is no row with a patch.
    code: &'static str,
    message: String,
}

/// Fails where a patch is invalid.
pub(crate) fn run(args: &PatchesArgs, screen: Screen) -> Outcome<()> {
    let mut validated = Validated {
        file: args.file.clone(),
        patches: 0,
        valid: 0,
        empty: 0,
        invalid: Vec::new(),
    };
    for (row, record) in (1..).zip(records(&args.file, "instance_id").asked()?) {
        validated.look_at(row, &record.asked()?);
    }
    if validated.patches == 0 {
        let path = args.file.clone();
        return Err(DatasetError::Empty { path }).asked();
    }
    for invalid in &validated.invalid {
        let id = invalid.id.as_deref();
        let id = id.map_or(String::new(), |id| format!(" ({id})"));
        let Invalid {
            place,
            code,
            message,
            ..
        } = invalid;
        screen.say(format!("{place}{id}: {code}: {message}"));
    }
    if args.json {
        print_json(&validated)?;
    } else {
        print_text(&format!(
            "{}: {} patches, {} valid, {} empty, {} invalid",
            args.file.display(),
            validated.patches,
            validated.valid,
            validated.empty,
            validated.invalid.len()
        ))?;
    }
    match validated.invalid.len() {
        0 => Ok(()),
        number => Err(Failure::Failed(anyhow!("{number} patches are invalid"))),
    }
}

impl Validated {
    fn look_at(&mut self, row: u64, record: &Record) {
        self.patches += 1;
        let columns = record.object();
        let invalid = |code, message| Invalid {
            row,
            place: record.place().to_string(),
            id: columns.as_ref().ok().and_then(name),
            code,
            message,
        };
        let text = match columns
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|columns| patch(record, columns))
        {
            Ok(text) => text,
            Err(error) => {
                let message = match error.field.as_str() {
                    "" => error.message,
                    field => format!("`{field}`: {}", error.message),
                };
                self.invalid.push(invalid("invalid-row", message));
                return;
            }
        };
        if text.trim().is_empty() {
            self.empty += 1;
            return;
        }
        match Patch::parse(text.as_bytes()).and_then(|patch| patch.check()) {
            Ok(()) => self.valid += 1,
            Err(rejection) => {
                let invalid = invalid(rejection.code(), rejection.to_string());
                self.invalid.push(invalid);
            }
        }
    }
}

/// The text of a row's patch.
fn patch(record: &Record, columns: &Map<String, Value>) -> Result<String, RowError> {
    let patch = ["model_patch", "patch"]
        .into_iter()
        .find_map(|name| columns.get(name));
    // A row may be the edits themselves.
    let patch = match (patch, columns.contains_key("edits")) {
        (Some(patch), _) => patch.clone(),
        (None, true) => Value::Object(columns.clone()),
        (None, false) => {
            let message = "missing, and there is no `patch` and no `edits` either";
            return Err(record.error("model_patch", message));
        }
    };
    Ok(match patch {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    })
}

fn name(columns: &Map<String, Value>) -> Option<String> {
    let names = ["instance_id", "task_id", "id"];
    let named = names
        .into_iter()
        .find_map(|name| columns.get(name)?.as_str());
    named.map(str::to_owned)
}
