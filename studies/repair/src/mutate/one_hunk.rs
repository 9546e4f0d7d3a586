//! Unified diffs of changes that are in one place.

/// The change of a file as a unified diff of one hunk, with three lines around it. Empty when nothing differs.
pub(super) fn one_hunk(path: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(old, new)| old == new).count()
    };
    let first = same(&mut old.iter().zip(&new));
    let most = old.len().min(new.len()) - first;
    let last = same(&mut old.iter().rev().zip(new.iter().rev())).min(most);
    let begin = first.saturating_sub(CONTEXT);
    let tail = last.min(CONTEXT);
    let (old_end, new_end) = (old.len() - last, new.len() - last);
    let counts = [old_end, new_end].map(|end| end + tail - begin);
    // An empty side is named by the line before it.
    let starts = counts.map(|count| if count == 0 { begin } else { begin + 1 });
    let mut diff = format!(
        "--- a/{path}\n+++ b/{path}\n@@ -{},{} +{},{} @@\n",
        starts[0], counts[0], starts[1], counts[1]
    );
    let mut push = |sign: char, lines: &[&str]| {
        for line in lines {
            diff.push(sign);
            diff.push_str(line);
            if !line.ends_with('\n') {
                diff.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    push(' ', &old[begin..first]);
    push('-', &old[first..old_end]);
    push('+', &new[first..new_end]);
    push(' ', &old[old_end..old_end + tail]);
    diff
}

/// Lines around a change.
const CONTEXT: usize = 3;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use code::{Patch, RelativePath, patch::FileChange};
    use proptest::prelude::*;

    use super::one_hunk;

    fn applied(diff: &str, before: &str) -> String {
        let path = RelativePath::new("a/m.py").unwrap();
        let files = BTreeMap::from([(path, Some(before.as_bytes().to_vec()))]);
        let patch = Patch::parse(diff.as_bytes()).unwrap();
        let applied = patch.apply(&files).unwrap();
        match &applied.changes[..] {
            [FileChange::Write { content, .. }] => String::from_utf8(content.clone()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_change_in_the_middle() {
        let before: String = (1..10).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 5\n", "line five\nand a half\n");
        let expected = "--- a/m.py\n+++ b/m.py\n@@ -2,7 +2,8 @@\n line 2\n line 3\n line 4\n-line 5\n\
            +line five\n+and a half\n line 6\n line 7\n line 8\n";
        assert_eq!(one_hunk("m.py", &before, &after), expected);
        assert_eq!(one_hunk("m.py", &before, &before), "");
    }

    proptest! {
        #[test]
        fn a_diff_makes_what_it_was_made_of(
            before in prop::collection::vec("[ab]{1,2}", 1..9),
            after in prop::collection::vec("[ab]{1,2}", 1..9),
            ends in any::<[bool; 2]>(),
        ) {
            let text = |lines: &[String], ends: bool| {
                lines.join("\n") + if ends { "\n" } else { "" }
            };
            let (before, after) = (text(&before, ends[0]), text(&after, ends[1]));
            prop_assume!(before != after);
            let diff = one_hunk("a/m.py", &before, &after);
            prop_assert_eq!(applied(&diff, &before), after, "{}", diff);
        }
    }
}
