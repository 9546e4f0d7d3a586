//! Why a policy gave no answer.

use std::time::Duration;

use record::TaskId;

/// Whose fault an unanswered request is: the request's own, which no retry can mend, or the
/// machinery's ([`PolicyError::is_infrastructure`]).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The prompt leaves no room for a response.
    #[error(
        "the prompt has {tokens} tokens and the context holds {context}; shorten the prompt or use a \
         model with a longer context"
    )]
    PromptTooLong { tokens: usize, context: usize },
    /// A server says so of its own context.
    #[error("the prompt leaves no room for an answer: {0}")]
    NoRoom(String),
    /// The request cannot be sampled as it is: an empty prompt, an impossible sampling parameter, a
    /// response longer than all memory.
    #[error("the request was refused: {0}")]
    Refused(String),
    /// A scripted policy has no line for this request.
    #[error("the script has no answer for task {task}, role {role}")]
    NoScript { task: TaskId, role: String },
    /// Tokenizer and model do not belong together.
    #[error(
        "the tokenizer has {tokenizer} entries and the model {model}; use the tokenizer that the \
         model was trained with"
    )]
    Vocabulary { tokenizer: usize, model: usize },
    /// A server has no room for longer than its answer may take.
    #[error(
        "{server} is full ({status}) and wants to be asked again in {wait} s, and an answer may take {limit} s with all \
         such waits; ask it later, or give it longer",
        wait = wait.as_secs_f64(), limit = limit.as_secs_f64()
    )]
    Full {
        server: String,
        status: u16,
        wait: Duration,
        limit: Duration,
    },
    /// The sampler was shut down before it answered.
    #[error("the sampler was shut down before it answered")]
    Stopped,
    /// The machinery failed in another way.
    #[error("{0}")]
    Infrastructure(String),
}

impl PolicyError {
    /// True when the same request may succeed later.
    pub fn is_infrastructure(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Stopped | Self::Infrastructure(_) => true,
            Self::PromptTooLong { .. }
            | Self::NoRoom(_)
            | Self::Refused(_)
            | Self::NoScript { .. }
            | Self::Vocabulary { .. } => false,
        }
    }
}
