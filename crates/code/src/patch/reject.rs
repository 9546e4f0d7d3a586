//! Why a patch was not applied, in words for whoever wrote it.

use crate::RelativePath;

/// Why a patch was not applied. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("there is no change in the patch: {}", FORMS)]
    Empty,
    #[error("{what}: {found} are more than the {limit} allowed")]
    TooLarge {
        what: &'static str,
        found: usize,
        limit: usize,
    },
    /// `line` is a line of the patch, from 1.
    #[error("line {line} of the patch: {detail}")]
    Syntax { line: usize, detail: String },
    #[error("the list of edits: {detail}")]
    Schema { detail: String },
    #[error("the path {path:?} is refused: {reason}")]
    Path { path: String, reason: &'static str },
    #[error("{path} does not exist; check the path, or create it with /dev/null as the old file")]
    Missing { path: RelativePath },
    #[error("{path} exists already; change it in place instead of creating it")]
    Exists { path: RelativePath },
    #[error("{path}: {detail}")]
    Unsupported { path: RelativePath, detail: String },
    /// The caller did not say what `path` holds.
    #[error("{path} was not read before the patch was applied")]
    NotRead { path: RelativePath },
    /// No place in the file has the lines of the hunk. `looked_for` is the first of them that
    /// differs, `nearest` the closest place.
    #[error("{path}, hunk {hunk}: {looked_for:?} is not there{}", shown(.nearest))]
    NotFound {
        path: RelativePath,
        hunk: usize,
        looked_for: String,
        nearest: Option<Nearest>,
    },
    /// Several places have the lines of the hunk.
    #[error(
        "{path}, hunk {hunk}: {looked_for:?} and the lines after it are at lines {}; give more lines around the change",
        listed(.lines)
    )]
    Ambiguous {
        path: RelativePath,
        hunk: usize,
        looked_for: String,
        /// From 1; the first few.
        lines: Vec<usize>,
    },
    #[error("{path}, hunk {hunk}: {detail}")]
    Hunk {
        path: RelativePath,
        hunk: usize,
        detail: String,
    },
    /// Of [`Patch::check`](super::Patch::check) alone: a hunk is found by its lines.
    #[error(
        "{path}, hunk {hunk}: it has {old} lines of the old file and {new} of the new one, and its `@@` line says \
         otherwise"
    )]
    Counts {
        path: RelativePath,
        hunk: usize,
        old: usize,
        new: usize,
    },
    #[error("{path}: hunks {first} and {second} change the same lines")]
    Overlap {
        path: RelativePath,
        first: usize,
        second: usize,
    },
    #[error("{path}, edit {edit}: {detail}")]
    Range {
        path: RelativePath,
        edit: usize,
        detail: String,
    },
}

/// The place that has most of a hunk's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The line, from 1, where the line that was looked for would have to be.
    pub line: usize,
    /// What is there; `None` past the end of the file.
    pub found: Option<String>,
}

const FORMS: &str = "give a unified diff, SEARCH/REPLACE blocks or a list of edits";

impl Rejection {
    /// One word for counting (spec of the repair study, section 4.2).
    pub fn code(&self) -> &'static str {
        match self {
            Self::Schema { .. } => "invalid-patch-schema",
            Self::Path { .. } | Self::Missing { .. } | Self::NotRead { .. } => "path-missing",
            Self::Range { .. } | Self::Overlap { .. } | Self::Counts { .. } => "range-invalid",
            Self::Empty | Self::Syntax { .. } => "invalid-unified-diff",
            Self::TooLarge { .. } => "too-large",
            Self::Exists { .. } => "path-exists",
            Self::Unsupported { .. } => "unsupported",
            Self::NotFound { .. } | Self::Ambiguous { .. } | Self::Hunk { .. } => "hunk-mismatch",
        }
    }
}

/// `found`, unless it is more than `limit`.
pub(super) fn bounded(what: &'static str, found: usize, limit: usize) -> Result<usize, Rejection> {
    if found > limit {
        return Err(Rejection::TooLarge { what, found, limit });
    }
    Ok(found)
}

/// A line for a message: readable and short.
pub(super) fn quoted(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(160).collect()
}

fn shown(nearest: &Option<Nearest>) -> String {
    match nearest {
        None => String::new(),
        Some(Nearest { line, found: None }) => {
            format!("; the nearest place runs past the end of the file at line {line}")
        }
        Some(Nearest {
            line,
            found: Some(found),
        }) => format!("; the nearest place has {found:?} at line {line}"),
    }
}

fn listed(lines: &[usize]) -> String {
    let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
    lines.join(", ")
}
