//! What can go wrong between text and tokens.

use std::path::{Path, PathBuf};

/// Errors of this crate. All of them speak of files, templates or settings that somebody can mend;
/// no text makes a byte-level tokenizer fail.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// A file is absent or unreadable.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file is there but is not what it should be.
    #[error("{}: {message}", path.display())]
    Malformed { path: PathBuf, message: String },
    /// The model directory has no chat template.
    #[error(
        "{}: no chat template; put `chat_template` into tokenizer_config.json or add \
         chat_template.jinja",
        directory.display()
    )]
    NoTemplate { directory: PathBuf },
    /// A token that the chat needs is not in the vocabulary.
    #[error("the tokenizer has no token `{token}`, which is needed as {purpose}")]
    MissingToken {
        token: String,
        purpose: &'static str,
    },
    /// A vocabulary too small for the bytes and the special tokens.
    #[error(
        "a vocabulary of {wanted} is too small: 256 bytes and {specials} special tokens need {}",
        256 + specials
    )]
    VocabularyTooSmall { wanted: usize, specials: usize },
    /// The template does not compile, or refused the messages.
    #[error("chat template: {0}")]
    Template(String),
    /// The tokenizer refused to work; byte-level tokenizers never do.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
}

impl ChatError {
    pub(crate) fn malformed(path: &Path, message: impl std::fmt::Display) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            message: message.to_string(),
        }
    }

    pub(crate) fn tokenizer(error: tokenizers::Error) -> Self {
        Self::Tokenizer(error.to_string())
    }
}

impl From<minijinja::Error> for ChatError {
    fn from(error: minijinja::Error) -> Self {
        // The detail of `raise_exception` sits in the source of the outermost error.
        let mut message = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::Template(message)
    }
}
