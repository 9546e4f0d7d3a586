//! Changes to files as models write them: read in any of four forms, applied in full or not at all. Pure.
//!
//! The forms are unified diffs (git's and plain ones, also with bare `@@` lines and wrong counts),
//! `*** Begin Patch` envelopes, `<<<<<<< SEARCH` blocks and lists of line edits (spec of the repair
//! study, section 4.2). [`Patch::parse`] tells them apart, [`Patch::paths`] says which files must be
//! read, [`Patch::apply`] makes the new files. Everything works on bytes: a file in another encoding
//! keeps it, and lines keep their ends.
//!
//! A hunk lands where its lines are found: at its stated line, else at the only place in the file
//! that has them, compared ever less strictly (see [`Rung`]). Two places or none are a [`Rejection`]
//! in words for whoever wrote the patch. A patch reaches no file that it does not name, nothing
//! outside the root and nothing of `.git`.

mod apply;
mod blocks;
mod diff;
mod edits;
mod envelope;
mod header;
mod hunk;
mod lines;
mod locate;
mod reject;
mod target;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::RelativePath;
use hunk::FileDiff;

pub use edits::LineEdit;
pub use reject::Rejection;
pub use written::{LineChange, line_changes, unified_diff};

/// A patch that was understood; nothing is known yet of the files it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    changes: Vec<Change>,
}

/// Bytes in the longest patch.
pub const MAX_PATCH: usize = 16 << 20;
/// Files that one patch may change.
pub const MAX_FILES: usize = 1_000;
/// Hunks, blocks and edits in one patch.
pub const MAX_HUNKS: usize = 20_000;
/// Bytes in the largest file that is patched, and of all that a patch writes together.
pub const MAX_CONTENT: usize = 64 << 20;

/// What a patch made of the files it names.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// At most one per path, in the order of paths. Empty when nothing differs.
    pub changes: Vec<FileChange>,
    pub report: PatchReport,
}

/// One file to write or to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    Write {
        path: RelativePath,
        content: Vec<u8>,
        mode: Mode,
    },
    Remove {
        path: RelativePath,
    },
}

/// The permissions of a written file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Those that this file had before the patch.
    Of(RelativePath),
    /// `0o644` or `0o755`.
    Bits(u32),
}

/// Where every hunk landed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchReport {
    pub hunks: Vec<HunkReport>,
}

/// Where one hunk, block or edit landed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HunkReport {
    pub path: RelativePath,
    /// Among those of its file section, from 1.
    pub number: usize,
    /// The first line that it matched or replaced, from 1, in the file as the section found it.
    pub line: usize,
    pub rung: Rung,
    /// Lines between the stated and the real place; `None` when no line was stated.
    pub offset: Option<i64>,
    /// The header's line counts did not fit the body and were ignored.
    pub counts_ignored: bool,
}

/// How strictly a hunk was compared with the file: the first rung that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Byte for byte.
    Exact,
    /// Blanks and line ends at the ends of lines apart.
    LineEnds,
    /// Indentation apart too, when all lines are off by the same; added lines are moved with them.
    Indentation,
    /// Typographic quotes, dashes and spaces apart too.
    Punctuation,
    /// As [`Rung::LineEnds`], without the outermost line of context on either side.
    OuterContext,
}

#[derive(Clone, Debug, PartialEq)]
enum Change {
    Diff(FileDiff),
    Edits {
        path: RelativePath,
        edits: Vec<LineEdit>,
    },
}

impl Patch {
    /// Reads a patch in any of the forms; text around it is passed over. Only the text is judged.
    pub fn parse(text: &[u8]) -> Result<Self, Rejection> {
        reject::bounded("the patch's bytes", text.len(), MAX_PATCH)?;
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let changes = if let Some(edits) = edits::parse(text)? {
            return Self::from_edits(edits);
        } else if let Some(diffs) = envelope::parse(text)? {
            diffs
        } else if let Some(diffs) = blocks::parse(text)? {
            diffs
        } else {
            diff::parse(text)?
        };
        Self::new(changes.into_iter().map(Change::Diff).collect())
    }

    /// A patch of line edits. Line numbers are those of the files as they are before any of them.
    pub fn from_edits(edits: Vec<LineEdit>) -> Result<Self, Rejection> {
        let mut files: BTreeMap<RelativePath, Vec<LineEdit>> = BTreeMap::new();
        for edit in edits {
            let path = target::path(edit.path.as_str())?;
            files.entry(path).or_default().push(edit);
        }
        let changes = files.into_iter();
        Self::new(
            changes
                .map(|(path, edits)| Change::Edits { path, edits })
                .collect(),
        )
    }

    /// The files that [`Patch::apply`] must be given, whether they exist or not.
    pub fn paths(&self) -> BTreeSet<RelativePath> {
        let named = |change: &Change| match change {
            Change::Diff(diff) => [diff.old.clone(), diff.new.clone()],
            Change::Edits { path, .. } => [Some(path.clone()), None],
        };
        self.changes.iter().flat_map(named).flatten().collect()
    }

    /// Finds what is wrong with the patch whatever its files hold: ranges of edits that are none or overlap, and hunks
    /// that have other lines than their `@@` lines say. [`Patch::apply`] rejects the former too; the latter, which
    /// `git apply` refuses, it passes over.
    ///
    /// # Errors
    /// The first such thing.
    pub fn check(&self) -> Result<(), Rejection> {
        for change in &self.changes {
            match change {
                Change::Edits { path, edits } => edits::check(path, edits)?,
                Change::Diff(diff) => diff.check_counts()?,
            }
        }
        Ok(())
    }

    /// Applies the patch to `files`: the content of each of [`Patch::paths`], `None` for one that
    /// does not exist. All of the patch fits, or nothing is changed.
    pub fn apply(
        &self,
        files: &BTreeMap<RelativePath, Option<Vec<u8>>>,
    ) -> Result<Applied, Rejection> {
        apply::apply(&self.changes, files)
    }

    fn new(changes: Vec<Change>) -> Result<Self, Rejection> {
        if changes.is_empty() {
            return Err(Rejection::Empty);
        }
        let hunks = changes.iter().map(|change| match change {
            Change::Diff(diff) => diff.hunks.len(),
            Change::Edits { edits, .. } => edits.len(),
        });
        reject::bounded("hunks", hunks.sum(), MAX_HUNKS)?;
        let patch = Self { changes };
        reject::bounded("files", patch.paths().len(), MAX_FILES)?;
        Ok(patch)
    }
}
