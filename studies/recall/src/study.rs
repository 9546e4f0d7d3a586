//! The study as the runner plays it.

use std::{collections::BTreeMap, sync::Arc};

use record::{Episode, Estimate, Fault, Group};
use retrieve::Embedder;
use rollout::{Cx, Played, Study};

use crate::{
    config::RecallConfig,
    event::Notes,
    memory::{CountTokens, MemoryError, MemoryManager},
    play::{Stage, rewarded},
    task::Task,
};

/// The recall study with its memory.
pub struct Recall {
    config: RecallConfig,
    manager: MemoryManager,
}

impl Recall {
    /// `count` counts tokens as the answering policy does; `embedder` is for dense retrieval.
    ///
    /// # Errors
    /// Settings of the memory that contradict each other.
    pub fn new(
        config: RecallConfig,
        count: CountTokens,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, MemoryError> {
        let manager = MemoryManager::new(config.effective_memory(), count, embedder)?;
        Ok(Self { config, manager })
    }

    pub fn config(&self) -> &RecallConfig {
        &self.config
    }

    fn stage(&self) -> Stage<'_> {
        Stage {
            config: &self.config,
            manager: &self.manager,
        }
    }
}

impl Study for Recall {
    type Task = Task;

    async fn play<'a>(&'a self, task: &'a Task, cx: &'a mut Cx) -> Result<Played, Fault> {
        let notes = self.stage().play(task, cx).await?;
        for event in &notes.events {
            if let (Some(step), Some(reward)) = (event.step_id, event.step_reward) {
                cx.reward_step(step, reward)?;
            }
        }
        Ok(Played {
            reward: rewarded(&notes),
            notes: serde_json::to_value(&notes).map_err(Fault::grader)?,
        })
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn step_metrics(
        &self,
        groups: &[Group],
        counted: &BTreeMap<String, f64>,
    ) -> BTreeMap<String, f64> {
        let mut measured = shim(groups);
        measured.extend(counted.clone());
        measured
    }

    fn evaluation_metrics(&self, groups: &[Group]) -> BTreeMap<String, Estimate> {
        shim(groups)
            .into_iter()
            .map(|(name, value)| {
                (
                    name,
                    Estimate {
                        value,
                        low: value,
                        high: value,
                    },
                )
            })
            .collect()
    }

    fn replay(&self, _episode: &Episode) {}
}

fn shim(groups: &[Group]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for notes in groups
        .iter()
        .flat_map(|group| &group.episodes)
        .filter_map(Notes::of)
    {
        for grade in notes.events.iter().filter_map(|event| event.grade.as_ref()) {
            for name in [
                "exact_match".to_owned(),
                format!("exact_match/{}", grade.question_type),
            ] {
                let sum = sums.entry(name).or_default();
                sum.0 += grade.exact_match;
                sum.1 += 1.0;
            }
        }
    }
    sums.into_iter()
        .map(|(name, (sum, n))| (name, sum / n))
        .collect()
}
