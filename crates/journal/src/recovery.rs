//! What a process that died leaves behind, and its removal.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{
    checkpoint,
    entry::Entry,
    episodes,
    error::{IoContext, Result},
    files::{self, UNFINISHED},
    kept,
    replay::{EVALUATION, Replay},
};

/// Names of checkpoints whose step was never committed: the run will come to that step again.
pub(crate) fn unbacked_checkpoints(replay: &Replay) -> Vec<String> {
    replay
        .checkpoints()
        .into_iter()
        .filter(|checkpoint| !replay.is_backed(checkpoint))
        .map(|checkpoint| checkpoint.name.clone())
        .collect()
}

/// Paths relative to `root` that no record names, in name order: files of episodes, directories of
/// checkpoints (`unbacked` ones included), and anything half-written.
pub(crate) fn leftovers(root: &Path, replay: &Replay, unbacked: &[String]) -> Result<Vec<String>> {
    let named: BTreeSet<&str> = replay
        .entries
        .iter()
        .filter_map(|stamped| match &stamped.entry {
            Entry::Step(step) => step.episodes.as_ref(),
            Entry::Evaluation(evaluation) => evaluation.episodes.as_ref(),
            _ => None,
        })
        .map(|reference| reference.file.as_str())
        .collect();
    // Of evaluations on their way; those of committed ones were about to be removed.
    let kept: BTreeSet<String> = replay
        .phases()
        .into_iter()
        .filter_map(|phase| phase.strip_prefix(EVALUATION))
        .filter(|name| replay.evaluation(name).is_none())
        .map(kept::relative)
        .collect();
    let mut found: Vec<String> = files::files_under(&root.join(episodes::DIRECTORY))?
        .into_iter()
        .map(|file| format!("{}/{file}", episodes::DIRECTORY))
        .filter(|file| !named.contains(file.as_str()) && !kept.contains(file))
        .collect();
    let present: BTreeSet<&str> = replay
        .checkpoints()
        .into_iter()
        .map(|checkpoint| checkpoint.name.as_str())
        .filter(|name| !unbacked.iter().any(|other| other == name))
        .collect();
    found.extend(
        names_in(&root.join(checkpoint::DIRECTORY))?
            .into_iter()
            .filter(|name| !present.contains(name.as_str()))
            .map(|name| format!("{}/{name}", checkpoint::DIRECTORY)),
    );
    for prefix in ["", "logs/", "tasks/"] {
        let names = names_in(&root.join(prefix))?.into_iter();
        let unfinished = names.filter(|name| name.ends_with(UNFINISHED));
        found.extend(unfinished.map(|name| format!("{prefix}{name}")));
    }
    found.sort();
    Ok(found)
}

pub(crate) fn remove(root: &Path, leftovers: &[String]) -> Result<()> {
    for relative in leftovers {
        let path = root.join(relative);
        if path.is_dir() {
            fs::remove_dir_all(&path).at(&path, "remove")?;
        } else {
            fs::remove_file(&path).at(&path, "remove")?;
        }
    }
    let episodes = root.join(episodes::DIRECTORY);
    if episodes.is_dir() {
        files::remove_empty_directories(&episodes)?;
    }
    Ok(())
}

fn names_in(directory: &Path) -> Result<Vec<String>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    fs::read_dir(directory)
        .at(directory, "list")?
        .map(|entry| {
            Ok(entry
                .at(directory, "list")?
                .file_name()
                .to_string_lossy()
                .into_owned())
        })
        .collect()
}
