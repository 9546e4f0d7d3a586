//! What was found out for one episode is told all others of a process: whom tests suspect, what came of a repair,
//! and what a patch was graded.
//!
//! What a search finds is a function of the task and of what it is asked, and a grade one of the task and the patch.
//! Where many episodes of a task point at the same place, all but the first are told what came of it, and the patch
//! that was kept is applied again once somebody looks. Nothing that an episode's record holds can tell whether it was
//! the first.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use code::Patch;
use record::{Fault, TaskId};
use rollout::Cx;
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    Task,
    environment::Sources,
    patch_model::{PatchRequest, Proposal},
    repairer::{RepairRecord, Repairer, Selected, TestReport},
    workplace::Workplace,
};

/// What the studies of one recipe share in a process: tasks, patch model and environments have to be the same but for
/// who plans.
#[derive(Debug)]
pub struct Remembered {
    /// Of those who run tests in workplaces of their own: their number is what runs at the same time.
    seats: Semaphore,
    repairs: Once<[u8; 32], Repaired>,
    grades: Once<(TaskId, String), bool>,
    pub(crate) sources: SourcesOfTasks,
}

/// What came of a repair, and the work tree's diff after it.
#[derive(Clone, Debug)]
struct Repaired {
    record: RepairRecord,
    diff: String,
}

impl Remembered {
    /// At most `at_once` episodes run tests at the same time; the others may wait for their policies meanwhile.
    pub fn new(at_once: usize) -> Self {
        Self {
            seats: Semaphore::new(at_once.max(1)),
            repairs: Once::default(),
            grades: Once::default(),
            sources: SourcesOfTasks::default(),
        }
    }

    /// # Errors
    /// None while the process lives.
    pub(crate) async fn seat(&self) -> Result<SemaphorePermit<'_>, Fault> {
        self.seats.acquire().await.map_err(Fault::infra)
    }

    /// What `patch` was graded on `task`; the first who asks has `grade` do it.
    ///
    /// # Errors
    /// Those of `grade`, which is then asked again next time.
    pub(crate) async fn grade(
        &self,
        task: &Task,
        patch: &str,
        grade: impl Future<Output = Result<bool, Fault>>,
    ) -> Result<bool, Fault> {
        let key = (task.id.clone(), patch.to_owned());
        let seated = async {
            let _seat = self.seat().await?;
            grade.await
        };
        Ok(self.grades.get(key, seated).await?.0)
    }
}

/// Repairs of a repairer whose patch model answers the same whenever it is asked the same, and reads nothing of a
/// request but its issue, its targets, what was tried before, and what the tests were seen to do.
#[derive(Debug)]
pub(crate) struct RememberedRepairs {
    inner: Arc<dyn Repairer>,
    remembered: Arc<Remembered>,
}

impl RememberedRepairs {
    pub(crate) fn new(inner: Arc<dyn Repairer>, remembered: Arc<Remembered>) -> Self {
        Self { inner, remembered }
    }
}

fn key(task: &Task, request: &PatchRequest) -> [u8; 32] {
    let feedback: Vec<&str> = request
        .feedback
        .iter()
        .map(|it| it.patch.as_str())
        .collect();
    let asked = json!([
        task.id,
        request.targets,
        feedback,
        request.constraints.tried,
        request.searched.as_ref().map(|searched| searched.digest()),
        request.observed.is_some()
    ]);
    *blake3::hash(asked.to_string().as_bytes()).as_bytes()
}

