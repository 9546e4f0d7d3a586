//! The repair loop: plan, pieces of source, patch model, checks, tests, and the patch that is kept or none
//! (spec of the repair study, section 4).
//!
//! All patches of an answer are checked first ([`prepare`]). Above a snapshot the failing tests are then run for
//! all of them, on files that are other for these runs alone, and only one that mends them is applied for the
//! tests that must go on passing. A patch that breaks any is rolled back with all that its tests left.

mod collate;
mod guard;
mod prepare;
mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use code::RelativePath;
use record::Fault;
use rollout::Cx;
use serde::{Deserialize, Serialize};
use session::SnapshotId;

use crate::{
    Task,
    patch_model::{
        Answered, Feedback, NothingLeft, PATCHER, PatchModel, PatchRequest, Proposal, Proposed,
    },
    repairer::{RepairRecord, Repairer, Selected, TestReport},
    search::TestsObserved,
    workplace::{TestRequest, TestRun, Workplace},
};
pub use collate::collate;
pub use prepare::{Files, Prepared, Refused, prepare};

/// A patch model, and what its patches are held to.
#[derive(Clone, Debug)]
pub struct RepairLoop {
    pub model: Arc<dyn PatchModel>,
    pub settings: LoopSettings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoopSettings {
    /// Patches of one answer that are tried, the most confident first.
    pub max_proposals: usize,
    /// Tokens of source that a patch model is shown.
    pub snippet_tokens: usize,
    /// Lines around a target that a patch may change too.
    pub around: u32,
    /// Refuse patches of other lines than the plan's. Where tests tell the patch model where to look, a plan is a
    /// hint.
    #[serde(skip_serializing_if = "is_true")]
    pub within_plan: bool,
    /// Decide whether a patch is kept by a run of all tests that there are, and not of those alone that count. For
    /// lists of tests that were made from such a run: many a test goes by what those before it have left.
    #[serde(skip_serializing_if = "is_false")]
    pub all_tests: bool,
    /// Search for the same repair of a task once a process, and tell its result whenever it is asked for again.
    #[serde(skip_serializing_if = "is_false")]
    pub remember: bool,
}

/// Left out of resolved recipes, so that those without it keep their hash.
fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_true(flag: &bool) -> bool {
    *flag
}

impl Default for LoopSettings {
    fn default() -> Self {
        Self {
            max_proposals: 8,
            snippet_tokens: 8_000,
            around: 3,
            within_plan: true,
            all_tests: false,
            remember: false,
        }
    }
}

impl LoopSettings {
    /// Lines around a target that a patch may change; `None` where it may change any.
    fn around(&self) -> Option<u32> {
        self.within_plan.then_some(self.around)
    }
}

/// A patch of an answer that is tried.
struct Candidate {
    proposal: Proposal,
    prepared: Prepared,
}

#[async_trait]
impl Repairer for RepairLoop {
    async fn repair(
        &self,
        task: &Task,
        request: &PatchRequest,
        workplace: &mut Workplace,
        cx: &mut Cx,
    ) -> Result<RepairRecord, Fault> {
        let (request, answered) = match self.answered(task, request, workplace, cx).await? {
            Ok(answered) => answered,
            Err(record) => return Ok(record),
        };
        let mut record = match answered.proposed {
            Proposed::None { code, detail } => unread(code, detail, answered.searched.is_some()),
            Proposed::Patches(proposals) => {
                self.tried(task, &request, proposals, workplace).await?
            }
        };
        if let Some(NothingLeft { code, detail }) = answered.spent.filter(|_| !record.ok) {
            record.error = Some(code.to_owned());
            record.message = detail;
        }
        record.candidates += answered.effort.candidates;
        record.test_runs += answered.effort.test_runs;
        record.searched = answered.searched;
        Ok(record)
    }

    async fn propose(
        &self,
        task: &Task,
        request: &PatchRequest,
        workplace: &mut Workplace,
        cx: &mut Cx,
    ) -> Result<(RepairRecord, Option<Proposal>), Fault> {
        let (request, answered) = match self.answered(task, request, workplace, cx).await? {
            Ok(answered) => answered,
            Err(record) => return Ok((record, None)),
        };
        let (mut record, proposal) = match answered.proposed {
            Proposed::None { code, detail } => {
                let record = unread(code, detail, answered.searched.is_some());
                (record, None)
            }
            Proposed::Patches(proposals) => self.checked(&request, proposals, workplace).await?,
        };
        record.candidates += answered.effort.candidates;
        record.test_runs += answered.effort.test_runs;
        record.searched = answered.searched;
        Ok((record, proposal))
    }

