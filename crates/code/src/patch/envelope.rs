//! The `*** Begin Patch` form: files by name, hunks without line numbers.

use super::{
    Rejection,
    diff::read_body,
    header,
    hunk::{FileDiff, Hunk, Kind},
    lines::{self, Line},
    target,
};

/// The files of an envelope; `None` when the text has none.
pub(super) fn parse(text: &[u8]) -> Result<Option<Vec<FileDiff>>, Rejection> {
    let lines = lines::split(text);
    let trimmed = |line: &Line<'_>| line.text.trim_ascii().to_vec();
    let begin = lines
        .iter()
        .position(|line| trimmed(line) == b"*** Begin Patch");
    let Some(begin) = begin else {
        return Ok(None);
    };
    let mut files: Vec<FileDiff> = Vec::new();
    let mut at = begin + 1;
    while let Some(line) = lines.get(at) {
        let text = line.text.trim_ascii_end();
        let number = at + 1;
        let syntax = |detail: &str| {
            Err(Rejection::Syntax {
                line: number,
                detail: detail.to_owned(),
            })
        };
        if text == b"*** End Patch" {
            return Ok(Some(files));
        }
        if let Some(name) = after(text, b"*** Add File: ") {
            let (body, n_lines) = read_body(&lines[at + 1..]);
            let mut hunk = Hunk {
                lines: body,
                ..Hunk::default()
            };
            hunk.drop_blank_end();
            if hunk.lines.iter().any(|line| line.kind != Kind::Add) {
                return syntax("every line of an added file begins with `+`");
            }
            files.push(FileDiff {
                old: None,
                ..FileDiff::of(target::path(&utf8(name, at)?)?, vec![hunk])
            });
            at += 1 + n_lines;
        } else if let Some(name) = after(text, b"*** Delete File: ") {
            files.push(FileDiff {
                new: None,
                unseen: true,
                ..FileDiff::of(target::path(&utf8(name, at)?)?, Vec::new())
            });
            at += 1;
        } else if let Some(name) = after(text, b"*** Update File: ") {
            let mut file = FileDiff::of(target::path(&utf8(name, at)?)?, Vec::new());
            at += 1;
            if let Some(name) = lines
                .get(at)
                .and_then(|line| after(line.text, b"*** Move to: "))
            {
                file.new = Some(target::path(&utf8(name.trim_ascii_end(), at)?)?);
                at += 1;
            }
            at = read_hunks(&lines, at, &mut file)?;
            if file.hunks.is_empty() && file.old == file.new {
                return syntax("no change follows");
            }
            files.push(file);
        } else if text.is_empty() || text == b"*** End of File" {
            at += 1;
        } else {
            return syntax(
                "expected `*** Update File: `, `*** Add File: `, `*** Delete File: ` or `*** End Patch`",
            );
        }
    }
    Ok(Some(files))
}

fn read_hunks(lines: &[Line<'_>], mut at: usize, file: &mut FileDiff) -> Result<usize, Rejection> {
    loop {
        let mut heading = Vec::new();
        while let Some(line) = lines.get(at).filter(|line| line.text.starts_with(b"@@")) {
            heading = header::heading(line.text).to_vec();
            at += 1;
        }
        let (body, n_lines) = read_body(&lines[at.min(lines.len())..]);
        if n_lines == 0 {
            return Ok(at);
        }
        let mut hunk = Hunk {
            lines: body,
            heading,
            ..Hunk::default()
        };
        hunk.drop_blank_end();
        at += n_lines;
        if hunk.changes_something() {
            file.hunks.push(hunk);
        }
    }
}

fn after<'a>(text: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    text.strip_prefix(start)
}

fn utf8(name: &[u8], at: usize) -> Result<String, Rejection> {
    String::from_utf8(name.trim_ascii().to_vec()).map_err(|_| Rejection::Syntax {
        line: at + 1,
        detail: "the name is not UTF-8".to_owned(),
    })
}
