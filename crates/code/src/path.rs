//! Paths below a root that they cannot leave.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A path below some root: `/` between parts, none of them empty, `.` or `..`, no NUL. Whatever root
/// it is joined to, the text alone cannot lead outside; links on a disk still can, and are the
/// business of whoever opens it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelativePath(String);

/// Why a text is no [`RelativePath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path {path:?} is refused: {reason}")]
pub struct PathError {
    pub path: String,
    pub reason: &'static str,
}

/// Bytes in the longest path; Linux opens none that is longer.
const MAX_LENGTH: usize = 4095;

impl RelativePath {
    /// Accepts `a/b`, and `./a//b/` as the same path.
    pub fn new(path: impl Into<String>) -> Result<Self, PathError> {
        let path = path.into();
        let refuse = |reason| {
            Err(PathError {
                path: path.chars().take(200).collect(),
                reason,
            })
        };
        if path.len() > MAX_LENGTH {
            return refuse("it is longer than 4095 bytes");
        }
        if path.contains('\0') {
            return refuse("it contains a NUL byte");
        }
        if path.starts_with('/') {
            return refuse("it is absolute; give it relative to the working folder");
        }
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if parts.contains(&"..") {
            return refuse("it leads upwards with `..`");
        }
        if parts.is_empty() {
            return refuse("it names no file");
        }
        if parts.iter().any(|part| part.len() > 255) {
            return refuse("a part of it is longer than 255 bytes");
        }
        Ok(Self(parts.join("/")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// From the root down; at least one.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// The last part.
    pub fn file_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// `None` directly below the root.
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.0.rsplit_once('/')?;
        Some(Self(parent.to_owned()))
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RelativePath {
    type Error = PathError;

    fn try_from(path: String) -> Result<Self, PathError> {
        Self::new(path)
    }
}

impl From<RelativePath> for String {
    fn from(path: RelativePath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::RelativePath;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_path_are_equal() {
        for text in ["a/b", "./a/b", "a//b", "a/./b/"] {
            assert_eq!(RelativePath::new(text).unwrap().as_str(), "a/b");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for text in ["", ".", "/", "/a", "..", "a/../b", "a/..", "a\0b"] {
            let refused = RelativePath::new(text).unwrap_err();
            assert!(refused.to_string().contains("refused"), "{text:?}");
        }
        assert!(RelativePath::new("a/".repeat(3000)).is_err());
        assert!(RelativePath::new("a".repeat(256)).is_err());
    }

    proptest! {
        #[test]
        fn an_accepted_path_stays_below_its_root(text in "[./a\\x00]{0,12}") {
            if let Ok(path) = RelativePath::new(text) {
                prop_assert!(path.parts().all(|part| !matches!(part, "" | "." | "..")));
                prop_assert_eq!(RelativePath::new(path.as_str()).unwrap(), path);
            }
        }
    }
}
