//! What a planner may do, as values: actions, what is wrong with a reply, and the tables that both wire
//! formats, their schemas and their prompts are made from.
//!
//! Spec of the repair study, sections 1.2 to 1.5. The text protocol's meaning of fields holds everywhere;
//! what the later tool calls add (kinds of nodes, ways to expand, views, patterns, evidence) are fields of
//! the same actions.

mod fault;
mod params;
mod read;
mod schema;
mod write;

use code::graph::{Anchor, MemoryIntent, MemoryTarget};
use serde::{Deserialize, Serialize};

pub(crate) use fault::CUT_OFF;
pub use fault::{ActionFault, FaultCode, Meta, Trimmed};
pub use params::{ACTIONS, PROPOSALS, Param, ParamKind, Signature, TOOLS};
pub(crate) use read::{Named, read_action, read_tool};
pub use schema::{action_schema, tool_schemas};
pub(crate) use write::{as_fields, as_tool};

/// One step of a planner.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// What the planner says to itself.
    pub thought: String,
    pub kind: ActionKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ActionKind {
    Explore(Explore),
    Memory(MemoryAction),
    Repair(RepairAction),
    Proposal(ProposalAction),
    /// Runs the tests that are to pass, and shows how they fail.
    RunFailedTest,
    Submit,
    Noop,
}

/// Looks at the code graph and at sources.
#[derive(Clone, Debug, PartialEq)]
pub struct Explore {
    pub op: Operation,
    pub query: String,
    pub anchors: Vec<Anchor>,
    /// Ids.
    pub nodes: Vec<String>,
    /// Edges to follow, 0 to 2.
    pub hop: u32,
    /// 1 to 100.
    pub limit: u32,
    /// 1 to 200.
    pub max_per_anchor: Option<u32>,
    /// 1 to 300.
    pub total_limit: Option<u32>,
    /// 0 to 50.
    pub dir_diversity_k: Option<u32>,
    pub find_type: FindType,
    /// The class that found methods must stand in.
    pub class_name: String,
    /// Files that are looked at; empty for all.
    pub path_glob: String,
    pub expand_mode: ExpandMode,
    /// Part of a name that neighbours must have.
    pub symbol: String,
    pub view: View,
    pub pattern: String,
    /// `pattern` is a regular expression.
    pub regex: bool,
    /// 0 to 20.
    pub context_lines: u32,
}

impl Default for Explore {
    fn default() -> Self {
        Self {
            op: Operation::Find,
            query: String::new(),
            anchors: Vec::new(),
            nodes: Vec::new(),
            hop: 1,
            limit: 50,
            max_per_anchor: None,
            total_limit: None,
            dir_diversity_k: None,
            find_type: FindType::Any,
            class_name: String::new(),
            path_glob: String::new(),
            expand_mode: ExpandMode::Related,
            symbol: String::new(),
            view: View::Body,
            pattern: String::new(),
            regex: false,
            context_lines: 2,
        }
    }
}

/// A closed set of words, as planners write them.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$note])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// The words, in the order of the variants.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Letter case apart.
            pub fn named(word: &str) -> Option<Self> {
                let word = word.trim().to_lowercase();
                match word.as_str() {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// What an exploration does.
    Operation {
        /// Nodes by words, or by anchors.
        Find = "find",
        /// What lies around nodes.
        Expand = "expand",
        /// Source of nodes.
        Read = "read",
        /// Lines by a pattern.
        Grep = "grep",
    }
}

words! {
    /// Kinds of nodes that a search may be narrowed to.
    FindType {
        Any = "any",
        File = "file",
        Class = "class",
        Function = "function",
        /// Functions of a class.
        Method = "method",
        Assignment = "assignment",
    }
}

words! {
    /// Which edges an expansion follows.
    ExpandMode {
        /// All, and then what stands nearby.
        Related = "related",
        Callers = "callers",
        Callees = "callees",
        /// What stands in the same class or file.
        Siblings = "siblings",
        Imports = "imports",
        Contains = "contains",
        /// What is called, mentioned or extended.
        Uses = "uses",
        /// Callers and callees, and theirs.
        Mechanism = "mechanism",
        /// What it stands in, extends and overrides, and what overrides it.
        OwnerFlow = "owner_flow",
    }
}

/// How much of a node is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Its lines, with three around them.
    Body,
    /// Its first lines, up to the end of its signature and documentation.
    Header,
    /// Ten lines before and after this one of its file.
    AroundLine(u32),
    /// These lines of its file.
    FileWindow(u32, u32),
}

/// Changes what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAction {
    pub target: MemoryTarget,
    pub intent: MemoryIntent,
    pub selection: Selection,
}

