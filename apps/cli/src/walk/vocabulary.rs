//! Phase `tokenizer`: what each role reads and writes by. Roles from random weights share a byte-level
//! BPE trained on what they read and write; checkpoints bring tokenizer and template.

use std::path::Path;

use chat::{BpeOptions, Chat, Tokenizer};
use critique::tiny::{self, CriticMix, CriticRows, Split};

use record::Seed;

use super::{Walk, model_source::ModelSource, recipe::Recipe};
use crate::failure::{Classify, Outcome};

/// Checkpoint of the trained tokenizer.
const TRAINED: &str = "tokenizer";

/// Drafts whose statements, programs and critiques the vocabulary is trained on.
const CORPUS_DRAFTS: usize = 3000;

/// The chat of each role.
pub(crate) struct Chats {
    pub(crate) critic: Chat,
    pub(crate) reviser: Chat,
}

impl Chats {
    /// As a run of this recipe would have them.
    pub(crate) fn of(recipe: &Recipe) -> Outcome<Self> {
        let mut trained = None;
        let mut chat = |source: &ModelSource| match (source, &trained) {
            (ModelSource::Checkpoint(directory), _) => Chat::load(directory).asked(),
            (ModelSource::Random(_), Some(chat)) => Ok(Chat::clone(chat)),
            (ModelSource::Random(_), None) => {
                let chat = train_vocabulary(recipe)?;
                trained = Some(chat.clone());
                Ok(chat)
            }
        };
        Ok(Self {
            critic: chat(&recipe.critic.model)?,
            reviser: chat(&recipe.reviser.model)?,
        })
    }
}

impl Walk<'_> {
    pub(super) fn vocabulary(&self) -> Outcome<Chats> {
        self.phase("tokenizer", || {
            let chats = Chats::of(self.recipe)?;
            let roles = self.recipe.roles().into_iter();
            for ((role, settings), chat) in roles.zip([&chats.critic, &chats.reviser]) {
                let name = checkpoint(role, &settings.model);
                if self.run.replay().checkpoint(&name).is_some() {
                    continue;
                }
                let save = |directory: &Path| chat.save(directory);
                let saved = self.run.checkpoint(&name, "tokenizer", 0, save);
                saved.failed()?;
                let size = chat.tokenizer().vocabulary();
                self.screen.say(match &settings.model {
                    ModelSource::Random(_) => format!(
                        "  tokenizer: byte-level BPE of {size} entries, trained on \
                         {CORPUS_DRAFTS} drafts"
                    ),
                    ModelSource::Checkpoint(directory) => {
                        format!("  {role}: the {size} tokens of {}", directory.display())
                    }
                });
            }
            Ok(0)
        })?;
        let load = |role: &str, source: &ModelSource| {
            let name = checkpoint(role, source);
            Chat::load(&self.run.checkpoint_path(&name).failed()?).failed()
        };
        Ok(Chats {
            critic: load("critic", &self.recipe.critic.model)?,
            reviser: load("reviser", &self.recipe.reviser.model)?,
        })
    }
}

/// Where a run keeps the chat of a role.
fn checkpoint(role: &str, source: &ModelSource) -> String {
    match source {
        ModelSource::Random(_) => TRAINED.to_owned(),
        ModelSource::Checkpoint(_) => format!("{role}-tokenizer"),
    }
}

/// Trains the recipe's tokenizer; the same recipe gives the same bytes.
fn train_vocabulary(recipe: &Recipe) -> Outcome<Chat> {
    let seed = Seed(recipe.seed);
    let drafts: Vec<_> = (0..CORPUS_DRAFTS as u64)
        .map(|index| tiny::draft(seed, Split::Train, index, recipe.tasks.share_right))
        .collect();
    let rows = CriticRows::new(&drafts, &CriticMix::default(), seed).failed()?;
    let corpus: Vec<String> = (0..CORPUS_DRAFTS as u64)
        .map(|index| rows.row(index))
        .flat_map(|row| [row.statement, row.program, row.critique])
        .collect();
    let options = BpeOptions {
        vocabulary: recipe.tokenizer.as_ref().map_or(0, |own| own.vocabulary),
        special_tokens: Chat::builtin_special_tokens(),
    };
    let tokenizer = Tokenizer::train(corpus.iter().map(String::as_str), &options).asked()?;
    Chat::builtin(tokenizer).failed()
}
