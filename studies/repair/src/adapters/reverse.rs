//! A unified diff turned round.

/// The diff that takes back what `diff` does.
pub(super) fn reversed(diff: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    // Lines of the hunk that are still to come, of both sides.
    let (mut old, mut new) = (0u32, 0u32);
    for line in diff.split_inclusive('\n') {
        let body = old > 0 || new > 0;
        let turned = match line.as_bytes().first() {
            Some(b'+') if body => {
                new = new.saturating_sub(1);
                format!("-{}", &line[1..])
            }
            Some(b'-') if body => {
                old = old.saturating_sub(1);
                format!("+{}", &line[1..])
            }
            Some(b'\\') => line.to_owned(),
            _ if body => {
                (old, new) = (old.saturating_sub(1), new.saturating_sub(1));
                line.to_owned()
            }
            _ => match head(line) {
                Head::Hunk {
                    before,
                    after,
                    text,
                } => {
                    (old, new) = (before, after);
                    text
                }
                Head::Pair(text) => {
                    // The file's new name stands behind its old one, both ways round.
                    match lines.pop() {
                        Some(other) => {
                            lines.push(text);
                            other
                        }
                        None => text,
                    }
                }
                Head::Other(text) => text,
            },
        };
        lines.push(turned);
    }
    lines.concat()
}

enum Head {
    Hunk {
        before: u32,
        after: u32,
        text: String,
    },
    /// `+++`, which is `---` now and changes places with the line before it.
    Pair(String),
    Other(String),
}

fn head(line: &str) -> Head {
    if let Some((before, after, rest)) = hunk(line) {
        let count = |range: &str| match range.split_once(',') {
            Some((_, count)) => count.parse().unwrap_or(0),
            None => 1,
        };
        return Head::Hunk {
            before: count(before),
            after: count(after),
            text: format!("@@ -{after} +{before} @@{rest}"),
        };
    }
    if let Some(path) = line.strip_prefix("--- ") {
        return Head::Other(format!("+++ {}", side(path, "a/", "b/")));
    }
    if let Some(path) = line.strip_prefix("+++ ") {
        return Head::Pair(format!("--- {}", side(path, "b/", "a/")));
    }
    for (from, to) in [
        ("new file mode ", "deleted file mode "),
        ("deleted file mode ", "new file mode "),
        ("old mode ", "new mode "),
        ("new mode ", "old mode "),
        ("rename from ", "rename to "),
        ("rename to ", "rename from "),
    ] {
        if let Some(rest) = line.strip_prefix(from) {
            return Head::Other(format!("{to}{rest}"));
        }
    }
    if let Some((old, rest)) = line
        .strip_prefix("index ")
        .and_then(|ids| ids.split_once(".."))
    {
        let end = rest.find([' ', '\n']).unwrap_or(rest.len());
        let (new, mode) = rest.split_at(end);
        return Head::Other(format!("index {new}..{old}{mode}"));
    }
    Head::Other(line.to_owned())
}

/// Both ranges of a hunk's headline, and what stands behind it.
fn hunk(line: &str) -> Option<(&str, &str, &str)> {
    let ranges = line.strip_prefix("@@ -")?;
    let (before, rest) = ranges.split_once(" +")?;
    let (after, rest) = rest.split_once(" @@")?;
    Some((before, after, rest))
}

fn side(path: &str, from: &str, to: &str) -> String {
    match path.strip_prefix(from) {
        Some(path) => format!("{to}{path}"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use code::{Patch, RelativePath, patch::FileChange};

    use super::*;

    /// The file after a patch; `None` where it is gone.
    fn applied(patch: &str, content: Option<&str>) -> Option<String> {
        let path = RelativePath::new("a.py").unwrap();
        let patch = Patch::parse(patch.as_bytes()).unwrap();
        let before = BTreeMap::from([(path, content.map(|text| text.as_bytes().to_vec()))]);
        match patch.apply(&before).unwrap().changes.remove(0) {
            FileChange::Write { content, .. } => Some(String::from_utf8(content).unwrap()),
            FileChange::Remove { .. } => None,
        }
    }

    #[test]
    fn what_a_diff_does_its_reverse_takes_back() {
        let changed = "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,3 @@ def f\n \
                       one\n--- two\n-three\n+++ 2\n four\n";
        let before = "one\n-- two\nthree\nfour\n";
        let after = applied(changed, Some(before)).unwrap();
        assert_eq!(after, "one\n++ 2\nfour\n");
        assert_eq!(applied(&reversed(changed), Some(&after)).unwrap(), before);
        assert_eq!(reversed(&reversed(changed)), changed);

        let made = "diff --git a/a.py b/a.py\nnew file mode 100644\nindex 0..2\n--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+one\n";
        assert_eq!(applied(made, None).as_deref(), Some("one\n"));
        assert_eq!(applied(&reversed(made), Some("one\n")), None);
    }
}
