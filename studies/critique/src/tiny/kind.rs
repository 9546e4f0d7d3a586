//! The kinds of critiques that can be written.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a written critique is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Repairs every wrong slot, or finds that none is wrong.
    Good,
    /// Finds the program right, whatever it is.
    Correct,
    /// Puts another wrong fragment into some slot.
    WrongSuggestion,
    /// Puts anything else into any slot, for better or worse.
    Edit,
    /// The same in two or three slots.
    SeveralEdits,
    /// Replaces a fragment by itself.
    NoOp,
    /// Replaces a fragment that is not there.
    AbsentFragment,
    /// Lacks a part, or has nothing of the form at all.
    Malformed,
    /// A suggestion judged "Correct", or no suggestion judged "Incorrect".
    Contradiction,
    /// An edit, cut off at any character.
    Truncated,
    Empty,
}

impl Kind {
    pub const ALL: [Self; 11] = [
        Self::Good,
        Self::Correct,
        Self::WrongSuggestion,
        Self::Edit,
        Self::SeveralEdits,
        Self::NoOp,
        Self::AbsentFragment,
        Self::Malformed,
        Self::Contradiction,
        Self::Truncated,
        Self::Empty,
    ];

    /// The name that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Correct => "correct",
            Self::WrongSuggestion => "wrong-suggestion",
            Self::Edit => "edit",
            Self::SeveralEdits => "several-edits",
            Self::NoOp => "no-op",
            Self::AbsentFragment => "absent-fragment",
            Self::Malformed => "malformed",
            Self::Contradiction => "contradiction",
            Self::Truncated => "truncated",
            Self::Empty => "empty",
        }
    }

    /// Whether the program stays as it is under every critique of this kind.
    pub fn changes_nothing(self) -> bool {
        !matches!(
            self,
            Self::Good | Self::WrongSuggestion | Self::Edit | Self::SeveralEdits
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
