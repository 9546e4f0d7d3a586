//! Phase `tokenizer`: byte-level BPE trained on what the roles read and write.

use chat::{BpeOptions, Chat, Tokenizer};
use critique::tiny::{self, CriticMix, CriticRows, Split};

use record::Seed;

use super::{Walk, recipe::Recipe};
use crate::failure::{Classify, Outcome};

const CHECKPOINT: &str = "tokenizer";

/// Drafts whose statements, programs and critiques the vocabulary is trained on.
const CORPUS_DRAFTS: usize = 3000;

impl Walk<'_> {
    pub(super) fn vocabulary(&self) -> Outcome<Chat> {
        self.phase("tokenizer", || {
            let chat = train_vocabulary(self.recipe)?;
            if self.run.replay().checkpoint(CHECKPOINT).is_none() {
                let save = |directory: &std::path::Path| chat.save(directory);
                self.run
                    .checkpoint(CHECKPOINT, "tokenizer", 0, save)
                    .failed()?;
            }
            self.screen.say(format!(
                "  tokenizer: byte-level BPE of {} entries, trained on {CORPUS_DRAFTS} drafts",
                chat.tokenizer().vocabulary()
            ));
            Ok(0)
        })?;
        Chat::load(&self.run.checkpoint_path(CHECKPOINT).failed()?).failed()
    }
}

/// Trains the recipe's tokenizer; the same recipe gives the same bytes.
pub(crate) fn train_vocabulary(recipe: &Recipe) -> Outcome<Chat> {
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
        vocabulary: recipe.tokenizer.vocabulary,
        special_tokens: Chat::builtin_special_tokens(),
    };
    let tokenizer = Tokenizer::train(corpus.iter().map(String::as_str), &options).asked()?;
    Chat::builtin(tokenizer).failed()
}
