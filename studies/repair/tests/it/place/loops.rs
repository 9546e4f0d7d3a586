//! Repair loops that are run as episodes are: with a context of the runner's.

#![allow(clippy::unwrap_used, dead_code, reason = "helpers of tests")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use record::{Episode, Estimate, Fault, Group, Reward, Seed};
use repair::{
    Task,
    patch_model::PatchRequest,
    repair_loop::RepairLoop,
    repairer::{RepairRecord, Repairer},
    workplace::Workplace,
};
use rollout::{Cx, Options, Played, Roles, Runner, Study};

struct Repairs {
    repairer: RepairLoop,
    requests: Vec<PatchRequest>,
    workplace: tokio::sync::Mutex<Workplace>,
    records: Mutex<Vec<RepairRecord>>,
}

impl Study for Repairs {
    type Task = Task;

    async fn play(&self, task: &Task, cx: &mut Cx) -> Result<Played, Fault> {
        let mut workplace = self.workplace.lock().await;
        for request in &self.requests {
            let record = self.repairer.repair(task, request, &mut workplace, cx);
            let record = record.await?;
            self.records.lock().unwrap().push(record);
        }
        Ok(Played {
            reward: Reward::of("made", 1.0),
            notes: serde_json::Value::Null,
        })
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn step_metrics(&self, _: &[Group], _: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn evaluation_metrics(&self, _: &[Group]) -> BTreeMap<String, Estimate> {
        BTreeMap::new()
    }

    fn replay(&self, _: &Episode) {}
}

/// Makes `requests` one after the other; gives what came of them, and the workplace.
pub(crate) async fn repaired(
    repairer: RepairLoop,
    roles: Roles,
    task: &Task,
    requests: Vec<PatchRequest>,
    workplace: Workplace,
) -> (Vec<RepairRecord>, Workplace) {
    let study = Arc::new(Repairs {
        repairer,
        requests,
        workplace: tokio::sync::Mutex::new(workplace),
        records: Mutex::default(),
    });
    let options = Options {
        retries: 0,
        max_fault_share: 0.0,
        ..Options::default()
    };
    let runner = Runner::new(study.clone(), roles, options);
    let tasks = [Arc::new(task.clone())];
    let played = runner.play(0, &tasks, 1, Seed(1), |_| {}).await;
    played.unwrap();
    drop(runner);
    let study = Arc::into_inner(study).unwrap();
    let records = study.records.into_inner().unwrap();
    (records, study.workplace.into_inner())
}
