//! Removes folders whatever foreign programs have made of them: trees of any depth, folders that may
//! not be entered. Follows no link.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    path::Path,
    ptr,
};

use crate::sys;

/// Removes everything in the folder at `path`, which no living program may write in.
pub(crate) fn empty(path: &Path) -> io::Result<()> {
    let mut folder = open(libc::AT_FDCWD, &sys::c_path(path)?)?;
    // The folders on the way down, each with those in it that are still to be removed. Only one is
    // open at a time: trees may be deeper than there are descriptors.
    let mut above: Vec<(CString, Vec<CString>)> = Vec::new();
    let mut waiting = remove_files(&folder)?;
    loop {
        if let Some(name) = waiting.pop() {
            folder = open(folder.as_raw_fd(), &name)?;
            above.push((
                name,
                std::mem::replace(&mut waiting, remove_files(&folder)?),
            ));
        } else if let Some((name, rest)) = above.pop() {
            folder = open(folder.as_raw_fd(), c"..")?;
            unlink(&folder, &name, libc::AT_REMOVEDIR)?;
            waiting = rest;
        } else {
            return Ok(());
        }
    }
}

/// As [`empty`], and the folder itself.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    empty(path)?;
    std::fs::remove_dir(path)
}

/// Removes what is no folder, and names what is.
fn remove_files(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut folders = Vec::new();
    for (name, is_folder) in entries(folder)? {
        if is_folder {
            // Its owner may have shut itself out.
            // SAFETY: the name is NUL-terminated and that of a folder.
            unsafe { libc::fchmodat(folder.as_raw_fd(), name.as_ptr(), 0o700, 0) };
            folders.push(name);
        } else {
            unlink(folder, &name, 0)?;
        }
    }
    Ok(folders)
}

fn open(parent: RawFd, name: &CStr) -> io::Result<OwnedFd> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name is NUL-terminated; the descriptor is ours from here on.
    unsafe {
        let fd = sys::check(libc::openat(parent, name.as_ptr(), flags))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn unlink(folder: &OwnedFd, name: &CStr, flags: i32) -> io::Result<()> {
    // SAFETY: the name is NUL-terminated.
    sys::check(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), flags) })?;
    Ok(())
}

/// Names, and whether each is a folder.
fn entries(folder: &OwnedFd) -> io::Result<Vec<(CString, bool)>> {
    let mut found = Vec::new();
    // SAFETY: the stream owns a copy of the descriptor and is closed below; an entry is read before
    // the next one is asked for.
    unsafe {
        let copy = sys::check(libc::fcntl(folder.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0))?;
        let stream = libc::fdopendir(copy);
        if stream.is_null() {
            let error = io::Error::last_os_error();
            libc::close(copy);
            return Err(error);
        }
        libc::rewinddir(stream);
        loop {
            let entry = libc::readdir(stream);
            if entry.is_null() {
                break;
            }
            let name = CStr::from_ptr(ptr::addr_of!((*entry).d_name).cast()).to_owned();
            if name.as_c_str() == c"." || name.as_c_str() == c".." {
                continue;
            }
            let is_folder = match (*entry).d_type {
                libc::DT_UNKNOWN => is_folder(copy, &name),
                kind => kind == libc::DT_DIR,
            };
            found.push((name, is_folder));
        }
        libc::closedir(stream);
    }
    Ok(found)
}

fn is_folder(parent: RawFd, name: &CStr) -> bool {
    // SAFETY: the structure is filled by the call, or not read.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        libc::fstatat(parent, name.as_ptr(), &raw mut found, flags) == 0
            && found.st_mode & libc::S_IFMT == libc::S_IFDIR
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn any_tree_is_removed_and_no_link_followed() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir(&root).unwrap();
        for i in 0..200 {
            let folder = root.join(format!("{i}"));
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("file"), "x").unwrap();
            std::os::unix::fs::symlink(outside.path(), folder.join("link")).unwrap();
        }
        fs::set_permissions(root.join("7"), fs::Permissions::from_mode(0o0)).unwrap();
        // Deeper than descriptors and paths reach.
        let mut folder = open(libc::AT_FDCWD, &sys::c_path(&root).unwrap()).unwrap();
        for _ in 0..3000 {
            let name = c"a-name-of-some-length";
            unsafe { assert_eq!(libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), 0o700), 0) };
            folder = open(folder.as_raw_fd(), name).unwrap();
        }
        empty(&root).unwrap();
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
        remove(&root).unwrap();
        assert!(!root.exists() && outside.path().join("kept").exists());
        std::os::unix::fs::symlink(outside.path(), &root).unwrap();
        assert!(remove(&root).is_err(), "a link is no folder");
        assert!(outside.path().join("kept").exists());
    }
}
