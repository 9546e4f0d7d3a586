//! What a run has written, where its working folder is no file system of its own.

use std::{
    fs::{self, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::Path,
};

/// What a folder holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

impl Usage {
    const ENDLESS: Self = Self {
        bytes: u64::MAX,
        files: u64::MAX,
    };
}

/// Folders that their owner may not read could hide anything.
fn let_in(folder: &Path) -> io::Result<()> {
    let place = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(folder)?;
    let mode = place.metadata()?.permissions().mode();
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    fs::set_permissions(link, fs::Permissions::from_mode(mode | 0o500))
}

/// Files and folders in as many bytes of a file system of the run's own.
pub(crate) fn most_files(bytes: u64) -> u64 {
    bytes / 4096 + 64
}

/// What is in `folder` and below it while programs write there; more than anything where it is so
/// deep that it cannot be seen. Files that have no name any more are not found.
pub(crate) fn usage(folder: &Path) -> Usage {
    // Bounds the time when somebody makes folders faster than they are counted.
    const MOST: u64 = 1 << 20;
    let mut usage = Usage::default();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let listed = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let _ = let_in(&folder);
                fs::read_dir(&folder)
            }
            listed => listed,
        };
        let entries = match listed {
            Err(error) if error.raw_os_error() == Some(libc::ENAMETOOLONG) => {
                return Usage::ENDLESS;
            }
            listed => listed.into_iter().flatten().flatten(),
        };
        for entry in entries {
            usage.files += 1;
            let Ok(found) = entry.metadata() else {
                continue;
            };
            // In units of 512 bytes, whatever the file system's own.
            usage.bytes += found.blocks() * 512;
            if found.is_dir() {
                waiting.push(entry.path());
            }
        }
        if usage.files > MOST {
            break;
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_counts_and_what_links_lead_to_does_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), vec![1; 100_000]).unwrap();
        fs::File::create(folder.path().join("sparse"))
            .unwrap()
            .set_len(1 << 30)
            .unwrap();
        std::os::unix::fs::symlink("/usr", folder.path().join("link")).unwrap();
        let found = usage(folder.path());
        assert_eq!(found.files, 4);
        assert!((100_000..300_000).contains(&found.bytes), "{found:?}");
    }
}
