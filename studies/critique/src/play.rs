//! One episode: critique, revision, tests.

use code::{Fence, extract_python, normal_form};
use judge::{Judge, Verdict, VerdictStatus};
use record::{Fault, Reward, StopReason};
use rollout::{Cx, Played};
use serde::{Deserialize, Serialize};

use crate::{
    format::{Gate, Judgment, Reading, read_critique},
    prompts::{critique_prompt, revision_prompt},
    task::Task,
};

/// The role whose critiques are trained.
pub const CRITIC: &str = "critic";
/// The frozen role that rewrites the program.
pub const REVISER: &str = "reviser";

/// How an episode is rewarded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RewardConfig {
    /// What the tests' verdict is worth.
    pub form: RewardForm,
    /// Which critiques are read at all; the others earn 0.
    pub gate: Gate,
    /// Whether a critique must lead to what it says: "Incorrect" to a changed program, "Correct" to
    /// an unchanged one. Otherwise it earns 0. Without this, finding fault with a right program and
    /// suggesting nothing is as good as finding it right.
    pub consistent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardForm {
    /// 1 if the revision passes every test, else 0.
    AllPass,
    /// The share of tests that the revision passes.
    PassRate,
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self {
            form: RewardForm::AllPass,
            gate: Gate::Strict,
            consistent: false,
        }
    }
}

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
        let verdict = judge
            .verdict(&program, &task.gold.tests)
            .await
            .map_err(Fault::infra)?;
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

/// The reward of an episode: a function of its notes alone. The gate and, if asked for, consistency
/// decide whether the verdict counts; the truth of the judgment is recorded and not paid for.
fn rewarded(config: &RewardConfig, notes: &Notes) -> Reward {
    let pass = match (&notes.verdict, config.form) {
        (Some(verdict), RewardForm::AllPass) => f64::from(verdict.passed),
        (Some(verdict), RewardForm::PassRate) => {
            verdict.n_passed as f64 / verdict.n_tests.max(1) as f64
        }
        (None, _) => 0.0,
    };
    let judged_right = notes.judgment.map(|judgment| judgment == Judgment::Correct);
    let mut reward = Reward::of("pass", pass);
    reward.components.insert(
        "judgment".to_owned(),
        f64::from(judged_right == Some(notes.initially_right)),
    );
    reward
        .components
        .insert("consistent".to_owned(), f64::from(notes.consistent));
    let counts = notes.gate_ok && (notes.consistent || !config.consistent);
    reward.total = if counts { pass } else { 0.0 };
    reward
}
