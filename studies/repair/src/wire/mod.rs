//! Planners' replies as text, read and written: the text protocol and tool calls.
//!
//! Spec of the repair study, sections 1.1, 1.4 and 1.6. Reading never fails: what is no action is an
//! [`ActionFault`] with the code that the protocol has for it.

mod prompt;
mod text;
mod tolerant;
mod tools;

use record::ToolCall;
use serde::{Deserialize, Serialize};

use crate::action::{Action, ActionFault, Meta};
pub use prompt::{calling_prompt, system_prompt};

/// How actions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireFormat {
    /// `<function=explore>…</function>`.
    #[default]
    Text,
    /// A call of a tool.
    Tools,
}

/// What becomes of replies that are nearly right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Each has the fault's code.
    #[default]
    Strict,
    /// A reply may be a JSON string, lie in a fence, be a bare JSON object, lack its terminator, have text
    /// around it, calls after the first and parameters that nobody knows; without any action it does
    /// nothing. All of this is told in the warnings.
    Tolerant,
}

/// A reply, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub action: Result<Action, ActionFault>,
    pub meta: Meta,
}

impl Reply {
    /// Of somebody who writes no text.
    pub fn of(action: Action) -> Self {
        Self {
            action: Ok(action),
            meta: Meta::default(),
        }
    }

    /// Reads what a policy wrote.
    pub fn read(text: &str, format: WireFormat, reading: Reading) -> Self {
        let mut meta = Meta::default();
        let action = match (format, reading) {
            (WireFormat::Text, Reading::Strict) => text::read(text, &mut meta),
            (WireFormat::Tools, Reading::Strict) => tools::read(text, &mut meta),
            (_, Reading::Tolerant) => tolerant::read(text, format, &mut meta),
        };
        Self { action, meta }
    }

    /// Reads the tool calls of a message that has them apart from its text.
    pub fn of_calls(calls: &[ToolCall], reading: Reading) -> Self {
        let mut meta = Meta::default();
        let action = tools::read_calls(calls, reading, &mut meta);
        Self { action, meta }
    }
}

/// What a policy would have written.
pub fn write(action: &Action, format: WireFormat) -> String {
    match format {
        WireFormat::Text => text::write(action),
        WireFormat::Tools => tools::write(action),
    }
}

/// Calls that came apart from their text, as a policy would have written them in it.
pub(crate) fn write_calls(calls: &[ToolCall]) -> String {
    let written: Vec<String> = calls.iter().map(tools::written).collect();
    written.join("\n")
}

/// Whether there is a call in a text.
pub(crate) fn has_calls(text: &str) -> bool {
    !tools::calls_in(text).0.is_empty()
}

/// The tool call that says `action`.
pub fn tool_call(action: &Action) -> ToolCall {
    tools::call(action)
}
