//! The study as the runner plays it.

use std::{collections::BTreeMap, fmt, sync::Arc};

use record::{Episode, EpisodeId, Estimate, Fault, Group};
use rollout::{Cx, Played, Study};
use serde::{Deserialize, Serialize};

use crate::{
    Task,
    environment::{CountTokens, EnvironmentConfig, Sources, suspects},
    evaluation::evaluate,
    gold_patch::makes_the_same,
    metrics,
    planner::PlannerConfig,
    play::{Notes, Stage, StepNote},
    remembered::{Remembered, RememberedRepairs, SourcesOfTasks},
    repairer::Repairer,
    search::{self, SearchSettings},
    workplace::{Testbed, Workplace},
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
    sources: SourcesOfTasks,
    watch: Option<Watch>,
    graded_in: Option<Testbeds>,
    remembered: Option<Arc<Remembered>>,
}

/// Is told every step as it is made.
pub type Watch = Arc<dyn Fn(&Task, &StepNote) + Send + Sync>;

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
            sources: SourcesOfTasks::default(),
            watch: None,
            graded_in: None,
            remembered: None,
        }
    }

    /// Grades every patch that an episode says to resolve its task once more, in a fresh checkout of these
    /// testbeds, which are without the patches that make checkouts. Only what passes there is resolved.
    pub fn graded_in(self, testbeds: Testbeds) -> Self {
        Self {
            graded_in: Some(testbeds),
            ..self
        }
    }

    /// Searches for every repair, and grades every patch of a task, once for all studies that share `remembered`: for
    /// patch models that answer the same whenever they are asked the same, and tests that do.
    pub fn remembering(self, remembered: Arc<Remembered>) -> Self {
        Self {
            repairer: Arc::new(RememberedRepairs::new(self.repairer, remembered.clone())),
            remembered: Some(remembered),
            ..self
        }
    }

    /// Tells `watch` every step of every episode.
    pub fn watched(self, watch: Watch) -> Self {
        Self {
            watch: Some(watch),
            ..self
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
        let mut workplace = testbed.open_when_needed();
        let sources = self.sources(task, &testbed, &mut workplace).await?;
        let stage = Stage {
            environment: &self.config.environment,
            planner: &self.config.planner,
            repairer: &*self.repairer,
            count: &self.count,
            watch: self.watch.as_deref(),
        };
        let before = sources.clone();
        let mut notes = stage.play(task, sources, workplace, cx).await?;
        if let Some(testbeds) = self.graded_in.as_ref().filter(|_| notes.resolved) {
            let resolved = self.resolves(task, &notes.patch, testbeds).await?;
            (notes.graded, notes.resolved) = (Some(resolved), resolved);
        }
        let gold = &task.gold.patch;
        if !gold.is_empty() {
            let is_same = || makes_the_same(&notes.patch, gold, |path| before.text(path));
            notes.same_as_gold = Some(notes.resolved && is_same());
        }
        Ok(notes)
    }

    /// Whether a patch resolves its task in a fresh checkout.
    async fn resolves(&self, task: &Task, patch: &str, testbeds: &Testbeds) -> Result<bool, Fault> {
        let grade = async {
            let evaluated = evaluate(task, patch, &testbeds(task)?).await?;
            let report = evaluated.report.as_ref();
            Ok(report.is_some_and(|report| report.resolved))
        };
        match &self.remembered {
            Some(remembered) => remembered.grade(task, patch, grade).await,
            None => grade.await,
        }
    }

    /// Of the first episode's workplace, for all episodes of a task; whoever needs them meanwhile waits.
    async fn sources(
        &self,
        task: &Task,
        testbed: &Testbed,
        workplace: &mut Workplace,
    ) -> Result<Sources, Fault> {
        let most = self.config.environment.observation.suspects;
        let remembered = self.remembered.as_deref();
        let look = async {
            let _seat = match remembered {
                Some(remembered) => Some(remembered.seat().await?),
                None => None,
            };
            if most == 0 {
                return Sources::of(task, workplace).await;
            }
            // What its tests leave behind is not the planner's.
            let mut apart = testbed.open_when_needed();
            let sources = Sources::of(task, &mut apart).await?;
            let issue = &task.public.issue;
            let observed = search::observe(&mut apart, issue, &SearchSettings::default()).await?;
            workplace.add_log(apart.take_log());
            apart.close().await?;
            let found = suspects(issue, sources.graph(), &observed, most);
            Ok(sources.with_suspects(found, Arc::new(observed)))
        };
        let kept = remembered.map_or(&self.sources, |remembered| &remembered.sources);
        kept.get(&task.id, most, look).await
    }
}

impl Study for Repair {
    type Task = Task;

    async fn play<'a>(&'a self, task: &'a Task, cx: &'a mut Cx) -> Result<Played, Fault> {
        let notes = self.play_notes(task, cx).await?;
        notes.events().into_iter().for_each(|event| cx.log(event));
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

    fn evaluation_timings(
        &self,
        groups: &[Group],
        seconds: &BTreeMap<EpisodeId, f64>,
    ) -> BTreeMap<String, Estimate> {
        metrics::timings_of_evaluation(groups, seconds)
    }

    fn replay(&self, _: &Episode) {}
}
