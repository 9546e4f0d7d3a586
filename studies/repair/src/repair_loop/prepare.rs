//! A proposed patch on the files that it is for: all that can be checked without a sandbox.

use std::collections::{BTreeMap, BTreeSet};

use code::{
    RelativePath,
    patch::{FileChange, LineChange, Rejection, line_changes, unified_diff},
    syntax_fault,
};

use super::guard::{guard_lines, guard_paths};
use crate::patch_model::{DUPLICATE, Feedback, PatchRequest, Proposal};

/// The files that a patch names, as they are; `None` for one that is not there.
pub type Files = BTreeMap<RelativePath, Option<Vec<u8>>>;

/// A patch that fits, may be tried and can be read by Python.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// What files become; `None` where one is removed.
    pub writes: Files,
    /// In its one normal form: from the files, not as somebody wrote it.
    pub diff: String,
    /// The digest of `diff`.
    pub patch_id: String,
    pub n_hunks: usize,
    pub added_lines: usize,
    pub removed_lines: usize,
}

/// Why a patch is not tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Spec of the repair study, section 1.5.
    pub code: &'static str,
    /// For whoever wrote the patch.
    pub detail: String,
}

impl Refused {
    pub(super) fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }
}

impl Refused {
    /// The same, or where `proposal` was refused for the same before, that it is proposed again.
    pub(super) fn or_again(self, proposal: &Proposal, request: &PatchRequest) -> Self {
        let is_this = |told: &Feedback| {
            told.patch == proposal.text && told.outcome == self.code && told.detail == self.detail
        };
        match request.feedback.iter().any(is_this) {
            true => {
                let Self { code, detail } = self;
                let detail = format!("this very patch was refused before, {code}: {detail}");
                Self::new(DUPLICATE, detail)
            }
            false => self,
        }
    }
}

/// A file before and after a patch.
pub(super) struct Changed<'a> {
    pub(super) path: &'a RelativePath,
    pub(super) before: Option<&'a str>,
    pub(super) after: Option<&'a str>,
    pub(super) lines: Vec<LineChange>,
}

/// Checks `proposal` and says what it makes of `files`. `tried` are the ids of patches of this attempt; those
/// of earlier ones are in the request's feedback.
///
/// # Errors
/// The first fault that is found (spec, section 4.2).
pub fn prepare(
    proposal: &Proposal,
    files: &Files,
    request: &PatchRequest,
    around: Option<u32>,
    tried: &BTreeSet<String>,
) -> Result<Prepared, Refused> {
    let paths = proposal.patch.paths();
    if request.constraints.one_file_per_patch && paths.len() > 1 {
        let names: Vec<&str> = paths.iter().map(RelativePath::as_str).collect();
        let detail = format!("one file may be changed, not {}", names.join(", "));
        return Err(Refused::new("multi-file-diff", detail));
    }
    guard_paths(&paths, &request.of_tests)?;
    for (path, content) in files {
        if content
            .as_deref()
            .is_some_and(|content| str::from_utf8(content).is_err())
        {
            let detail = format!("{path} is not UTF-8 and cannot be patched");
            return Err(Refused::new("encoding-unsupported", detail));
        }
    }
    let applied = proposal.patch.apply(files).map_err(|error| {
        let absent = |path: &RelativePath| matches!(files.get(path), None | Some(None));
        match &error {
            // Of a file that is not there every line is out of range.
            Rejection::Range { path, .. } if absent(path) => Refused::new(
                "path-missing",
                format!("{path} does not exist; check the path"),
            ),
            _ => Refused::new(error.code(), error.to_string()),
        }
    })?;
    let mut writes = Files::new();
    for change in applied.changes {
        match change {
            FileChange::Write { path, content, .. } => writes.insert(path, Some(content)),
            FileChange::Remove { path } => writes.insert(path, None),
        };
    }
    let mut changed = Vec::new();
    for (path, after) in &writes {
        let before = files.get(path).and_then(Option::as_deref);
        changed.push(Changed {
            path,
            before: before.and_then(|text| str::from_utf8(text).ok()),
            after: utf8(path, after.as_deref())?,
            lines: line_changes(
                before.unwrap_or_default(),
                after.as_deref().unwrap_or_default(),
            ),
        });
    }
    if changed.iter().all(|file| file.before == file.after) {
        let detail = "the patch changes nothing";
        return Err(Refused::new("invalid-patch-schema", detail));
    }
    for file in &changed {
        ends_lines(file)?;
        no_markers(file)?;
    }
    guard_lines(&changed, request, around)?;
    let of = |file: &Changed| {
        let [before, after] = [file.before, file.after].map(|side| side.map(str::as_bytes));
        unified_diff(file.path, before, after)
    };
    let diff: Vec<u8> = changed.iter().flat_map(of).collect();
    let diff = String::from_utf8_lossy(&diff).into_owned();
    let patch_id = blake3::hash(diff.as_bytes()).to_hex().to_string();
    let known = request.feedback.iter().any(|told| told.patch == diff);
    if known || tried.contains(&patch_id) {
        let detail = "this very patch was tried before";
        return Err(Refused::new(DUPLICATE, detail));
    }
    for file in &changed {
        stays_python(file)?;
    }
    let sum = |count: fn(&LineChange) -> usize| {
        let lines = changed.iter().flat_map(|file| &file.lines);
        lines.map(count).sum()
    };
    Ok(Prepared {
        n_hunks: sum(|_| 1),
        added_lines: sum(|lines| lines.new.len()),
        removed_lines: sum(|lines| lines.old.len()),
        diff,
        patch_id,
        writes,
    })
}

