//! `<<<<<<< SEARCH` blocks: the lines to find and the lines to put there, below the file's name.

use super::{
    Rejection,
    hunk::{FileDiff, Hunk, HunkLine, Kind},
    lines::{self, Ending, Line},
    target,
};
use crate::RelativePath;

/// The blocks of a text, each a change on top of the ones before; `None` when it has none.
pub(super) fn parse(text: &[u8]) -> Result<Option<Vec<FileDiff>>, Rejection> {
    let lines = lines::split(text);
    let mut files = Vec::new();
    let mut path: Option<RelativePath> = None;
    let mut at = 0;
    // Where the text that can name the next block's file begins.
    let mut after_last = 0;
    while at < lines.len() {
        if !is_marker(&lines[at], b'<', b"SEARCH") {
            at += 1;
            continue;
        }
        if let Some(name) = name_above(&lines[after_last..at]) {
            path = Some(target::path(&name)?);
        }
        let syntax = |line: usize, detail: &str| Rejection::Syntax {
            line: line + 1,
            detail: detail.to_owned(),
        };
        let Some(path) = &path else {
            return Err(syntax(at, "no file is named above this block"));
        };
        let end = (at + 1..lines.len())
            .take_while(|line| !is_marker(&lines[*line], b'<', b"SEARCH"))
            .find(|line| is_marker(&lines[*line], b'>', b"REPLACE"))
            .ok_or_else(|| syntax(at, "this block has no `>>>>>>> REPLACE`"))?;
        let mut dividers = (at + 1..end).filter(|line| is_marker(&lines[*line], b'=', b""));
        let middle = dividers
            .next()
            .ok_or_else(|| syntax(at, "this block has no `=======`"))?;
        if let Some(second) = dividers.next() {
            return Err(syntax(
                second,
                "a second `=======` in one block: which one divides it cannot be told; use a diff here",
            ));
        }
        let (search, replace) = (&lines[at + 1..middle], &lines[middle + 1..end]);
        files.push(change(path, search, replace));
        at = end + 1;
        after_last = at;
    }
    Ok((!files.is_empty()).then_some(files))
}

fn change(path: &RelativePath, search: &[Line<'_>], replace: &[Line<'_>]) -> FileDiff {
    let of = |kind: Kind| {
        move |line: &Line<'_>| HunkLine {
            kind,
            text: line.text.to_vec(),
            ending: match line.ending {
                Ending::None => Ending::Lf,
                ending => ending,
            },
        }
    };
    // What stays the same at both ends is kept as the file has it.
    let pairs = search.iter().zip(replace);
    let above = pairs.take_while(|(old, new)| old == new).count();
    let (old, new) = (&search[above..], &replace[above..]);
    let pairs = old.iter().rev().zip(new.iter().rev());
    let below = pairs.take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - below], &new[..new.len() - below]);
    let kept_above = search[..above].iter().map(of(Kind::Keep));
    let kept_below = search[search.len() - below..].iter().map(of(Kind::Keep));
    let hunk = Hunk {
        lines: kept_above
            .chain(old.iter().map(of(Kind::Remove)))
            .chain(new.iter().map(of(Kind::Add)))
            .chain(kept_below)
            .collect(),
        ..Hunk::default()
    };
    let diff = FileDiff::of(path.clone(), vec![hunk]);
    if search.is_empty() {
        return FileDiff { old: None, ..diff };
    }
    diff
}

fn is_marker(line: &Line<'_>, sign: u8, word: &[u8]) -> bool {
    let text = line.text.trim_ascii_end();
    let signs = text.iter().take_while(|byte| **byte == sign).count();
    (5..=9).contains(&signs) && text[signs..].trim_ascii_start() == word
}

/// The last line of text above a block that is not a fence, without the marks that names are set in.
fn name_above(lines: &[Line<'_>]) -> Option<String> {
    let line = lines
        .iter()
        .rev()
        .map(|line| line.text.trim_ascii())
        .find(|text| !text.is_empty() && !text.starts_with(b"```"))?;
    let text = String::from_utf8_lossy(line);
    let name = text
        .trim_start_matches(['#', ' '])
        .trim_matches(['`', '*', ' '])
        .trim_end_matches(':')
        .trim_matches(['`', '*', ' ']);
    (!name.is_empty()).then(|| name.to_owned())
}
