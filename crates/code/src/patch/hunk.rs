//! What every textual form of a patch is read into: files and hunks.

use crate::RelativePath;

use super::{Rejection, lines::Ending};

/// The change of one file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileDiff {
    /// `None`: the file is created.
    pub(super) old: Option<RelativePath>,
    /// `None`: the file is removed.
    pub(super) new: Option<RelativePath>,
    /// The old file stays where it is.
    pub(super) copy: bool,
    /// The file is removed whatever it holds.
    pub(super) unseen: bool,
    /// The new permissions, when the patch states them.
    pub(super) mode: Option<u32>,
    pub(super) hunks: Vec<Hunk>,
}

/// Lines to find and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hunk {
    /// The stated first line, from 1, in the old file.
    pub(super) start: Option<usize>,
    pub(super) counts_ignored: bool,
    /// The line of the file that the `@@` line names as standing above the hunk; trimmed.
    pub(super) heading: Vec<u8>,
    pub(super) lines: Vec<HunkLine>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct HunkLine {
    pub(super) kind: Kind,
    pub(super) text: Vec<u8>,
    pub(super) ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Keep,
    Remove,
    Add,
}

impl FileDiff {
    /// A change of `path` in its place.
    pub(super) fn of(path: RelativePath, hunks: Vec<Hunk>) -> Self {
        Self {
            old: Some(path.clone()),
            new: Some(path),
            copy: false,
            unseen: false,
            mode: None,
            hunks,
        }
    }
}

impl FileDiff {
    /// Fails at the first hunk whose header counts other lines than it has.
    pub(super) fn check_counts(&self) -> Result<(), Rejection> {
        let Some(path) = self.new.as_ref().or(self.old.as_ref()) else {
            return Err(Rejection::Empty);
        };
        let wrong = (1..).zip(&self.hunks).find(|(_, hunk)| hunk.counts_ignored);
        let Some((number, hunk)) = wrong else {
            return Ok(());
        };
        let (old, new) = hunk.counts();
        Err(Rejection::Counts {
            path: path.clone(),
            hunk: number,
            old,
            new,
        })
    }
}

impl Hunk {
    /// The lines that the old file must have.
    pub(super) fn old(&self) -> impl DoubleEndedIterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind != Kind::Add)
    }

    /// Forgets blank lines of context at the end, which may only set the next part of a text off.
    pub(super) fn drop_blank_end(&mut self) {
        let blank = |line: &mut HunkLine| line.kind == Kind::Keep && line.text.is_empty();
        while self.lines.pop_if(blank).is_some() {}
    }

    pub(super) fn changes_something(&self) -> bool {
        self.lines.iter().any(|line| line.kind != Kind::Keep)
    }

    /// The counts of a header that fits the body: old and new lines.
    pub(super) fn counts(&self) -> (usize, usize) {
        let of = |but| self.lines.iter().filter(|line| line.kind != but).count();
        (of(Kind::Add), of(Kind::Remove))
    }
}
