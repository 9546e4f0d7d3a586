//! Phases `sft/critic/…` and `sft/reviser/…`: the rows that both roles are supervised on.

use std::sync::Arc;

use chat::Chat;
use critique::{
    prompts::{critic_lesson, reviser_lesson},
    tiny::{self, CriticMix, CriticRows, Draft, ReviserMix, ReviserRows, Split},
};
use engine::Model;
use record::{Datum, Seed};

use super::{CritiqueRun, recipe::Recipe};
use crate::{
    failure::{Classify, Outcome},
    walk::supervise::{Supervision, lesson_rows},
};

/// Checkpoint of the critic before reinforcement.
pub(super) const CRITIC_SFT: &str = "critic-sft";
/// Checkpoint of the frozen reviser.
pub(super) const REVISER: &str = "reviser";

impl CritiqueRun<'_> {
    pub(super) fn supervised_critic(&self, chat: &Chat) -> Outcome<Arc<Model>> {
        self.frame
            .screen
            .headline("Supervised: the critic learns to write critiques");
        let stages = &self.recipe.sft.critic;
        self.supervised(CRITIC_SFT, "critic", chat, |index| {
            let stage = &stages[index];
            critic_rows(self.recipe, chat, &stage.mix, index as u64, stage.rows)
        })
    }

    pub(super) fn supervised_reviser(&self, chat: &Chat) -> Outcome<Arc<Model>> {
        self.frame
            .screen
            .headline("Supervised: the reviser learns to follow critiques to the letter");
        let stages = &self.recipe.sft.reviser;
        self.supervised(REVISER, "reviser", chat, |index| {
            let stage = &stages[index];
            reviser_rows(self.recipe, chat, &stage.mix, index as u64, stage.rows)
        })
    }

    /// All stages of a role, ending in `checkpoint`.
    fn supervised(
        &self,
        checkpoint: &str,
        role: &str,
        chat: &Chat,
        rows_of: impl Fn(usize) -> Outcome<Vec<Datum>>,
    ) -> Outcome<Arc<Model>> {
        let common = self.recipe.common();
        let supervision = Supervision {
            policy: common.policy(role)?,
            start: None,
            checkpoint,
            chat,
            seed: self.frame.seed.stream(role, 0),
            save_every: self.recipe.sft.save_every,
        };
        self.frame.supervised(&supervision, rows_of)
    }
}

/// The first `n` rows of a critic's stage with this mix.
pub(super) fn critic_rows(
    recipe: &Recipe,
    chat: &Chat,
    mix: &CriticMix,
    index: u64,
    n: usize,
) -> Outcome<Vec<Datum>> {
    let drafts = drafts(recipe, index);
    let seed = Seed(recipe.seed).stream("critic-rows", index);
    let rows = CriticRows::new(&drafts, mix, seed).asked()?;
    let lessons = (0..n as u64).map(|index| critic_lesson(rows.row(index)));
    lesson_rows(chat, lessons)
}

/// The first `n` rows of a reviser's stage with this mix.
pub(super) fn reviser_rows(
    recipe: &Recipe,
    chat: &Chat,
    mix: &ReviserMix,
    index: u64,
    n: usize,
) -> Outcome<Vec<Datum>> {
    let drafts = drafts(recipe, index);
    let seed = Seed(recipe.seed).stream("reviser-rows", index);
    let rows = ReviserRows::new(&drafts, mix, seed).asked()?;
    let lessons = (0..n as u64).map(|index| reviser_lesson(rows.row(index)));
    lesson_rows(chat, lessons)
}

/// Drafts that the rows of a stage are made from; they may repeat, like the rows of a corpus. Where nothing
/// is supervised, some for a plan to measure.
fn drafts(recipe: &Recipe, stage: u64) -> Vec<Draft> {
    const SUPPOSED: usize = 64;
    let seed = Seed(recipe.seed).stream("sft-drafts", stage);
    let n = match recipe.sft.drafts {
        0 => SUPPOSED,
        n => n,
    };
    (0..n as u64)
        .map(|index| {
            tiny::draft(
                recipe.tasks.set,
                seed,
                Split::Train,
                index,
                recipe.tasks.share_right,
            )
        })
        .collect()
}
