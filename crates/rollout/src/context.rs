//! What an episode may touch while it plays.

use std::sync::Arc;

use chat::{Chat, TemplateInput};
use policy::{Conversation, MessagePolicy, Policy, PolicyError, Reply, Request, ToolChoice};
use record::{
    Call, Completion, Fault, LogLine, Message, Sampling, Seed, StopReason, TaskId, ToolCall,
    WeightVersion,
};
use serde_json::Value;

use crate::{
    Answers, Role, Roles,
    overlap::{Activity, Overlap},
};

/// The context of one episode: its roles, its randomness, and the record of its calls.
pub struct Cx {
    roles: Arc<Roles>,
    seed: Seed,
    task: TaskId,
    calls: Vec<Call>,
    turn: Option<u32>,
    log: Vec<LogLine>,
    overlap: Overlap,
}

/// A policy's answer as the study reads it; the tokens are already recorded.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The response without its stop token or stop string.
    pub text: String,
    /// Of policies that give them apart from the text.
    pub tool_calls: Vec<ToolCall>,
    pub stop: StopReason,
}

/// Functions that a policy may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tools {
    /// As OpenAI's API and chat templates list them: `{"type": "function", "function": {…}}`.
    pub functions: Vec<Value>,
    pub choice: ToolChoice,
}

impl Cx {
    pub(crate) fn new(roles: Arc<Roles>, seed: Seed, task: TaskId, overlap: Overlap) -> Self {
        Self {
            roles,
            seed,
            task,
            calls: Vec::new(),
            turn: None,
            log: Vec::new(),
            overlap,
        }
    }

    /// Leaves a line for a log of the run: what goes with the episode and is no fact of it, such as how long its
    /// tests took.
    pub fn log(&mut self, line: LogLine) {
        self.log.push(line);
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
    /// A role that nothing is bound to, or a policy whose tokens are unknown, is a grader fault.
    pub fn chat(&self, role: &str) -> Result<&Chat, Fault> {
        Ok(self.policy(role)?.chat())
    }

    /// Tokens of `text` for the policy bound to `role`; a quarter of its bytes where they are unknown.
    ///
    /// # Errors
    /// A role that nothing is bound to is a grader fault.
    pub fn count_tokens(&self, role: &str, text: &str) -> Result<usize, Fault> {
        match &self.binding(role)?.answers {
            Answers::Tokens(policy) => {
                let encoded = policy.chat().tokenizer().encode(text);
                Ok(encoded.map_err(|error| self.fault(role, &error))?.len())
            }
            Answers::Messages(_) => Ok(text.len().div_ceil(4)),
        }
    }

    /// Waits for programs in a sandbox, and counts the time as theirs: see [`Spent`](crate::Spent).
    pub async fn in_sandbox<T>(&self, work: impl Future<Output = T>) -> T {
        let _span = self.overlap.span(Activity::Sandbox);
        work.await
    }

    /// Asks the policy bound to `role` to answer `messages`, and records prompt, response and
    /// log-probs as they passed.
    ///
    /// # Errors
    /// A role that nothing is bound to, or a chat that does not fit the policy's context, is a
    /// grader fault: the task or the recipe is wrong. Everything else is an infrastructure fault.
    pub async fn ask(&mut self, role: &str, messages: &[Message]) -> Result<Answer, Fault> {
        self.ask_with(role, messages, &Tools::default()).await
    }

    /// [`Self::ask`], with functions that may be called. Templates of policies in tokens show them to the
    /// model, whose calls are then part of the text; other policies give them apart.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_with(
        &mut self,
        role: &str,
        messages: &[Message],
        tools: &Tools,
    ) -> Result<Answer, Fault> {
        let binding = self.binding(role)?.clone();
        match binding.answers {
            Answers::Tokens(policy) => {
                self.ask_tokens(role, policy.as_ref(), binding.sampling, messages, tools)
                    .await
            }
            Answers::Messages(policy) => {
                self.ask_messages(role, policy.as_ref(), binding.sampling, messages, tools)
                    .await
            }
        }
    }

    async fn ask_tokens(
        &mut self,
        role: &str,
        policy: &dyn Policy,
        mut sampling: Sampling,
        messages: &[Message],
        tools: &Tools,
    ) -> Result<Answer, Fault> {
        let chat = policy.chat();
        let unreadable = |doing: &str, error: &dyn std::fmt::Display| {
            self.fault(role, &format!("cannot {doing}: {error}"))
        };
        let input = TemplateInput {
            add_generation_prompt: true,
            tools: tools.functions.clone(),
            ..TemplateInput::default()
        };
        let prompt = chat
            .render_with(messages, &input)
            .map_err(|error| unreadable("render the chat", &error))?
            .tokens;
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
        let span = self.overlap.span(Activity::Decoding);
        let sampled = policy.sample(request).await;
        drop(span);
        let completion = sampled.map_err(|error| self.unanswered(role, &error))?;
        let text = chat
            .completion_text(&completion)
            .map_err(|error| unreadable("read the response", &error))?;
        let answer = Answer {
            text,
            tool_calls: Vec::new(),
            stop: completion.stop,
        };
        self.calls.push(Call {
            turn: self.turn,
            ..Call::new(role, completion)
        });
        Ok(answer)
    }