fn utf8<'a>(path: &RelativePath, text: Option<&'a [u8]>) -> Result<Option<&'a str>, Refused> {
    let text = text.map(str::from_utf8).transpose();
    text.map_err(|_| {
        let detail = format!("{path} would not be UTF-8 any more");
        Refused::new("encoding-unsupported", detail)
    })
}

/// A file that ended its last line goes on to.
fn ends_lines(file: &Changed<'_>) -> Result<(), Refused> {
    let open = |text: &str| !text.is_empty() && !text.ends_with('\n');
    if file.after.is_some_and(open) && !file.before.is_some_and(open) {
        let detail = format!("{} would not end in a newline any more", file.path);
        return Err(Refused::new("newline-missing", detail));
    }
    Ok(())
}

/// What patches are written in has no place in a file.
fn no_markers(file: &Changed<'_>) -> Result<(), Refused> {
    const MARKERS: [&str; 8] = [
        "@@ -",
        "diff --git ",
        "+++ b/",
        "--- a/",
        "<<<<<<< ",
        ">>>>>>> ",
        "*** Begin Patch",
        "*** End Patch",
    ];
    let after: Vec<&str> = file
        .after
        .unwrap_or_default()
        .split_inclusive('\n')
        .collect();
    let added = file
        .lines
        .iter()
        .flat_map(|lines| &after[lines.new.clone()]);
    for line in added {
        let marker = MARKERS.iter().find(|marker| line.starts_with(**marker));
        let schema = line.contains("\"new_text\"") && line.contains("\"start\"");
        if let Some(marker) = marker.copied().or(schema.then_some("\"new_text\""))
            && !file.before.unwrap_or_default().contains(line)
        {
            let detail = format!(
                "{}: {marker:?} belongs to a patch and would become a line of the file",
                file.path
            );
            return Err(Refused::new("invalid-patch-schema", detail));
        }
    }
    Ok(())
}

/// Only a file that was Python before has to be so after: it may be in an older one than is known here.
fn stays_python(file: &Changed<'_>) -> Result<(), Refused> {
    let (true, Some(after)) = (file.path.as_str().ends_with(".py"), file.after) else {
        return Ok(());
    };
    if file
        .before
        .is_some_and(|before| syntax_fault(before).is_some())
    {
        return Ok(());
    }
    match syntax_fault(after) {
        None => Ok(()),
        Some(fault) => {
            let line = after.lines().nth(fault.line - 1).unwrap_or_default();
            let detail = format!("{}, {fault}: {}", file.path, line.trim());
            Err(Refused::new("lint-failed", detail))
        }
    }
}