    async fn settle(
        &self,
        task: &Task,
        request: &PatchRequest,
        proposal: Proposal,
        workplace: &mut Workplace,
        _cx: &mut Cx,
    ) -> Result<RepairRecord, Fault> {
        self.tried(task, request, vec![proposal], workplace).await
    }

    async fn test(
        &self,
        task: &Task,
        selected: Selected,
        workplace: &mut Workplace,
    ) -> Result<TestReport, Fault> {
        self.run(task, selected, workplace).await
    }
}

impl RepairLoop {
    /// What the patch model says to a request, and the request as it was made; a record where none could be made.
    async fn answered(
        &self,
        task: &Task,
        request: &PatchRequest,
        workplace: &mut Workplace,
        cx: &mut Cx,
    ) -> Result<Result<(PatchRequest, Answered), RepairRecord>, Fault> {
        let (sources, missing) = sources(request, workplace).await?;
        let mut request = request.clone();
        request
            .targets
            .retain(|target| sources.contains_key(&target.path));
        if request.targets.is_empty() {
            let detail = match missing.is_empty() {
                true => "the plan names no lines to repair".to_owned(),
                false => format!("the plan's files are not there: {}", missing.join(", ")),
            };
            return Ok(Err(failed("plan-build-failed", detail)));
        }
        let count = |text: &str| {
            let counted = cx.count_tokens(PATCHER, text);
            counted.unwrap_or(text.len().div_ceil(4))
        };
        request.snippets = collate(&request, &sources, self.settings.snippet_tokens, &count);
        let mut answered = self
            .model
            .propose(&request, workplace.testbed(), cx)
            .await?;
        let searched = answered.searched.as_deref();
        if let Some(observed) = searched.and_then(|searched| searched.observed()) {
            passes_here(task, observed, &workplace.testbed().python)?;
            workplace.load_plugins(observed.with_plugins);
        }
        workplace.add_log(std::mem::take(&mut answered.log));
        Ok(Ok((request, answered)))
    }

    /// The most confident of the proposals that can be applied, described.
    async fn checked(
        &self,
        request: &PatchRequest,
        mut proposals: Vec<Proposal>,
        workplace: &mut Workplace,
    ) -> Result<(RepairRecord, Option<Proposal>), Fault> {
        proposals.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        let mut record = RepairRecord::default();
        for proposal in proposals.into_iter().take(self.settings.max_proposals) {
            let files = files(&proposal, workplace).await?;
            let known = BTreeSet::new();
            match prepare(&proposal, &files, request, self.settings.around(), &known) {
                Ok(prepared) => {
                    let candidate = Candidate { proposal, prepared };
                    describe(&mut record, &candidate, None);
                    (record.error, record.lint_ok) = (None, true);
                    record.message = match candidate.proposal.summary.trim() {
                        "" => format!("a patch of {}", record.changed_files.join(", ")),
                        summary => summary.to_owned(),
                    };
                    record.feedback.clear();
                    return Ok((record, Some(candidate.proposal)));
                }
                Err(refused) => {
                    let refused = refused.or_again(&proposal, request);
                    record.error.get_or_insert_with(|| refused.code.to_owned());
                    if record.message.is_empty() {
                        record.message.clone_from(&refused.detail);
                    }
                    record.feedback.push(Feedback {
                        patch: proposal.text,
                        outcome: refused.code.to_owned(),
                        detail: refused.detail,
                    });
                }
            }
        }
        if record.error.is_none() {
            let detail = "the patch model proposed no patch".to_owned();
            return Ok((failed("cgm-empty", detail), None));
        }
        Ok((record, None))
    }

