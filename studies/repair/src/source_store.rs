//! Copies of sources beside a file of tasks: the tasks of one package share one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use code::RelativePath;

use crate::checkout::regular_files;

/// The folder `FILE.sources` beside a file of tasks.
#[derive(Clone, Debug)]
pub struct SourceStore {
    folder: PathBuf,
}

/// A copy of a repository's files as they were, without versions, caches and environments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSources {
    pub folder: PathBuf,
    /// Of paths, contents and whether they can be executed; equal for equal sources.
    pub digest: String,
    /// In order.
    pub files: Vec<RelativePath>,
}

/// Why sources cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error(
        "{folder} has {mib} MiB in files, more than the {MAX_MIB} MiB that are kept; take the package's own folder"
    )]
    TooLarge { folder: PathBuf, mib: u64 },
}

/// MiB that the files of one repository may have together.
pub const MAX_MIB: u64 = 256;

impl SourceStore {
    /// The store of the tasks that are written to `file`.
    pub fn beside(file: &Path) -> Self {
        Self {
            folder: file.with_extension("sources"),
        }
    }

    /// Copies the files of `repository`, unless they are here already. The name of the folder tells `name` and the digest.
    ///
    /// # Errors
    /// A file that cannot be read or written; more than [`MAX_MIB`].
    pub fn keep(&self, repository: &Path, name: &str) -> Result<KeptSources, StoreError> {
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |error| StoreError::File { path, error }
        };
        let mut files = regular_files(repository).map_err(fault(repository))?;
        files.sort();
        let mut bytes = 0;
        for file in &files {
            let path = repository.join(file.as_str());
            bytes += fs::metadata(&path).map_err(fault(&path))?.len();
        }
        if bytes > MAX_MIB << 20 {
            return Err(StoreError::TooLarge {
                folder: repository.to_owned(),
                mib: bytes >> 20,
            });
        }
        let digest = digest(repository, &files)?;
        let folder = self.folder.join(format!("{name}-{}", &digest[..12]));
        let kept = KeptSources {
            folder: folder.clone(),
            digest,
            files,
        };
        if folder.is_dir() {
            return Ok(kept);
        }
        fs::create_dir_all(&self.folder).map_err(fault(&self.folder))?;
        let draft = self.folder.join(format!(".{}.draft", std::process::id()));
        match fs::remove_dir_all(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(fault(&draft)(error));
            }
            _ => {}
        }
        fs::create_dir_all(&draft).map_err(fault(&draft))?;
        for file in &kept.files {
            let to = draft.join(file.as_str());
            let above = to.parent().unwrap_or(&draft);
            fs::create_dir_all(above).map_err(fault(above))?;
            fs::copy(repository.join(file.as_str()), &to).map_err(fault(&to))?;
        }
        // Whoever reads sees all of it or nothing.
        fs::rename(&draft, &folder).map_err(fault(&folder))?;
        Ok(kept)
    }
}

fn digest(repository: &Path, files: &[RelativePath]) -> Result<String, StoreError> {
    use std::os::unix::fs::PermissionsExt;
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let path = repository.join(file.as_str());
        let read = fs::read(&path).and_then(|content| Ok((content, fs::metadata(&path)?)));
        let (content, metadata) = read.map_err(|error| StoreError::File { path, error })?;
        let executable = u8::from(metadata.permissions().mode() & 0o100 != 0);
        for part in [file.as_str().as_bytes(), &[executable], &content] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sources_are_kept_once_and_without_their_history() {
        let scratch = tempfile::tempdir().unwrap();
        let repository = scratch.path().join("shapes");
        for name in ["shapes/area.py", ".git/objects/ab", "tests/test_area.py"] {
            fs::create_dir_all(repository.join(name).parent().unwrap()).unwrap();
            fs::write(repository.join(name), name).unwrap();
        }
        let store = SourceStore::beside(&scratch.path().join("tasks.jsonl"));
        let first = store.keep(&repository, "shapes").unwrap();
        let names: Vec<&str> = first.files.iter().map(RelativePath::as_str).collect();
        assert_eq!(names, ["shapes/area.py", "tests/test_area.py"]);
        assert!(
            first
                .folder
                .starts_with(scratch.path().join("tasks.sources"))
        );
        assert!(!first.folder.join(".git").exists());
        assert_eq!(store.keep(&repository, "shapes").unwrap(), first);
        // A copy is as good as what it was copied from.
        assert_eq!(store.keep(&first.folder, "shapes").unwrap(), first);
        fs::write(repository.join("shapes/area.py"), "changed").unwrap();
        let second = store.keep(&repository, "shapes").unwrap();
        assert_ne!(second.folder, first.folder);
        let kept = fs::read_dir(scratch.path().join("tasks.sources")).unwrap();
        assert_eq!(kept.count(), 2);
    }
}
