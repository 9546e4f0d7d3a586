//! What is judged.

use sandbox::Language;
use serde::{Deserialize, Serialize};

/// A program in some language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    pub language: Language,
    pub source: String,
}

impl Submission {
    pub fn new(language: Language, source: impl Into<String>) -> Self {
        Self {
            language,
            source: source.into(),
        }
    }
}

/// A Python program.
impl From<&str> for Submission {
    fn from(source: &str) -> Self {
        Self::new(Language::Python, source)
    }
}
