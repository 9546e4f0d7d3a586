//! Phases `sft/critic/…` and `sft/reviser/…`: the rows that both roles are supervised on.

use std::sync::Arc;

use chat::Chat;
use critique::{
    CRITIC, GENERATOR,
    prompts::{critic_lesson, generator_lesson, reviser_lesson},
    tiny::{
        self, CriticMix, CriticRows, Draft, GeneratorMix, GeneratorRows, ReviserMix, ReviserRows,
        Split,
    },
};
use engine::Model;
use record::{Datum, Seed};

use super::{
    CritiqueRun,
    critiques::written_rows,
    players::Weights,
    recipe::{CriticStage, Recipe},
};
use crate::{
    failure::{Classify, Outcome},
    walk::{
        supervise::{Supervision, lesson_rows},
        vocabulary::Chats,
    },
};

/// Checkpoint of the critic before reinforcement.
pub(super) const CRITIC_SFT: &str = "critic-sft";
/// Checkpoint of the frozen reviser.
pub(super) const REVISER: &str = "reviser";

impl CritiqueRun<'_> {
    /// The critic after its supervised stages; nothing of one that is played elsewhere.
    pub(super) fn supervised_critic(&self, chats: &Chats) -> Outcome<Weights> {
        if self.recipe.critic.model.here().is_none() {
            return Ok(None);
        }
        self.frame
            .screen
            .headline("Supervised: the critic learns to write critiques");
        let chat = chats.of(CRITIC)?;
        let stages = &self.recipe.sft.critic;
        let critic = self.supervised(CRITIC_SFT, CRITIC, chat, |index| {
            let stage = &stages[index];
            critic_stage_rows(self.recipe, chat, stage, index as u64, stage.rows)
        });
        critic.map(Some)
    }

    /// The reviser after its supervised stages; nothing of one that is played elsewhere, or by the critic.
    pub(super) fn supervised_reviser(&self, chats: &Chats) -> Outcome<Weights> {
        if self.recipe.reviser.model.here().is_none() {
            return Ok(None);
        }
        self.frame
            .screen
            .headline("Supervised: the reviser learns to follow critiques to the letter");
        let chat = chats.of(REVISER)?;
        let stages = &self.recipe.sft.reviser;
        let reviser = self.supervised(REVISER, REVISER, chat, |index| {
            let stage = &stages[index];
            reviser_rows(self.recipe, chat, &stage.mix, index as u64, stage.rows)
        });
        reviser.map(Some)
    }

    /// The generator after its supervised stages; nothing of one that is played elsewhere, or of a recipe without one.
    pub(super) fn supervised_generator(&self, chats: &Chats) -> Outcome<Weights> {
        let generator = self.recipe.generator.as_ref();
        if generator.and_then(|role| role.model.here()).is_none() {
            return Ok(None);
        }
        self.frame
            .screen
            .headline("Supervised: the generator learns to write programs");
        let chat = chats.of(GENERATOR)?;
        let stages = &self.recipe.sft.generator;
        let generator = self.supervised(GENERATOR, GENERATOR, chat, |index| {
            let stage = &stages[index];
            generator_rows(self.recipe, chat, &stage.mix, index as u64, stage.rows)
        });
        generator.map(Some)
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

/// The first `n` rows of a critic's stage, of its file or its mix.
pub(super) fn critic_stage_rows(
    recipe: &Recipe,
    chat: &Chat,
    stage: &CriticStage,
    index: u64,
    n: usize,
) -> Outcome<Vec<Datum>> {
    match &stage.file {
        Some(file) => written_rows(recipe, chat, file, index, n),
        None => {
            let mix = stage.mix.clone().unwrap_or_default();
            critic_rows(recipe, chat, &mix, index, n)
        }
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

/// The first `n` rows of a generator's stage with this mix.
pub(super) fn generator_rows(
    recipe: &Recipe,
    chat: &Chat,
    mix: &GeneratorMix,
    index: u64,
    n: usize,
) -> Outcome<Vec<Datum>> {
    let drafts = drafts(recipe, index);
    let seed = Seed(recipe.seed).stream("generator-rows", index);
    let rows = GeneratorRows::new(&drafts, mix, seed).asked()?;
    let lessons = (0..n as u64).map(|index| generator_lesson(rows.row(index)));
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
