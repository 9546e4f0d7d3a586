//! One episode: critique, revision, tests.

use code::{Fence, extract_python, normal_form};
use judge::{Judge, Verdict, VerdictStatus};
use record::{Fault, StopReason};
use rollout::{Cx, Played};
use serde::{Deserialize, Serialize};

use crate::{
    format::{Judgment, Reading, read_critique},
    prompts::{critique_prompt, revision_prompt},
    reward::{RewardConfig, rewarded},
    task::Task,
};

/// The role whose critiques are trained.
pub const CRITIC: &str = "critic";
/// The frozen role that rewrites the program.
pub const REVISER: &str = "reviser";

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
    pub statement: String,
    pub program: String,
    pub initially_right: bool,
    pub family: String,
    pub bug: Option<String>,
    pub critique: String,
    /// The judgment that the critique ends with, if the gate let it through.
    pub judgment: Option<Judgment>,
    pub gate_ok: bool,
    /// The critique is, apart from white space at its ends, the one that names the fault exactly.
    pub exact: bool,
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
    let critique = cx.ask(CRITIC, &critique_prompt(&task.public)).await?;
    let reading = match critique.stop {
        StopReason::Stop => read_critique(&critique.text, reward.gate),
        StopReason::Length => Reading::unfinished(),
    };
    let mut notes = Notes {
        statement: task.public.statement.clone(),
        program: task.public.program.clone(),
        initially_right: task.facts.initially_right,
        family: task.facts.family.clone(),
        bug: task.facts.bug.clone(),
        exact: task.is_exact(&critique.text),
        critique: critique.text,
        judgment: reading.judgment,
        gate_ok: reading.judgment.is_some(),
        revision: None,
        consistent: false,
        passed: false,
        status: "not run: the critique has no readable judgment".to_owned(),
        verdict: None,
    };
    if notes.gate_ok || purpose == Purpose::Measuring {
        let revision = cx
            .ask(REVISER, &revision_prompt(&task.public, &notes.critique))
            .await?
            .text;
        let program = extract_python(&revision, Fence::First).program.to_owned();
        let verdict = task.verdict(judge, &program).await.map_err(Fault::infra)?;
        if verdict.status == VerdictStatus::NoTests {
            return Err(Fault::grader(format!("task {} has no tests", task.id)));
        }
        let changed = normal_form(&program).digest != normal_form(&task.public.program).digest;
        let incorrect = reading
            .judgment
            .map(|judgment| judgment == Judgment::Incorrect);
        notes.consistent = incorrect == Some(changed);
        notes.revision = Some(program);
        notes.passed = verdict.passed;
        notes.status = verdict.status.to_string();
        notes.verdict = Some(verdict);
    }
    Ok(Played {
        reward: rewarded(reward, &notes),
        notes: serde_json::to_value(&notes).map_err(Fault::grader)?,
    })
}
