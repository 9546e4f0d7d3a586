//! What a chat is made of, before it is tokens.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One turn of a chat, in the shape that chat templates know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Speaker,
    /// Empty for an assistant that only calls tools; absent and null are read as empty.
    #[serde(default, deserialize_with = "text_or_null")]
    pub content: String,
    /// What the assistant thought before it said `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// What the assistant wants done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Of a tool's message: the call that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Of a tool's message: the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Who says a message: the `role` of the chat templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    System,
    User,
    Assistant,
    Tool,
}

/// A call of a tool, as an assistant writes it. Templates that print it whole see the fields in this
/// order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(rename = "type", default)]
    pub kind: ToolKind,
    pub function: FunctionCall,
}

/// What is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    #[default]
    Function,
}

/// A function with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    pub name: String,
    /// An object, or a string that holds one as JSON.
    pub arguments: Value,
}

impl Message {
    pub fn new(role: Speaker, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            reasoning_content: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
        }
    }
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Speaker::System, content)
    }
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Speaker::User, content)
    }
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(Speaker::Assistant, content)
    }
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_messages_are_stored_as_role_and_content_alone() {
        let stored = serde_json::to_string(&Message::user("hi")).unwrap();
        assert_eq!(stored, r#"{"role":"user","content":"hi"}"#);
    }

    #[test]
    fn calls_of_tools_survive_and_null_is_no_content() {
        let call = json!({"role": "assistant", "content": null, "tool_calls": [
            {"function": {"name": "f", "arguments": {"b": 1, "a": [2.5, null]}}}
        ]});
        let message: Message = serde_json::from_value(call).unwrap();
        assert_eq!(message.content, "");
        assert_eq!(message.tool_calls[0].function.name, "f");
        let stored = serde_json::to_string(&message).unwrap();
        let expected = r#"{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"b":1,"a":[2.5,null]}}}]}"#;
        assert_eq!(stored, expected);
        assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), message);
    }
}
