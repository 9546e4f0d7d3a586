//! What holds for any bytes given as a patch, for the fuzz target and the tests alike.

use std::collections::BTreeMap;

use code::{
    Patch, RelativePath,
    patch::{Applied, FileChange, MAX_CONTENT, Rejection},
};

/// Stands between the file and the patch in an input that has both.
pub(crate) const DIVIDER: &[u8] = b"\n%%%%\n";

/// Reads and applies `input`, and panics when something does not hold. Says whether it was applied.
pub(crate) fn check(input: &[u8]) -> bool {
    let divider = input
        .windows(DIVIDER.len())
        .position(|window| window == DIVIDER);
    let (content, text) = match divider {
        Some(at) => (input[..at].to_vec(), &input[at + DIVIDER.len()..]),
        // A file that the hunks of the patch are likely to fit.
        None => (old_lines(input), input),
    };
    let patch = match Patch::parse(text) {
        Ok(patch) => patch,
        Err(rejection) => {
            short(&rejection);
            return false;
        }
    };
    let paths = patch.paths();
    assert!(!paths.is_empty());
    for path in &paths {
        let spelled = |part: &str| {
            part.is_empty() || part == "." || part == ".." || part.eq_ignore_ascii_case(".git")
        };
        assert!(!path.parts().any(spelled), "{path}");
        assert!(!path.as_str().contains('\0') && !path.as_str().starts_with('/'));
    }
    let mut applied = false;
    for present in [0b1111_u64, 0b0101, 0] {
        let files: BTreeMap<RelativePath, Option<Vec<u8>>> = (0..)
            .zip(&paths)
            .map(|(at, path)| {
                let present = present >> (at % 4) & 1 == 1;
                (path.clone(), present.then(|| content.clone()))
            })
            .collect();
        match patch.apply(&files) {
            Ok(outcome) => {
                sound(&outcome, &files);
                applied = true;
            }
            Err(rejection) => {
                assert!(!matches!(rejection, Rejection::NotRead { .. }));
                short(&rejection);
            }
        }
    }
    applied
}

fn sound(outcome: &Applied, files: &BTreeMap<RelativePath, Option<Vec<u8>>>) {
    let mut bytes = 0;
    for change in &outcome.changes {
        let path = match change {
            FileChange::Write { path, content, .. } => {
                bytes += content.len();
                path
            }
            FileChange::Remove { path } => {
                assert!(files[path].is_some(), "{path} is removed and was not there");
                path
            }
        };
        assert!(files.contains_key(path), "{path} is not named by the patch");
    }
    assert!(bytes <= MAX_CONTENT);
    for hunk in &outcome.report.hunks {
        assert!(files.contains_key(&hunk.path) && hunk.line >= 1 && hunk.number >= 1);
    }
}

/// Rejections are read by models: they are bounded, whatever the patch held.
fn short(rejection: &Rejection) {
    assert!(rejection.to_string().len() < 16 << 10);
    assert!(!rejection.code().is_empty());
}

fn old_lines(patch: &[u8]) -> Vec<u8> {
    let lines = patch.split_inclusive(|byte| *byte == b'\n');
    let old = lines.filter_map(|line| match line {
        [b' ' | b'-', rest @ ..] if !line.starts_with(b"--- ") => Some(rest),
        _ => None,
    });
    old.flatten().copied().collect()
}
