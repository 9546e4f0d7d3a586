//! The most suspicious of the episodes that were rewarded in training, noted for the report.

use std::collections::BTreeMap;

use critique::{Task, suspicion::Suspects};
use record::TaskId;
use serde_json::json;

use super::CritiqueRun;
use crate::{
    failure::{Classify, Outcome},
    walk::{reinforce, tasks::TaskSets},
};

impl CritiqueRun<'_> {
    /// Looks at the rewarded episodes of training with the tests at hand, which nobody learns from any more.
    pub(super) fn note_suspects(&self, sets: &TaskSets<Task>) -> Outcome<()> {
        const COUNTED: &str = "summary/rewarded_episodes";
        let frame = self.frame;
        // The last of the two notes.
        if frame.replay.note(COUNTED).is_some() {
            return Ok(());
        }
        let tasks: BTreeMap<&TaskId, &Task> =
            sets.train.iter().map(|task| (&task.id, &**task)).collect();
        let mut suspects = Suspects::default();
        for step in frame.run.replay().steps(reinforce::PHASE) {
            let Some(reference) = &step.episodes else {
                continue;
            };
            let groups = frame.run.read_episodes(reference).failed()?;
            for episode in groups.iter().flat_map(|group| &group.episodes) {
                if let Some(task) = tasks.get(&episode.task) {
                    suspects.look(episode, task);
                }
            }
        }
        let counts = json!({"rewarded": suspects.rewarded, "suspicious": suspects.suspicious});
        frame.run.note("critique/suspects", &suspects).failed()?;
        frame.run.note(COUNTED, counts).failed()
    }
}
