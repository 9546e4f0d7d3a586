//! Policy: tokens in, tokens with log-probs out. Back ends: engine, scripted; and [`MessagePolicy`] for those
//! whose tokens are unknown: chat endpoints.

mod conversation;
pub mod endpoint;
mod engine;
mod error;
mod scripted;

use chat::Chat;
use futures::future::BoxFuture;
use record::{Completion, Sampling, Seed, TaskId, TokenId, WeightVersion};

pub use self::engine::{EnginePolicy, stop_watch};
pub use conversation::{Conversation, MessagePolicy, Reply, ToolChoice};
pub use endpoint::{Endpoint, EndpointConfig};
pub use error::PolicyError;
pub use scripted::ScriptedPolicy;

/// Who answers for a role. Requests are independent of each other: the answer to one depends on its
/// own content and the weights alone, never on what else is being sampled.
pub trait Policy: Send + Sync {
    /// Samples one response; every setting of [`Sampling`] is the request's own. Dropping the future
    /// takes the request back.
    fn sample<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<Completion, PolicyError>>;

    /// The tokens of this policy: what prompts are rendered with and responses read with.
    fn chat(&self) -> &Chat;

    /// Weights that a request made now would be sampled from.
    fn weights(&self) -> WeightVersion;
}

/// One wish for a response. Policies that have no probabilities give none, whatever is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub prompt: Vec<TokenId>,
    pub sampling: Sampling,
    /// Every draw for this response comes from here.
    pub seed: Seed,
    /// Also the so many most probable tokens at each place of the response.
    pub top_logprobs: usize,
    /// Also the log-probabilities of the prompt.
    pub prompt_logprobs: bool,
    /// The study's name for who is asked.
    pub role: String,
    /// The task that the episode plays; says nothing to policies that are models.
    pub task: TaskId,
}
