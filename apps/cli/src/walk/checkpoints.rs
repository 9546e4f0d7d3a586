//! Models of policies on disk.

use std::{collections::BTreeMap, fmt::Display, path::Path, sync::Arc};

use chat::Chat;
use engine::Model;
use learn::{EngineTrainer, Trainer};

use super::{Again, Common, Frame, PolicySettings, vocabulary::Chats};
use crate::failure::{Classify, Outcome};

/// The weights of every local policy, by its name.
pub(crate) type Models = BTreeMap<String, Arc<Model>>;

/// Evaluations of the policies of a recipe before reinforcement, and after.
pub(crate) const BEFORE: &str = "sft";
pub(crate) const AFTER: &str = "rl";

/// Checkpoint of a policy before reinforcement.
pub(crate) fn supervised_checkpoint(policy: &str) -> String {
    format!("{policy}-sft")
}

/// Checkpoint of a policy after reinforcement.
pub(crate) fn reinforced_checkpoint(policy: &str) -> String {
    format!("{policy}-rl")
}

/// The checkpoint of a policy as it is in the evaluation of this name.
pub(crate) fn evaluated_checkpoint(policy: &PolicySettings<'_>, evaluation: &str) -> String {
    match evaluation {
        AFTER if policy.reinforced => reinforced_checkpoint(policy.name),
        _ => supervised_checkpoint(policy.name),
    }
}

impl Again<'_> {
    /// The local policies of the run as they are in the evaluation of this name; `None` where it has not come so
    /// far.
    pub(crate) fn policies(
        &self,
        common: &Common<'_>,
        evaluation: &str,
    ) -> Outcome<Option<(Chats, Models)>> {
        if evaluation == AFTER && common.rl.is_none() {
            return Ok(None);
        }
        let (mut chats, mut models) = (Vec::new(), Models::new());
        for policy in &common.policies {
            let checkpoint = evaluated_checkpoint(policy, evaluation);
            if self.reader.replay().checkpoint(&checkpoint).is_none() {
                return Ok(None);
            }
            let directory = self.reader.checkpoint_path(&checkpoint).asked()?;
            chats.push((policy.name.to_owned(), Chat::load(&directory).asked()?));
            let model = Model::load(&directory).asked()?;
            models.insert(policy.name.to_owned(), Arc::new(model));
        }
        Ok(Some((Chats::from_iter(chats), models)))
    }
}

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
