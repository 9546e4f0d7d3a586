//! The files of a task's checkout: a folder, and the changes of a patch over it. Nothing is copied.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use code::{
    Patch, RelativePath,
    patch::{FileChange, Rejection},
};

use crate::Place;

/// A checkout whose files lie on this machine.
#[derive(Clone, Debug)]
pub struct Checkout {
    folder: PathBuf,
    patch: Option<Patch>,
    /// What the patch makes of files; `None` where it removes one.
    changed: BTreeMap<RelativePath, Option<Vec<u8>>>,
}

/// Why a place has no checkout.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    #[error("{path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("the patch that makes the checkout does not fit {folder}: {error}")]
    Misfit { folder: PathBuf, error: Rejection },
    #[error("the work tree is in the image {image}, not on this machine")]
    InImage { image: String },
}

impl Checkout {
    /// # Errors
    /// A place in a container image; files that cannot be read; a patch that does not fit.
    pub fn of(place: &Place) -> Result<Self, CheckoutError> {
        let (folder, patch) = match place {
            Place::Image { name, .. } | Place::PatchedImage { name, .. } => {
                let image = name.clone();
                return Err(CheckoutError::InImage { image });
            }
            Place::Folder(folder) => (folder, None),
            Place::Patched { folder, patch } => (folder, Some(patch)),
        };
        let mut checkout = Self {
            folder: folder.clone(),
            patch: None,
            changed: BTreeMap::new(),
        };
        let Some(text) = patch else {
            return Ok(checkout);
        };
        let misfit = |error| CheckoutError::Misfit {
            folder: folder.clone(),
            error,
        };
        let patch = Patch::parse(text.as_bytes()).map_err(misfit)?;
        let mut before = BTreeMap::new();
        for path in patch.paths() {
            let content = checkout.read(&path);
            let content = content.map_err(|error| CheckoutError::Unreadable {
                path: folder.join(path.as_str()),
                error,
            })?;
            before.insert(path, content);
        }
        let applied = patch.apply(&before).map_err(misfit)?;
        for change in applied.changes {
            let (path, content) = match change {
                FileChange::Write { path, content, .. } => (path, Some(content)),
                FileChange::Remove { path } => (path, None),
            };
            checkout.changed.insert(path, content);
        }
        checkout.patch = Some(patch);
        Ok(checkout)
    }

    /// The folder as it is without the patch.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What must be applied to a copy of the folder.
    pub fn patch(&self) -> Option<&Patch> {
        self.patch.as_ref()
    }

    /// The content of a file; `None` where there is none.
    ///
    /// # Errors
    /// A file that is there and cannot be read.
    pub fn read(&self, path: &RelativePath) -> io::Result<Option<Vec<u8>>> {
        if let Some(content) = self.changed.get(path) {
            return Ok(content.clone());
        }
        match fs::read(self.folder.join(path.as_str())) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The regular files, in order; those of [`is_left_out`] are not listed.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn files(&self) -> io::Result<Vec<RelativePath>> {
        let mut files: BTreeSet<RelativePath> = regular_files(&self.folder)?.into_iter().collect();
        for (path, content) in &self.changed {
            match content {
                Some(_) => files.insert(path.clone()),
                None => files.remove(path),
            };
        }
        Ok(files.into_iter().collect())
    }
}

/// Whether a folder or a file of this name belongs to no one's sources: what versions are kept in, caches, environments.
pub fn is_left_out(name: &str) -> bool {
    const NAMES: &[&str] = &[
        ".git",
        ".hg",
        ".svn",
        ".bzr",
        ".jj",
        "CVS",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".tox",
        ".nox",
        ".venv",
        "venv",
        ".eggs",
        "node_modules",
        "site-packages",
        ".coverage",
        ".aci",
    ];
    NAMES.contains(&name) || name.ends_with(".pyc")
}

/// The regular files below `folder` that are not left out, in no order. Links are not followed and not listed; names
/// that are not UTF-8 are not listed.
pub(crate) fn regular_files(folder: &Path) -> io::Result<Vec<RelativePath>> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        // Made by `venv` and `virtualenv` in every environment, whatever it is called.
        if !prefix.is_empty() && folder.join("pyvenv.cfg").exists() {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !is_left_out(name)) else {
                continue;
            };
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push((entry.path(), format!("{path}/")));
            } else if kind.is_file()
                && let Ok(path) = RelativePath::new(path)
            {
                files.push(path);
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelativePath {
        RelativePath::new(text).unwrap()
    }

    #[test]
    fn a_patched_place_reads_as_if_it_were_written() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        for (name, content) in [
            ("m.py", "x = 1\n"),
            ("old.py", "y = 1\n"),
            ("a/b.txt", "text\n"),
            (".git/HEAD", "ref\n"),
            ("env/pyvenv.cfg", "home\n"),
            ("__pycache__/m.pyc", "bytes\n"),
        ] {
            fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
            fs::write(folder.join(name), content).unwrap();
        }
        let patch = "--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n\
            --- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-y = 1\n\
            --- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+z = 1\n";
        let place = Place::Patched {
            folder: folder.to_owned(),
            patch: patch.to_owned(),
        };
        let checkout = Checkout::of(&place).unwrap();
        let files: Vec<String> = checkout
            .files()
            .unwrap()
            .into_iter()
            .map(String::from)
            .collect();
        assert_eq!(files, ["a/b.txt", "m.py", "new.py"]);
        let read = |name: &str| checkout.read(&path(name)).unwrap();
        assert_eq!(read("m.py").unwrap(), b"x = 2\n");
        assert_eq!(read("new.py").unwrap(), b"z = 1\n");
        assert_eq!(read("old.py"), None);
        assert_eq!(read("absent.py"), None);
        assert_eq!(fs::read(folder.join("m.py")).unwrap(), b"x = 1\n");

        fs::write(folder.join("m.py"), "x = 9\n").unwrap();
        let misfit = Checkout::of(&place).unwrap_err();
        assert!(matches!(misfit, CheckoutError::Misfit { .. }), "{misfit}");
    }
}
