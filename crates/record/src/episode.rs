//! One play of one task, and the group of plays that share a baseline.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Completion, Outcome, ToolCall};

/// Names a task for ever: the same id always means the same statement, program and tests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub String);

/// Where in a run an episode was played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EpisodeId {
    /// Optimizer step of the run, or 0 in an evaluation.
    pub step: u64,
    /// Index of the group inside its step.
    pub group: u32,
    /// Index of the episode inside its group.
    pub member: u32,
}

/// Names a call for ever, wherever its row goes: data that belongs to calls is kept by this and never by
/// the place of a row, because batches are reordered, repeated, split and joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepKey {
    pub episode: EpisodeId,
    /// Index in [`Episode::calls`].
    pub step: u32,
}

/// One policy request inside an episode: a step of its trajectory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The study's name for who was asked: `critic`, `reviser`, …
    pub role: String,
    pub completion: Completion,
    /// The turn of the study's dialogue that the call was made in, where the study has turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// What the study paid for this call alone, beside the episode's reward; finite. `None` is unscored,
    /// which is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_reward: Option<f64>,
    /// What was said by a policy whose tokens are unknown: `completion` then has none, and the call can be
    /// read and never trained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
}

/// An answer in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// As whoever said it counts them; 0 where it does not.
    pub prompt_tokens: u64,
    pub response_tokens: u64,
}

/// One play of one task, as it is journalled and trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    pub id: EpisodeId,
    pub task: TaskId,
    /// In the order in which the calls were answered inside this episode.
    pub calls: Vec<Call>,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Times that an infrastructure fault made `rollout` play it again.
    #[serde(default)]
    pub retries: u32,
    /// The study's own facts about the episode (texts, verdict, judgment): what reports show.
    pub notes: serde_json::Value,
}

/// The episodes of one task that share a baseline. Every member asked for is in it, in member
/// order, faulted ones too: nobody is lost silently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub task: TaskId,
    pub episodes: Vec<Episode>,
}

impl Episode {
    /// The calls of one role, in order.
    pub fn calls_of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(move |call| call.role == role)
    }

    /// The key of the call at `step`, an index in [`Episode::calls`].
    pub fn step_key(&self, step: usize) -> StepKey {
        StepKey {
            episode: self.id,
            step: step as u32,
        }
    }
}

impl Call {
    /// A call outside any turn, unscored.
    pub fn new(role: &str, completion: Completion) -> Self {
        Self {
            role: role.to_owned(),
            completion,
            turn: None,
            step_reward: None,
            said: None,
        }
    }
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.episode, self.step)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for EpisodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.step, self.group, self.member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As journals have had calls since before there were turns.
    const OLD: &str = r#"{"role":"critic","completion":{"prompt":[1],"response":[2],"logprobs":[-0.5],"stop":"stop","sampling":{"temperature":1.0,"top_p":1.0,"max_tokens":4,"stop":[]},"weights":0}}"#;

    #[test]
    fn calls_without_turns_keep_their_bytes() {
        let call: Call = serde_json::from_str(OLD).unwrap();
        assert_eq!((call.turn, call.step_reward), (None, None));
        assert_eq!(serde_json::to_string(&call).unwrap(), OLD);
    }

    #[test]
    fn unscored_is_not_zero() {
        let mut call: Call = serde_json::from_str(OLD).unwrap();
        (call.turn, call.step_reward) = (Some(0), Some(0.0));
        let text = serde_json::to_string(&call).unwrap();
        assert!(text.ends_with(r#","turn":0,"step_reward":0.0}"#), "{text}");
        assert_eq!(serde_json::from_str::<Call>(&text).unwrap(), call);
    }
}
