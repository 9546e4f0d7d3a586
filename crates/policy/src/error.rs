//! Why a policy gave no answer.

/// Whose fault an unanswered request is: the request's own (`PromptTooLong`, `NoScript`), which a
/// retry cannot mend, or the machinery's (the others).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The prompt leaves no room for a response.
    #[error(
        "the prompt has {tokens} tokens and the context holds {context}; shorten the prompt or use a \
         model with a longer context"
    )]
    PromptTooLong { tokens: usize, context: usize },
    /// A scripted policy has no line for this request.
    #[error("the script has no answer for task {task}, role {role}")]
    NoScript { task: record::TaskId, role: String },
    /// The sampler behind the policy has stopped.
    #[error("the sampler has stopped: {0}")]
    Stopped(String),
    /// The machinery failed in another way.
    #[error("{0}")]
    Infrastructure(String),
}

impl PolicyError {
    /// True when the same request may succeed later.
    pub fn is_infrastructure(&self) -> bool {
        match self {
            Self::Stopped(_) | Self::Infrastructure(_) => true,
            Self::PromptTooLong { .. } | Self::NoScript { .. } => false,
        }
    }
}
