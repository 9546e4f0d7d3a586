//! Repairs, tests and submits (spec of the repair study, sections 2.6 and 4).

use code::graph::{ListedGraph, ListedNode, NodeRef, is_test_path};
use record::Fault;
use rollout::Cx;
use serde_json::{Value, json};

use super::{
    Event, PlannerEnv, StopReason,
    state::{Done, listed},
};
use crate::{
    action::RepairAction,
    patch_model::{Constraints, EXHAUSTED, PatchRequest, PlanTarget, SPENT},
    repairer::{RepairRecord, Selected, TestReport},
};

/// A code and its detail.
pub(super) type Refusal = (&'static str, &'static str);

impl PlannerEnv<'_> {
    pub(super) async fn repair(
        &mut self,
        action: &RepairAction,
        cx: &mut Cx,
    ) -> Result<Done, Fault> {
        let mut done = Done::new("repair");
        done.tell("apply", action.apply);
        let targets = match self.tell_plan(&mut done, action) {
            Ok(targets) => targets,
            Err((code, detail)) => return Ok(done.with_error(code, detail)),
        };
        if !action.apply {
            done.tell("summary", "the plan is noted");
            done.observed = format!("plan: {}", action.plan.join("; "));
            return Ok(done);
        }
        let request = self.request(action, targets);
        done.tell("collate_meta", collated(&request));
        let record = self
            .repairer
            .repair(self.task, &request, &mut self.workplace, cx)
            .await?;
        let ends_here = self.config.end.verified_repair;
        self.conclude(&mut done, record, ends_here).await?;
        Ok(done)
    }

    /// Tells a plan and what it points at; the lines that it is about.
    pub(super) fn tell_plan(
        &self,
        done: &mut Done,
        action: &RepairAction,
    ) -> Result<Vec<PlanTarget>, Refusal> {
        done.tell("plan", json!(action.plan));
        let (targets, unknown) = self.targets(action)?;
        done.tell("plan_targets", json!(targets));
        if !unknown.is_empty() {
            done.tell("unknown_ids", listed(&unknown));
        }
        Ok(targets)
    }

    /// Tells what came of a repair whose tests were run, and looks at the work tree that it left. One whose tests
    /// pass ends the episode where `ends_here`.
    pub(super) async fn conclude(
        &mut self,
        done: &mut Done,
        record: RepairRecord,
        ends_here: bool,
    ) -> Result<(), Fault> {
        let passed = record.ok && record.applied;
        let ends = passed && ends_here;
        if record.applied {
            // After the end nobody looks any more.
            if !ends {
                self.sources
                    .refresh(&record.changed_files, &mut self.workplace)
                    .await?;
            }
            self.state.patches.push(record.patch.clone());
        }
        done.observed = format!(
            "repair: applied {}, tests_passed {passed}, lint {}",
            record.applied, record.lint_ok
        );
        self.tell_record(done, &record);
        done.tell("success", passed);
        done.tell("no_repair", !record.applied);
        tell_error(done, &record);
        if ends {
            done.event = Event::Solved;
            done.ends = Some(StopReason::Repaired);
        }
        Ok(())
    }

    /// Puts what the patch model came to into the info, and its budget and feedback into the state.
    pub(super) fn tell_record(&mut self, done: &mut Done, record: &RepairRecord) {
        self.state.tried += record.candidates;
        self.state.feedback.extend(record.feedback.iter().cloned());
        if record.searched.is_some() {
            self.state.searched.clone_from(&record.searched);
        }
        done.tell("summary", record.message.as_str());
        if let Ok(Value::Object(told)) = serde_json::to_value(record) {
            done.info.extend(told);
        }
        done.tell("candidates_so_far", self.state.tried);
    }

    pub(super) async fn run_failed_test(&mut self) -> Result<Done, Fault> {
        let report = self
            .repairer
            .test(self.task, Selected::FailToPass, &mut self.workplace)
            .await?;
        self.state.failure_seen = true;
        let mut done = Done::new("test");
        done.observed = in_words(&report);
        done.tell("summary", in_words(&report));
        done.tell("tests", json!(report));
        done.tell("test_runs", report.test_runs);
        Ok(done)
    }

    pub(super) async fn submit(&mut self) -> Result<Done, Fault> {
        let report = self
            .repairer
            .test(self.task, Selected::All, &mut self.workplace)
            .await?;
        let mut done = Done::new("submit");
        done.tell("submit", true);
        done.observed = in_words(&report);
        done.tell("summary", in_words(&report));
        done.tell("tests", json!(report));
        done.tell("test_runs", report.test_runs);
        let patch = match self.state.patches.is_empty() {
            true => String::new(),
            false => self.workplace.diff().await?,
        };
        done.tell("patch", patch);
        (done.event, done.ends) = match (report.passed, self.config.end.failed_submit) {
            (true, _) => (Event::Solved, Some(StopReason::Submitted)),
            (false, true) => (Event::FailedSubmit, Some(StopReason::FailedSubmit)),
            (false, false) => (Event::FailedSubmit, None),
        };
        Ok(done)
    }

    /// The lines that a plan is about: of the nodes in focus, else of all that memory holds. Second, ids
    /// that no node has.
    fn targets(&self, action: &RepairAction) -> Result<(Vec<PlanTarget>, Vec<String>), Refusal> {
        const NO_TESTS: Refusal = ("guarded-test", "tests are not what is repaired");
        let graph = self.sources.graph();
        let confidence = action.confidence.unwrap_or(1.0);
        let (mut targets, mut unknown) = (Vec::new(), Vec::new());
        let mut tests = 0;
        let mut add = |place: NodeRef, why: &str| {
            let node = graph.node(place);
            if is_test_path(&node.path) {
                tests += 1;
                return;
            }
            if let Some(span) = node.span {
                targets.push(PlanTarget {
                    path: node.path,
                    start: span.start,
                    end: span.end,
                    id: node.id,
                    confidence,
                    why: why.to_owned(),
                });
            }
        };
        for id in &action.focus_ids {
            let id = self.sources.suspect(id).map_or(id, |suspect| &suspect.id);
            match graph.find(id).or_else(|| graph.file(id).map(NodeRef::File)) {
                Some(place) => add(place, "planner-focus"),
                None if self.sources.is_guarded(id) => return Err(NO_TESTS),
                None => unknown.push(id.clone()),
            }
        }
        if action.focus_ids.is_empty() {
            for node in self.memory().nodes() {
                if let Some(place) = graph.find(&node.id) {
                    add(place, "memory");
                }
            }
        }
        match (targets.is_empty(), unknown.is_empty(), tests) {
            (false, _, _) => Ok((targets, unknown)),
            (true, false, _) => Err(("unknown-node", "no id in focus names a node")),
            (true, true, 0) => Err(("empty-memory", "memory holds nothing to repair")),
            (true, true, _) => Err(NO_TESTS),
        }
    }

    pub(super) fn request(&self, action: &RepairAction, targets: Vec<PlanTarget>) -> PatchRequest {
        let graph = self.sources.graph();
        let mut listing = ListedGraph {
            edges: self.memory().edges().clone(),
            ..ListedGraph::default()
        };
        // As they are now, with all of their source: an earlier repair may have moved them.
        let now: Vec<ListedNode> = self
            .memory()
            .nodes()
            .filter_map(|node| Some((node, graph.find(&node.id)?)))
            .map(|(node, place)| ListedNode {
                span: graph.node(place).span,
                snippet_lines: self.sources.snippet(&self.sources.listed(place), u32::MAX),
                ..node.clone()
            })
            .collect();
        let focus = targets.iter().filter_map(|target| graph.find(&target.id));
        let focus: Vec<ListedNode> = focus.map(|place| self.sources.listed(place)).collect();
        let snippets = self.sources.chunks(now.iter().chain(&focus));
        listing.nodes = now
            .into_iter()
            .map(|node| (node.id.clone(), node))
            .collect();
        let notes = self.state.memory.notes().iter();
        let notes: Vec<String> = notes.map(|note| note.text.clone()).collect();
        let mut plan = action.plan.clone();
        if !action.failure_seen.is_empty() {
            plan.push(format!("The failure: {}", action.failure_seen));
        }
        plan.extend(action.evidence.iter().map(|it| {
            let parts = [it.node_id.as_str(), &it.role, &it.evidence];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            parts.join(": ")
        }));
        plan.extend(notes.into_iter().map(|note| format!("Note: {note}")));
        PatchRequest {
            issue: self.task.public.issue.clone(),
            plan,
            targets,
            graph: listing,
            snippets,
            feedback: self.state.feedback.clone(),
            constraints: Constraints {
                tried: self.state.tried,
                ..Constraints::default()
            },
            of_tests: self.sources.of_tests(),
            observed: self.sources.observed(),
            searched: self.state.searched.clone(),
        }
    }
}

