//! A damaged patch gives exactly the right file or none: never a wrong one.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

mod commits;

use std::collections::BTreeMap;

use code::{
    Patch, RelativePath,
    patch::{FileChange, Rejection},
};
use commits::{Commit, DAMAGES, Damage, PATH, commit, damaged, diff};
use proptest::prelude::*;
use record::Seed;

/// What the patch makes of the file.
fn applied(commit: &Commit) -> Result<Vec<u8>, Rejection> {
    let path = RelativePath::new(PATH).unwrap();
    let files = BTreeMap::from([(path.clone(), Some(commit.before.clone().into_bytes()))]);
    let patch = Patch::parse(commit.patch.as_bytes())?;
    assert!(patch.paths().iter().eq([&path]));
    let applied = patch.apply(&files)?;
    let content = match &applied.changes[..] {
        [] => commit.before.clone().into_bytes(),
        [
            FileChange::Write {
                path: written,
                content,
                ..
            },
        ] if *written == path => content.clone(),
        other => panic!("the patch of {path} gave {other:?}"),
    };
    Ok(content)
}

#[test]
fn damaged_commits_are_applied_right_or_rejected() {
    let mut report = Vec::new();
    for (damage, name) in DAMAGES {
        let (mut right, mut rejected) = (0, 0);
        for at in 0..500 {
            let seed = Seed(20).stream("commits", at);
            let commit = damaged(&commit(seed), damage, seed);
            match applied(&commit) {
                Ok(content) => {
                    let wrong = content != commit.after.as_bytes();
                    assert!(
                        !wrong,
                        "{name}, commit {at} gave a wrong file:\n{}",
                        commit.patch
                    );
                    right += 1;
                }
                Err(_) => rejected += 1,
            }
        }
        report.push(format!("{name}: {right} right, {rejected} rejected"));
        let least = match damage {
            Damage::None | Damage::NoGitLine | Damage::CountsWrong => 500,
            Damage::BlankContextStripped => 500,
            _ => 350,
        };
        assert!(right >= least, "{report:#?}");
    }
    println!("{}", report.join("\n"));
}

/// Any text of few different lines, with any ends.
fn file() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "(  ){0,2}[abc]",
        1 => "",
        1 => " ",
        1 => "-- a|\\+\\+ b|@@|--- a/x|\\+\\+\\+ b/x|diff --git a/x b/x|\\\\ No",
    ];
    let end = prop_oneof![5 => Just("\n"), 1 => Just("\r\n")];
    let lines = proptest::collection::vec((line, end), 0..24);
    (lines, any::<bool>()).prop_map(|(lines, ended)| {
        let mut text: String = lines
            .into_iter()
            .flat_map(|(line, end)| [line, end.to_owned()])
            .collect();
        if !ended && text.ends_with('\n') {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_diff_of_two_files_makes_the_second_of_the_first(before in file(), after in file()) {
        // Without old lines there is nothing to find, and `similar` names no /dev/null.
        prop_assume!(!before.is_empty() && before != after);
        let patch = diff(&before, &after);
        let commit = Commit { before, after: after.clone(), patch };
        let content = applied(&commit);
        prop_assert!(content.is_ok(), "{:?}\n{}", content, commit.patch);
        prop_assert_eq!(content.unwrap(), after.into_bytes());
    }

    #[test]
    fn moved_hunks_are_right_or_rejected(
        lines in proptest::collection::hash_set("[a-z]{1,3}", 4..30),
        at in any::<prop::sample::Index>(),
        above in 0_usize..6,
    ) {
        // Every line once: one place only is right.
        let lines: Vec<String> = lines.into_iter().collect();
        let before = lines.join("\n") + "\n";
        let mut changed = lines.clone();
        changed[at.index(lines.len())] = "NEW".to_owned();
        let after = changed.join("\n") + "\n";
        let patch = diff(&before, &after);
        let above = "# above\n".repeat(above);
        let commit = Commit { before: above.clone() + &before, after: above + &after, patch };
        prop_assert_eq!(applied(&commit).unwrap(), commit.after.into_bytes());
    }

    #[test]
    fn any_text_is_read_or_rejected(text in "(--- a/f|\\+\\+\\+ b/f|@@ -1,2 \\+1 @@|@@|[ +-]a|\n|\\PC){0,30}") {
        let _ = Patch::parse(text.as_bytes());
    }
}
