//! Unified diffs: git's and plain ones, and what models make of them.

use super::{
    Rejection,
    header::{self, Section},
    hunk::{FileDiff, Hunk, HunkLine, Kind},
    lines::{self, Ending, Line},
};

/// The files of a diff, in order. Text between them is passed over.
pub(super) fn parse(text: &[u8]) -> Result<Vec<FileDiff>, Rejection> {
    let lines = lines::split(text);
    let mut files = Vec::new();
    let mut section: Option<Section> = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let text = line.text;
        if text.starts_with(b"diff --git ") {
            files.extend(section.take().map(Section::finish).transpose()?);
            section = Some(Section::git(at + 1, text));
            at += 1;
        } else if is_file_header(&lines, at) {
            let open = section.take_if(|open| open.named || !open.hunks.is_empty());
            files.extend(open.map(Section::finish).transpose()?);
            let section = section.get_or_insert_with(|| Section::plain(at + 1));
            section.name(text, lines[at + 1].text)?;
            at += 2;
        } else if text.starts_with(b"@@@") {
            return syntax(
                at,
                "a diff of a merge cannot be applied; give one against one file",
            );
        } else if text.starts_with(b"@@") {
            let Some(section) = &mut section else {
                return syntax(
                    at,
                    "no file is named before this hunk; begin with `--- a/path` and `+++ b/path`",
                );
            };
            let (hunk, next) = read_hunk(&lines, at)?;
            section.hunks.push(hunk);
            at = next;
        } else {
            if let Some(section) = &mut section {
                section.extended(at + 1, text)?;
            }
            at += 1;
        }
    }
    files.extend(section.map(Section::finish).transpose()?);
    Ok(files)
}

/// The lines of a hunk up to the first that cannot be one of its own, and how many were read.
pub(super) fn read_body(lines: &[Line<'_>]) -> (Vec<HunkLine>, usize) {
    let mut body = Vec::new();
    let n_read = lines
        .iter()
        .take_while(|line| push(&mut body, line))
        .count();
    (body, n_read)
}

fn syntax<T>(at: usize, detail: &str) -> Result<T, Rejection> {
    Err(Rejection::Syntax {
        line: at + 1,
        detail: detail.to_owned(),
    })
}

fn is_file_header(lines: &[Line<'_>], at: usize) -> bool {
    let starts = |at: usize, with: &[u8]| {
        lines
            .get(at)
            .is_some_and(|line| line.text.starts_with(with))
    };
    starts(at, b"--- ") && starts(at + 1, b"+++ ")
}

fn is_header(lines: &[Line<'_>], at: usize) -> bool {
    lines[at].text.starts_with(b"diff --git ")
        || lines[at].text.starts_with(b"@@")
        || is_file_header(lines, at)
}

/// Adds `line` to `body` when it can be a line of a hunk.
fn push(body: &mut Vec<HunkLine>, line: &Line<'_>) -> bool {
    let (kind, text) = match line.text.split_first() {
        // A blank line of context whose blank was stripped.
        None => (Kind::Keep, &line.text[..0]),
        Some((b' ', text)) => (Kind::Keep, text),
        Some((b'-', text)) => (Kind::Remove, text),
        Some((b'+', text)) => (Kind::Add, text),
        Some((b'\\', _)) => {
            if let Some(last) = body.last_mut() {
                last.ending = Ending::None;
            }
            return true;
        }
        Some(_) => return false,
    };
    let ending = match line.ending {
        // The last line of the patch itself.
        Ending::None => Ending::Lf,
        ending => ending,
    };
    body.push(HunkLine {
        kind,
        text: text.to_vec(),
        ending,
    });
    true
}

/// The hunk whose `@@` line is at `at`, and the line after it.
fn read_hunk(lines: &[Line<'_>], at: usize) -> Result<(Hunk, usize), Rejection> {
    let stated = header::hunk_header(lines[at].text);
    let first = at + 1;
    let mut hunk = Hunk {
        start: stated.map(|stated| stated.start),
        heading: header::heading(lines[at].text).to_vec(),
        ..Hunk::default()
    };
    if let Some(stated) = stated
        && let Some(end) = by_counts(lines, first, stated.counts)
    {
        (hunk.lines, _) = read_body(&lines[first..end]);
        return Ok((hunk, end));
    }
    let mut end = first;
    while end < lines.len() && !is_header(lines, end) && !is_signature(lines, end) {
        if !push(&mut hunk.lines, &lines[end]) {
            break;
        }
        end += 1;
    }
    let set_off = end > first && lines[end - 1].text.is_empty();
    hunk.drop_blank_end();
    let stray = lines.get(end).is_some_and(|line| {
        let fence = line.text.starts_with(b"```");
        !fence && !set_off && !is_header(lines, end) && !is_signature(lines, end)
    });
    if stray {
        return syntax(
            end,
            "a line of a hunk begins with a space, `-` or `+`; this one does not",
        );
    }
    if hunk.lines.is_empty() {
        return syntax(at, "the hunk has no lines");
    }
    hunk.counts_ignored = stated.is_some_and(|stated| stated.counts != hunk.counts());
    Ok((hunk, end))
}

/// Where a body with the stated counts ends; `None` when it goes on or breaks off.
fn by_counts(lines: &[Line<'_>], first: usize, counts: (usize, usize)) -> Option<usize> {
    let (mut old, mut new) = counts;
    let mut at = first;
    while old > 0 || new > 0 {
        let line = lines.get(at)?;
        let is_hunk = |line: &Line<'_>| line.text.starts_with(b"@@");
        if is_file_header(lines, at) && lines.get(at + 2).is_some_and(is_hunk) {
            return None;
        }
        match line.text.first() {
            None | Some(b' ') => {
                old = old.checked_sub(1)?;
                new = new.checked_sub(1)?;
            }
            Some(b'-') => old = old.checked_sub(1)?,
            Some(b'+') => new = new.checked_sub(1)?,
            Some(b'\\') => {}
            Some(_) => return None,
        }
        at += 1;
    }
    while lines
        .get(at)
        .is_some_and(|line| line.text.starts_with(b"\\"))
    {
        at += 1;
    }
    let mut next = at;
    while lines.get(next).is_some_and(|line| line.text.is_empty()) {
        next += 1;
    }
    let goes_on = next < lines.len()
        && matches!(lines[next].text.first(), Some(b' ' | b'-' | b'+'))
        && !is_header(lines, next)
        && !is_signature(lines, next);
    (at > first && !goes_on).then_some(at)
}

/// The end of a mailed patch: `-- ` and git's version.
fn is_signature(lines: &[Line<'_>], at: usize) -> bool {
    let version = |line: &Line<'_>| {
        line.text.first().is_some_and(u8::is_ascii_digit) && line.text.contains(&b'.')
    };
    matches!(lines[at].text, b"-- " | b"--")
        && lines.get(at + 1).is_none_or(version)
        && lines[(at + 2).min(lines.len())..]
            .iter()
            .all(|line| line.text.is_empty())
}
