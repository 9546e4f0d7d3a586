//! Who answers for the roles: policies while an episode is played, a teacher while lessons are made.

use std::future::Future;

use record::{Fault, Message};
use rollout::{Answer, Cx};

/// Somebody who can be asked.
pub(crate) trait Ask: Send {
    /// The answer of `role` to `messages`, in the turn `turn_id`.
    fn ask(
        &mut self,
        role: &str,
        turn_id: u32,
        messages: &[Message],
    ) -> impl Future<Output = Result<Answer, Fault>> + Send;

    /// The mean log-probability of the tokens of `text` as the answer of `role` to `messages`; `None` of
    /// somebody who has no probabilities by nature.
    fn likelihood(
        &self,
        role: &str,
        messages: &[Message],
        text: &str,
    ) -> impl Future<Output = Result<Option<f64>, Fault>> + Send;

    /// The number that the next call will have.
    fn next_step(&self) -> u32;
}

impl Ask for Cx {
    async fn ask(
        &mut self,
        role: &str,
        turn_id: u32,
        messages: &[Message],
    ) -> Result<Answer, Fault> {
        self.at_turn(turn_id);
        Cx::ask(self, role, messages).await
    }

    async fn likelihood(
        &self,
        role: &str,
        messages: &[Message],
        text: &str,
    ) -> Result<Option<f64>, Fault> {
        Cx::likelihood(self, role, messages, text).await.map(Some)
    }

    fn next_step(&self) -> u32 {
        Cx::next_step(self)
    }
}
