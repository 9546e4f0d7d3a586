//! One sample of one problem: a solution, its run, a critique from a hint of that run, a revision, and its run.

use std::collections::BTreeMap;

use code::{Fence, extract_python};
use judge::{Judge, Verdict, VerdictStatus};
use record::{
    Cluster, Episode, Estimate, Fault, FaultKind, Group, Reward, StopReason, TaskId, proportion,
};
use rollout::{Cx, Played, Study, TaskRow};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    data::Problem,
    format::{Gate, Judgment, Reading, read_critique},
    hint::hint,
    play::{CRITIC, GENERATOR, REVISER},
    prompts::{critique_prompt, generation_prompt, hinted_critique_prompt, revision_prompt},
    task::Public,
};

/// A problem to write solutions and critiques for.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Unique among all problems of a synthesis: the file and the problem's name in it.
    pub id: TaskId,
    /// The name of the problem's file.
    pub file: String,
    pub problem: Problem,
}

impl TaskRow for Assignment {
    fn id(&self) -> &TaskId {
        &self.id
    }
}

/// Plays every assignment as often as solutions are wanted.
pub struct Synthesis {
    pub judge: Judge,
}

/// What came of one sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SynthesisNotes {
    /// The generator's answer, whole.
    pub solution: String,
    pub program: String,
    /// The program passes every test.
    pub success: bool,
    /// The share of tests that it passes.
    pub success_float: f64,
    pub verdict: Verdict,
    pub hint: String,
    /// What the critic is asked without the hint: the user's turn.
    pub critic_instruction: String,
    pub critique: String,
    /// It came to its end.
    pub critique_finished: bool,
    /// As the strict gate reads it.
    pub judgment: Option<Judgment>,
    pub revision: String,
    pub revised_program: String,
    pub revised_success: bool,
    pub revised_verdict: Verdict,
}

impl Synthesis {
    async fn sample(&self, task: &Assignment, cx: &mut Cx) -> Result<SynthesisNotes, Ended> {
        let problem = &task.problem;
        let asked = generation_prompt(&problem.statement, problem.prompter);
        let solution = said(cx.ask(GENERATOR, &asked).await)?.text;
        let program = extract_python(&solution, Fence::First).program.to_owned();
        let found = problem.feedback(&self.judge, &program).await;
        let found = found.map_err(Fault::infra)?;
        some_tests(task, &found.verdict)?;
        let hint = hint(&found, cx.seed("hint"));
        let public = Public {
            statement: problem.statement.clone(),
            program,
            prompter: problem.prompter,
        };
        let asked = hinted_critique_prompt(&public, &hint);
        let critique = said(cx.ask(CRITIC, &asked).await)?;
        let reading = match critique.stop {
            StopReason::Stop => read_critique(&critique.text, Gate::Strict),
            StopReason::Length => Reading::unfinished(),
        };
        let asked = revision_prompt(&public, &critique.text);
        let revision = said(cx.ask(REVISER, &asked).await)?;
        let revised_program = extract_python(&revision.text, Fence::First)
            .program
            .to_owned();
        let revised = problem.verdict(&self.judge, &revised_program).await;
        let revised = revised.map_err(Fault::infra)?;
        let asked = critique_prompt(&public);
        Ok(SynthesisNotes {
            solution,
            program: public.program,
            success: found.verdict.passed,
            success_float: found.verdict.n_passed as f64 / found.verdict.n_tests.max(1) as f64,
            verdict: found.verdict,
            hint,
            critic_instruction: asked
                .last()
                .map_or_else(String::new, |turn| turn.content.clone()),
            critique: critique.text,
            critique_finished: critique.stop == StopReason::Stop,
            judgment: reading.judgment,
            revision: revision.text,
            revised_program,
            revised_success: revised.passed,
            revised_verdict: revised,
        })
    }
}

