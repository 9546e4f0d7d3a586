//! Phases `sft/…`: a policy from what its model begins with to the end of its supervised stages.

use std::sync::Arc;

use chat::Chat;
use engine::Model;
use learn::{EngineTrainer, Trainer};
use record::{Datum, Message, Seed};
use train::{Example, StepDone, Supervised, SupervisedStage, examples_to_rows};

use super::{
    Frame,
    adapters::BASE,
    settings::{PolicySettings, StageSize},
};
use crate::failure::{Classify, Outcome};

/// A policy that is supervised.
pub(crate) struct Supervision<'a> {
    pub(crate) policy: &'a PolicySettings<'a>,
    /// The weights of the policy that it begins as, where it has none of its own.
    pub(crate) start: Option<Arc<Model>>,
    /// Where it ends up.
    pub(crate) checkpoint: &'a str,
    pub(crate) chat: &'a Chat,
    /// Of its weights and its stages.
    pub(crate) seed: Seed,
    /// Steps between checkpoints.
    pub(crate) save_every: u64,
}

impl Frame<'_> {
    /// All stages of a policy; `rows_of` gives the rows of the stage with this index.
    pub(crate) fn supervised(
        &self,
        of: &Supervision<'_>,
        rows_of: impl Fn(usize) -> Outcome<Vec<Datum>>,
    ) -> Outcome<Arc<Model>> {
        let (policy, chat) = (of.policy, of.chat);
        if self.replay.checkpoint(of.checkpoint).is_some() {
            self.screen.say("  done before");
            return self.load_model(of.checkpoint).map(Arc::new);
        }
        let (start, origin) = match (&of.start, policy.begins_as) {
            (Some(model), Some(other)) => (model.merged(), format!("from those of {other}")),
            _ => {
                let start = policy.model.open(chat, of.seed.stream("weights", 0));
                (start.asked()?, policy.model.origin())
            }
        };
        let mut model = Arc::new(start);
        self.screen
            .say(format!("  {} parameters, {origin}", model.n_parameters()));
        for (index, stage) in policy.stages.iter().enumerate() {
            let phase = format!("sft/{}/{}", policy.name, index + 1);
            let base = format!("{}-{BASE}", policy.name);
            model = self.adapted(policy, index, &base, chat, model, of.seed)?;
            let options = self
                .training
                .learner_options(of.seed.stream("stage", index as u64));
            let mut trainer = EngineTrainer::new(&self.engines.engine, model, None, options);
            if self.replay.phase_ended(&phase).is_some() {
                self.load_stage(&phase, None, &mut trainer)?;
            } else {
                let rows = rows_of(index)?;
                self.phase(&phase, || {
                    self.stage(&phase, stage, &rows, &mut trainer, of)
                })?;
            }
            model = trainer.publish().failed()?.weights;
        }
        self.save_model(of.checkpoint, chat, &model)?;
        Ok(model)
    }

    fn stage(
        &self,
        phase: &str,
        stage: &StageSize<'_>,
        rows: &[Datum],
        trainer: &mut EngineTrainer,
        of: &Supervision<'_>,
    ) -> Outcome<u64> {
        let supervised = Supervised {
            run: self.run,
            chat: of.chat,
            replay: self.replay,
            stop: self.stop,
        };
        let steps = (rows.len() / stage.batch_rows.max(1)) as u64;
        let work = self.screen.work(phase, steps);
        let settings = SupervisedStage {
            phase,
            rows,
            batch_rows: stage.batch_rows,
            optimizer: stage.optimizer,
            save_every: of.save_every,
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

/// Lessons as rows: what is asked, and the answer to learn.
pub(crate) fn lesson_rows(
    chat: &Chat,
    lessons: impl Iterator<Item = (Vec<Message>, String)>,
) -> Outcome<Vec<Datum>> {
    let examples = lessons.map(|(prompt, answer)| Example { prompt, answer });
    examples_to_rows(chat, examples).failed()
}