/// A patch that there is not, or that was not kept, is an error; where there is none left to ask for, the episode ends.
pub(super) fn tell_error(done: &mut Done, record: &RepairRecord) {
    if let Some(error) = &record.error {
        done.event = Event::Error;
        done.tell("detail", record.message.as_str());
        done.ends = match error.as_str() {
            SPENT => Some(StopReason::BudgetSpent),
            EXHAUSTED => Some(StopReason::CandidatesExhausted),
            _ => done.ends,
        };
    }
}

/// Spec, section 4.3: what was put together for the patch model.
pub(super) fn collated(request: &PatchRequest) -> Value {
    let lines: Vec<usize> = request
        .snippets
        .iter()
        .map(|chunk| chunk.text.lines().count())
        .collect();
    let total: usize = lines.iter().sum();
    json!({
        "chunks": lines.len(), "total_lines": total, "max_lines": lines.iter().max(),
        "nodes": request.graph.nodes.len(), "edges": request.graph.edges.len(),
    })
}

pub(super) fn in_words(report: &TestReport) -> String {
    let (fail, pass) = (report.fail_to_pass, report.pass_to_pass);
    let mut text = format!(
        "{} of {} tests pass that must begin to",
        fail.passed, fail.total
    );
    if pass.total > 0 {
        text += &format!(
            ", {} of {} that must go on passing",
            pass.passed, pass.total
        );
    }
    text
}
