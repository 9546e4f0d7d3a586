//! Files of a job: written before anything runs, read back when everything has ended.

use std::{
    collections::HashSet,
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
};

use crate::{FetchedFile, InputFile, NotFetched, disk::Usage, sys};

/// Bytes that one run may have fetched, all files together.
pub const MAX_FETCHED: u64 = 64 << 20;

/// Writes `files` below `home`, which is empty: there is no link that could lead elsewhere.
pub(crate) fn write(home: &Path, files: &[InputFile]) -> io::Result<()> {
    let mut made: HashSet<PathBuf> = HashSet::new();
    for file in files {
        let path = home.join(&file.path);
        if let Some(folder) = path.parent()
            && folder != home
            && !made.contains(folder)
        {
            fs::create_dir_all(folder)?;
            made.insert(folder.to_owned());
        }
        let mode = if file.executable { 0o755 } else { 0o644 };
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)?
            .write_all(&file.contents)?;
    }
    Ok(())
}

/// What `files` take up in a file system of pages, folders included.
pub(crate) fn space(files: &[InputFile]) -> Usage {
    let page = sys::page_size();
    let bytes = files
        .iter()
        .map(|file| (file.contents.len() as u64).div_ceil(page) * page)
        .sum();
    let mut folders = HashSet::new();
    for file in files {
        let mut folder = Path::new(&file.path).parent();
        while let Some(path) = folder
            && folders.insert(path)
        {
            folder = path.parent();
        }
    }
    Usage {
        bytes,
        files: (files.len() + folders.len()) as u64,
    }
}

/// Opens the working folder, so that it can be read when its namespaces are gone.
pub(crate) fn open_home(home: &Path) -> io::Result<OwnedFd> {
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(home)?;
    Ok(folder.into())
}

/// Reads `paths` below `home`. Nothing may write there any more.
pub(crate) fn fetch(home: BorrowedFd<'_>, paths: &[String]) -> Vec<FetchedFile> {
    let mut left = MAX_FETCHED;
    let mut fetched = Vec::with_capacity(paths.len());
    for path in paths {
        let contents = fetch_one(home, path, left);
        if let Ok(contents) = &contents {
            left -= contents.len() as u64;
        }
        fetched.push(FetchedFile {
            path: path.clone(),
            contents,
        });
    }
    fetched
}

fn fetch_one(home: BorrowedFd<'_>, path: &str, left: u64) -> Result<Vec<u8>, NotFetched> {
    let unreadable = |error: io::Error| NotFetched::Unreadable {
        detail: error.to_string(),
    };
    let name = CString::new(path).map_err(|error| unreadable(error.into()))?;
    let opened = sys::open_beneath(home, &name).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => NotFetched::Missing,
        // A link, a way out, a socket, a device that is not there.
        Some(libc::ELOOP | libc::EXDEV | libc::ENXIO | libc::ENODEV) => NotFetched::NotRegular,
        _ => unreadable(error),
    })?;
    let file = File::from(opened);
    let found = file.metadata().map_err(unreadable)?;
    if !found.is_file() {
        return Err(NotFetched::NotRegular);
    }
    if found.len() > left {
        return Err(NotFetched::TooLarge { bytes: found.len() });
    }
    let mut contents = Vec::with_capacity(found.len() as usize);
    file.take(found.len())
        .read_to_end(&mut contents)
        .map_err(unreadable)?;
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use std::os::{fd::AsFd, unix::fs::symlink};

    use super::*;

    fn input(path: &str, contents: &[u8]) -> InputFile {
        InputFile {
            path: path.to_owned(),
            contents: contents.to_owned(),
            executable: false,
        }
    }

    #[test]
    fn what_is_written_can_be_fetched_and_nothing_else() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let files = [
            input("a", b"\xff\0"),
            input("b/c/d", b""),
            input("./b/e", b"e"),
        ];
        write(home, &files).unwrap();
        symlink(outside.path().join("secret"), home.join("link")).unwrap();
        symlink(outside.path(), home.join("folder")).unwrap();
        symlink("a", home.join("inside")).unwrap();
        let sparse = File::create(home.join("sparse")).unwrap();
        sparse.set_len(MAX_FETCHED + 1).unwrap();
        let fifo = CString::new(home.join("fifo").to_str().unwrap()).unwrap();
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        let open = open_home(home).unwrap();
        let check = |path: &str, expected: Result<&[u8], NotFetched>| {
            let fetched = fetch(open.as_fd(), &[path.to_owned()]);
            assert_eq!(fetched[0].contents, expected.map(<[u8]>::to_vec), "{path}");
        };
        check("a", Ok(b"\xff\0"));
        check("./b/c/d", Ok(b""));
        check("b/e", Ok(b"e"));
        check("none", Err(NotFetched::Missing));
        check("a/none", Err(NotFetched::Missing));
        for path in [
            "link",
            "folder/secret",
            "inside",
            "fifo",
            "b",
            "../x",
            "/etc/passwd",
        ] {
            check(path, Err(NotFetched::NotRegular));
        }
        let bytes = MAX_FETCHED + 1;
        check("sparse", Err(NotFetched::TooLarge { bytes }));
    }

    #[test]
    fn the_budget_is_shared() {
        let folder = tempfile::tempdir().unwrap();
        let large = File::create(folder.path().join("large")).unwrap();
        large.set_len(MAX_FETCHED - 1).unwrap();
        fs::write(folder.path().join("small"), "xy").unwrap();
        let open = open_home(folder.path()).unwrap();
        let paths = ["large", "small"].map(str::to_owned);
        let fetched = fetch(open.as_fd(), &paths);
        assert!(fetched[0].contents.is_ok());
        assert_eq!(fetched[1].contents, Err(NotFetched::TooLarge { bytes: 2 }));
    }

    #[test]
    fn space_counts_pages_and_folders() {
        let page = sys::page_size();
        let files = [
            input("a/b/c", b"x"),
            input("a/b/d", b""),
            input("e", &[0; 5000]),
        ];
        // `a/b`, `a` and the working folder itself.
        let expected = Usage {
            bytes: 3 * page,
            files: 3 + 3,
        };
        assert_eq!(space(&files), expected);
        assert_eq!(space(&[]), Usage::default());
    }
}
