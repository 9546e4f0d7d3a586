//! What is wrong with a planner's reply, by code, and what was silently put right.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Codes of the protocol (spec of the repair study, section 1.5). `InvalidEnum` closes the gap that is named
/// there: a word outside of its set had no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultCode {
    InvalidMultiBlock,
    /// Also a missing terminator, and a reply that is no text.
    MissingFunctionTag,
    UnknownAction,
    DuplicateParam,
    UnknownParam,
    ExtraText,
    InvalidJsonParam,
    MissingRequiredParam,
    InvalidEnum,
    /// A reply that is no action because it ended at its limit of tokens. No text has this code by itself.
    ReplyCutOff,
}

/// The code of an answer that ended at its limit of tokens before it was whole, a planner's or a patch model's.
pub(crate) const CUT_OFF: &str = "reply-cut-off";

impl FaultCode {
    /// Those of texts.
    pub const ALL: [Self; 9] = [
        Self::InvalidMultiBlock,
        Self::MissingFunctionTag,
        Self::UnknownAction,
        Self::DuplicateParam,
        Self::UnknownParam,
        Self::ExtraText,
        Self::InvalidJsonParam,
        Self::MissingRequiredParam,
        Self::InvalidEnum,
    ];

    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidMultiBlock => "invalid-multi-block",
            Self::MissingFunctionTag => "missing-function-tag",
            Self::UnknownAction => "unknown-action",
            Self::DuplicateParam => "duplicate-param",
            Self::UnknownParam => "unknown-param",
            Self::ExtraText => "extra-text",
            Self::InvalidJsonParam => "invalid-json-param",
            Self::MissingRequiredParam => "missing-required-param",
            Self::InvalidEnum => "invalid-enum",
            Self::ReplyCutOff => CUT_OFF,
        }
    }
}

impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A reply that is no action, and why, in words for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{code}: {detail}")]
pub struct ActionFault {
    pub code: FaultCode,
    pub detail: String,
}

impl ActionFault {
    pub fn new(code: FaultCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }
}

/// What was changed to make an action of a reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Meta {
    /// `value-capped`, `missing-plan`, and what tolerant reading passed over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub capped: bool,
    /// The numbers that were out of their range, as they were.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capped_fields: BTreeMap<String, Value>,
    /// Lists of which only the first is used.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub trimmed: BTreeMap<String, Trimmed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Trimmed {
    pub from: usize,
    pub to: usize,
}

impl Meta {
    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    pub(crate) fn cap(&mut self, name: &str, original: Value) {
        self.warn("value-capped");
        self.capped = true;
        self.capped_fields.insert(name.to_owned(), original);
    }
}
