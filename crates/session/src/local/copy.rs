//! Copies of folders, with permissions, times and links, owned by whom commands are.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink},
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};

/// Copies the content of `source` into the empty folder `target`, and its permissions. No link is
/// followed; sockets and devices are left out. Nothing may write in either meanwhile.
///
/// # Errors
/// Of kind `InvalidFilename` where a tree is too deep for its paths.
pub(super) fn copy_tree(source: &Path, target: &Path, owner: Option<u32>) -> io::Result<()> {
    let mut folders = vec![PathBuf::new()];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(source.join(&folder))? {
            let entry = entry?;
            let below = folder.join(entry.file_name());
            let (from, to) = (source.join(&below), target.join(&below));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                fs::create_dir(&to)?;
                folders.push(below);
            } else if kind.is_symlink() {
                symlink(fs::read_link(&from)?, &to)?;
                finish(&from, &to, owner)?;
            } else if kind.is_file() {
                copy_file(&from, &to)?;
                finish(&from, &to, owner)?;
            } else if std::os::unix::fs::FileTypeExt::is_fifo(&kind) {
                mknodat(CWD, &to, FileType::Fifo, Mode::from(0o600), 0)?;
                finish(&from, &to, owner)?;
            }
        }
    }
    // Last, as they may be closed to their owner, and are changed by what is put into them.
    for folder in folders.iter().rev() {
        finish(&source.join(folder), &target.join(folder), owner)?;
    }
    Ok(())
}

/// Whether everything in `folder` belongs to `user` and `group`.
pub(super) fn all_owned_by(folder: &Path, user: u32, group: u32) -> io::Result<bool> {
    let owned = |found: &fs::Metadata| found.uid() == user && found.gid() == group;
    if !owned(&fs::metadata(folder)?) {
        return Ok(false);
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let found = entry.metadata()?;
            if !owned(&found) {
                return Ok(false);
            }
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(true)
}

/// Holes stay holes, where the file system tells them.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let found = source.metadata()?;
    let mut target = File::options().write(true).create_new(true).open(to)?;
    if found.blocks() * 512 >= found.len() {
        io::copy(&mut source, &mut target)?;
        return Ok(());
    }
    copy_with_holes(&source, &target, found.len())
}

fn copy_with_holes(source: &File, target: &File, length: u64) -> io::Result<()> {
    use rustix::{
        fs::{SeekFrom, seek},
        io::Errno,
    };
    use std::os::unix::fs::FileExt;
    target.set_len(length)?;
    let mut buffer = vec![0; 256 << 10];
    let mut at = 0;
    loop {
        at = match seek(source, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let end = seek(source, SeekFrom::Hole(at))?;
        while at < end {
            let most = (end - at).min(buffer.len() as u64) as usize;
            let n = source.read_at(&mut buffer[..most], at)?;
            if n == 0 {
                return Ok(());
            }
            target.write_all_at(&buffer[..n], at)?;
            at += n as u64;
        }
    }
}

fn finish(from: &Path, to: &Path, owner: Option<u32>) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if let Some(owner) = owner {
        lchown(to, Some(owner), Some(owner))?;
    }
    if !found.is_symlink() {
        fs::set_permissions(to, fs::Permissions::from_mode(found.mode() & 0o777))?;
    }
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(found.atime(), found.atime_nsec()),
        last_modification: time(found.mtime(), found.mtime_nsec()),
    };
    utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}
