//! What patch models write, good and bad: each reply has its documented fault, or can be tried.

use std::collections::BTreeSet;

use crate::replies::{AROUND, cases, files, request};
use repair::{
    patch_model::{Proposed, read_reply},
    repair_loop::{Files, prepare},
};

#[test]
fn every_reply_has_its_code() {
    let request = request();
    let mut codes = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in cases() {
        let (code, detail) = match read_reply(&case.reply) {
            Proposed::None { code, detail } => (code, detail),
            Proposed::Patches(proposals) => {
                let proposal = &proposals[0];
                let all = files();
                let paths = proposal.patch.paths().into_iter();
                let files: Files = paths
                    .map(|path| {
                        let content = all.get(path.as_str()).cloned();
                        (path, content)
                    })
                    .collect();
                match prepare(proposal, &files, &request, Some(AROUND), &BTreeSet::new()) {
                    Ok(prepared) => {
                        assert!(!prepared.diff.is_empty(), "{}", case.name);
                        ("ok", prepared.diff)
                    }
                    Err(refused) => (refused.code, refused.detail),
                }
            }
        };
        assert!(
            !detail.is_empty() && detail.len() < 4_000,
            "{}: {detail}",
            case.name
        );
        if code != case.code {
            wrong.push(format!(
                "{}: {code}, not {}: {detail}",
                case.name, case.code
            ));
        }
        codes.insert(code);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // All that can be told without a sandbox.
    for code in [
        "invalid-patch-schema",
        "multi-file-diff",
        "newline-missing",
        "range-invalid",
        "path-missing",
        "invalid-unified-diff",
        "hunk-mismatch",
        "encoding-unsupported",
        "duplicate-patch",
        "lint-failed",
        "cgm-empty",
        "outside-targets",
        "too-many-edits",
        "edit-too-long",
        "guarded-test",
        "guarded-file",
    ] {
        assert!(codes.contains(code), "{code} has no case");
    }
}
