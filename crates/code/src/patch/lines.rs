//! Bytes as lines that keep their ends.

/// One line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) ending: Ending,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    Lf,
    CrLf,
    /// The end of the file.
    None,
}

impl Ending {
    pub(super) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::None => b"",
        }
    }
}

/// The lines of `bytes`; none of an empty file. A carriage return alone ends no line.
pub(super) fn split(bytes: &[u8]) -> Vec<Line<'_>> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| match line.strip_suffix(b"\n") {
            None => Line {
                text: line,
                ending: Ending::None,
            },
            Some(line) => match line.strip_suffix(b"\r") {
                Some(text) => Line {
                    text,
                    ending: Ending::CrLf,
                },
                None => Line {
                    text: line,
                    ending: Ending::Lf,
                },
            },
        })
        .collect()
}

/// How most lines end; [`Ending::Lf`] when there is none to go by.
pub(super) fn usual_ending(lines: &[Line<'_>]) -> Ending {
    let of = |ending| lines.iter().filter(|line| line.ending == ending).count();
    if of(Ending::CrLf) > of(Ending::Lf) {
        Ending::CrLf
    } else {
        Ending::Lf
    }
}

/// Replaces the lines from `start` up to `end` of the old file.
#[derive(Clone, Debug)]
pub(super) struct Splice {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) lines: Vec<(Vec<u8>, Ending)>,
    /// Index of the hunk it belongs to.
    pub(super) hunk: usize,
}

/// The file after `splices`. `Err` holds the hunks of two that touch the same lines.
pub(super) fn splice(
    lines: &[Line<'_>],
    mut splices: Vec<Splice>,
) -> Result<Vec<u8>, (usize, usize)> {
    splices.sort_by_key(|splice| (splice.start, splice.end));
    for pair in splices.windows(2) {
        let [one, other] = pair else { continue };
        let same_gap = one.start == one.end && other.start == one.start && other.end == one.end;
        if other.start < one.end || (same_gap && one.hunk != other.hunk) {
            return Err((one.hunk, other.hunk));
        }
    }
    let usual = usual_ending(lines);
    let mut bytes = Vec::new();
    let mut unended = false;
    let mut push = |text: &[u8], ending: Ending| {
        // Only the last line of a file can be without an end.
        if std::mem::replace(&mut unended, ending == Ending::None) {
            bytes.extend_from_slice(usual.bytes());
        }
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(ending.bytes());
    };
    let mut at = 0;
    for splice in &splices {
        for line in &lines[at..splice.start] {
            push(line.text, line.ending);
        }
        for (text, ending) in &splice.lines {
            push(text, *ending);
        }
        at = splice.end;
    }
    for line in &lines[at..] {
        push(line.text, line.ending);
    }
    Ok(bytes)
}
