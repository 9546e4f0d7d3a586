//! Phases `sft/critic/…` and `sft/reviser/…`: both roles from what their models begin with.

use std::sync::Arc;

use chat::Chat;
use critique::{
    prompts::{critic_lesson, reviser_lesson},
    tiny::{self, CriticMix, CriticRows, Draft, ReviserMix, ReviserRows, Split},
};
use engine::Model;
use learn::{EngineTrainer, Trainer};
use record::{Datum, Message, Seed};
use train::{Example, StepDone, Supervised, SupervisedStage, examples_to_rows};

use super::{
    Walk,
    adapters::{BASE, learner_options},
    recipe::{Recipe, Role, Stage},
};
use crate::failure::{Classify, Outcome};

/// Checkpoint of the critic before reinforcement.
pub(crate) const CRITIC_SFT: &str = "critic-sft";
/// Checkpoint of the frozen reviser.
pub(crate) const REVISER: &str = "reviser";

impl Walk<'_> {
    pub(super) fn supervised_critic(&self, chat: &Chat) -> Outcome<Arc<Model>> {
        self.screen
            .headline("Supervised: the critic learns to write critiques");
        let seed = self.seed().stream("critic", 0);
        self.supervised(
            CRITIC_SFT,
            "critic",
            chat,
            &self.recipe.critic,
            seed,
            &self.recipe.sft.critic,
            |stage, index| critic_rows(self.recipe, chat, &stage.mix, index, stage.rows),
        )
    }

    pub(super) fn supervised_reviser(&self, chat: &Chat) -> Outcome<Arc<Model>> {
        self.screen
            .headline("Supervised: the reviser learns to follow critiques to the letter");
        let seed = self.seed().stream("reviser", 0);
        self.supervised(
            REVISER,
            "reviser",
            chat,
            &self.recipe.reviser,
            seed,
            &self.recipe.sft.reviser,
            |stage, index| reviser_rows(self.recipe, chat, &stage.mix, index, stage.rows),
        )
    }

    /// All stages of a role, ending in the checkpoint `name`.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller a role, each naming all of it"
    )]
    fn supervised<Mix>(
        &self,
        name: &str,
        role: &str,
        chat: &Chat,
        settings: &Role,
        seed: Seed,
        stages: &[Stage<Mix>],
        rows_of: impl Fn(&Stage<Mix>, u64) -> Outcome<Vec<Datum>>,
    ) -> Outcome<Arc<Model>> {
        if self.replay.checkpoint(name).is_some() {
            self.screen.say("  done before");
            return self.load_model(name).map(Arc::new);
        }
        let start = settings.model.open(chat, seed.stream("weights", 0));
        let mut model = Arc::new(start.asked()?);
        self.screen.say(format!(
            "  {} parameters, {}",
            model.n_parameters(),
            settings.model.origin()
        ));
        for (index, stage) in stages.iter().enumerate() {
            let phase = format!("sft/{role}/{}", index + 1);
            let engine = &self.instruments.engine;
            let base = format!("{role}-{BASE}");
            model = self.adapted((role, settings, index), &base, chat, model, seed)?;
            let options =
                learner_options(&self.recipe.training, seed.stream("stage", index as u64));
            let mut trainer = EngineTrainer::new(engine, model, None, options);
            if self.replay.phase_ended(&phase).is_some() {
                self.load_stage(&phase, &mut trainer)?;
            } else {
                let rows = rows_of(stage, index as u64)?;
                self.phase(&phase, || {
                    self.stage(&phase, stage, &rows, &mut trainer, chat)
                })?;
            }
            model = trainer.publish().failed()?.weights;
        }
        self.save_model(name, chat, &model)?;
        Ok(model)
    }

    fn stage<Mix>(
        &self,
        phase: &str,
        stage: &Stage<Mix>,
        rows: &[Datum],
        trainer: &mut EngineTrainer,
        chat: &Chat,
    ) -> Outcome<u64> {
        let supervised = Supervised {
            run: self.run,
            chat,
            replay: self.replay,
            stop: self.stop,
        };
        let steps = (rows.len() / stage.batch_rows.max(1)) as u64;
        let work = self.screen.work(phase, steps);
        let settings = SupervisedStage {
            phase,
            rows,
            batch_rows: stage.batch_rows,
            optimizer: &stage.optimizer,
            save_every: self.recipe.sft.save_every,
        };
        let mut smooth = None;
        let trained = supervised.train(&settings, trainer, |done: StepDone<'_>| {
            let loss = done.metrics.get("sft/loss").copied().unwrap_or(0.0);
            let mean = smooth.map_or(loss, |mean: f64| 0.98 * mean + 0.02 * loss);
            smooth = Some(mean);
            let speed = done
                .timings
                .get("perf/train_tokens_per_s")
                .copied()
                .unwrap_or(0.0);
            let line = format!("loss {mean:.3}, {:.1}k tokens/s", speed / 1e3);
            work.note(
                done.step,
                &line,
                done.step.is_multiple_of((steps / 5).max(1)),
            );
        });
        self.classify(trained)?;
        let tokens: usize = rows.iter().map(|row| row.tokens.len()).sum();
        work.done(format!(
            "{phase}: {} rows, {:.2} M tokens, loss {:.3}",
            rows.len(),
            tokens as f64 / 1e6,
            smooth.unwrap_or(0.0)
        ));
        Ok(0)
    }
}

/// The first `n` rows of a critic's stage with this mix.
pub(crate) fn critic_rows(
    recipe: &Recipe,
    chat: &Chat,
    mix: &CriticMix,
    index: u64,
    n: usize,
) -> Outcome<Vec<Datum>> {
    let drafts = drafts(recipe, index);
    let seed = Seed(recipe.seed).stream("critic-rows", index);
    let rows = CriticRows::new(&drafts, mix, seed).asked()?;
    rendered(
        chat,
        (0..n as u64).map(|index| critic_lesson(rows.row(index))),
    )
}

/// The first `n` rows of a reviser's stage with this mix.
pub(crate) fn reviser_rows(
    recipe: &Recipe,
    chat: &Chat,
    mix: &ReviserMix,
    index: u64,
    n: usize,
) -> Outcome<Vec<Datum>> {
    let drafts = drafts(recipe, index);
    let seed = Seed(recipe.seed).stream("reviser-rows", index);
    let rows = ReviserRows::new(&drafts, mix, seed).asked()?;
    rendered(
        chat,
        (0..n as u64).map(|index| reviser_lesson(rows.row(index))),
    )
}

fn rendered(
    chat: &Chat,
    lessons: impl Iterator<Item = (Vec<Message>, String)>,
) -> Outcome<Vec<Datum>> {
    let examples = lessons.map(|(prompt, answer)| Example { prompt, answer });
    examples_to_rows(chat, examples).failed()
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
        .map(|index| tiny::draft(seed, Split::Train, index, recipe.tasks.share_right))
        .collect()
}