    async fn tried(
        &self,
        task: &Task,
        request: &PatchRequest,
        mut proposals: Vec<Proposal>,
        workplace: &mut Workplace,
    ) -> Result<RepairRecord, Fault> {
        proposals.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        proposals.truncate(self.settings.max_proposals);
        let mut record = RepairRecord::default();
        let mut candidates = Vec::new();
        let mut known = BTreeSet::new();
        for proposal in proposals {
            let files = files(&proposal, workplace).await?;
            let prepared = prepare(&proposal, &files, request, self.settings.around(), &known);
            match prepared {
                Ok(prepared) => {
                    // What is refused before any test runs was not tried.
                    record.candidates += usize::from(!proposal.counted);
                    known.insert(prepared.patch_id.clone());
                    candidates.push(Candidate { proposal, prepared });
                }
                Err(refused) => {
                    let refused = refused.or_again(&proposal, request);
                    record.error.get_or_insert_with(|| refused.code.to_owned());
                    record.feedback.push(Feedback {
                        patch: proposal.text,
                        outcome: refused.code.to_owned(),
                        detail: refused.detail,
                    });
                }
            }
        }
        if candidates.is_empty() {
            if record.error.is_none() {
                return Ok(failed(
                    "cgm-empty",
                    "the patch model proposed no patch".to_owned(),
                ));
            }
            record.message = "no patch could be tried".to_owned();
            if let Some(told) = record.feedback.first() {
                record.message.clone_from(&told.detail);
            }
            return Ok(record);
        }
        record.lint_ok = true;
        let requests: Vec<TestRequest> = candidates
            .iter()
            .map(|candidate| TestRequest {
                writes: candidate.prepared.writes.clone(),
                ..asked(task.checks.fail_to_pass.clone(), workplace)
            })
            .collect();
        let before = workplace.snapshot().await?;
        // With no test that fails, all decide.
        let runs = match task.checks.fail_to_pass.is_empty() {
            true => Vec::new(),
            false => workplace.run_tests(&requests).await?,
        };
        if workplace.is_dirty() {
            workplace.restore(&before).await?;
        }
        record.test_runs += runs.len();
        let mut best: Option<(&Candidate, TestReport)> = None;
        for (at, candidate) in candidates.iter().enumerate() {
            if let Some(run) = runs.get(at) {
                let told = report_of(task, run, Selected::FailToPass, workplace);
                if !told.passed {
                    record.feedback.push(unmended(candidate, &told));
                    if best
                        .as_ref()
                        .is_none_or(|(_, other)| is_better(&told, other))
                    {
                        best = Some((candidate, told));
                    }
                    continue;
                }
            }
            let told = match self.keep(task, candidate, &before, workplace).await? {
                Ok(told) => told,
                Err(detail) => {
                    record.error.get_or_insert("dirty-workspace".to_owned());
                    record.feedback.push(Feedback {
                        patch: candidate.prepared.diff.clone(),
                        outcome: "dirty-workspace".to_owned(),
                        detail,
                    });
                    continue;
                }
            };
            record.test_runs += 1;
            if told.passed {
                describe(&mut record, candidate, Some(told));
                record.ok = true;
                record.applied = true;
                record.error = None;
                record.message = candidate.proposal.summary.clone();
                record.feedback.clear();
                return Ok(record);
            }
            record.feedback.push(unmended(candidate, &told));
            if best
                .as_ref()
                .is_none_or(|(_, other)| is_better(&told, other))
            {
                best = Some((candidate, told));
            }
        }
        if let Some((candidate, told)) = best {
            record.message = report::in_words(&told);
            record.error = Some("build-failed".to_owned());
            describe(&mut record, candidate, Some(told));
        }
        Ok(record)
    }

    /// Applies a patch and runs all tests; what does not pass is rolled back. The inner error says why the
    /// patch could not be applied although it fits.
    async fn keep(
        &self,
        task: &Task,
        candidate: &Candidate,
        before: &SnapshotId,
        workplace: &mut Workplace,
    ) -> Result<Result<TestReport, String>, Fault> {
        if let Err(detail) = workplace.apply(&candidate.proposal.patch).await? {
            workplace.restore(before).await?;
            return Ok(Err(detail));
        }
        let told = self.run(task, Selected::All, workplace).await?;
        if !told.passed {
            workplace.restore(before).await?;
        }
        Ok(Ok(told))
    }

