//! The languages that files are read as.

use serde::{Deserialize, Serialize};

/// By the ending of a file's name. Python is resolved name by name; of the others there are the symbols
/// that their grammars tag.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// A file that is named and not looked into.
    #[default]
    Other,
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Go,
    Rust,
    Java,
    C,
    Cpp,
    Ruby,
}

impl Language {
    pub const ALL: [Self; 11] = [
        Self::Other,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::Tsx,
        Self::Go,
        Self::Rust,
        Self::Java,
        Self::C,
        Self::Cpp,
        Self::Ruby,
    ];

    /// Of the file with this path.
    pub fn of(path: &str) -> Self {
        let file = path.rsplit('/').next().unwrap_or(path);
        let Some((_, ending)) = file.rsplit_once('.') else {
            return Self::Other;
        };
        match ending {
            "py" | "pyi" => Self::Python,
            "js" | "jsx" | "mjs" | "cjs" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "go" => Self::Go,
            "rs" => Self::Rust,
            "java" => Self::Java,
            "c" => Self::C,
            // Headers may be either's; C++'s grammar reads both.
            "h" | "hh" | "hpp" | "hxx" | "cc" | "cpp" | "cxx" => Self::Cpp,
            "rb" => Self::Ruby,
            _ => Self::Other,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::TypeScript => "TypeScript",
            Self::Tsx => "TSX",
            Self::Go => "Go",
            Self::Rust => "Rust",
            Self::Java => "Java",
            Self::C => "C",
            Self::Cpp => "C++",
            Self::Ruby => "Ruby",
        }
    }

    /// Languages whose files call one another's functions are of one family.
    pub(super) fn family(self) -> Self {
        match self {
            Self::TypeScript | Self::Tsx => Self::JavaScript,
            Self::Cpp => Self::C,
            other => other,
        }
    }
}
