//! The study as the runner plays it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use record::{Episode, Estimate, Fault, Group, TaskId};
use rollout::{Cx, Played, Study};
use serde::{Deserialize, Serialize};

use crate::{
    Task,
    environment::{CountTokens, EnvironmentConfig, Sources},
    metrics,
    planner::PlannerConfig,
    play::{Notes, Stage},
    repairer::Repairer,
    workplace::Testbed,
};

/// What a recipe says about the study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepairConfig {
    pub planner: PlannerConfig,
    pub environment: EnvironmentConfig,
}

/// Opens the testbed of a task.
pub type Testbeds = Arc<dyn Fn(&Task) -> Result<Testbed, Fault> + Send + Sync>;

/// The repair study with its sandboxes and its repair loop.
pub struct Repair {
    config: RepairConfig,
    testbeds: Testbeds,
    repairer: Arc<dyn Repairer>,
    count: CountTokens,
    sources: Mutex<BTreeMap<TaskId, Sources>>,
}

/// Tasks whose sources are kept: those of a step, at least.
const KEPT: usize = 256;

impl fmt::Debug for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repair")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Repair {
    /// `count` counts tokens as the planner's policy does.
    pub fn new(
        config: RepairConfig,
        testbeds: Testbeds,
        repairer: Arc<dyn Repairer>,
        count: CountTokens,
    ) -> Self {
        Self {
            config,
            testbeds,
            repairer,
            count,
            sources: Mutex::new(BTreeMap::new()),
        }
    }

    pub fn config(&self) -> &RepairConfig {
        &self.config
    }

    /// Plays one episode of `task`.
    ///
    /// # Errors
    /// What kept the policy, the sandbox or the tests from answering.
    pub async fn play_notes(&self, task: &Task, cx: &mut Cx) -> Result<Notes, Fault> {
        let testbed = (self.testbeds)(task)?;
        let mut workplace = testbed.open().await?;
        let known = self.kept().get(&task.id).cloned();
        let sources = match known {
            Some(sources) => sources,
            None => {
                let sources = Sources::of(task, &mut workplace).await?;
                let mut kept = self.kept();
                if kept.len() >= KEPT {
                    kept.clear();
                }
                kept.insert(task.id.clone(), sources.clone());
                sources
            }
        };
        let stage = Stage {
            environment: &self.config.environment,
            planner: &self.config.planner,
            repairer: &*self.repairer,
            count: &self.count,
        };
        stage.play(task, sources, workplace, cx).await
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, BTreeMap<TaskId, Sources>> {
        // Whoever panicked left a whole map behind.
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Study for Repair {
    type Task = Task;

    async fn play<'a>(&'a self, task: &'a Task, cx: &'a mut Cx) -> Result<Played, Fault> {
        let notes = self.play_notes(task, cx).await?;
        Ok(Played {
            reward: notes.reward(),
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
        let mut measured = metrics::of_step(groups);
        measured.extend(counted.clone());
        measured
    }

    fn evaluation_metrics(&self, groups: &[Group]) -> BTreeMap<String, Estimate> {
        metrics::of_evaluation(groups)
    }

    fn replay(&self, _: &Episode) {}
}
