//! Models of policies on disk.

use std::{fmt::Display, path::Path};

use chat::Chat;
use engine::Model;
use learn::{EngineTrainer, Trainer};

use super::Frame;
use crate::failure::{Classify, Outcome};

impl Frame<'_> {
    /// Writes a policy's model as a whole checkpoint of its own.
    pub(super) fn save_model(&self, name: &str, chat: &Chat, model: &Model) -> Outcome<()> {
        if self.run.replay().checkpoint(name).is_some() {
            return Ok(());
        }
        let save = |directory: &Path| -> Result<(), Box<dyn Display>> {
            model.save(directory).map_err(boxed)?;
            chat.save(directory).map_err(boxed)
        };
        self.run.checkpoint(name, "roles", 0, save).failed()?;
        Ok(())
    }

    pub(super) fn load_model(&self, name: &str) -> Outcome<Model> {
        Model::load(&self.run.checkpoint_path(name).failed()?).failed()
    }

    /// The end of a stage that an earlier process finished; of a checkpoint of several policies, `folder`
    /// is the policy's.
    pub(super) fn load_stage(
        &self,
        phase: &str,
        folder: Option<&str>,
        trainer: &mut EngineTrainer,
    ) -> Outcome<()> {
        if let Some(checkpoint) = self.replay.latest_checkpoint(phase) {
            let directory = self.run.checkpoint_path(&checkpoint.name).failed()?;
            let own = folder.map_or_else(|| directory.clone(), |folder| directory.join(folder));
            trainer.load(&own).failed()?;
        }
        Ok(())
    }
}

fn boxed(error: impl Display + 'static) -> Box<dyn Display> {
    Box::new(error)
}
