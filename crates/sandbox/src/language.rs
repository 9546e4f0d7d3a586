//! The languages that programs may be written in, by the names that people and protocols use.

mod discover;
mod find;
mod toolchain;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use find::foreign;
pub use toolchain::{Toolchain, Toolchains};

/// A language, or a way to run one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    Python,
    /// A Python file of tests, run by pytest.
    Pytest,
    Bash,
    C,
    Cpp,
    Rust,
    Go,
    /// Its class is `Main`.
    Java,
    #[serde(rename = "nodejs")]
    JavaScript,
    TypeScript,
}

struct Names {
    language: Language,
    /// The first is the one that is printed.
    names: &'static [&'static str],
    /// Of source files, without the dot.
    extensions: &'static [&'static str],
}

/// Names as SandboxFusion has them first.
const NAMES: [Names; 10] = [
    Names {
        language: Language::Python,
        names: &["python", "python3", "py"],
        extensions: &["py"],
    },
    Names {
        language: Language::Pytest,
        names: &["pytest"],
        extensions: &[],
    },
    Names {
        language: Language::Bash,
        names: &["bash", "sh", "shell"],
        extensions: &["sh", "bash"],
    },
    Names {
        language: Language::C,
        names: &["c", "gcc"],
        extensions: &["c"],
    },
    Names {
        language: Language::Cpp,
        names: &["cpp", "c++", "cxx", "g++"],
        extensions: &["cpp", "cc", "cxx", "c++", "C"],
    },
    Names {
        language: Language::Rust,
        names: &["rust", "rs"],
        extensions: &["rs"],
    },
    Names {
        language: Language::Go,
        names: &["go", "golang"],
        extensions: &["go"],
    },
    Names {
        language: Language::Java,
        names: &["java"],
        extensions: &["java"],
    },
    Names {
        language: Language::JavaScript,
        names: &["nodejs", "javascript", "js", "node"],
        extensions: &["js", "mjs", "cjs"],
    },
    Names {
        language: Language::TypeScript,
        names: &["typescript", "ts", "tsx"],
        extensions: &["ts", "mts"],
    },
];

impl Language {
    pub const ALL: [Self; 10] = [
        Self::Python,
        Self::Pytest,
        Self::Bash,
        Self::C,
        Self::Cpp,
        Self::Rust,
        Self::Go,
        Self::Java,
        Self::JavaScript,
        Self::TypeScript,
    ];

    /// The language that `name` stands for; capitals do not matter.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let mut all = NAMES.iter();
        let found = all.find(|names| names.names.contains(&name.as_str()))?;
        Some(found.language)
    }

    /// The language of files that end in `.extension`.
    pub fn of_extension(extension: &str) -> Option<Self> {
        let mut all = NAMES.iter();
        let found = all.find(|names| names.extensions.contains(&extension))?;
        Some(found.language)
    }

    /// Such as `nodejs`.
    pub fn name(self) -> &'static str {
        self.names().first().copied().unwrap_or_default()
    }

    /// Every name it goes by.
    pub fn names(self) -> &'static [&'static str] {
        let mut all = NAMES.iter();
        let found = all.find(|names| names.language == self);
        found.map_or(&[], |names| names.names)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_language_has_names_of_its_own() {
        let mut seen = HashSet::new();
        for language in Language::ALL {
            assert_eq!(
                Language::named(&language.name().to_uppercase()),
                Some(language)
            );
            for name in language.names() {
                assert_eq!(Language::named(name), Some(language));
                assert!(seen.insert(name), "{name}");
            }
        }
        assert_eq!(Language::named("cobol"), None);
        assert_eq!(Language::of_extension("rs"), Some(Language::Rust));
        assert_eq!(Language::of_extension("txt"), None);
    }

    #[test]
    fn languages_are_written_as_they_are_named() {
        for language in Language::ALL {
            let written = serde_json::to_string(&language).unwrap();
            assert_eq!(written, format!("\"{}\"", language.name()));
        }
    }
}
