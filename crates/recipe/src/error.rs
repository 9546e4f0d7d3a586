//! What can be wrong with a recipe, said so that the user can mend it.

use std::path::PathBuf;

use thiserror::Error;

use crate::overrides::Override;

#[derive(Debug, Error)]
pub enum RecipeError {
    #[error("cannot read the recipe {path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },

    /// The file's own text is wrong.
    #[error("{origin}, line {line}: {message}")]
    File {
        origin: String,
        line: usize,
        message: String,
    },

    /// An override is malformed, or makes a sound file unsound.
    #[error("--set {text}: {reason}")]
    Override { text: String, reason: String },

    /// A value that TOML cannot express.
    #[error("cannot write the resolved recipe of {origin}: {source}")]
    Unprintable {
        origin: String,
        source: toml::ser::Error,
    },
}

impl RecipeError {
    pub(crate) fn in_file(origin: &str, text: &str, source: &toml::de::Error) -> Self {
        let offset = source.span().map_or(0, |span| span.start).min(text.len());
        let line = text.as_bytes()[..offset]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count()
            + 1;
        Self::File {
            origin: origin.to_owned(),
            line,
            message: explain(source.message()),
        }
    }

    pub(crate) fn in_overrides(overrides: &[Override], source: &toml::de::Error) -> Self {
        let all: Vec<&str> = overrides
            .iter()
            .map(|change| change.text.as_str())
            .collect();
        Self::Override {
            text: all.join(" --set "),
            reason: explain(source.message()),
        }
    }
}

/// Adds the nearest known key to serde's "unknown field `x`, expected one of `a`, `b`".
fn explain(message: &str) -> String {
    let message = message.trim();
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return message.to_owned();
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(unknown) = quoted.next() else {
        return message.to_owned();
    };
    match nearest(unknown, quoted) {
        Some(known) => format!("{message}; did you mean `{known}`?"),
        None => message.to_owned(),
    }
}

/// The known name that an unknown one may have been meant for, if any is near.
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(unknown, known), known));
    let (distance, known) = distances.min()?;
    (distance <= known.len().max(unknown.len()) / 2).then_some(known)
}
