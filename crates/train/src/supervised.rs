//! The supervised loop: learn to say given answers.

use std::{path::Path, time::Instant};

use chat::Chat;
use journal::{Replay, RunDir, Step};
use learn::{Loss, OptimizerConfig, Trainer, metrics};
use record::{Batch, Datum, Message};

use crate::{
    StepDone, Stop, TrainError, conversations::response_length, metrics::check_reproduced,
};

/// A chat and the answer to learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub prompt: Vec<Message>,
    pub answer: String,
}

/// One stage: rows in order, each batch the next `batch_rows` of them.
pub struct SupervisedStage<'a> {
    /// Phase of the journal, for example `sft/critic/1`.
    pub phase: &'a str,
    pub rows: &'a [Datum],
    pub batch_rows: usize,
    pub optimizer: &'a OptimizerConfig,
    /// Steps between checkpoints.
    pub save_every: u64,
}

/// Checkpoints of a stage that stay.
const KEPT: usize = 1;

/// Where the loop runs.
pub struct Supervised<'a> {
    pub run: &'a RunDir,
    /// Saved with every checkpoint, so that each is a whole Hugging Face directory.
    pub chat: &'a Chat,
    /// What was committed when the process began.
    pub replay: &'a Replay,
    pub stop: &'a Stop,
}

/// Renders examples with the chat's own template. The mask holds for the tokens that the template puts
/// after the generation prompt, up to and including the stop token.
///
/// # Errors
/// [`TrainError::NotAPrefix`] for a template that renders an answered chat in another way than the
/// prompt.
pub fn examples_to_rows(
    chat: &Chat,
    examples: impl IntoIterator<Item = Example>,
) -> Result<Vec<Datum>, TrainError> {
    let mut rows = Vec::new();
    for (index, Example { mut prompt, answer }) in examples.into_iter().enumerate() {
        let asked = chat.render(&prompt, true)?.tokens;
        prompt.push(Message::assistant(answer));
        let answered = chat.render(&prompt, false)?.tokens;
        let Some(response) = answered.strip_prefix(asked.as_slice()) else {
            return Err(TrainError::NotAPrefix { index });
        };
        let end = response_length(chat, response);
        rows.push(Datum::supervised(&asked, &response[..end]));
    }
    Ok(rows)
}

impl Supervised<'_> {
    /// Runs a stage to its end, from its newest checkpoint if it was begun before. `trainer` must hold
    /// the weights that the stage starts from.
    pub fn train<T: Trainer>(
        &self,
        stage: &SupervisedStage<'_>,
        trainer: &mut T,
        mut on_step: impl FnMut(StepDone<'_>),
    ) -> Result<(), TrainError> {
        let steps = (stage.rows.len() / stage.batch_rows.max(1)) as u64;
        let mut first = 1;
        if let Some(checkpoint) = self.replay.latest_checkpoint(stage.phase) {
            trainer.load(&self.run.checkpoint_path(&checkpoint.name)?)?;
            first = checkpoint.step + 1;
            // A process that died after it had saved the last step left the one before, and nothing is saved again.
            self.run.prune(stage.phase, KEPT)?;
        }
        let loss = Loss::supervised();
        let mut committed = self
            .replay
            .steps(stage.phase)
            .filter(|step| step.step >= first);
        for step in first..=steps {
            if self.stop.requested() {
                return Err(TrainError::Stopped);
            }
            let began = Instant::now();
            let start = (step - 1) as usize * stage.batch_rows;
            let batch = Batch {
                data: stage.rows[start..start + stage.batch_rows].to_vec(),
            };
            let tokens = batch.data.iter().map(|row| row.tokens.len() as u64).sum();
            let report = trainer.forward_backward(&batch, &loss)?;
            let rate = stage.optimizer.lr_at(step - 1, steps);
            let update = trainer.optim_step(stage.optimizer, rate)?;
            let mut measured = metrics::supervised(&batch, &report.scores);
            measured.extend(metrics::optimizer(rate, update.grad_norm, update.applied));
            let seconds = began.elapsed().as_secs_f64();
            let timings = [
                ("timing_s/step".to_owned(), seconds),
                (
                    "perf/train_tokens_per_s".to_owned(),
                    tokens as f64 / seconds.max(1e-9),
                ),
            ];
            let done = Step {
                phase: stage.phase.to_owned(),
                step,
                tokens,
                metrics: measured,
                timings: timings.into(),
                episodes: None,
            };
            let before = committed.next();
            on_step(StepDone {
                step,
                steps,
                metrics: &done.metrics,
                timings: &done.timings,
                replayed: before.is_some(),
            });
            match before {
                Some(before) => check_reproduced(before, &done.metrics)?,
                None => {
                    self.run.commit_step(done, None)?;
                }
            }
            if step.is_multiple_of(stage.save_every.max(1)) && step < steps {
                self.save(stage, trainer, step)?;
            }
        }
        if first <= steps {
            self.save(stage, trainer, steps)?;
        }
        Ok(())
    }

    fn save<T: Trainer>(
        &self,
        stage: &SupervisedStage<'_>,
        trainer: &mut T,
        step: u64,
    ) -> Result<(), TrainError> {
        let name = format!("{}-{step:06}", stage.phase.replace('/', "-"));
        if self.run.replay().checkpoint(&name).is_none() {
            self.run.checkpoint(&name, stage.phase, step, |directory| {
                save_whole(trainer, self.chat, directory)
            })?;
        }
        self.run.prune(stage.phase, KEPT)?;
        Ok(())
    }
}

/// Weights, optimizer, tokenizer and chat template.
pub(crate) fn save_whole<T: Trainer>(
    trainer: &mut T,
    chat: &Chat,
    directory: &Path,
) -> Result<(), TrainError> {
    trainer.save(directory)?;
    Ok(chat.save(directory)?)
}
