//! Fates of bugs, written down as they become known, so that work that was interrupted goes on.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::measure::Fate;

/// A file of fates, a line each, beside the tasks that are being made.
#[derive(Debug)]
pub(super) struct Notes {
    path: PathBuf,
    file: File,
    known: HashMap<String, Fate>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    /// Of all that fates depend on.
    digest: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    fate: Fate,
}

impl Notes {
    /// Reads what is known and goes on behind it; begins anew where the notes are of something else. A line that was
    /// not written to its end is dropped.
    pub(super) fn open(path: &Path, digest: &str) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let mut whole = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        let mut kept = 0;
        let mut known = HashMap::new();
        let head = whole.next();
        let is_same = head
            .and_then(|line| serde_json::from_str::<Head>(line).ok())
            .is_some_and(|head| head.digest == digest);
        if is_same {
            kept = head.map_or(0, str::len);
            for line in whole {
                let Ok(found) = serde_json::from_str::<Line>(line) else {
                    break;
                };
                kept += line.len();
                known.insert(found.key, found.fate);
            }
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(kept as u64)?;
        if kept == 0 {
            let head = Head {
                digest: digest.to_owned(),
            };
            file.write_all((serde_json::to_string(&head)? + "\n").as_bytes())?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            known,
        })
    }

    pub(super) fn fate(&self, key: &str) -> Option<&Fate> {
        self.known.get(key)
    }

    /// Fates that are known.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    pub(super) fn write(&mut self, key: &str, fate: &Fate) -> io::Result<()> {
        let line = Line {
            key: key.to_owned(),
            fate: fate.clone(),
        };
        self.file
            .write_all((serde_json::to_string(&line)? + "\n").as_bytes())?;
        self.known.insert(line.key, line.fate);
        Ok(())
    }

    /// Removes the file: its work is done.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_outlive_whoever_wrote_them_and_a_torn_line() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("notes");
        let mut notes = Notes::open(&path, "one").unwrap();
        notes.write("a", &Fate::Unnoticed).unwrap();
        notes.write("b", &Fate::TimedOut).unwrap();
        drop(notes);
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"key\":\"c\",\"fa");
        fs::write(&path, text).unwrap();
        let mut notes = Notes::open(&path, "one").unwrap();
        assert_eq!(notes.fate("b"), Some(&Fate::TimedOut));
        assert_eq!(notes.fate("c"), None);
        notes.write("c", &Fate::Crashed).unwrap();
        drop(notes);
        assert_eq!(
            Notes::open(&path, "one").unwrap().fate("c"),
            Some(&Fate::Crashed)
        );
        let other = Notes::open(&path, "two").unwrap();
        assert_eq!(other.fate("a"), None);
        other.remove().unwrap();
        assert!(!path.exists());
    }
}
