//! From a patch and the files it names to what must be written, all of it or nothing.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    Applied, Change, FileChange, HunkReport, MAX_CONTENT, Mode, PatchReport, Rejection, Rung,
    edits,
    hunk::{FileDiff, Hunk, HunkLine, Kind},
    lines::{self, Ending, Line, Splice, splice},
    locate::{Budget, Landing, Shift, locate},
    reject::bounded,
};
use crate::RelativePath;

pub(super) fn apply(
    changes: &[Change],
    files: &BTreeMap<RelativePath, Option<Vec<u8>>>,
) -> Result<Applied, Rejection> {
    let mut state = State {
        before: files,
        after: BTreeMap::new(),
        budget: Budget::new(),
        report: PatchReport::default(),
    };
    for change in changes {
        match change {
            Change::Diff(diff) => state.diff(diff)?,
            Change::Edits { path, edits } => state.edits(path, edits)?,
        }
    }
    state.finish()
}

/// The files as the sections before have left them.
struct State<'a> {
    before: &'a BTreeMap<RelativePath, Option<Vec<u8>>>,
    after: BTreeMap<RelativePath, Option<Written>>,
    budget: Budget,
    report: PatchReport,
}

#[derive(Clone)]
struct Written {
    content: Vec<u8>,
    mode: Mode,
}

impl State<'_> {
    fn diff(&mut self, diff: &FileDiff) -> Result<(), Rejection> {
        let Some(old) = &diff.old else {
            return self.create(diff);
        };
        let written = self.existing(old)?;
        if diff.unseen {
            self.after.insert(old.clone(), None);
            return Ok(());
        }
        let content = self.patched(old, &written.content, &diff.hunks)?;
        let Some(new) = &diff.new else {
            if !content.is_empty() {
                return Err(Rejection::Unsupported {
                    path: old.clone(),
                    detail: "the file is to be removed, but not all of its lines are".to_owned(),
                });
            }
            self.after.insert(old.clone(), None);
            return Ok(());
        };
        if new != old {
            self.absent(new)?;
            if !diff.copy {
                self.after.insert(old.clone(), None);
            }
        }
        let mode = diff.mode.map_or(written.mode, Mode::Bits);
        self.write(new, content, mode)
    }

    fn create(&mut self, diff: &FileDiff) -> Result<(), Rejection> {
        let Some(path) = &diff.new else {
            return Err(Rejection::Empty);
        };
        self.absent(path)?;
        let mut content = Vec::new();
        for (number, hunk) in (1..).zip(&diff.hunks) {
            if hunk.old().next().is_some() {
                return Err(Rejection::Hunk {
                    path: path.clone(),
                    hunk: number,
                    detail: "the file is created, so that every line must be an added one"
                        .to_owned(),
                });
            }
            for line in &hunk.lines {
                content.extend_from_slice(&line.text);
                content.extend_from_slice(line.ending.bytes());
            }
            self.report.hunks.push(HunkReport {
                path: path.clone(),
                number,
                line: 1,
                rung: Rung::Exact,
                offset: None,
                counts_ignored: hunk.counts_ignored,
            });
        }
        self.write(path, content, Mode::Bits(diff.mode.unwrap_or(0o644)))
    }

    fn edits(&mut self, path: &RelativePath, edits: &[edits::LineEdit]) -> Result<(), Rejection> {
        let written = match self.current(path)? {
            Some(written) => written,
            None => Written {
                content: Vec::new(),
                mode: Mode::Bits(0o644),
            },
        };
        self.budget.spend(path, written.content.len())?;
        let file = lines::split(&written.content);
        let mut splices = edits::splices(path, edits, &file)?;
        // Insertions at one place stand in the order of the list.
        for splice in &mut splices {
            if splice.start == splice.end {
                splice.hunk = 0;
            }
        }
        let content = splice(&file, splices).map_err(|pair| overlap(path, pair))?;
        for (at, edit) in edits.iter().enumerate() {
            self.report.hunks.push(HunkReport {
                path: path.clone(),
                number: at + 1,
                line: edit.start,
                rung: Rung::Exact,
                offset: Some(0),
                counts_ignored: false,
            });
        }
        self.write(path, content, written.mode)
    }

    /// `content` after `hunks`.
    fn patched(
        &mut self,
        path: &RelativePath,
        content: &[u8],
        hunks: &[Hunk],
    ) -> Result<Vec<u8>, Rejection> {
        self.budget.spend(path, content.len())?;
        let file = lines::split(content);
        let landings = locate(path, &file, hunks, &mut self.budget)?;
        let mut splices = Vec::new();
        for (at, (hunk, landing)) in hunks.iter().zip(&landings).enumerate() {
            hunk_splices(path, at, hunk, landing, &file, &mut splices)?;
            self.report.hunks.push(HunkReport {
                path: path.clone(),
                number: at + 1,
                line: landing.start + 1,
                rung: landing.rung,
                offset: hunk.start.map(|start| {
                    let stated = start + landing.used.start;
                    landing.start as i64 + 1 - stated as i64
                }),
                counts_ignored: hunk.counts_ignored,
            });
        }
        splice(&file, splices).map_err(|pair| overlap(path, pair))
    }

    fn current(&self, path: &RelativePath) -> Result<Option<Written>, Rejection> {
        if let Some(written) = self.after.get(path) {
            return Ok(written.clone());
        }
        let Some(before) = self.before.get(path) else {
            return Err(Rejection::NotRead { path: path.clone() });
        };
        let Some(content) = before else {
            return Ok(None);
        };
        bounded("bytes of a file to patch", content.len(), MAX_CONTENT)?;
        Ok(Some(Written {
            content: content.clone(),
            mode: Mode::Of(path.clone()),
        }))
    }

    fn existing(&self, path: &RelativePath) -> Result<Written, Rejection> {
        self.current(path)?
            .ok_or_else(|| Rejection::Missing { path: path.clone() })
    }

    /// A file that is created may be there when it is empty.
    fn absent(&self, path: &RelativePath) -> Result<(), Rejection> {
        match self.current(path)? {
            Some(written) if !written.content.is_empty() => {
                Err(Rejection::Exists { path: path.clone() })
            }
            _ => Ok(()),
        }
    }

    fn write(
        &mut self,
        path: &RelativePath,
        content: Vec<u8>,
        mode: Mode,
    ) -> Result<(), Rejection> {
        self.after
            .insert(path.clone(), Some(Written { content, mode }));
        let sizes = self.after.values().flatten();
        let whole = sizes.map(|written| written.content.len()).sum();
        bounded("bytes that the patch writes", whole, MAX_CONTENT).map(|_| ())
    }

    fn finish(self) -> Result<Applied, Rejection> {
        for path in self
            .after
            .iter()
            .filter(|(_, written)| written.is_some())
            .map(|(path, _)| path)
        {
            let mut folder = path.parent();
            while let Some(parent) = folder {
                let file = match self.after.get(&parent) {
                    Some(written) => written.is_some(),
                    None => matches!(self.before.get(&parent), Some(Some(_))),
                };
                if file {
                    return Err(Rejection::Unsupported {
                        path: path.clone(),
                        detail: format!("{parent} is a file, not a folder"),
                    });
                }
                folder = parent.parent();
            }
        }
        let before = self.before;
        let change = |(path, written): (RelativePath, Option<Written>)| {
            let old = before.get(&path).and_then(Option::as_ref);
            match written {
                None => old.map(|_| FileChange::Remove { path }),
                Some(Written { content, mode }) => {
                    let same = old == Some(&content) && mode == Mode::Of(path.clone());
                    (!same).then_some(FileChange::Write {
                        path,
                        content,
                        mode,
                    })
                }
            }
        };
        Ok(Applied {
            changes: self.after.into_iter().filter_map(change).collect(),
            report: self.report,
        })
    }
}

