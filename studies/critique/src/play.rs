//! One episode: critique, revision, tests.

use code::{Fence, extract_python, normal_form};
use judge::{Judge, Verdict, VerdictStatus};
use record::{Fault, FaultKind, Message, StopReason};
use rollout::{Cx, Played};
use serde::{Deserialize, Serialize};

use crate::{
    forest::Votes,
    format::{Gate, Judgment, Reading, read_critique},
    hint::hint,
    prompts::{critique_prompt, hinted_critique_prompt, revision_prompt},
    reward::{RewardConfig, rewarded},
    task::Task,
};

/// The role whose critiques are trained.
pub const CRITIC: &str = "critic";
/// The frozen role that rewrites the program.
pub const REVISER: &str = "reviser";
/// The role that writes programs from statements.
pub const GENERATOR: &str = "generator";

/// Whether an episode is played for its reward or for its measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A critique that fails the gate ends the episode with reward 0.
    Training,
    /// Every critique is revised and tested, the malformed ones too.
    Measuring,
}

/// What an episode's `notes` hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Notes {
    /// What the program is for; several tasks may be programs of one problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub statement: String,
    pub program: String,
    pub initially_right: bool,
    pub family: String,
    pub bug: Option<String>,
    pub critique: String,
    /// Where several critiques were asked for, and this is one of their majority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes: Option<Votes>,
    /// The judgment that the critique ends with, if the gate let it through.
    pub judgment: Option<Judgment>,
    pub gate_ok: bool,
    /// The critique is, apart from white space at its ends, the one that names the fault exactly; absent where that
    /// one is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<bool>,
    /// Absent when the gate ended the episode.
    pub revision: Option<String>,
    /// The judgment agrees with whether the revision differs from the program in more than layout
    /// and comments; false without a judgment or a revision.
    #[serde(default)]
    pub consistent: bool,
    /// The last program passes every test: the revision, or none when the gate ended the episode.
    pub passed: bool,
    /// How the tests ended, in the judge's words.
    pub status: String,
    pub verdict: Option<Verdict>,
}

pub(crate) async fn play(
    judge: &Judge,
    reward: &RewardConfig,
    purpose: Purpose,
    task: &Task,
    cx: &mut Cx,
) -> Result<Played, Fault> {
    if purpose == Purpose::Training && !task.gold.tests.withstand_cheats() {
        return Err(Fault::grader(format!(
            "task {} has {} tests, which a program could deceive: evaluate with them, and train with others",
            task.id,
            task.gold.tests.kind()
        )));
    }
    let criticism = criticise(reward.gate, task, cx).await?;
    let next = if criticism.judgment.is_some() || purpose == Purpose::Measuring {
        Next::Revise
    } else {
        Next::Refuse
    };
    follow(judge, reward, task, (criticism, None), next, cx).await
}

/// A critique as the critic said it.
#[derive(Clone, Debug)]
pub(crate) struct Criticism {
    pub(crate) text: String,
    /// If the gate let it through.
    pub(crate) judgment: Option<Judgment>,
}

impl Criticism {
    /// Nothing was said.
    pub(crate) fn nothing() -> Self {
        Self {
            text: String::new(),
            judgment: None,
        }
    }
}

/// What a critique leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The reviser is asked, and its program tested.
    Revise,
    /// The episode ends, and nothing has passed.
    Refuse,
    /// The program stays as it is, and as right as it is.
    Keep,
}

/// Asks the critic once.
pub(crate) async fn criticise(gate: Gate, task: &Task, cx: &mut Cx) -> Result<Criticism, Fault> {
    asked(gate, &critique_prompt(&task.public), cx).await
}

/// Runs the program, and asks a critic that is told what came of it: gold, so for baselines alone. `None` where what is
/// to be told leaves the critic no room for an answer.
pub(crate) async fn criticise_with_hint(
    judge: &Judge,
    gate: Gate,
    task: &Task,
    cx: &mut Cx,
) -> Result<Option<Criticism>, Fault> {
    let program = &task.public.program;
    let found = task.feedback(judge, program).await.map_err(Fault::infra)?;
    let hint = hint(&found, cx.seed("hint"));
    match asked(gate, &hinted_critique_prompt(&task.public, &hint), cx).await {
        Ok(criticism) => Ok(Some(criticism)),
        Err(fault) if fault.kind == FaultKind::NoRoom => Ok(None),
        Err(fault) => Err(fault),
    }
}

async fn asked(gate: Gate, prompt: &[Message], cx: &mut Cx) -> Result<Criticism, Fault> {
    let critique = cx.ask(CRITIC, prompt).await?;
    let reading = match critique.stop {
        StopReason::Stop => read_critique(&critique.text, gate),
        StopReason::Length => Reading::unfinished(),
    };
    Ok(Criticism {
        text: critique.text,
        judgment: reading.judgment,
    })
}

/// The episode from its critique on, which may have been picked by a vote.
pub(crate) async fn follow(
    judge: &Judge,
    reward: &RewardConfig,
    task: &Task,
    (criticism, votes): (Criticism, Option<Votes>),
    next: Next,
    cx: &mut Cx,
) -> Result<Played, Fault> {
    let mut notes = Notes {
        problem: Some(task.facts.function.clone()),
        statement: task.public.statement.clone(),
        program: task.public.program.clone(),
        initially_right: task.facts.initially_right,
        family: task.facts.family.clone(),
        bug: task.facts.bug.clone(),
        exact: task.is_exact(&criticism.text),
        votes,
        critique: criticism.text,
        judgment: criticism.judgment,
        gate_ok: criticism.judgment.is_some(),
        revision: None,
        consistent: false,
        passed: false,
        status: "not run: the critique has no readable judgment".to_owned(),
        verdict: None,
    };
    match next {
        Next::Refuse => {}
        Next::Keep => {
            notes.passed = task.facts.initially_right;
            notes.consistent = notes.judgment == Some(Judgment::Correct);
            notes.status = match notes.judgment {
                Some(_) => "not run: the program was found correct and kept",
                None => "not run: nothing was said of the program, and it was kept",
            }
            .to_owned();
        }
        Next::Revise => revise(judge, task, &mut notes, cx).await?,
    }
    Ok(Played {
        reward: rewarded(reward, &notes),
        notes: serde_json::to_value(&notes).map_err(Fault::grader)?,
    })
}

async fn revise(judge: &Judge, task: &Task, notes: &mut Notes, cx: &mut Cx) -> Result<(), Fault> {
    let revision = cx
        .ask(REVISER, &revision_prompt(&task.public, &notes.critique))
        .await?
        .text;
    let program = extract_python(&revision, Fence::First).program.to_owned();
    let verdict = cx.in_sandbox(verdict_of(judge, task, &program)).await?;
    let changed = normal_form(&program).digest != normal_form(&task.public.program).digest;
    let incorrect = notes
        .judgment
        .map(|judgment| judgment == Judgment::Incorrect);
    notes.consistent = incorrect == Some(changed);
    notes.revision = Some(program);
    notes.passed = verdict.passed;
    notes.status = verdict.status.to_string();
    notes.verdict = Some(verdict);
    Ok(())
}

/// What the task's tests say of a program.
pub(crate) async fn verdict_of(
    judge: &Judge,
    task: &Task,
    program: &str,
) -> Result<Verdict, Fault> {
    let verdict = task.verdict(judge, program).await.map_err(Fault::infra)?;
    if verdict.status == VerdictStatus::NoTests {
        return Err(Fault::grader(format!("task {} has no tests", task.id)));
    }
    Ok(verdict)
}