    async fn ask_messages(
        &mut self,
        role: &str,
        policy: &dyn MessagePolicy,
        sampling: Sampling,
        messages: &[Message],
        tools: &Tools,
    ) -> Result<Answer, Fault> {
        let conversation = Conversation {
            messages: messages.to_vec(),
            tools: tools.functions.clone(),
            tool_choice: tools.choice,
            sampling: sampling.clone(),
            seed: self.seed.stream(role, self.calls.len() as u64),
        };
        let span = self.overlap.span(Activity::Decoding);
        let reply = policy.converse(conversation).await;
        drop(span);
        let Reply { said, stop } = reply.map_err(|error| self.unanswered(role, &error))?;
        let completion = Completion {
            prompt: Vec::new(),
            response: Vec::new(),
            logprobs: Vec::new(),
            sampled_logprobs: Vec::new(),
            top_logprobs: Vec::new(),
            prompt_logprobs: Vec::new(),
            stop,
            sampling,
            weights: WeightVersion(0),
        };
        self.calls.push(Call {
            turn: self.turn,
            said: Some(said.clone()),
            ..Call::new(role, completion)
        });
        Ok(Answer {
            text: said.text,
            tool_calls: said.tool_calls,
            stop,
        })
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
        let policy = self.policy(role)?;
        let chat = policy.chat();
        let mut prompt = chat
            .render(messages, true)
            .map_err(|error| self.fault(role, &error))?
            .tokens;
        let answer = chat
            .tokenizer()
            .encode(text)
            .map_err(|error| self.fault(role, &error))?;
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
        let sampled = policy.sample(request).await;
        let completion = sampled.map_err(|error| self.unanswered(role, &error))?;
        let scored = &completion.prompt_logprobs;
        let of_answer = scored.len().checked_sub(answer.len());
        match of_answer.map(|start| &scored[start..]) {
            Some(logprobs) if !logprobs.is_empty() => {
                let sum: f64 = logprobs.iter().map(|&logprob| f64::from(logprob)).sum();
                Ok(sum / logprobs.len() as f64)
            }
            _ => Err(self.fault(
                role,
                &format!("no likelihood of {text:?}: it has no tokens, or the policy has no probabilities"),
            )),
        }
    }

    /// Whether the policy bound to `role` is asked in messages: functions that it may call are listed for it, and
    /// its calls come apart from the text.
    ///
    /// # Errors
    /// A role that nothing is bound to is a grader fault.
    pub fn is_asked_in_messages(&self, role: &str) -> Result<bool, Fault> {
        Ok(matches!(self.binding(role)?.answers, Answers::Messages(_)))
    }

    fn binding(&self, role: &str) -> Result<&Role, Fault> {
        self.roles.get(role).ok_or_else(|| unbound(role))
    }

    fn policy(&self, role: &str) -> Result<&Arc<dyn Policy>, Fault> {
        match &self.binding(role)?.answers {
            Answers::Tokens(policy) => Ok(policy),
            Answers::Messages(_) => Err(self.fault(
                role,
                &"the tokens of its policy are unknown, and they are needed; bind a model that runs here",
            )),
        }
    }

    /// The task or the recipe is wrong.
    fn fault(&self, role: &str, why: &dyn std::fmt::Display) -> Fault {
        Fault::grader(format!("task {}, role {role}: {why}", self.task))
    }

    fn unanswered(&self, role: &str, error: &PolicyError) -> Fault {
        let told = format!("task {}, role {role}: {error}", self.task);
        match error {
            PolicyError::PromptTooLong { .. } | PolicyError::NoRoom(_) => Fault::no_room(told),
            error if error.is_infrastructure() => Fault::infra(told),
            _ => Fault::grader(told),
        }
    }

    /// The seed of the episode's own stream `purpose`.
    pub fn seed(&self, purpose: &str) -> Seed {
        self.seed.stream(purpose, 0)
    }

    /// The calls, and the lines for logs.
    pub(crate) fn into_parts(self) -> (Vec<Call>, Vec<LogLine>) {
        (self.calls, self.log)
    }
}

fn unbound(role: &str) -> Fault {
    Fault::grader(format!("no policy is bound to the role `{role}`"))
}
