//! The summary of a run over many instances, in the form of `<model>.<run>.json`, schema version 2 (spec of
//! the repair study, section 11.3).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    infrastructure::{Tier, infrastructure_sign},
    report::InstanceReport,
};

/// What came of one instance of the dataset.
#[derive(Clone, Debug)]
pub enum InstanceOutcome {
    /// Nothing was predicted for it.
    Incomplete,
    /// Counted, not run.
    EmptyPatch,
    Completed {
        report: Box<InstanceReport>,
        /// All logs of it, looked through for why it failed.
        logs: String,
    },
    /// It could not be run, or has no readable report.
    Error { logs: String },
}

/// The numbers of a run, and which instances are behind them. An instance that failed for its environment's
/// sake is still unresolved or an error: the numbers that a score is made of are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    pub total_instances: usize,
    pub submitted_instances: usize,
    pub completed_instances: usize,
    pub resolved_instances: usize,
    pub unresolved_instances: usize,
    pub infra_failure_instances: usize,
    pub ambiguous_failure_instances: usize,
    pub empty_patch_instances: usize,
    pub error_instances: usize,
    pub completed_ids: Vec<String>,
    pub incomplete_ids: Vec<String>,
    pub empty_patch_ids: Vec<String>,
    pub submitted_ids: Vec<String>,
    pub resolved_ids: Vec<String>,
    pub unresolved_ids: Vec<String>,
    pub infra_failure_ids: Vec<String>,
    pub ambiguous_failure_ids: Vec<String>,
    /// By instance.
    pub failure_reasons: BTreeMap<String, String>,
    pub error_ids: Vec<String>,
    pub schema_version: u32,
}

impl RunReport {
    /// `outcomes` by instance of the dataset, `submitted` are the instances that something was predicted
    /// for. Lists are sorted.
    pub fn of(
        outcomes: &BTreeMap<String, InstanceOutcome>,
        submitted: impl IntoIterator<Item = String>,
    ) -> Self {
        let mut report = Self {
            submitted_ids: submitted.into_iter().collect(),
            schema_version: 2,
            ..Self::default()
        };
        report.submitted_ids.sort_unstable();
        for (id, outcome) in outcomes {
            let id = id.clone();
            match outcome {
                InstanceOutcome::Incomplete => report.incomplete_ids.push(id),
                InstanceOutcome::EmptyPatch => report.empty_patch_ids.push(id),
                InstanceOutcome::Completed { report: one, logs } => {
                    report.completed_ids.push(id.clone());
                    if one.resolved {
                        report.resolved_ids.push(id);
                    } else {
                        report.explain(&id, logs);
                        report.unresolved_ids.push(id);
                    }
                }
                InstanceOutcome::Error { logs } => {
                    report.explain(&id, logs);
                    report.error_ids.push(id);
                }
            }
        }
        report.total_instances = outcomes.len();
        report.submitted_instances = report.submitted_ids.len();
        report.completed_instances = report.completed_ids.len();
        report.resolved_instances = report.resolved_ids.len();
        report.unresolved_instances = report.unresolved_ids.len();
        report.infra_failure_instances = report.infra_failure_ids.len();
        report.ambiguous_failure_instances = report.ambiguous_failure_ids.len();
        report.empty_patch_instances = report.empty_patch_ids.len();
        report.error_instances = report.error_ids.len();
        report
    }

    fn explain(&mut self, id: &str, logs: &str) {
        let Some(sign) = infrastructure_sign(logs) else {
            return;
        };
        let ids = match sign.tier {
            Tier::Environment => &mut self.infra_failure_ids,
            Tier::Ambiguous => &mut self.ambiguous_failure_ids,
        };
        ids.push(id.to_owned());
        self.failure_reasons
            .insert(id.to_owned(), sign.reason.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_is_counted_once_and_reasons_change_no_count() {
        let completed = |resolved, logs: &str| InstanceOutcome::Completed {
            report: Box::new(InstanceReport {
                resolved,
                ..InstanceReport::default()
            }),
            logs: logs.to_owned(),
        };
        let outcomes: BTreeMap<String, InstanceOutcome> = [
            ("a", InstanceOutcome::Incomplete),
            ("b", InstanceOutcome::EmptyPatch),
            ("c", completed(true, "Could not resolve host")),
            ("d", completed(false, "ModuleNotFoundError: x")),
            (
                "e",
                InstanceOutcome::Error {
                    logs: "Error response from daemon: no".to_owned(),
                },
            ),
        ]
        .into_iter()
        .map(|(id, outcome)| (id.to_owned(), outcome))
        .collect();
        let submitted = ["e", "d", "c", "b", "z"].map(str::to_owned);
        let report = RunReport::of(&outcomes, submitted);
        assert_eq!(report.total_instances, 5);
        assert_eq!(report.submitted_ids, ["b", "c", "d", "e", "z"]);
        assert_eq!(report.completed_ids, ["c", "d"]);
        assert_eq!(report.resolved_ids, ["c"]);
        assert_eq!(report.unresolved_ids, ["d"]);
        assert_eq!(report.ambiguous_failure_ids, ["d"]);
        assert_eq!(report.infra_failure_ids, ["e"]);
        assert_eq!(report.error_ids, ["e"]);
        assert_eq!(report.failure_reasons["d"], "missing_module");
        assert_eq!(report.failure_reasons.len(), 2);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["schema_version"], 2);
        assert_eq!(json["error_instances"], 1);
    }
}
