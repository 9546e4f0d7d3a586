//! A work tree that is a folder of this machine: files are read and written without following links.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use code::RelativePath;

use crate::SessionError;

/// Commands may be changing the tree at the same time, so each folder of a path is opened from the
/// one before it, and a link in its place is an error.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
}

impl Tree {
    pub(crate) fn read(&self, path: &RelativePath, max: u64) -> Result<Vec<u8>, SessionError> {
        let folder = self.folder(path, false)?;
        let file = inside(&folder, path.file_name());
        let kind = fs::symlink_metadata(&file).map_err(|error| lost(path, &error))?;
        if !kind.is_file() {
            return Err(not_a_file(path, kind.file_type()));
        }
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&file)
            .map_err(|error| lost(path, &error))?;
        let found = file.metadata().map_err(|error| lost(path, &error))?;
        if !found.is_file() {
            return Err(not_a_file(path, found.file_type()));
        }
        let mut content = Vec::new();
        let read = file.take(max.saturating_add(1)).read_to_end(&mut content);
        read.map_err(|error| lost(path, &error))?;
        if content.len() as u64 > max {
            return Err(SessionError::FileTooLarge {
                path: path.clone(),
                bytes: found.len().max(content.len() as u64),
                limit: max,
            });
        }
        Ok(content)
    }

    /// The file appears whole or not at all.
    pub(crate) fn write(
        &self,
        path: &RelativePath,
        content: &[u8],
        mode: u32,
    ) -> Result<(), SessionError> {
        let folder = self.folder(path, true)?;
        let target = inside(&folder, path.file_name());
        if let Ok(found) = fs::symlink_metadata(&target)
            && !found.is_file()
            && !found.is_symlink()
        {
            return Err(not_a_file(path, found.file_type()));
        }
        let temporary = inside(&folder, &format!(".{}.part", fresh_id()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(content)?;
                file.set_permissions(Permissions::from_mode(mode & 0o7777))
            })
            .and_then(|()| fs::rename(&temporary, &target));
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            lost(path, &error)
        })
    }

    pub(crate) fn remove(&self, path: &RelativePath) -> Result<(), SessionError> {
        let folder = self.folder(path, false)?;
        let target = inside(&folder, path.file_name());
        let found = fs::symlink_metadata(&target).map_err(|error| lost(path, &error))?;
        if found.is_dir() {
            return Err(not_a_file(path, found.file_type()));
        }
        fs::remove_file(&target).map_err(|error| lost(path, &error))
    }

    /// Whether `path` is certainly absent. Where links lead is known to the container alone.
    pub(crate) fn lacks(&self, path: &RelativePath) -> bool {
        let mut place = self.root.clone();
        for part in path.parts() {
            place.push(part);
            match fs::symlink_metadata(&place) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return false,
                Err(error) => return error.kind() == io::ErrorKind::NotFound,
            }
        }
        false
    }

    /// The folder that `path` lies in, opened, and made where `make` says so.
    fn folder(&self, path: &RelativePath, make: bool) -> Result<File, SessionError> {
        let mut folder = open_folder(&self.root).map_err(|error| lost(path, &error))?;
        let Some(parent) = path.parent() else {
            return Ok(folder);
        };
        for part in parent.parts() {
            let next = inside(&folder, part);
            if make {
                match DirBuilder::new().mode(0o755).create(&next) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(lost(path, &error));
                    }
                    _ => {}
                }
            }
            folder = open_folder(&next).map_err(|error| {
                match fs::symlink_metadata(&next).map(|found| found.file_type()) {
                    Ok(kind) if kind.is_symlink() || make => not_a_file(path, kind),
                    Ok(_) => SessionError::NotFound { path: path.clone() },
                    Err(_) => lost(path, &error),
                }
            })?;
        }
        Ok(folder)
    }
}

fn open_folder(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(path)
}

/// A name of an opened folder.
fn inside(folder: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

fn lost(path: &RelativePath, error: &io::Error) -> SessionError {
    match error.kind() {
        io::ErrorKind::NotFound => SessionError::NotFound { path: path.clone() },
        _ => SessionError::Lost {
            id: path.to_string(),
            detail: format!("{path}: {error}"),
        },
    }
}

fn not_a_file(path: &RelativePath, kind: fs::FileType) -> SessionError {
    let found = match kind {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_file() => "a file in the place of a folder",
        _ => "a device",
    };
    SessionError::NotAFile {
        path: path.clone(),
        found: found.to_owned(),
    }
}

/// 32 hexadecimal digits that nothing else has.
pub(crate) fn fresh_id() -> String {
    // The kernel's own; it cannot be absent where `/proc` is.
    let id = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
    id.chars().filter(char::is_ascii_hexdigit).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, os::unix::fs::symlink};

    use code::RelativePath;

    use super::Tree;
    use crate::SessionError;

    fn path(text: &str) -> RelativePath {
        RelativePath::new(text).unwrap()
    }

    #[test]
    fn files_are_written_whole_with_their_mode_and_read_back() {
        let place = tempfile::tempdir().unwrap();
        let tree = Tree {
            root: place.path().to_owned(),
        };
        tree.write(&path("a/b/run"), b"\0\xff", 0o755).unwrap();
        let mode = fs::metadata(place.path().join("a/b/run"))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o755);
        assert_eq!(tree.read(&path("a/b/run"), 2).unwrap(), b"\0\xff");
        let too_large = tree.read(&path("a/b/run"), 1).unwrap_err();
        assert!(matches!(
            too_large,
            SessionError::FileTooLarge {
                bytes: 2,
                limit: 1,
                ..
            }
        ));
        assert_eq!(fs::read_dir(place.path().join("a/b")).unwrap().count(), 1);
        tree.remove(&path("a/b/run")).unwrap();
        let absent = tree.read(&path("a/b/run"), 9).unwrap_err();
        assert!(matches!(absent, SessionError::NotFound { .. }));
    }

    #[test]
    fn no_link_is_followed() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        let place = tempfile::tempdir().unwrap();
        let tree = Tree {
            root: place.path().to_owned(),
        };
        symlink(outside.path(), place.path().join("folder")).unwrap();
        symlink(outside.path().join("secret"), place.path().join("file")).unwrap();
        for name in ["file", "folder", "folder/secret"] {
            let refused = tree.read(&path(name), 9).unwrap_err();
            assert!(
                matches!(refused, SessionError::NotAFile { .. }),
                "{name}: {refused}"
            );
        }
        let refused = tree.write(&path("folder/new"), b"x", 0o644).unwrap_err();
        assert!(matches!(refused, SessionError::NotAFile { .. }));
        tree.write(&path("file"), b"own", 0o644).unwrap();
        assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"s");
        assert_eq!(tree.read(&path("file"), 9).unwrap(), b"own");
        tree.remove(&path("folder")).unwrap();
        assert!(outside.path().join("secret").exists());
    }
}
