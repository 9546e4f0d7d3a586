//! The study of the benchmark: a prompt of digits, one response, a reward for its spaces.

use std::{collections::BTreeMap, sync::Arc};

use chat::{BpeOptions, Chat, Tokenizer};
use rand::RngExt;
use record::{Episode, Estimate, Fault, Group, Message, Reward, Seed, TaskId};
use rollout::{Cx, Played, Study, TaskRow};

use crate::job::Size;

/// The trained role.
pub(crate) const WRITER: &str = "writer";

/// Text that the vocabulary is trained on.
const CORPUS: [&str; 3] = [
    include_str!("../../../../README.md"),
    include_str!("../../../../ARCHITECTURE.md"),
    include_str!("../../../../docs/judging.md"),
];

pub(crate) struct Spaces;

pub(crate) struct Prompt {
    id: TaskId,
    text: String,
}

impl TaskRow for Prompt {
    fn id(&self) -> &TaskId {
        &self.id
    }
}

/// Spaces in the text of a response: what both sides pay.
pub(crate) fn reward(text: &str) -> f64 {
    text.matches(' ').count() as f64
}

impl Study for Spaces {
    type Task = Prompt;

    async fn play<'a>(&'a self, task: &'a Prompt, cx: &'a mut Cx) -> Result<Played, Fault> {
        let answer = cx.ask(WRITER, &[Message::user(task.text.clone())]).await?;
        Ok(Played {
            reward: Reward::of("spaces", reward(&answer.text)),
            notes: serde_json::Value::Null,
        })
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn step_metrics(&self, _: &[Group], _: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn evaluation_metrics(&self, _: &[Group]) -> BTreeMap<String, Estimate> {
        BTreeMap::new()
    }

    fn replay(&self, _: &Episode) {}
}

/// Etude's tasks for the shared prompts.
pub(crate) fn tasks(prompts: &[String]) -> Vec<Arc<Prompt>> {
    let task = |(index, text): (usize, &String)| {
        Arc::new(Prompt {
            id: TaskId(format!("prompt-{index}")),
            text: text.clone(),
        })
    };
    prompts.iter().enumerate().map(task).collect()
}

/// A tokenizer and template that fit the model.
pub(crate) fn chat(size: &Size) -> Chat {
    let digits: String = (0..10)
        .map(|digit| format!(" {digit}").repeat(100))
        .collect();
    let options = BpeOptions {
        vocabulary: size.vocab_size,
        special_tokens: Chat::builtin_special_tokens(),
    };
    let corpus = CORPUS.into_iter().chain([digits.as_str()]);
    Chat::builtin(Tokenizer::train(corpus, &options).unwrap()).unwrap()
}

/// Distinct prompts of exactly as many tokens as the size says, template included.
pub(crate) fn prompts(chat: &Chat, size: &Size) -> Vec<String> {
    let template = chat
        .render(&[Message::user("")], true)
        .unwrap()
        .tokens
        .len();
    let prompt = |group: usize| {
        let mut rng = Seed(5).stream("prompt", group as u64).rng();
        let text: String = (template..size.prompt_tokens)
            .map(|_| format!(" {}", rng.random_range(0..10)))
            .collect();
        let rendered = chat.render(&[Message::user(text.clone())], true).unwrap();
        assert_eq!(
            rendered.tokens.len(),
            size.prompt_tokens,
            "a digit is a token"
        );
        text
    };
    (0..size.groups).map(prompt).collect()
}
