//! Repairs in steps: propose, revise, submit, discard (spec of the repair study, section 1.4).
//!
//! A proposal is a patch that was checked and not applied: the planner sees it before its tests are run. There is
//! one at a time. Submitting one whose tests pass ends the episode; one whose tests fail is undone.

use record::Fault;
use rollout::Cx;

use super::{
    PlannerEnv,
    mend::{collated, tell_error},
    state::Done,
};
use crate::{
    action::{ProposalAction, RepairAction},
    patch_model::{Feedback, PatchRequest, Proposal},
};

/// A proposal that waits for what the planner says of it.
pub(super) struct Pending {
    action: RepairAction,
    request: PatchRequest,
    proposal: Proposal,
    /// From the files as they were.
    diff: String,
}

impl PlannerEnv<'_> {
    pub(super) async fn proposal(
        &mut self,
        step: &ProposalAction,
        thought: &str,
        cx: &mut Cx,
    ) -> Result<Done, Fault> {
        match step {
            ProposalAction::Propose(action) => self.propose("propose", action, cx).await,
            ProposalAction::Revise(feedback) => {
                let Some(pending) = self.state.pending.take() else {
                    return Ok(none_yet("revise"));
                };
                self.feed_back(pending.diff, "revise", feedback);
                self.propose("revise", &pending.action, cx).await
            }
            ProposalAction::Submit => self.submit_proposal(cx).await,
            ProposalAction::Discard => {
                let Some(pending) = self.state.pending.take() else {
                    return Ok(none_yet("discard"));
                };
                self.feed_back(pending.diff, "discarded", thought);
                let mut done = step_of("discard");
                done.tell("summary", "the proposal is dropped");
                Ok(done)
            }
        }
    }

    /// What the planner thinks of a patch is told to the patch model when it is asked again.
    fn feed_back(&mut self, patch: String, outcome: &str, detail: &str) {
        self.state.feedback.push(Feedback {
            patch,
            outcome: outcome.to_owned(),
            detail: detail.to_owned(),
        });
    }

    async fn propose(
        &mut self,
        op: &str,
        action: &RepairAction,
        cx: &mut Cx,
    ) -> Result<Done, Fault> {
        let mut done = step_of(op);
        let targets = match self.tell_plan(&mut done, action) {
            Ok(targets) => targets,
            Err((code, detail)) => return Ok(done.with_error(code, detail)),
        };
        let request = self.request(action, targets);
        done.tell("collate_meta", collated(&request));
        let (record, proposal) = self
            .repairer
            .propose(self.task, &request, &mut self.workplace, cx)
            .await?;
        self.tell_record(&mut done, &record);
        tell_error(&mut done, &record);
        done.observed = format!("proposal: {}", record.message);
        if proposal.is_some() {
            // Whoever is to judge a patch has to see it.
            done.tell("proposal", format!("\n{}", record.patch.trim_end()));
        }
        self.state.pending = proposal.map(|proposal| Pending {
            action: action.clone(),
            request,
            proposal,
            diff: record.patch,
        });
        Ok(done)
    }

    async fn submit_proposal(&mut self, cx: &mut Cx) -> Result<Done, Fault> {
        let Some(pending) = self.state.pending.take() else {
            return Ok(none_yet("submit"));
        };
        let mut done = step_of("submit");
        let record = self
            .repairer
            .settle(
                self.task,
                &pending.request,
                pending.proposal,
                &mut self.workplace,
                cx,
            )
            .await?;
        self.conclude(&mut done, record, true).await?;
        Ok(done)
    }
}

fn step_of(op: &str) -> Done {
    let mut done = Done::new("repair");
    done.tell("op", op);
    done
}

fn none_yet(op: &str) -> Done {
    let detail = "there is no proposal; ask for one with repair_propose";
    step_of(op).with_error("no-proposal", detail)
}