/// Adds what `hunk` changes, without its context, at the place where it landed.
fn hunk_splices(
    path: &RelativePath,
    at: usize,
    hunk: &Hunk,
    landing: &Landing,
    file: &[Line<'_>],
    splices: &mut Vec<Splice>,
) -> Result<(), Rejection> {
    let used = &hunk.lines[landing.used.clone()];
    let usual = lines::usual_ending(file);
    let mut open: Option<Splice> = None;
    let mut place = landing.start;
    for line in used {
        if line.kind == Kind::Keep {
            splices.extend(open.take());
            place += 1;
            continue;
        }
        let splice = open.get_or_insert_with(|| Splice {
            start: place,
            end: place,
            lines: Vec::new(),
            hunk: at,
        });
        if line.kind == Kind::Remove {
            place += 1;
            splice.end = place;
            continue;
        }
        let text = shifted(line, &landing.shift).ok_or_else(|| Rejection::Hunk {
            path: path.clone(),
            hunk: at + 1,
            detail: "an added line is indented less than the file is".to_owned(),
        })?;
        let ending = match line.ending {
            ending if landing.rung == Rung::Exact => ending,
            Ending::None => Ending::None,
            Ending::Lf | Ending::CrLf => usual,
        };
        splice.lines.push((text.into_owned(), ending));
    }
    // A file that did not end its last line goes on not to, unless the hunk spoke of it.
    let at_end = place == file.len() && landing.rung != Rung::Exact;
    let unended = file.last().is_some_and(|line| line.ending == Ending::None);
    if let (true, true, Some(last)) = (
        at_end,
        unended,
        open.as_mut().and_then(|open| open.lines.last_mut()),
    ) {
        last.1 = Ending::None;
    }
    splices.extend(open);
    Ok(())
}

fn shifted<'a>(line: &'a HunkLine, shift: &Shift) -> Option<Cow<'a, [u8]>> {
    let text = &line.text;
    if text.trim_ascii().is_empty() {
        return Some(Cow::Borrowed(text));
    }
    match shift {
        Shift::None => Some(Cow::Borrowed(text)),
        Shift::Deeper(by) => Some(Cow::Owned([by.as_slice(), text].concat())),
        Shift::Shallower(by) => text.strip_prefix(by.as_slice()).map(Cow::Borrowed),
    }
}

fn overlap(path: &RelativePath, (first, second): (usize, usize)) -> Rejection {
    Rejection::Overlap {
        path: path.clone(),
        first: first + 1,
        second: second + 1,
    }
}
