//! Lists of line edits: `[{"path", "start", "end", "new_text"}]` (spec of the repair study, section 4.2).

use serde::{Deserialize, Serialize};

use super::{
    Rejection,
    lines::{self, Ending, Line, Splice},
    reject::quoted,
};
use crate::RelativePath;

/// Replaces whole lines of a file.
///
/// `start` and `end` count from 1 and include both. `end = start - 1` inserts before `start`; one
/// past the last line, that appends, and creates a file that does not exist. An empty `new_text`
/// removes the lines. A last line without an end is given the one that the file uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineEdit {
    pub path: String,
    pub start: usize,
    pub end: usize,
    pub new_text: String,
}

/// The edits of a text that is JSON: a list, or an object that has one as `edits` or
/// `patch.edits`. `None` when it is not JSON.
pub(super) fn parse(text: &[u8]) -> Result<Option<Vec<LineEdit>>, Rejection> {
    let text = unfenced(text.trim_ascii());
    if !matches!(text.first(), Some(b'[' | b'{')) {
        return Ok(None);
    }
    let schema = |detail: String| Rejection::Schema {
        detail: quoted(detail.as_bytes()),
    };
    let mut value: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| schema(error.to_string()))?;
    for name in ["patch", "edits"] {
        if let Some(inner) = value.get_mut(name) {
            value = inner.take();
        }
    }
    let serde_json::Value::Array(items) = value else {
        return Err(schema("there is no list called `edits`".to_owned()));
    };
    let mut edits = Vec::new();
    for (number, item) in (1..).zip(items) {
        let edit = serde_json::from_value(item)
            .map_err(|error| schema(format!("edit {number}: {error}")))?;
        edits.push(edit);
    }
    if edits.is_empty() {
        return Err(schema("it is empty".to_owned()));
    }
    Ok(Some(edits))
}

/// What `edits` replace in a file of `lines`, all by its numbers.
pub(super) fn splices(
    path: &RelativePath,
    edits: &[LineEdit],
    file: &[Line<'_>],
) -> Result<Vec<Splice>, Rejection> {
    let usual = lines::usual_ending(file);
    let n_lines = file.len();
    let splice = |(hunk, edit): (usize, &LineEdit)| {
        let (first, end) = range(path, hunk, edit)?;
        if first > n_lines || end > n_lines {
            return Err(Rejection::Range {
                path: path.clone(),
                edit: hunk + 1,
                detail: format!(
                    "lines {} to {end} are asked for, and the file has {n_lines}",
                    edit.start
                ),
            });
        }
        let unended = end > first && file[end - 1].ending == Ending::None;
        let ended = |line: Line<'_>| {
            let ending = match line.ending {
                Ending::None if unended => Ending::None,
                Ending::None | Ending::Lf => usual,
                Ending::CrLf => Ending::CrLf,
            };
            (line.text.to_vec(), ending)
        };
        Ok(Splice {
            start: first,
            end,
            lines: lines::split(edit.new_text.as_bytes())
                .into_iter()
                .map(ended)
                .collect(),
            hunk,
        })
    };
    let splices: Vec<Splice> = edits
        .iter()
        .enumerate()
        .map(splice)
        .collect::<Result<_, _>>()?;
    let ranges = splices.iter().map(|splice| (splice.start, splice.end));
    apart(path, ranges)?;
    Ok(splices)
}

/// What is wrong with the edits of a file whatever it holds.
pub(super) fn check(path: &RelativePath, edits: &[LineEdit]) -> Result<(), Rejection> {
    let ranges = edits.iter().enumerate();
    let ranges: Vec<_> = ranges
        .map(|(at, edit)| range(path, at, edit))
        .collect::<Result<_, _>>()?;
    apart(path, ranges)
}

/// Lines before those that an edit replaces, and lines up to its end.
fn range(path: &RelativePath, at: usize, edit: &LineEdit) -> Result<(usize, usize), Rejection> {
    let &LineEdit { start, end, .. } = edit;
    let detail = match start.checked_sub(1) {
        Some(first) if end >= first => return Ok((first, end)),
        Some(_) => format!(
            "the end {end} is before the start {start}; to insert before a line, give it as the start and one less as the end"
        ),
        None => "lines count from 1".to_owned(),
    };
    Err(Rejection::Range {
        path: path.clone(),
        edit: at + 1,
        detail,
    })
}

/// Fails where two edits change one line. Several may insert at one place.
fn apart(
    path: &RelativePath,
    ranges: impl IntoIterator<Item = (usize, usize)>,
) -> Result<(), Rejection> {
    let mut order: Vec<((usize, usize), usize)> = ranges.into_iter().zip(1..).collect();
    order.sort_unstable();
    for pair in order.windows(2) {
        let [((_, end), first), ((start, _), second)] = *pair else {
            continue;
        };
        if start < end {
            return Err(Rejection::Overlap {
                path: path.clone(),
                first: first.min(second),
                second: first.max(second),
            });
        }
    }
    Ok(())
}

/// The inside of a text that is one fenced block.
fn unfenced(text: &[u8]) -> &[u8] {
    let inside = text
        .strip_prefix(b"```")
        .and_then(|text| text.strip_suffix(b"```"));
    let Some(inside) = inside else {
        return text;
    };
    let tag = inside.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    inside[tag..].trim_ascii()
}
