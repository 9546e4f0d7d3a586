//! The append-only file of framed records underneath `journal.log`.
//!
//! The file is readable text. After the first line, every record is
//! `LENGTH DIGEST CHECK PAYLOAD\n`: the payload's length in bytes (8 hex digits), the first 8 bytes of
//! its BLAKE3 (16 digits), and a check of these two together with the record's offset (8 digits).
//! The check is what tells a record that was cut short (its header holds, its payload ends early)
//! from one that was damaged, wherever a bit flips: committed data is never mistaken for a torn tail.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::error::{Error, IoContext, Result};

pub(crate) const FIRST_LINE: &str = "etude journal 1\n";

/// `LENGTH DIGEST CHECK `, spaces included.
const HEADER_BYTES: usize = 8 + 1 + 16 + 1 + 8 + 1;

/// An open log that can be appended to.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    end: u64,
    poisoned: bool,
}

/// The committed prefix of a log file.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// Offset and payload of each record.
    pub(crate) records: Vec<(u64, Vec<u8>)>,
    /// Bytes up to which the file is whole.
    pub(crate) committed: u64,
    /// Bytes after that: a record that was being written when the process died.
    pub(crate) torn: u64,
}

impl Log {
    /// Writes the first line into an empty file.
    pub(crate) fn begin(mut file: File, path: &Path) -> Result<Self> {
        file.write_all(FIRST_LINE.as_bytes())
            .at(path, "write the first line")?;
        file.sync_all().at(path, "sync")?;
        Ok(Self {
            file,
            path: path.to_owned(),
            end: FIRST_LINE.len() as u64,
            poisoned: false,
        })
    }

    /// Reads a file that was opened for reading and writing, and cuts its torn tail.
    pub(crate) fn resume(file: File, path: &Path) -> Result<(Self, Scanned)> {
        Self::resume_if(file, path, |scanned| scanned.require_beginning(path))
    }

    /// As [`Log::resume`], of a log that may hold nothing yet.
    pub(crate) fn reopen(file: File, path: &Path) -> Result<(Self, Scanned)> {
        Self::resume_if(file, path, |_| Ok(()))
    }

    fn resume_if(
        mut file: File,
        path: &Path,
        sound: impl FnOnce(&Scanned) -> Result<()>,
    ) -> Result<(Self, Scanned)> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).at(path, "read")?;
        let scanned = scan(&bytes, path)?;
        sound(&scanned)?;
        if scanned.committed == 0 {
            // Not even the first line is whole.
            file.set_len(0).at(path, "cut the torn tail")?;
            file.seek(SeekFrom::Start(0)).at(path, "seek")?;
            return Ok((Self::begin(file, path)?, scanned));
        }
        if scanned.torn > 0 {
            file.set_len(scanned.committed)
                .at(path, "cut the torn tail")?;
            file.sync_all().at(path, "sync")?;
        }
        file.seek(SeekFrom::Start(scanned.committed))
            .at(path, "seek")?;
        let log = Self {
            file,
            path: path.to_owned(),
            end: scanned.committed,
            poisoned: false,
        };
        Ok((log, scanned))
    }

    /// Appends one record and returns once it is on disk.
    ///
    /// # Errors
    /// After a failed append every later one is refused: what lies at the end of the file is
    /// unknown until the log is opened again.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.add(payload, true)
    }

    /// Appends one record and returns once the system has it, and so the next process, whatever becomes of this one;
    /// the disk has it too with the next record that is appended.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub(crate) fn append_unsynced(&mut self, payload: &[u8]) -> Result<()> {
        self.add(payload, false)
    }

    fn add(&mut self, payload: &[u8], sync: bool) -> Result<()> {
        if self.poisoned {
            return Err(Error::Poisoned {
                path: self.path.clone(),
            });
        }
        let framed = frame(self.end, payload);
        self.poisoned = true;
        self.file
            .write_all(&framed)
            .at(&self.path, "append a record")?;
        if sync {
            self.file.sync_data().at(&self.path, "sync a record")?;
        }
        self.poisoned = false;
        self.end += framed.len() as u64;
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Closing alone would leave the run locked for as long as a process forked meanwhile holds
        // a copy of the descriptor. A failure leaves just that.
        let _ = self.file.unlock();
    }
}

