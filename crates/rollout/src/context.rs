//! What an episode may touch while it plays.

use std::sync::Arc;

use policy::{PolicyError, Request};
use record::{Call, Fault, Message, Seed, StopReason, TaskId};

use crate::Roles;

/// The context of one episode: its roles, its randomness, and the record of its calls.
pub struct Cx {
    roles: Arc<Roles>,
    seed: Seed,
    task: TaskId,
    calls: Vec<Call>,
}

/// A policy's answer as the study reads it; the tokens are already recorded.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The response without its stop token or stop string.
    pub text: String,
    pub stop: StopReason,
}

impl Cx {
    pub(crate) fn new(roles: Arc<Roles>, seed: Seed, task: TaskId) -> Self {
        Self {
            roles,
            seed,
            task,
            calls: Vec::new(),
        }
    }

    /// Asks the policy bound to `role` to answer `messages`, and records prompt, response and
    /// log-probs as they passed.
    ///
    /// # Errors
    /// A role that nothing is bound to, or a chat that does not fit the policy's context, is a
    /// grader fault: the task or the recipe is wrong. Everything else is an infrastructure fault.
    pub async fn ask(&mut self, role: &str, messages: &[Message]) -> Result<Answer, Fault> {
        let binding = self
            .roles
            .get(role)
            .cloned()
            .ok_or_else(|| Fault::grader(format!("no policy is bound to the role `{role}`")))?;
        let chat = binding.policy.chat();
        let unreadable = |doing: &str, error: &dyn std::fmt::Display| {
            Fault::grader(format!(
                "task {}, role {role}: cannot {doing}: {error}",
                self.task
            ))
        };
        let prompt = chat
            .render(messages, true)
            .map_err(|error| unreadable("render the chat", &error))?
            .tokens;
        let mut sampling = binding.sampling.clone();
        if sampling.stop.is_empty() {
            sampling.stop = chat.stop_tokens().to_vec();
        }
        let request = Request {
            prompt,
            sampling,
            seed: self.seed.stream(role, self.calls.len() as u64),
            top_logprobs: 0,
            prompt_logprobs: false,
            role: role.to_owned(),
            task: self.task.clone(),
        };
        let completion = binding.policy.sample(request).await.map_err(|error| {
            let message = format!("task {}, role {role}: {error}", self.task);
            match error {
                PolicyError::PromptTooLong { .. } => Fault::grader(message),
                _ => Fault::infra(message),
            }
        })?;
        let text = chat
            .completion_text(&completion)
            .map_err(|error| unreadable("read the response", &error))?;
        let answer = Answer {
            text,
            stop: completion.stop,
        };
        self.calls.push(Call {
            role: role.to_owned(),
            completion,
        });
        Ok(answer)
    }

    /// The seed of the episode's own stream `purpose`.
    pub fn seed(&self, purpose: &str) -> Seed {
        self.seed.stream(purpose, 0)
    }

    pub(crate) fn into_calls(self) -> Vec<Call> {
        self.calls
    }
}
