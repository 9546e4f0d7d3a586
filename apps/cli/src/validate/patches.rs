//! `etude validate patches`: a file of patches, each read and none applied.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use code::Patch;
use dataset::DatasetError;
use repair::adapters::{Record, records};
use serde::Serialize;
use serde_json::Value;

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
    row: u64,
    /// What the row calls itself.
    id: Option<String>,
    /// Of the spec's section 1.5.
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
        validated.look_at(row, &record.asked()?).asked()?;
    }
    if validated.patches == 0 {
        let path = args.file.clone();
        return Err(DatasetError::Empty { path }).asked();
    }
    for invalid in &validated.invalid {
        let id = invalid.id.as_deref().unwrap_or("-");
        let Invalid {
            row, code, message, ..
        } = invalid;
        screen.say(format!("row {row} ({id}): {code}: {message}"));
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
    fn look_at(&mut self, row: u64, record: &Record) -> Result<(), dataset::RowError> {
        let columns = record.object()?;
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
        self.patches += 1;
        let text = match patch {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        if text.trim().is_empty() {
            self.empty += 1;
            return Ok(());
        }
        match Patch::parse(text.as_bytes()) {
            Ok(_) => self.valid += 1,
            Err(rejection) => self.invalid.push(Invalid {
                row,
                id: ["instance_id", "task_id", "id"]
                    .into_iter()
                    .find_map(|name| columns.get(name)?.as_str().map(str::to_owned)),
                code: rejection.code(),
                message: rejection.to_string(),
            }),
        }
        Ok(())
    }
}