    async fn run(
        &self,
        task: &Task,
        selected: Selected,
        workplace: &mut Workplace,
    ) -> Result<TestReport, Fault> {
        let mut ids = report::ids(&task.checks, selected);
        if ids.is_empty() {
            // Without ids every test would be run, and none of them decides.
            return Ok(TestReport::default());
        }
        if self.settings.all_tests && selected == Selected::All {
            ids.clear();
        }
        let runs = workplace.run_tests(&[asked(ids, workplace)]).await?;
        let run = runs
            .first()
            .ok_or_else(|| Fault::infra("a run of tests was lost"))?;
        Ok(report_of(task, run, selected, workplace))
    }
}

/// That most of the tests which are to go on passing do pass before anything is changed: else it is the interpreter
/// that would be judged, and no repair.
fn passes_here(task: &Task, observed: &TestsObserved, python: &str) -> Result<(), Fault> {
    let kept = &task.checks.pass_to_pass;
    let (passing, failing) = observed.passing_of(kept);
    if 2 * passing >= kept.len() {
        return Ok(());
    }
    let why = failing.map_or_else(String::new, |(id, failure)| {
        let line = failure.message.lines().next().unwrap_or_default();
        format!("; {id}: {}: {line}", failure.kind)
    });
    Err(Fault::grader(format!(
        "task {}: {passing} of its {} pass-to-pass tests pass before anything is changed, run by {python}{why}; tell \
         which interpreter has what they need (`sandbox.python`)",
        task.id,
        kept.len()
    )))
}

fn report_of(task: &Task, run: &TestRun, selected: Selected, workplace: &Workplace) -> TestReport {
    report::report(run, &task.checks, selected, workplace.testbed().framework)
}

fn asked(ids: Vec<String>, workplace: &Workplace) -> TestRequest {
    TestRequest {
        writes: BTreeMap::new(),
        ids,
        stop_at_failure: false,
        trace: false,
        wall: workplace.testbed().limits.wall,
    }
}

fn is_better(one: &TestReport, other: &TestReport) -> bool {
    let key = |report: &TestReport| (report.fail_to_pass.passed, report.pass_to_pass.passed);
    key(one) > key(other)
}

fn unmended(candidate: &Candidate, told: &TestReport) -> Feedback {
    Feedback {
        patch: candidate.prepared.diff.clone(),
        outcome: "build-failed".to_owned(),
        detail: report::in_words(told),
    }
}

fn describe(record: &mut RepairRecord, candidate: &Candidate, told: Option<TestReport>) {
    let Prepared {
        writes,
        diff,
        patch_id,
        n_hunks,
        added_lines,
        removed_lines,
    } = &candidate.prepared;
    record.confidence = candidate.proposal.confidence;
    record.patch.clone_from(diff);
    record.patch_id = Some(patch_id.clone());
    record.n_hunks = *n_hunks;
    record.added_lines = *added_lines;
    record.removed_lines = *removed_lines;
    record.changed_files = writes.keys().map(ToString::to_string).collect();
    record.tests = told;
}

fn failed(code: &str, detail: String) -> RepairRecord {
    RepairRecord {
        error: Some(code.to_owned()),
        message: detail,
        ..RepairRecord::default()
    }
}

/// Of an answer without a patch. Who searched has nothing to go by in being told so.
fn unread(code: &str, detail: String, has_searched: bool) -> RepairRecord {
    let feedback = Feedback {
        patch: String::new(),
        outcome: code.to_owned(),
        detail: detail.clone(),
    };
    RepairRecord {
        feedback: (!has_searched).then_some(feedback).into_iter().collect(),
        ..failed(code, detail)
    }
}

/// The text of the plan's files, and the names of those that are not there or no text.
async fn sources(
    request: &PatchRequest,
    workplace: &mut Workplace,
) -> Result<(BTreeMap<String, String>, Vec<String>), Fault> {
    let paths: BTreeSet<&String> = request.targets.iter().map(|target| &target.path).collect();
    let (mut sources, mut missing) = (BTreeMap::new(), Vec::new());
    for name in paths {
        let content = match RelativePath::new(name) {
            Ok(path) => workplace.read(&path).await?,
            Err(_) => None,
        };
        match content {
            // A file in another encoding can be shown; that it cannot be patched is said of the patch.
            Some(content) => {
                let text = String::from_utf8_lossy(&content).into_owned();
                sources.insert(name.clone(), text);
            }
            None => missing.push(name.clone()),
        }
    }
    Ok((sources, missing))
}

/// The files that a patch names, as they are.
async fn files(proposal: &Proposal, workplace: &mut Workplace) -> Result<Files, Fault> {
    let mut files = Files::new();
    for path in proposal.patch.paths() {
        let content = workplace.read(&path).await?;
        files.insert(path, content);
    }
    Ok(files)
}
