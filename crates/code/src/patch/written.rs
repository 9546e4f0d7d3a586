//! Changes of files as unified diffs, and which lines they replace.

use std::{fmt::Write, ops::Range};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use crate::RelativePath;

/// Lines around a change.
const CONTEXT: usize = 3;

/// The change of one file as a diff that [`Patch::parse`](super::Patch::parse), git and `patch` read; `None`
/// stands for a file that is not there. Empty when nothing differs.
pub fn unified_diff(path: &RelativePath, before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<u8> {
    if before == after {
        return Vec::new();
    }
    let name = |prefix: &str| quoted(&format!("{prefix}/{path}"));
    let (old_name, new_name) = (name("a"), name("b"));
    let mut diff = format!("diff --git {old_name} {new_name}\n");
    match (before, after) {
        (None, _) => diff += "new file mode 100644\n",
        (_, None) => diff += "deleted file mode 100644\n",
        _ => {}
    }
    let old = lines(before.unwrap_or_default());
    let new = lines(after.unwrap_or_default());
    let hunks = group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), CONTEXT);
    if !hunks.is_empty() {
        // A name with blanks is ended by a tab, as git does.
        let header = |side: Option<&[u8]>, name: &str| match side {
            None => "/dev/null".to_owned(),
            Some(_) if name.contains(' ') => format!("{name}\t"),
            Some(_) => name.to_owned(),
        };
        diff += &format!("--- {}\n", header(before, &old_name));
        diff += &format!("+++ {}\n", header(after, &new_name));
    }
    let mut diff = diff.into_bytes();
    for hunk in hunks {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let span = |range: fn(&DiffOp) -> Range<usize>| {
            let (start, end) = (range(first).start, range(last).end);
            let count = end - start;
            // An empty side is named by the line before it.
            format!("{},{count}", if count == 0 { start } else { start + 1 })
        };
        let header = format!(
            "@@ -{} +{} @@\n",
            span(DiffOp::old_range),
            span(DiffOp::new_range)
        );
        diff.extend_from_slice(header.as_bytes());
        for part in &hunk {
            let (tag, removed, added) = part.as_tag_tuple();
            if tag == DiffTag::Equal {
                push(&mut diff, b' ', &old[removed]);
                continue;
            }
            push(&mut diff, b'-', &old[removed]);
            push(&mut diff, b'+', &new[added]);
        }
    }
    diff
}

/// Lines that a change replaces, and what stands there after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// Counted from 0; empty where lines are inserted before its start.
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The lines that differ between two texts, ascending and as few as can be.
pub fn line_changes(before: &[u8], after: &[u8]) -> Vec<LineChange> {
    let parts = capture_diff_slices(Algorithm::Myers, &lines(before), &lines(after));
    let mut changes: Vec<LineChange> = Vec::new();
    for part in parts.iter().filter(|part| part.tag() != DiffTag::Equal) {
        let (old, new) = (part.old_range(), part.new_range());
        match changes.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => changes.push(LineChange { old, new }),
        }
    }
    changes
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn push(diff: &mut Vec<u8>, sign: u8, lines: &[&[u8]]) {
    for line in lines {
        diff.push(sign);
        diff.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            diff.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

/// A name as git writes it: in quotes where it has control characters, quotes or backslashes.
fn quoted(name: &str) -> String {
    let plain = |byte: u8| byte >= b' ' && !matches!(byte, 0x7f | b'"' | b'\\');
    if name.bytes().all(plain) {
        return name.to_owned();
    }
    let mut out = String::from("\"");
    for letter in name.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            letter if letter.is_ascii_control() => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\{:03o}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{LineChange, line_changes, unified_diff};
    use crate::{
        Patch, RelativePath,
        patch::{FileChange, LineEdit, Rung},
    };

    fn file() -> impl Strategy<Value = Option<String>> {
        let line = prop_oneof![
            Just("a\n".to_owned()),
            Just("b\n".to_owned()),
            Just("    c = 1\n".to_owned()),
            Just("-- d\r\n".to_owned()),
            Just("\n".to_owned()),
        ];
        let open = prop_oneof![Just(String::new()), Just("open end".to_owned())];
        let text = (proptest::collection::vec(line, 0..12), open);
        proptest::option::weighted(0.9, text.prop_map(|(lines, open)| lines.concat() + &open))
    }

    fn path(text: &str) -> RelativePath {
        RelativePath::new(text).unwrap()
    }

    fn applied(patch: &Patch, path: &RelativePath, before: Option<&str>) -> Option<Vec<u8>> {
        let content = before.map(|text| text.as_bytes().to_vec());
        let files = BTreeMap::from([(path.clone(), content.clone())]);
        let mut applied = patch.apply(&files).unwrap();
        assert!(
            applied
                .report
                .hunks
                .iter()
                .all(|hunk| hunk.rung == Rung::Exact)
        );
        match applied.changes.pop() {
            None => content,
            Some(FileChange::Write { content, .. }) => Some(content),
            Some(FileChange::Remove { .. }) => None,
        }
    }

    proptest! {
        #[test]
        fn diffs_lead_from_one_text_to_the_other(before in file(), after in file(), number in 0..4_usize) {
            let path = path(["a.py", "with blank.py", "q\"uote\\.py", "ta\tb/é.py"][number]);
            let (old, new) = (before.as_deref(), after.as_deref());
            let diff = unified_diff(&path, old.map(str::as_bytes), new.map(str::as_bytes));
            prop_assert_eq!(diff.is_empty(), old == new);
            if !diff.is_empty() {
                let patch = Patch::parse(&diff).unwrap();
                let found = applied(&patch, &path, old);
                prop_assert_eq!(found.as_deref(), new.map(str::as_bytes));
                // And back.
                let back = unified_diff(&path, new.map(str::as_bytes), old.map(str::as_bytes));
                let found = applied(&Patch::parse(&back).unwrap(), &path, new);
                prop_assert_eq!(found.as_deref(), old.map(str::as_bytes));
            }
        }

        #[test]
        fn changes_as_edits_lead_to_the_same_text(before in file(), after in file()) {
            let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
            // Edits work on whole lines.
            let [before, after] = [before, after].map(|text| text.replace("\r\n", "\n").trim_end_matches("open end").to_owned());
            let path = path("a.py");
            let new: Vec<&str> = after.split_inclusive('\n').collect();
            let changes = line_changes(before.as_bytes(), after.as_bytes());
            let edits: Vec<LineEdit> = changes
                .iter()
                .map(|change| LineEdit {
                    path: path.to_string(),
                    start: change.old.start + 1,
                    end: change.old.end,
                    new_text: new[change.new.clone()].concat(),
                })
                .collect();
            if edits.is_empty() {
                prop_assert_eq!(before, after);
            } else {
                let patch = Patch::from_edits(edits).unwrap();
                let found = applied(&patch, &path, Some(&before));
                prop_assert_eq!(found.as_deref(), Some(after.as_bytes()));
            }
        }
    }

    #[test]
    fn insertions_are_empty_ranges() {
        let found = line_changes(b"a\nb\n", b"a\nx\nb\n");
        assert_eq!(
            found,
            [LineChange {
                old: 1..1,
                new: 1..2
            }]
        );
    }
}
