//! What an episode may touch while it plays.

use std::sync::Arc;

use chat::Chat;
use policy::{PolicyError, Request};
use record::{Call, Fault, Message, Sampling, Seed, StopReason, TaskId};

use crate::Roles;

/// The context of one episode: its roles, its randomness, and the record of its calls.
pub struct Cx {
    roles: Arc<Roles>,
    seed: Seed,
    task: TaskId,
    calls: Vec<Call>,
    turn: Option<u32>,
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
            turn: None,
        }
    }

    /// Says which turn of the study's dialogue the calls from here on are made in: step advantages compare
    /// calls of the same turn.
    pub fn at_turn(&mut self, turn: u32) {
        self.turn = Some(turn);
    }

    /// The step that the next [`Self::ask`] will be.
    pub fn next_step(&self) -> u32 {
        self.calls.len() as u32
    }

    /// Pays `reward` for the call at `step`, beside what the episode will be paid. Steps that are never paid
    /// stay unscored, which is not 0; the last word on a step holds.
    ///
    /// # Errors
    /// A step that has not been made or a reward that is not finite is a grader fault.
    pub fn reward_step(&mut self, step: u32, reward: f64) -> Result<(), Fault> {
        let steps = self.calls.len();
        let call = self.calls.get_mut(step as usize).ok_or_else(|| {
            Fault::grader(format!(
                "task {}: step {step} is rewarded, but {steps} were made",
                self.task
            ))
        })?;
        if !reward.is_finite() {
            return Err(Fault::grader(format!(
                "task {}: the reward of step {step} is {reward}",
                self.task
            )));
        }
        call.step_reward = Some(reward);
        Ok(())
    }

    /// The tokens of the policy bound to `role`, for budgets that are counted in them.
    ///
    /// # Errors
    /// A role that nothing is bound to is a grader fault.
    pub fn chat(&self, role: &str) -> Result<&Chat, Fault> {
        let binding = self.roles.get(role).ok_or_else(|| unbound(role))?;
        Ok(binding.policy.chat())
    }

    /// Asks the policy bound to `role` to answer `messages`, and records prompt, response and
    /// log-probs as they passed.
    ///
    /// # Errors
    /// A role that nothing is bound to, or a chat that does not fit the policy's context, is a
    /// grader fault: the task or the recipe is wrong. Everything else is an infrastructure fault.
    pub async fn ask(&mut self, role: &str, messages: &[Message]) -> Result<Answer, Fault> {
        let binding = self.roles.get(role).cloned().ok_or_else(|| unbound(role))?;
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
            turn: self.turn,
            step_reward: None,
        });
        Ok(answer)
    }

    /// How likely the policy bound to `role` would have answered `messages` with `text`: the mean over the
    /// tokens of `text` of their log-probabilities, so never above 0. It is asked for no response and no step
    /// is recorded.
    ///
    /// # Errors
    /// As [`Self::ask`]; a text of no tokens and a policy without probabilities are grader faults.
    pub async fn likelihood(
        &self,
        role: &str,
        messages: &[Message],
        text: &str,
    ) -> Result<f64, Fault> {
        let binding = self.roles.get(role).cloned().ok_or_else(|| unbound(role))?;
        let chat = binding.policy.chat();
        let fault = |why: &dyn std::fmt::Display| format!("task {}, role {role}: {why}", self.task);
        let mut prompt = chat
            .render(messages, true)
            .map_err(|error| Fault::grader(fault(&error)))?
            .tokens;
        let answer = chat
            .tokenizer()
            .encode(text)
            .map_err(|error| Fault::grader(fault(&error)))?;
        prompt.extend(&answer);
        let request = Request {
            prompt,
            sampling: Sampling::greedy(1),
            seed: self.seed.stream(role, 0),
            top_logprobs: 0,
            prompt_logprobs: true,
            role: role.to_owned(),
            task: self.task.clone(),
        };
        let completion = binding.policy.sample(request).await.map_err(|error| {
            let message = fault(&error);
            match error {
                PolicyError::PromptTooLong { .. } => Fault::grader(message),
                _ => Fault::infra(message),
            }
        })?;
        let scored = &completion.prompt_logprobs;
        let of_answer = scored.len().checked_sub(answer.len());
        match of_answer.map(|start| &scored[start..]) {
            Some(logprobs) if !logprobs.is_empty() => {
                let sum: f64 = logprobs.iter().map(|&logprob| f64::from(logprob)).sum();
                Ok(sum / logprobs.len() as f64)
            }
            _ => Err(Fault::grader(fault(&format!(
                "no likelihood of {text:?}: it has no tokens, or the policy has no probabilities"
            )))),
        }
    }

    /// The seed of the episode's own stream `purpose`.
    pub fn seed(&self, purpose: &str) -> Seed {
        self.seed.stream(purpose, 0)
    }

    pub(crate) fn into_calls(self) -> Vec<Call> {
        self.calls
    }
}

fn unbound(role: &str) -> Fault {
    Fault::grader(format!("no policy is bound to the role `{role}`"))
}
