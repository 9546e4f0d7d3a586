//! Why there is no verdict.

use sandbox::{Language, SandboxError};

/// The machinery failed; says nothing about the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The run ended well but its records cannot have come from the harness as shipped.
    #[error("the judge's harness failed in the jail: {detail}")]
    Harness { detail: String },
    /// Tests that call functions or run after the program need a program in Python.
    #[error(
        "these tests run Python programs, not {language}; give stdio tests or a script instead"
    )]
    NotPython { language: Language },
}
