//! Long dialogues with questions about them, as every adapter gives them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::metrics::Metric;

use crate::metrics::Asked;

/// One sample of a dataset: sessions in the order in which they took place, and the questions about
/// them. A `DialogueBatch` of the spec (section 1.1) is a list of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialogue {
    /// Unique within `data_source` and `split`.
    pub sample_id: String,
    /// The dataset: `locomo`, `longmemeval`, `tiny`, …
    pub data_source: String,
    /// What the dataset calls this part of itself: `train`, `test`, …
    pub split: String,
    /// Names the text that the sessions are made of. Samples of one document are never on both sides
    /// of a division into training and evaluation.
    pub document: String,
    /// How answers are scored; absent, as the name of the dataset says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    pub sessions: Vec<Session>,
    pub questions: Vec<Question>,
    /// Written beforehand and verified to be answered by their session: what `step_rewards.chunk_qa` asks
    /// right behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunk_questions: Vec<ChunkQuestion>,
    /// Columns of the row that have no place here. Never shown to a policy.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// What is read in one history turn: a session of a dialogue, or a chunk of a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// The dataset's own name of it, for evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// When it took place, as the dataset writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    pub utterances: Vec<Utterance>,
}

/// Something said. Text without speakers is one utterance a chunk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utterance {
    /// The dataset's own name of it, for evidence: `D1:3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    pub text: String,
}

/// A question about what is read in one history turn alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkQuestion {
    /// Index of the session.
    pub session: usize,
    pub question: Question,
}

/// A question about the sessions, with its answers out of reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Unique within its dialogue.
    pub question_id: String,
    pub text: String,
    /// When it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// What results are broken down by: LoCoMo's category, LongMemEval's type.
    pub question_type: String,
    pub(crate) gold: Answers,
}

/// What a question is graded by: reachable by rewards and metrics, by no prompt and no memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answers {
    /// All that are right; the best counts. Empty only where `abstain` is set.
    pub(crate) answers: Vec<String>,
    /// The sessions do not say: the right answer is to say so.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) abstain: bool,
    /// `source_id`s of utterances, or `session_id`s, that the answer follows from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) evidence: Vec<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Utterance {
    /// What was said, behind its speaker.
    pub fn line(&self) -> String {
        match &self.speaker {
            Some(speaker) => format!("{speaker}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

impl Question {
    /// A question whose answers are `answers`; none of them means that the right answer is to abstain.
    pub fn new(question_id: &str, text: &str, question_type: &str, answers: Vec<String>) -> Self {
        Self {
            question_id: question_id.to_owned(),
            text: text.to_owned(),
            timestamp: None,
            question_type: question_type.to_owned(),
            gold: Answers {
                abstain: answers.is_empty(),
                answers,
                evidence: Vec::new(),
            },
        }
    }

    /// What its answer is graded against.
    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked {
            question_type: &self.question_type,
            answers: &self.gold.answers,
            abstain: self.gold.abstain,
        }
    }

    /// The same, following from these utterances or sessions.
    pub fn with_evidence(mut self, evidence: Vec<String>) -> Self {
        self.gold.evidence = evidence;
        self
    }
}
