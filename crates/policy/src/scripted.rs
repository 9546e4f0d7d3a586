//! A policy that says what it was told to: fixed critiques in evaluations, and tests.

use std::{collections::BTreeMap, fmt};

use chat::Chat;
use futures::future::{BoxFuture, ready};
use record::{Completion, StopReason, TaskId, WeightVersion};

use crate::{Policy, PolicyError, Request};

type Script = dyn Fn(&Request) -> Option<String> + Send + Sync;

/// Answers from a function of the request. Its responses carry no log-probs and end with a stop
/// token, like those of a model that says exactly the text; a text longer than `max_tokens` is cut.
pub struct ScriptedPolicy {
    chat: Chat,
    script: Box<Script>,
}

impl ScriptedPolicy {
    /// Says what `script` returns; `None` is an error that names task and role.
    pub fn new(
        chat: Chat,
        script: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            chat,
            script: Box::new(script),
        }
    }

    /// Says the same to everybody.
    pub fn always(chat: Chat, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(chat, move |_| Some(text.clone()))
    }

    /// Says one text per task, whatever the role.
    pub fn by_task(chat: Chat, texts: BTreeMap<TaskId, String>) -> Self {
        Self::new(chat, move |request| texts.get(&request.task).cloned())
    }

    fn answer(&self, request: Request) -> Result<Completion, PolicyError> {
        let Some(text) = (self.script)(&request) else {
            return Err(PolicyError::NoScript {
                task: request.task,
                role: request.role,
            });
        };
        let mut response = self
            .chat
            .tokenizer()
            .encode(&text)
            .map_err(|error| PolicyError::Infrastructure(error.to_string()))?;
        let stops = [&request.sampling.stop, self.chat.stop_tokens()];
        let end = stops.into_iter().find_map(|stops| stops.first());
        response.extend(end);
        let whole = end.is_some() && response.len() <= request.sampling.max_tokens;
        response.truncate(request.sampling.max_tokens);
        Ok(Completion {
            prompt: request.prompt,
            response,
            logprobs: Vec::new(),
            sampled_logprobs: Vec::new(),
            top_logprobs: Vec::new(),
            prompt_logprobs: Vec::new(),
            stop: if whole {
                StopReason::Stop
            } else {
                StopReason::Length
            },
            sampling: request.sampling,
            weights: WeightVersion(0),
        })
    }
}

impl Policy for ScriptedPolicy {
    fn sample<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<Completion, PolicyError>> {
        Box::pin(ready(self.answer(request)))
    }

    fn chat(&self) -> &Chat {
        &self.chat
    }

    fn weights(&self) -> WeightVersion {
        WeightVersion(0)
    }
}

impl fmt::Debug for ScriptedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedPolicy").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use chat::{BpeOptions, Tokenizer};
    use futures::executor::block_on;
    use record::{Message, Sampling, Seed};

    use super::*;

    fn chat() -> Chat {
        let special_tokens = Chat::builtin_special_tokens();
        let options = BpeOptions {
            vocabulary: 261,
            special_tokens,
        };
        Chat::builtin(Tokenizer::train([], &options).unwrap()).unwrap()
    }

    fn request(task: &str, max_tokens: usize) -> Request {
        let prompt = chat().render(&[Message::user("?")], true).unwrap().tokens;
        Request {
            prompt,
            sampling: Sampling::greedy(max_tokens),
            seed: Seed(0),
            top_logprobs: 0,
            prompt_logprobs: false,
            role: "critic".to_owned(),
            task: TaskId(task.to_owned()),
        }
    }

    #[test]
    fn says_the_text_and_stops() {
        let policy = ScriptedPolicy::always(chat(), "no <|end|>");
        let said = block_on(policy.sample(request("a", 100))).unwrap();
        assert_eq!(said.stop, StopReason::Stop);
        assert_eq!(
            policy.chat().response_text(&said.response).unwrap(),
            "no <|end|>"
        );
        assert_eq!(said.response.len(), "no <|end|>".len() + 1);
        assert!(said.logprobs.is_empty());
    }

    #[test]
    fn a_long_text_is_cut() {
        let policy = ScriptedPolicy::always(chat(), "abc");
        let cut = block_on(policy.sample(request("a", 3))).unwrap();
        assert_eq!((cut.stop, cut.response.len()), (StopReason::Length, 3));
        let whole = block_on(policy.sample(request("a", 4))).unwrap();
        assert_eq!((whole.stop, whole.response.len()), (StopReason::Stop, 4));
    }

    #[test]
    fn tasks_have_their_own_lines() {
        let texts = BTreeMap::from([(TaskId("a".to_owned()), "A".to_owned())]);
        let policy = ScriptedPolicy::by_task(chat(), texts);
        let said = block_on(policy.sample(request("a", 9))).unwrap();
        assert_eq!(policy.chat().response_text(&said.response).unwrap(), "A");
        let error = block_on(policy.sample(request("b", 9))).unwrap_err();
        assert!(!error.is_infrastructure());
        assert!(error.to_string().contains("task b, role critic"), "{error}");
    }
}
