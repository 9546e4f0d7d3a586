//! An edit as a unified diff.

use code::sites::Edit;

use super::ranking::Suspect;

/// Lines around a change.
const CONTEXT: usize = 3;

/// The change of one file, with one hunk.
pub(super) fn unified(suspect: &Suspect, edit: &Edit) -> String {
    let old = suspect.source.text();
    let new = edit.apply(old);
    let (old, new): (Vec<&str>, Vec<&str>) = (
        old.split_inclusive('\n').collect(),
        new.split_inclusive('\n').collect(),
    );
    let same = |(a, b): &(&&str, &&str)| a == b;
    let before = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - before;
    let backwards = old.iter().rev().zip(new.iter().rev());
    let after = backwards.take(most).take_while(same).count();
    let start = before.saturating_sub(CONTEXT);
    let (old_end, new_end) = (old.len() - after, new.len() - after);
    let end = (old_end + CONTEXT).min(old.len());
    let path = &suspect.path;
    let (n_old, n_new) = (end - start, end - start + new_end - old_end);
    let mut text = format!(
        "--- a/{path}\n+++ b/{path}\n@@ -{},{n_old} +{},{n_new} @@\n",
        start + usize::from(n_old > 0),
        start + usize::from(n_new > 0),
    );
    let mut add = |sign: char, lines: &[&str]| {
        for line in lines {
            text.push(sign);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    add(' ', &old[start..before]);
    add('-', &old[before..old_end]);
    add('+', &new[before..new_end]);
    add(' ', &old[old_end..end]);
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use code::{Patch, RelativePath, patch::FileChange, sites::Source};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, start: usize, end: usize, replacement: &str) {
        let path = RelativePath::new("a/b.py").unwrap();
        let suspect = Suspect {
            path: path.clone(),
            source: Source::parse(text).unwrap(),
            weights: BTreeMap::new(),
        };
        let edit = Edit::replace_span(start..end, replacement);
        let diff = unified(&suspect, &edit);
        let patch = Patch::parse(diff.as_bytes()).unwrap();
        let files = BTreeMap::from([(path, Some(text.as_bytes().to_vec()))]);
        let applied = patch.apply(&files).unwrap();
        let [FileChange::Write { content, .. }] = &applied.changes[..] else {
            panic!("{diff}");
        };
        assert_eq!(String::from_utf8_lossy(content), edit.apply(text), "{diff}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_diff_applies_to_what_the_edit_makes(
            lines in prop::collection::vec("[a-c] = [0-9]\n", 1..12),
            last in "[a-c] = [0-9]",
            from in 0usize..1000,
            length in 0usize..30,
            replacement in prop::sample::select(vec!["", "7", "d = 8\n", "\nx = 1\n"]),
        ) {
            let text = format!("{}{last}", lines.concat());
            let start = from % text.len();
            let end = (start + length).min(text.len());
            if text[start..end] != *replacement {
                check(&text, start, end, replacement);
            }
        }
    }
}
