//! What is wrong: a text, or that of a file.

use std::{fs, path::Path};

use anyhow::{Context, anyhow};
use repair::Issue;

use crate::failure::{Classify, Failure, Outcome};

/// The text itself, or that of the file of this name.
pub(super) fn read(text: &str) -> Outcome<Issue> {
    // No path is as long.
    let path = Path::new(if text.len() < 4096 { text.trim() } else { "" });
    let text = if path.is_file() {
        fs::read_to_string(path)
            .with_context(|| format!("--issue {}", path.display()))
            .asked()?
    } else if path.is_dir() {
        return Err(Failure::Asked(anyhow!(
            "--issue {}: this is a folder; give a file of it, or a text",
            path.display()
        )));
    } else if is_meant_as_a_file(text) {
        return Err(Failure::Asked(anyhow!(
            "--issue: there is no file {}; give one that is there, or a text of several words",
            path.display()
        )));
    } else {
        text.to_owned()
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "the issue is empty; say what is wrong"
        )));
    }
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    Ok(Issue {
        title: title.trim_start_matches('#').trim().to_owned(),
        body: body.trim().to_owned(),
        ..Issue::default()
    })
}

/// A single word with a folder or an ending; issues have more than that to say.
fn is_meant_as_a_file(text: &str) -> bool {
    let text = text.trim();
    let ending = Path::new(text).extension();
    let ending = ending.is_some_and(|ending| {
        let ending = ending.to_string_lossy();
        (1..=8).contains(&ending.len()) && ending.chars().all(char::is_alphanumeric)
    });
    !text.contains(char::is_whitespace) && (text.contains('/') || ending)
}
