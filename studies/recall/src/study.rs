//! The study as the runner plays it.

use std::{collections::BTreeMap, sync::Arc};

use record::{Episode, Estimate, Fault, Group};
use retrieve::Embedder;
use rollout::{Cx, Played, Study};

use crate::{
    config::RecallConfig,
    memory::{CountTokens, MemoryError, MemoryManager, SnapshotCache},
    metrics,
    model_judge::ModelJudge,
    play::{History, Stage, rewarded},
    step_reward::{self, BadStepReward, Given},
    task::Task,
};

/// The recall study with its memory.
pub struct Recall {
    config: RecallConfig,
    manager: MemoryManager,
    histories: SnapshotCache<History>,
    judge: ModelJudge,
}

/// Histories that are kept: the dialogues of a step, at least.
const HISTORIES: usize = 4096;

/// Why a study cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RecallError {
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    StepReward(#[from] BadStepReward),
}

impl Recall {
    /// `count` counts tokens as the answering policy does; `embedder` is for dense retrieval.
    ///
    /// # Errors
    /// Settings of the memory that contradict each other, step rewards that make no sense.
    pub fn new(
        config: RecallConfig,
        count: CountTokens,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, RecallError> {
        config.step_rewards.check()?;
        let manager = MemoryManager::new(config.effective_memory(), count, embedder)?;
        Ok(Self {
            config,
            manager,
            histories: SnapshotCache::new(HISTORIES),
            judge: ModelJudge::default(),
        })
    }

    pub fn config(&self) -> &RecallConfig {
        &self.config
    }

    fn learn(&self, episode: &Episode) {
        if self.config.reward.judge {
            self.judge.learn(episode);
        }
    }

    fn stage(&self) -> Stage<'_> {
        Stage {
            config: &self.config,
            manager: &self.manager,
            histories: Some(&self.histories),
            judge: Some(&self.judge).filter(|_| self.config.reward.judge),
        }
    }
}

impl Study for Recall {
    type Task = Task;

    async fn play<'a>(&'a self, task: &'a Task, cx: &'a mut Cx) -> Result<Played, Fault> {
        let mut notes = self.stage().play(task, cx).await?;
        let given = Given::of_notes(&self.config.step_rewards, &notes);
        step_reward::score(&self.config.step_rewards, &mut notes, &given);
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
        let episodes = groups.iter().flat_map(|group| &group.episodes);
        episodes.for_each(|episode| self.learn(episode));
        let mut measured = metrics::of_step(groups);
        measured.extend(counted.clone());
        measured
    }

    fn evaluation_metrics(&self, groups: &[Group]) -> BTreeMap<String, Estimate> {
        metrics::of_evaluation(groups)
    }

    fn replay(&self, episode: &Episode) {
        self.learn(episode);
    }
}
