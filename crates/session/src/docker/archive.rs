//! Archives as engines take and give them.

use std::{
    ffi::OsString,
    fs, io,
    io::{Read, Write},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use tar::{Builder, EntryType, Header};
use tokio::sync::mpsc::Sender;

/// Bytes handed on at once.
const CHUNK: usize = 256 << 10;

/// An archive with `folders`, outer ones first, and then one file, all owned by `user`.
pub(super) fn of_file(
    folders: &[String],
    path: &str,
    content: &[u8],
    mode: u32,
    user: (u64, u64),
) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::with_capacity(content.len() + 4096));
    for folder in folders {
        let mut header = header(EntryType::Directory, 0o755, 0, user);
        archive.append_data(&mut header, format!("{folder}/"), io::empty())?;
    }
    let mut header = header(
        EntryType::Regular,
        mode & 0o7777,
        content.len() as u64,
        user,
    );
    archive.append_data(&mut header, path, content)?;
    archive.into_inner()
}

/// The content of the only file of an archive.
pub(super) fn only_file(archive: &[u8]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Archive::new(archive);
    let invalid = |detail: String| io::Error::new(io::ErrorKind::InvalidData, detail);
    let mut entries = archive.entries()?;
    let entry = entries.next();
    let mut entry = entry.ok_or_else(|| invalid("the archive is empty".to_owned()))??;
    let kind = entry.header().entry_type();
    if !kind.is_file() {
        return Err(invalid(format!("the archive holds a {kind:?}")));
    }
    let mut content = Vec::new();
    entry.read_to_end(&mut content)?;
    Ok(content)
}

/// Sends an archive of everything below `folder`, as `name/...` owned by `user`: folders, regular
/// files and links as such, with their permissions and times. Without a folder, `name` is an empty
/// one. An error ends it.
pub(super) fn of_tree(
    folder: Option<&Path>,
    name: &str,
    user: (u64, u64),
    sender: &Sender<io::Result<Vec<u8>>>,
) {
    let out = Chunks {
        sender,
        chunk: Vec::with_capacity(CHUNK),
    };
    let mut archive = Builder::new(out);
    let added = match folder {
        Some(folder) => add_tree(&mut archive, folder, name, user),
        None => {
            let mut header = header(EntryType::Directory, 0o755, 0, user);
            archive.append_data(&mut header, format!("{name}/"), io::empty())
        }
    };
    let written = added
        .and_then(|()| archive.into_inner())
        .and_then(|mut out| out.flush());
    if let Err(error) = written {
        // Nobody listens any more when this fails as well.
        let _ = sender.blocking_send(Err(error));
    }
}

fn add_tree(
    archive: &mut Builder<Chunks<'_>>,
    folder: &Path,
    name: &str,
    user: (u64, u64),
) -> io::Result<()> {
    let mut pending = vec![(folder.to_owned(), PathBuf::from(name))];
    while let Some((source, target)) = pending.pop() {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", source.display()))
        };
        // The top may be reached through a link; nothing below is.
        let found = match source == folder {
            true => fs::metadata(&source),
            false => fs::symlink_metadata(&source),
        };
        let found = found.map_err(named)?;
        let kind = found.file_type();
        let (mode, time) = (found.mode() & 0o7777, found.mtime().max(0).cast_unsigned());
        if kind.is_dir() {
            let mut header = header(EntryType::Directory, mode, 0, user);
            header.set_mtime(time);
            archive.append_data(&mut header, target.join(""), io::empty())?;
            let entries = fs::read_dir(&source).map_err(named)?;
            let mut names = entries
                .map(|entry| Ok(entry?.file_name()))
                .collect::<io::Result<Vec<OsString>>>()
                .map_err(named)?;
            names.sort_by(|a, b| b.as_bytes().cmp(a.as_bytes()));
            let inner = names
                .iter()
                .map(|name| (source.join(name), target.join(name)));
            pending.extend(inner);
        } else if kind.is_symlink() {
            let mut header = header(EntryType::Symlink, 0o777, 0, user);
            header.set_mtime(time);
            let aim = fs::read_link(&source).map_err(named)?;
            archive.append_link(&mut header, &target, aim)?;
        } else if kind.is_file() {
            let mut header = header(EntryType::Regular, mode, found.len(), user);
            header.set_mtime(time);
            let file = fs::File::open(&source).map_err(named)?;
            archive.append_data(&mut header, &target, file.take(found.len()))?;
        } else {
            let detail = format!(
                "{} is neither a file, a folder nor a link",
                source.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, detail));
        }
    }
    Ok(())
}

fn header(kind: EntryType, mode: u32, size: u64, user: (u64, u64)) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(user.0);
    header.set_gid(user.1);
    header.set_mtime(0);
    header
}

/// Sends what is written in pieces.
struct Chunks<'a> {
    sender: &'a Sender<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
}

impl Write for Chunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        let sent = self.sender.blocking_send(Ok(chunk));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_comes_back_from_its_archive() {
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(200));
        for path in ["a", "b/c", &long] {
            let archive = of_file(&["b".to_owned()][..0], path, b"content", 0o640, (7, 8)).unwrap();
            assert_eq!(only_file(&archive).unwrap(), b"content", "{path}");
        }
        let with_folder = of_file(&["b".to_owned()], "b/c", b"", 0o644, (0, 0)).unwrap();
        let refused = only_file(&with_folder).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        assert!(only_file(&[0; 1024]).is_err());
    }

    #[test]
    fn a_tree_is_archived_as_it_is() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path();
        fs::create_dir_all(top.join("sub/empty")).unwrap();
        fs::write(top.join("sub/file"), "content").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", top.join("link")).unwrap();
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1 << 10);
        of_tree(Some(top), "testbed", (1, 2), &sender);
        drop(sender);
        let mut bytes = Vec::new();
        while let Some(chunk) = receiver.blocking_recv() {
            bytes.extend(chunk.unwrap());
        }
        let mut archive = tar::Archive::new(&bytes[..]);
        let found: Vec<(String, EntryType, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry.path().unwrap().display().to_string();
                let header = entry.header();
                (name, header.entry_type(), header.uid().unwrap())
            })
            .collect();
        let expected = [
            ("testbed/", EntryType::Directory),
            ("testbed/link", EntryType::Symlink),
            ("testbed/sub/", EntryType::Directory),
            ("testbed/sub/empty/", EntryType::Directory),
            ("testbed/sub/file", EntryType::Regular),
        ];
        let expected = expected.map(|(name, kind)| (name.to_owned(), kind, 1));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_file_is_refused_by_name() {
        let scratch = tempfile::tempdir().unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(scratch.path().join("s")).unwrap();
        let (sender, mut receiver) = tokio::sync::mpsc::channel(16);
        of_tree(Some(scratch.path()), "testbed", (0, 0), &sender);
        drop(sender);
        let mut last = None;
        while let Some(chunk) = receiver.blocking_recv() {
            last = Some(chunk);
        }
        let error = last.unwrap().unwrap_err().to_string();
        assert!(error.contains("/s is neither"), "{error}");
    }
}
