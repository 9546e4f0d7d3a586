//! A task of the critique study, its public part and its gold kept apart by type.

use std::{collections::BTreeMap, time::Duration};

use judge::{Feedback, Judge, JudgeError, Tests, Verdict};
use record::TaskId;
use rollout::TaskRow;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// A problem and one program for it, right or wrong: a training row of the study.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    pub id: TaskId,
    pub public: Public,
    pub facts: Facts,
    pub(crate) gold: Gold,
}

/// All that a prompt may be made from. Prompt builders take this type and cannot name the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Public {
    pub statement: String,
    pub program: String,
    /// How the prompts about it are worded. Left out of files where it says what the tiny world does.
    #[serde(default, skip_serializing_if = "Prompter::is_tiny")]
    pub prompter: Prompter,
}

/// The wordings of prompts, by the kind of problem (spec of the critique study, section 1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompter {
    /// Statement and program alone, as the models of the tiny world know them.
    #[default]
    Tiny,
    /// Programs that read standard input and write standard output.
    #[serde(alias = "io")]
    CodeContests,
    /// LiveCodeBench's own layout of either kind.
    #[serde(rename = "livecodebench")]
    LiveCodeBench,
    /// Functions that assertions call.
    #[serde(rename = "mbppplus", alias = "assert")]
    MbppPlus,
}

impl Prompter {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::CodeContests => "code_contests",
            Self::LiveCodeBench => "livecodebench",
            Self::MbppPlus => "mbppplus",
        }
    }

    fn is_tiny(&self) -> bool {
        *self == Self::Tiny
    }
}

/// What metrics and reports break results down by. Never shown to a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Whether `program` passes every test as it stands.
    pub initially_right: bool,
    pub family: String,
    /// The kind of the planted bug; absent for right programs.
    #[serde(default)]
    pub bug: Option<String>,
    /// Identifies the function that the statement asks for, whatever the program: the split between
    /// training and evaluation is by this.
    pub function: String,
    /// The dataset that the problem comes from, as metrics are broken down by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_source: Option<String>,
    /// How hard the dataset says the problem is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<String>,
}

/// Hidden tests and known answers: read by the judge and by measures, reachable from no prompt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gold {
    pub(crate) tests: Tests,
    /// Seconds of processor time that one run of the program may take; the recipe's limit when absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "seconds"
    )]
    pub(crate) time_limit_s: Option<f64>,
    /// The critique that names the fault exactly (or says that there is none), where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) right_critique: Option<String>,
    /// Fixed critiques by kind, to measure what the reviser makes of them.
    #[serde(default)]
    pub(crate) probes: BTreeMap<String, String>,
}

impl Task {
    /// The task's fixed critique of a kind (`empty`, `malformed`, `good`, …): what scripted critics
    /// say in evaluations of the reviser. Gold for some kinds, so never part of a prompt of a policy
    /// that is trained or evaluated.
    pub fn probe(&self, kind: &str) -> Option<&str> {
        self.gold.probes.get(kind).map(String::as_str)
    }

    /// Judges a program by the task's tests, within the task's own time limit where it has one.
    pub(crate) async fn verdict(
        &self,
        judge: &Judge,
        program: &str,
    ) -> Result<Verdict, JudgeError> {
        let judge = within(judge, self.gold.time_limit_s);
        judge.verdict(program, &self.gold.tests).await
    }

    /// The same with what each failed test asked and expected: gold, for hints of baselines alone.
    pub(crate) async fn feedback(
        &self,
        judge: &Judge,
        program: &str,
    ) -> Result<Feedback, JudgeError> {
        let judge = within(judge, self.gold.time_limit_s);
        judge.feedback(program, &self.gold.tests).await
    }

    /// The critique that names the fault exactly, where it is known. Gold: only a scripted critic may say it, which
    /// shows what the reviser could be told.
    pub fn right_critique(&self) -> Option<&str> {
        self.gold.right_critique.as_deref()
    }

    /// The same problem with another program, right or wrong. What is known of this program's fault holds for the
    /// other only where it is the same text.
    pub(crate) fn with_program(&self, id: TaskId, program: String, right: bool) -> Self {
        let same = program == self.public.program;
        Self {
            id,
            facts: Facts {
                initially_right: right,
                bug: self.facts.bug.clone().filter(|_| same),
                ..self.facts.clone()
            },
            gold: Gold {
                tests: self.gold.tests.clone(),
                right_critique: self.gold.right_critique.clone().filter(|_| same),
                probes: BTreeMap::new(),
                time_limit_s: self.gold.time_limit_s,
            },
            public: Public {
                program,
                ..self.public.clone()
            },
        }
    }

    /// Whether the critique is, apart from white space at its ends, the one that names the fault exactly; `None`
    /// where nobody knows that one.
    pub(crate) fn is_exact(&self, critique: &str) -> Option<bool> {
        let right = self.gold.right_critique.as_deref();
        right.map(|right| right.trim() == critique.trim())
    }
}

/// The judge with another limit of seconds, where there is one.
pub(crate) fn within(judge: &Judge, seconds: Option<f64>) -> Judge {
    match seconds.map(Duration::try_from_secs_f64) {
        Some(Ok(cpu)) => judge.within_cpu(cpu),
        _ => judge.clone(),
    }
}

/// Seconds that a run may take, in which something can be done.
pub(crate) fn is_time_limit(seconds: f64) -> bool {
    seconds > 0.0 && seconds <= LONGEST_S
}

/// The longest time limit: what is above it is a mistake in the unit.
pub(crate) const LONGEST_S: f64 = 3600.0;

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let found: Option<f64> = Option::deserialize(deserializer)?;
    match found {
        Some(seconds) if !is_time_limit(seconds) => Err(D::Error::custom(format!(
            "{seconds} seconds are no time limit; expected more than 0 and at most {LONGEST_S}"
        ))),
        found => Ok(found),
    }
}

impl TaskRow for Task {
    fn id(&self) -> &TaskId {
        &self.id
    }
}