#[async_trait]
impl Repairer for RememberedRepairs {
    async fn repair(
        &self,
        task: &Task,
        request: &PatchRequest,
        workplace: &mut Workplace,
        cx: &mut Cx,
    ) -> Result<RepairRecord, Fault> {
        if workplace.is_patched() {
            return self.inner.repair(task, request, workplace, cx).await;
        }
        let search = async {
            let _seat = self.remembered.seat().await?;
            let record = self.inner.repair(task, request, workplace, cx).await?;
            let diff = match record.applied {
                true => workplace.diff().await?,
                false => String::new(),
            };
            Ok(Repaired { record, diff })
        };
        let found = self.remembered.repairs.get(key(task, request), search);
        let (Repaired { record, diff }, is_first) = found.await?;
        if record.applied && !is_first {
            let patch = Patch::parse(record.patch.as_bytes()).map_err(Fault::grader)?;
            workplace.apply_when_needed(patch, diff);
        }
        Ok(record)
    }

    /// Proposals are looked at by their planner, so each is asked for.
    async fn propose(
        &self,
        task: &Task,
        request: &PatchRequest,
        workplace: &mut Workplace,
        cx: &mut Cx,
    ) -> Result<(RepairRecord, Option<Proposal>), Fault> {
        let _seat = self.remembered.seat().await?;
        self.inner.propose(task, request, workplace, cx).await
    }

    async fn settle(
        &self,
        task: &Task,
        request: &PatchRequest,
        proposal: Proposal,
        workplace: &mut Workplace,
        cx: &mut Cx,
    ) -> Result<RepairRecord, Fault> {
        let _seat = self.remembered.seat().await?;
        self.inner
            .settle(task, request, proposal, workplace, cx)
            .await
    }

    async fn test(
        &self,
        task: &Task,
        selected: Selected,
        workplace: &mut Workplace,
    ) -> Result<TestReport, Fault> {
        self.inner.test(task, selected, workplace).await
    }
}

/// Values that are made once, by their keys.
#[derive(Debug)]
struct Once<K, V>(Mutex<BTreeMap<K, Place<V>>>);

/// Whoever asks at the same time as the first waits for it.
type Place<V> = Arc<futures::lock::Mutex<Option<V>>>;

impl<K, V> Default for Once<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> Once<K, V> {
    /// The value, and whether `make` made it now.
    async fn get(
        &self,
        key: K,
        make: impl Future<Output = Result<V, Fault>>,
    ) -> Result<(V, bool), Fault> {
        let place = {
            // Whoever panicked left a whole map behind.
            let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            places.entry(key).or_default().clone()
        };
        let mut known = place.lock().await;
        if let Some(value) = &*known {
            return Ok((value.clone(), false));
        }
        let value = make.await?;
        *known = Some(value.clone());
        Ok((value, true))
    }
}

/// Sources of tasks, and whom their tests suspect.
#[derive(Debug, Default)]
pub(crate) struct SourcesOfTasks(Mutex<BTreeMap<(TaskId, usize), Place<Sources>>>);

/// Tasks whose sources are kept: those of a step, at least.
const KEPT: usize = 512;
/// Bytes of sources that are kept: graph and index take several times as much again.
const KEPT_BYTES: usize = 256 << 20;

impl SourcesOfTasks {
    /// Those of a task with at most `suspects`; the first who asks has `look` make them.
    ///
    /// # Errors
    /// Those of `look`, which is then asked again next time.
    pub(crate) async fn get(
        &self,
        task: &TaskId,
        suspects: usize,
        look: impl Future<Output = Result<Sources, Fault>>,
    ) -> Result<Sources, Fault> {
        let own = (task.clone(), suspects);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = {
            let mut kept = lock();
            if kept.len() >= KEPT && !kept.contains_key(&own) {
                kept.clear();
            }
            kept.entry(own.clone()).or_default().clone()
        };
        let mut known = place.lock().await;
        if let Some(sources) = &*known {
            return Ok(sources.clone());
        }
        let sources = look.await?;
        let mut kept = lock();
        let others = kept.values().filter_map(|place| place.try_lock());
        let bytes: usize = others
            .filter_map(|place| place.as_ref().map(Sources::bytes))
            .sum();
        if bytes + sources.bytes() > KEPT_BYTES {
            kept.retain(|key, _| *key == own);
        }
        drop(kept);
        *known = Some(sources.clone());
        Ok(sources)
    }
}
