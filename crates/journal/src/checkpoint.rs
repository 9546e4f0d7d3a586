//! Directories under `checkpoints/`: filled aside, digested, renamed into place.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use crate::{
    error::{Error, IoContext, Result},
    files,
};

/// Name of the directory inside a run.
pub(crate) const DIRECTORY: &str = "checkpoints";

/// Lets `fill` write into a directory aside, then makes it appear at `path` as a whole.
/// Returns its digest.
pub(crate) fn write<E: std::fmt::Display>(
    path: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> std::result::Result<(), E>,
) -> Result<String> {
    let unfinished = files::unfinished(path);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).at(&unfinished, "remove")?;
    }
    files::create_directory(&unfinished)?;
    let written = fill(&unfinished)
        .map_err(|error| Error::Fill {
            name: name.to_owned(),
            reason: error.to_string(),
        })
        .and_then(|()| sync_and_digest(&unfinished));
    match written {
        Ok(digest) => {
            files::rename(&unfinished, path)?;
            Ok(digest)
        }
        Err(error) => {
            // The first failure is the one to report; `open` removes what stays.
            let _ = fs::remove_dir_all(&unfinished);
            Err(error)
        }
    }
}

/// BLAKE3 over the name, size and content of every file, in name order, in hex.
pub(crate) fn digest(directory: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; 1 << 16];
    for name in files::files_under(directory)? {
        let path = directory.join(&name);
        let mut file = File::open(&path).at(&path, "open")?;
        let size = file.metadata().at(&path, "inspect")?.len();
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(&size.to_le_bytes());
        loop {
            let n = file.read(&mut block).at(&path, "read")?;
            if n == 0 {
                break;
            }
            hasher.update(&block[..n]);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn sync_and_digest(directory: &Path) -> Result<String> {
    for name in files::files_under(directory)? {
        let path = directory.join(&name);
        File::open(&path)
            .and_then(|file| file.sync_all())
            .at(&path, "sync")?;
    }
    sync_directories(directory)?;
    digest(directory)
}

fn sync_directories(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).at(directory, "list")? {
        let path = entry.at(directory, "list")?.path();
        if path.is_dir() {
            sync_directories(&path)?;
        }
    }
    files::sync_directory(directory)
}
