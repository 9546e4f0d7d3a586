//! Policies that are asked in messages, because nobody here knows their tokens.

use futures::future::BoxFuture;
use record::{Message, Said, Sampling, Seed, StopReason};
use serde_json::Value;

use crate::PolicyError;

/// Who answers messages with messages: a model behind somebody else's chat template. What it says can be
/// read and never trained on, because its tokens and their probabilities are unknown.
pub trait MessagePolicy: Send + Sync {
    /// Answers one conversation. Dropping the future takes it back.
    fn converse<'a>(
        &'a self,
        conversation: Conversation,
    ) -> BoxFuture<'a, Result<Reply, PolicyError>>;
}

/// One wish for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    pub messages: Vec<Message>,
    /// Functions that may be called, as OpenAI's API lists them: `{"type": "function", "function": {…}}`.
    pub tools: Vec<Value>,
    /// Whether one of `tools` has to be called.
    pub tool_choice: ToolChoice,
    pub sampling: Sampling,
    /// Passed on to policies that take one.
    pub seed: Seed,
}

/// Whether tools are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    #[default]
    Auto,
    Required,
}

/// What was said, and why it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub said: Said,
    pub stop: StopReason,
}