/// Why a sample came to no notes.
enum Ended {
    Fault(Fault),
    /// A prompt leaves its model no room for an answer.
    NoRoom(String),
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// An answer; a prompt that is too long is told from all that may go wrong.
fn said<T>(answer: Result<T, Fault>) -> Result<T, Ended> {
    answer.map_err(|fault| match fault.kind {
        FaultKind::NoRoom => Ended::NoRoom(fault.message),
        _ => Ended::Fault(fault),
    })
}

/// The key of the notes of samples with a prompt that is too long.
const OVER_LONG: &str = "over_long";

impl Study for Synthesis {
    type Task = Assignment;

    async fn play<'a>(&'a self, task: &'a Assignment, cx: &'a mut Cx) -> Result<Played, Fault> {
        let reward = |right| Reward::of("revised_success", f64::from(right));
        match self.sample(task, cx).await {
            Ok(notes) => Ok(Played {
                reward: reward(notes.revised_success),
                notes: serde_json::to_value(&notes).map_err(Fault::grader)?,
            }),
            Err(Ended::NoRoom(why)) => Ok(Played {
                reward: reward(false),
                notes: json!({ OVER_LONG: why }),
            }),
            Err(Ended::Fault(fault)) => Err(fault),
        }
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn step_metrics(
        &self,
        _groups: &[Group],
        counted: &BTreeMap<String, f64>,
    ) -> BTreeMap<String, f64> {
        counted.clone()
    }

    /// Shares of all samples, with intervals over problems: `success` of solutions and `revised_success` of their
    /// revisions, `judged_truly` of critiques.
    fn evaluation_metrics(&self, groups: &[Group]) -> BTreeMap<String, Estimate> {
        type Measure = fn(&SynthesisNotes) -> bool;
        let measures: [(&str, Measure); 3] = [
            ("success", |notes| notes.success),
            ("revised_success", |notes| notes.revised_success),
            ("judged_truly", |notes| {
                notes.judgment.map(|judgment| judgment == Judgment::Correct) == Some(notes.success)
            }),
        ];
        let problems: Vec<Vec<SynthesisNotes>> = groups
            .iter()
            .map(|group| group.episodes.iter().filter_map(notes_of).collect())
            .collect();
        let estimates = measures.into_iter().filter_map(|(name, measure)| {
            let clusters = problems.iter().map(|samples| Cluster {
                hits: samples.iter().filter(|notes| measure(notes)).count() as f64,
                total: samples.len() as f64,
            });
            Some((name.to_owned(), proportion(clusters)?))
        });
        estimates.collect()
    }

    fn replay(&self, episode: &Episode) {
        if let Some(notes) = notes_of(episode) {
            for verdict in [notes.verdict, notes.revised_verdict] {
                self.judge.prime(verdict.key, verdict);
            }
        }
    }
}

/// What came of an episode that reached its verdicts.
pub(super) fn notes_of(episode: &Episode) -> Option<SynthesisNotes> {
    episode.outcome.reward()?;
    serde_json::from_value(episode.notes.clone()).ok()
}

/// Whether it came to nothing because a prompt left its model no room for an answer.
pub(super) fn is_over_long(episode: &Episode) -> bool {
    episode.notes.get(OVER_LONG).is_some()
}

fn some_tests(task: &Assignment, verdict: &Verdict) -> Result<(), Fault> {
    match verdict.status {
        VerdictStatus::NoTests => Err(Fault::grader(format!("problem {} has no tests", task.id))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_prompt_that_is_too_long_is_left_out() {
        let ended = |fault| said::<()>(Err(fault)).unwrap_err();
        assert!(matches!(ended(Fault::no_room("long")), Ended::NoRoom(_)));
        for fault in [
            Fault::grader("401 unauthorized"),
            Fault::infra("connection refused"),
            Fault::timeout("slow"),
        ] {
            assert!(matches!(ended(fault), Ended::Fault(_)));
        }
    }
}
