//! Phase `tokenizer`: what each policy reads and writes by. Policies from random weights share a
//! byte-level BPE trained on the study's texts; checkpoints bring tokenizer and template.

use std::{collections::BTreeMap, path::Path};

use anyhow::Context;
use chat::{BpeOptions, Chat, Tokenizer};

use super::{
    Frame,
    model_source::ModelSource,
    settings::{Common, PolicySettings},
};
use crate::failure::{Classify, Outcome};

/// Checkpoint of the trained tokenizer.
const TRAINED: &str = "tokenizer";

/// The chat of each policy, by its name.
pub(crate) struct Chats(BTreeMap<String, Chat>);

impl Chats {
    /// As a run with these policies would have them; `corpus` gives the texts that a vocabulary is trained
    /// on.
    pub(crate) fn new(
        common: &Common<'_>,
        corpus: impl Fn() -> Outcome<Vec<String>>,
    ) -> Outcome<Self> {
        let mut trained = None;
        let mut chats = BTreeMap::new();
        for policy in &common.policies {
            let chat = match (policy.model, &trained) {
                (ModelSource::Checkpoint(directory), _) => Chat::load(directory).asked()?,
                (ModelSource::Random(_), Some(chat)) => Chat::clone(chat),
                (ModelSource::Random(_), None) => {
                    let vocabulary = common.tokenizer.map_or(0, |own| own.vocabulary);
                    let chat = trained_chat(vocabulary, &corpus()?)?;
                    trained = Some(chat.clone());
                    chat
                }
            };
            chats.insert(policy.name.to_owned(), chat);
        }
        Ok(Self(chats))
    }

    pub(crate) fn of(&self, policy: &str) -> Outcome<&Chat> {
        let found = self.0.get(policy);
        found
            .with_context(|| format!("no policy is named {policy}"))
            .failed()
    }
}

impl FromIterator<(String, Chat)> for Chats {
    fn from_iter<I: IntoIterator<Item = (String, Chat)>>(chats: I) -> Self {
        Self(chats.into_iter().collect())
    }
}

impl Frame<'_> {
    /// The chats of a run, made once; `texts` says what a vocabulary is trained on, for people.
    pub(crate) fn vocabulary(
        &self,
        common: &Common<'_>,
        texts: &str,
        corpus: impl Fn() -> Outcome<Vec<String>>,
    ) -> Outcome<Chats> {
        self.phase("tokenizer", || {
            let chats = Chats::new(common, corpus)?;
            for policy in &common.policies {
                let chat = chats.of(policy.name)?;
                let name = checkpoint(policy);
                if self.run.replay().checkpoint(&name).is_some() {
                    continue;
                }
                let save = |directory: &Path| chat.save(directory);
                let saved = self.run.checkpoint(&name, "tokenizer", 0, save);
                saved.failed()?;
                let size = chat.tokenizer().vocabulary();
                self.screen.say(match policy.model {
                    ModelSource::Random(_) => {
                        format!("  tokenizer: byte-level BPE of {size} entries, trained on {texts}")
                    }
                    ModelSource::Checkpoint(directory) => format!(
                        "  {}: the {size} tokens of {}",
                        policy.name,
                        directory.display()
                    ),
                });
            }
            Ok(0)
        })?;
        let mut chats = BTreeMap::new();
        for policy in &common.policies {
            let directory = self.run.checkpoint_path(&checkpoint(policy)).failed()?;
            chats.insert(policy.name.to_owned(), Chat::load(&directory).failed()?);
        }
        Ok(Chats(chats))
    }
}

/// Where a run keeps the chat of a policy.
fn checkpoint(policy: &PolicySettings<'_>) -> String {
    match policy.model {
        ModelSource::Random(_) => TRAINED.to_owned(),
        ModelSource::Checkpoint(_) => format!("{}-tokenizer", policy.name),
    }
}

/// The built-in chat over a vocabulary of these texts; the same texts give the same bytes.
fn trained_chat(vocabulary: usize, corpus: &[String]) -> Outcome<Chat> {
    let options = BpeOptions {
        vocabulary,
        special_tokens: Chat::builtin_special_tokens(),
    };
    let tokenizer = Tokenizer::train(corpus.iter().map(String::as_str), &options).asked()?;
    Chat::builtin(tokenizer).failed()
}
