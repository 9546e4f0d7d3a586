//! The texts that a vocabulary of the critique study is trained on.

use critique::tiny::{self, CriticMix, CriticRows, Split};
use record::Seed;

use super::{CritiqueRun, recipe::Recipe};
use crate::{
    failure::{Classify, Outcome},
    walk::vocabulary::Chats,
};

/// Drafts whose statements, programs and critiques the vocabulary is trained on.
const CORPUS_DRAFTS: usize = 3000;

/// The chats of the roles as a run of this recipe would have them.
pub(super) fn chats(recipe: &Recipe) -> Outcome<Chats> {
    Chats::new(&recipe.common(), || corpus(recipe))
}

impl CritiqueRun<'_> {
    pub(super) fn vocabulary(&self) -> Outcome<Chats> {
        let (common, texts) = (
            self.recipe.common(),
            format!("{CORPUS_DRAFTS} drafts of the small world"),
        );
        let corpus = || corpus(self.recipe);
        self.frame.vocabulary(&common, &texts, corpus)
    }
}

/// Statements, programs and critiques; the same recipe gives the same bytes.
fn corpus(recipe: &Recipe) -> Outcome<Vec<String>> {
    let seed = Seed(recipe.seed);
    let drafts: Vec<_> = (0..CORPUS_DRAFTS as u64)
        .map(|index| {
            tiny::draft(
                recipe.tasks.set,
                seed,
                Split::Train,
                index,
                recipe.tasks.share_right,
            )
        })
        .collect();
    let rows = CriticRows::new(&drafts, &CriticMix::default(), seed).failed()?;
    let rows = (0..CORPUS_DRAFTS as u64).map(|index| rows.row(index));
    Ok(rows
        .flat_map(|row| [row.statement, row.program, row.critique])
        .collect())
}