/// What of it. Empty is the latest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// Nodes and notes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub select_ids: Vec<String>,
    /// Nodes of the working graph that stay in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Nodes that are taken when none is named, 1 to 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
}

/// Hands a plan to the patch model. Patches that a planner writes itself are ignored: there is no field
/// for them.
#[derive(Clone, Debug, PartialEq)]
pub struct RepairAction {
    /// A line a step, as [`plan_lines`] makes them.
    pub plan: Vec<String>,
    /// Nodes to change; empty for all that memory holds.
    pub focus_ids: Vec<String>,
    /// Keep the patch if the tests pass; else the plan is only noted.
    pub apply: bool,
    /// What led to the plan.
    pub evidence: Vec<Evidence>,
    /// The failure that the plan explains, in the planner's words.
    pub failure_seen: String,
    /// 0 to 1.
    pub confidence: Option<f64>,
}

impl Default for RepairAction {
    fn default() -> Self {
        Self {
            plan: Vec::new(),
            focus_ids: Vec::new(),
            apply: true,
            evidence: Vec::new(),
            failure_seen: String::new(),
            confidence: None,
        }
    }
}

/// A repair in steps: what the patch model proposes is looked at before its tests are run.
#[derive(Clone, Debug, PartialEq)]
pub enum ProposalAction {
    /// Asks the patch model for a patch, which is shown and not applied.
    Propose(RepairAction),
    /// Asks once more, with what is wrong with the proposal.
    Revise(String),
    /// Applies the proposal, runs all tests, and keeps it if they pass.
    Submit,
    /// Drops the proposal.
    Discard,
}

/// A node, and what it says about the failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    pub node_id: String,
    #[serde(default)]
    pub role: String,
    #[serde(default)]
    pub evidence: String,
}

impl Action {
    pub fn new(kind: ActionKind) -> Self {
        Self {
            thought: String::new(),
            kind,
        }
    }

    pub fn thinking(self, thought: impl Into<String>) -> Self {
        Self {
            thought: thought.into(),
            ..self
        }
    }

    /// `explore`, `memory`, `repair`, `repair_propose`, `repair_revise`, `repair_submit`, `repair_discard`,
    /// `run_failed_test`, `submit`, `noop`.
    pub fn name(&self) -> &'static str {
        match self.kind {
            ActionKind::Explore(_) => "explore",
            ActionKind::Memory(_) => "memory",
            ActionKind::Repair(_) => "repair",
            ActionKind::Proposal(ProposalAction::Propose(_)) => "repair_propose",
            ActionKind::Proposal(ProposalAction::Revise(_)) => "repair_revise",
            ActionKind::Proposal(ProposalAction::Submit) => "repair_submit",
            ActionKind::Proposal(ProposalAction::Discard) => "repair_discard",
            ActionKind::RunFailedTest => "run_failed_test",
            ActionKind::Submit => "submit",
            ActionKind::Noop => "noop",
        }
    }

    /// As logs have it: `schema_version`, `type`, and the fields that are not at their defaults.
    pub fn record(&self) -> serde_json::Value {
        let mut record = serde_json::json!({"schema_version": 1, "type": self.name()});
        if let serde_json::Value::Object(fields) = &mut record {
            fields.extend(as_fields(self));
        }
        record
    }
}

/// The steps of a plan: its lines without numbers and bullets, without empty ones and each once.
pub fn plan_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = without_bullet(line.trim());
        if !line.is_empty() && !lines.iter().any(|known| known == line) {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// `1) x`, `2. x`, `- x` and `* x` are `x`.
fn without_bullet(line: &str) -> &str {
    let unnumbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks: &[char] = match unnumbered.len() < line.len() {
        true => &[')', '.'],
        false => &['-', '*', '•'],
    };
    match unnumbered.strip_prefix(marks) {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => rest.trim(),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_lose_their_numbers_and_bullets_and_nothing_else() {
        let text =
            "1) read the parser\n- fix it\n\n  2. 3.5 is no bullet\n* fix it\n-x stays\n10) \n9";
        let expected = [
            "read the parser",
            "fix it",
            "3.5 is no bullet",
            "-x stays",
            "9",
        ];
        assert_eq!(plan_lines(text), expected);
    }

    #[test]
    fn records_carry_their_version_and_no_patch() {
        let action = Action::new(ActionKind::Repair(RepairAction {
            plan: vec!["guard it".to_owned()],
            ..RepairAction::default()
        }));
        let record =
            serde_json::json!({"schema_version": 1, "type": "repair", "subplan": "guard it"});
        assert_eq!(action.record(), record);
    }
}
