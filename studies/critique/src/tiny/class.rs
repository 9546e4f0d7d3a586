//! Telling what a sampled critique is, and what the right one would have been.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::draft::Draft;
use super::wording::{Edit, Unreadable, read, write};

/// The one critique of a draft that is exactly right.
pub fn right_critique(draft: &Draft) -> String {
    let edit = draft.planted().map(|planted| Edit {
        slot: planted.slot,
        wanted: planted.right,
    });
    write(&draft.function.fragments(&draft.choices), edit.as_slice())
}

/// What a sampled critique of a draft turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Letter for letter the right one.
    Exact,
    /// Asks for the right edit, with a flaw in the analysis.
    RightEdit,
    /// Finds a right program right, with a flaw in the analysis.
    RightJudgment,
    /// Finds a wrong program right.
    FalseCorrect,
    /// Asks for edits that can be followed, but not for the right one.
    OtherEdit,
    NoOp,
    AbsentFragment,
    Malformed,
}

impl Class {
    /// The name that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::RightEdit => "right-edit",
            Self::RightJudgment => "right-judgment",
            Self::FalseCorrect => "false-correct",
            Self::OtherEdit => "other-edit",
            Self::NoOp => "no-op",
            Self::AbsentFragment => "absent-fragment",
            Self::Malformed => "malformed",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Classifies a critique of a draft.
pub fn classify(draft: &Draft, text: &str) -> Class {
    if text == right_critique(draft) {
        return Class::Exact;
    }
    let planted = draft.planted();
    let right = planted.map(|planted| Edit {
        slot: planted.slot,
        wanted: planted.right,
    });
    match read(text, &draft.function.fragments(&draft.choices)) {
        Ok(edits) if edits.as_slice() == right.as_slice() => {
            if right.is_some() {
                Class::RightEdit
            } else {
                Class::RightJudgment
            }
        }
        Ok(edits) if edits.is_empty() => Class::FalseCorrect,
        Ok(_) => Class::OtherEdit,
        Err(Unreadable::NoOp) => Class::NoOp,
        Err(Unreadable::AbsentFragment) => Class::AbsentFragment,
        Err(Unreadable::Malformed) => Class::Malformed,
    }
}
