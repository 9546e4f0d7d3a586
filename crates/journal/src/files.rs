//! Writing files so that they are either whole and on disk, or not there.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use crate::error::{Error, IoContext, Result};

/// Ending of files and directories that are still being written; `open` removes what has it.
pub(crate) const UNFINISHED: &str = ".unfinished";

/// Replaces `path` by `bytes` in one step: readers see the old content or the new.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = unfinished(path);
    let mut file = File::create(&unfinished).at(&unfinished, "create")?;
    file.write_all(bytes).at(&unfinished, "write")?;
    file.sync_all().at(&unfinished, "sync")?;
    rename(&unfinished, path)
}

/// Renames and makes the new name durable.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).at(to, "rename into place")?;
    to.parent().map_or(Ok(()), sync_directory)
}

pub(crate) fn create_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).at(path, "create the directory")
}

pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .at(path, "sync the directory")
}

pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    PathBuf::from(name)
}

/// All files under `root` as paths relative to it, in name order. Nothing when `root` is absent.
pub(crate) fn files_under(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if root.is_dir() {
        collect(root, "", &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, prefix: &str, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(directory).at(directory, "list")? {
        let entry = entry.at(directory, "list")?;
        let name = entry.file_name();
        let relative = format!("{prefix}{}", name.to_string_lossy());
        if entry.file_type().at(&entry.path(), "inspect")?.is_dir() {
            collect(&entry.path(), &format!("{relative}/"), found)?;
        } else {
            found.push(relative);
        }
    }
    Ok(())
}

/// Removes directories under `root` that hold nothing, `root` itself excepted.
pub(crate) fn remove_empty_directories(root: &Path) -> Result<()> {
    for entry in fs::read_dir(root).at(root, "list")? {
        let path = entry.at(root, "list")?.path();
        if path.is_dir() {
            remove_empty_directories(&path)?;
            // Fails on directories that are not empty, which then stay.
            let _ = fs::remove_dir(&path);
        }
    }
    Ok(())
}

/// Checks that a name may become a path below one of the run's directories: segments of letters,
/// digits, `.`, `_` and `-`, joined by `/`.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<()> {
    let fits = |segment: &str| {
        !segment.is_empty()
            && !segment.starts_with('.')
            && !segment.ends_with(UNFINISHED)
            && segment
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    if name.split('/').all(fits) {
        return Ok(());
    }
    Err(Error::Name {
        what,
        name: name.to_owned(),
        reason: "it becomes a path in the run directory, so it is made of segments of letters, digits, `.`, `_` and `-`, joined by `/`, none beginning with a dot",
    })
}