/// Finds the committed records of a whole file's bytes.
///
/// # Errors
/// [`Error::Format`] for another first line, [`Error::Corrupt`] for a damaged record. A file that
/// merely ends early, at any byte, is no error.
pub(crate) fn scan(bytes: &[u8], path: &Path) -> Result<Scanned> {
    if !bytes.starts_with(FIRST_LINE.as_bytes()) {
        if FIRST_LINE.as_bytes().starts_with(bytes) {
            return Ok(Scanned {
                records: Vec::new(),
                committed: 0,
                torn: bytes.len() as u64,
            });
        }
        return Err(Error::Format {
            path: path.to_owned(),
            expected: FIRST_LINE.trim_end(),
        });
    }
    // A power cut can leave a file longer than what was written to it: the tail then reads as zeros.
    // A record ends in a newline, so no zero at the end is committed data.
    let written = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    let mut records = Vec::new();
    let mut offset = FIRST_LINE.len();
    while let Some(record) = next(&bytes[..written], offset).map_err(|found| Error::Corrupt {
        path: path.to_owned(),
        record: records.len(),
        offset: offset as u64,
        found: found.to_owned(),
    })? {
        records.push((offset as u64, record.to_vec()));
        offset += HEADER_BYTES + record.len() + 1;
    }
    Ok(Scanned {
        records,
        committed: offset as u64,
        torn: (bytes.len() - offset) as u64,
    })
}

impl Scanned {
    /// A run appears together with its first record, so a log without one was cut or emptied by
    /// somebody else, and nothing of the run may be touched on its word.
    pub(crate) fn require_beginning(&self, path: &Path) -> Result<()> {
        if self.records.is_empty() {
            return Err(Error::NoBeginning {
                path: path.to_owned(),
            });
        }
        Ok(())
    }
}

/// The payload at `offset`; `None` when the file ends before the record does.
fn next(bytes: &[u8], offset: usize) -> std::result::Result<Option<&[u8]>, &'static str> {
    let Some((header, rest)) = bytes[offset..].split_at_checked(HEADER_BYTES) else {
        return Ok(None);
    };
    let field = |from: usize, digits: usize| {
        std::str::from_utf8(&header[from..from + digits])
            .ok()
            .and_then(|hex| u64::from_str_radix(hex, 16).ok())
            .ok_or("its header is not readable")
    };
    let (length, digest) = (field(0, 8)?, field(9, 16)?);
    // Written anew and compared byte by byte, so that no other spelling of the numbers passes.
    if header != header_of(offset as u64, length, digest).as_bytes() {
        return Err("its header does not match its own check");
    }
    let length = length as usize;
    if rest.len() <= length {
        return Ok(None);
    }
    let (payload, newline) = (&rest[..length], rest[length]);
    if newline != b'\n' || digest_of(payload) != digest {
        return Err("its content does not match its digest");
    }
    Ok(Some(payload))
}

fn frame(offset: u64, payload: &[u8]) -> Vec<u8> {
    let header = header_of(offset, payload.len() as u64, digest_of(payload));
    [header.as_bytes(), payload, b"\n"].concat()
}

fn header_of(offset: u64, length: u64, digest: u64) -> String {
    let mut hasher = blake3::Hasher::new();
    for number in [offset, length, digest] {
        hasher.update(&number.to_le_bytes());
    }
    let check = leading(hasher.finalize()) >> 32;
    format!("{length:08x} {digest:016x} {check:08x} ")
}

fn digest_of(payload: &[u8]) -> u64 {
    leading(blake3::hash(payload))
}

fn leading(hash: blake3::Hash) -> u64 {
    hash.as_bytes()[..8]
        .iter()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}
