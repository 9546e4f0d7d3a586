//! Phase `tokenizer`: byte-level BPE trained on what the roles read and write.

use chat::{BpeOptions, Chat, Tokenizer};
use critique::tiny::{self, CriticMix, CriticRows, Split};

use super::Walk;
use crate::failure::{Classify, Outcome};

const CHECKPOINT: &str = "tokenizer";

/// Drafts whose statements, programs and critiques the vocabulary is trained on.
const CORPUS_DRAFTS: usize = 3000;

impl Walk<'_> {
    pub(super) fn vocabulary(&self) -> Outcome<Chat> {
        self.phase("tokenizer", || {
            let chat = self.train_vocabulary()?;
            if self.run.replay().checkpoint(CHECKPOINT).is_none() {
                let save = |directory: &std::path::Path| chat.save(directory);
                self.run.checkpoint(CHECKPOINT, "tokenizer", 0, save).failed()?;
            }
            self.screen.say(format!(
                "  tokenizer: byte-level BPE of {} entries, trained on {CORPUS_DRAFTS} drafts",
                chat.tokenizer().vocabulary()
            ));
            Ok(0)
        })?;
        Chat::load(&self.run.checkpoint_path(CHECKPOINT).failed()?).failed()
    }

    fn train_vocabulary(&self) -> Outcome<Chat> {
        let share_right = self.recipe.tasks.share_right;
        let drafts: Vec<_> = (0..CORPUS_DRAFTS as u64)
            .map(|index| tiny::draft(self.seed(), Split::Train, index, share_right))
            .collect();
        let rows = CriticRows::new(&drafts, &CriticMix::default(), self.seed()).failed()?;
        let corpus: Vec<String> = (0..CORPUS_DRAFTS as u64)
            .map(|index| rows.row(index))
            .flat_map(|row| [row.statement, row.program, row.critique])
            .collect();
        let options = BpeOptions {
            vocabulary: self.recipe.tokenizer.vocabulary,
            special_tokens: Chat::builtin_special_tokens(),
        };
        let tokenizer =
            Tokenizer::train(corpus.iter().map(String::as_str), &options).failed()?;
        Chat::builtin(tokenizer).failed()
    }
}
