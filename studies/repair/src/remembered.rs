//! Repairs that are the same are searched for once a process.
//!
//! What a search finds is a function of the task and of what it is asked. Where many episodes of a task point at the
//! same place, all but the first are told what came of it, and the patch that was kept is applied again. Nothing that
//! an episode's record holds can tell whether it was the first.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use code::Patch;
use record::Fault;
use rollout::Cx;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{
    Task,
    patch_model::{PatchRequest, Proposal},
    repairer::{RepairRecord, Repairer, Selected, TestReport},
    workplace::Workplace,
};

/// Repairs of a repairer whose patch model answers the same whenever it is asked the same, and reads nothing of a
/// request but its issue, its targets, and what was tried before.
#[derive(Debug)]
pub struct RememberedRepairs {
    inner: Arc<dyn Repairer>,
    /// Of those who search.
    seats: Arc<Semaphore>,
    kept: Mutex<BTreeMap<[u8; 32], Kept>>,
}

/// Whoever asks the same at the same time waits for the first.
type Kept = Arc<futures::lock::Mutex<Option<RepairRecord>>>;

impl RememberedRepairs {
    pub fn new(inner: Arc<dyn Repairer>, seats: Arc<Semaphore>) -> Self {
        Self {
            inner,
            seats,
            kept: Mutex::default(),
        }
    }

    fn kept(&self, task: &Task, request: &PatchRequest) -> Kept {
        let feedback: Vec<&str> = request
            .feedback
            .iter()
            .map(|it| it.patch.as_str())
            .collect();
        let asked = json!([
            task.id,
            request.targets,
            feedback,
            request.constraints.tried
        ]);
        let key = *blake3::hash(asked.to_string().as_bytes()).as_bytes();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(key).or_default().clone()
    }
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
        let kept = self.kept(task, request);
        let mut known = kept.lock().await;
        if let Some(record) = &*known {
            if record.applied {
                let patch = Patch::parse(record.patch.as_bytes()).map_err(Fault::grader)?;
                workplace.apply_when_needed(patch);
            }
            return Ok(record.clone());
        }
        let _seat = self.seats.acquire().await.map_err(Fault::infra)?;
        let record = self.inner.repair(task, request, workplace, cx).await?;
        *known = Some(record.clone());
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
        let _seat = self.seats.acquire().await.map_err(Fault::infra)?;
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
        let _seat = self.seats.acquire().await.map_err(Fault::infra)?;
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
