//! Who plans: rules, or a model.

mod model;
mod pointer;
mod rules;

use record::{Fault, Seed, ToolCall};
use rollout::Cx;
use serde::{Deserialize, Serialize};

use crate::{
    environment::{Observation, PlannerEnv},
    wire::{Reading, Reply, WireFormat},
};
pub use model::ModelPlanner;
pub(crate) use model::messages;
pub use pointer::PointingPlanner;
pub(crate) use pointer::pointing_at;
pub use rules::RulePlanner;

/// The role that plans.
pub const PLANNER: &str = "planner";

/// Who plans, and how it is talked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlannerConfig {
    pub kind: PlannerKind,
    pub format: WireFormat,
    pub reading: Reading,
    /// Let the rules choose where a model's reply is no action. Their choices are marked in the notes.
    pub rule_fallback: bool,
    /// Tell the model what it may do. One that was trained for this alone need not be told.
    pub instructions: bool,
    /// Show the model the first sentence of its last reply.
    pub preamble: bool,
}

impl Default for PlannerConfig {
    fn default() -> Self {
        Self {
            kind: PlannerKind::Rules,
            format: WireFormat::Text,
            reading: Reading::Strict,
            rule_fallback: false,
            instructions: true,
            preamble: true,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannerKind {
    /// Phases without any model (spec of the repair study, section 3.8).
    #[default]
    Rules,
    /// The policy bound to the role `planner`.
    Model,
    /// Points at one of the suspects after the other, the most suspicious first; it needs
    /// `observation.suspects`.
    Suspicion,
    /// The same in an order that is drawn: what pointing is worth by itself.
    Chance,
}

/// A planner in the middle of an episode.
#[derive(Debug)]
pub enum Planner {
    Rules(RulePlanner),
    Model(ModelPlanner),
    Pointing(PointingPlanner),
}

/// What a planner does next.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub reply: Reply,
    /// What the model wrote.
    pub text: Option<String>,
    /// The step of the episode's record that the model was asked in.
    pub call: Option<u32>,
    /// Why the rules chose in place of the model.
    pub fallback: Option<String>,
    /// The planner has nothing left to try after this.
    pub gives_up: bool,
}

impl Planner {
    /// `seed` is what an order is drawn from.
    pub fn new(config: &PlannerConfig, seed: Seed) -> Self {
        match config.kind {
            PlannerKind::Rules => Self::Rules(RulePlanner::default()),
            PlannerKind::Model => Self::Model(ModelPlanner::new(*config)),
            PlannerKind::Suspicion => Self::Pointing(PointingPlanner::by_suspicion()),
            PlannerKind::Chance => Self::Pointing(PointingPlanner::by_chance(seed)),
        }
    }

    /// Asks the policy, where there is one, what to do after `step` steps.
    ///
    /// # Errors
    /// What kept the policy from answering.
    pub async fn ask(
        &mut self,
        step: u32,
        observation: &Observation,
        cx: &mut Cx,
    ) -> Result<Option<Asked>, Fault> {
        match self {
            Self::Rules(_) | Self::Pointing(_) => Ok(None),
            Self::Model(model) => model.ask(step, observation, cx).await.map(Some),
        }
    }

    /// What is done, given what the policy said.
    pub fn choose(&mut self, asked: Option<Asked>, env: &PlannerEnv<'_>) -> Choice {
        match (self, asked) {
            (Self::Rules(rules), _) => rules.next(env),
            (Self::Pointing(pointing), _) => pointing.next(env),
            (Self::Model(model), asked) => model.choose(asked.unwrap_or_default(), env),
        }
    }
}

/// What a policy said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub text: String,
    /// Of policies that give them apart from the text.
    pub tool_calls: Vec<ToolCall>,
    /// It was offered tools whose calls come apart from the text.
    pub calls_apart: bool,
    /// It ended at its limit of tokens.
    pub is_cut_off: bool,
    pub call: u32,
}
