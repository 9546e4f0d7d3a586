//! A task of the recall study: turns to walk through, their gold apart by type.

use std::collections::BTreeMap;

use record::TaskId;
use rollout::TaskRow;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    dialogue::{Answers, ChunkQuestion, Dialogue, Question, Utterance},
    event::Evidence,
    metrics::{Asked, Metric},
};

/// What one episode plays: history turns that are remembered, target turns that are answered.
/// (`BatchInput` of the spec, section 1.1.) Tasks with one id share a GRPO group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// `source/split/sample`, and `-q{i}` behind it where an episode asks one question.
    pub id: TaskId,
    pub public: Public,
    pub facts: Facts,
    pub(crate) gold: Gold,
}

/// All that prompts and memories may be made from. They take this type and cannot name the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Public {
    /// In the order in which they are walked through.
    pub turns: Vec<TurnSpec>,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnSpec {
    /// Unique within the task.
    pub turn_id: u32,
    pub turn_role: TurnRole,
    /// Of the session, or of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The dataset's own name of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What was said; of a target turn the question alone.
    pub utterances: Vec<Utterance>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnRole {
    /// Read and remembered.
    History,
    /// Answered from memory.
    Target,
}

/// What is expected of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionType {
    MemoryOps,
    Answer,
}

/// What metrics and reports break results down by. Never shown to a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    pub data_source: String,
    /// What training and evaluation are divided by.
    pub document: String,
    /// How answers are scored; absent, as the name of the dataset says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Of target turns, by `turn_id`.
    pub questions: BTreeMap<u32, QuestionFacts>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionFacts {
    pub question_id: String,
    pub question_type: String,
}

/// Answers of target turns, by `turn_id`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gold {
    pub(crate) answers: BTreeMap<u32, Answers>,
    /// Of history turns, by `turn_id`: questions about them alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) chunk_questions: BTreeMap<u32, Vec<Question>>,
}

/// How questions become episodes (spec, section 1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// One episode a question: the history is read again for each.
    Qa,
    /// One episode a dialogue: memorised once, asked many times.
    #[default]
    Sample,
}

impl Task {
    /// The episodes that a dialogue makes.
    pub fn of_dialogue(dialogue: &Dialogue, granularity: Granularity) -> Vec<Self> {
        let id = format!(
            "{}/{}/{}",
            dialogue.data_source, dialogue.split, dialogue.sample_id
        );
        match granularity {
            Granularity::Sample => vec![Self::asking(dialogue, id, &dialogue.questions)],
            Granularity::Qa => dialogue
                .questions
                .iter()
                .enumerate()
                .map(|(index, question)| {
                    let id = format!("{id}-q{index}");
                    Self::asking(dialogue, id, std::slice::from_ref(question))
                })
                .collect(),
        }
    }

    fn asking(dialogue: &Dialogue, id: String, questions: &[Question]) -> Self {
        let history = dialogue.sessions.iter().map(|session| TurnSpec {
            turn_id: 0,
            turn_role: TurnRole::History,
            timestamp: session.timestamp.clone(),
            session_id: session.session_id.clone(),
            utterances: session.utterances.clone(),
        });
        let targets = questions.iter().map(|question| TurnSpec {
            turn_id: 0,
            turn_role: TurnRole::Target,
            timestamp: question.timestamp.clone(),
            session_id: None,
            utterances: vec![Utterance {
                source_id: None,
                speaker: None,
                text: question.text.clone(),
            }],
        });
        let mut turns: Vec<TurnSpec> = history.chain(targets).collect();
        for (turn_id, turn) in (0..).zip(&mut turns) {
            turn.turn_id = turn_id;
        }
        let first = dialogue.sessions.len() as u32;
        let facts = (first..).zip(questions).map(|(turn_id, question)| {
            let facts = QuestionFacts {
                question_id: question.question_id.clone(),
                question_type: question.question_type.clone(),
            };
            (turn_id, facts)
        });
        let answers = (first..)
            .zip(questions)
            .map(|(turn_id, question)| (turn_id, question.gold.clone()));
        let mut chunk_questions: BTreeMap<u32, Vec<Question>> = BTreeMap::new();
        for ChunkQuestion { session, question } in &dialogue.chunk_questions {
            // Sessions are the first turns.
            let asked = chunk_questions.entry(*session as u32).or_default();
            asked.push(question.clone());
        }
        Self {
            id: TaskId(id),
            public: Public { turns },
            facts: Facts {
                data_source: dialogue.data_source.clone(),
                document: dialogue.document.clone(),
                metric: dialogue.metric,
                questions: facts.collect(),
                metadata: dialogue.metadata.clone(),
            },
            gold: Gold {
                answers: answers.collect(),
                chunk_questions,
            },
        }
    }
}

impl Task {
    /// How its answers are scored where a recipe does not say.
    pub fn metric(&self) -> Metric {
        let of_source = || Metric::of_source(&self.facts.data_source);
        self.facts.metric.unwrap_or_else(of_source)
    }

    /// What the answer of the target turn `turn_id` is graded against; `None` for other turns.
    pub(crate) fn asked(&self, turn_id: u32) -> Option<Asked<'_>> {
        let gold = self.gold.answers.get(&turn_id)?;
        Some(Asked {
            question_type: &self.facts.questions.get(&turn_id)?.question_type,
            answers: &gold.answers,
            abstain: gold.abstain,
        })
    }

    /// What there is to ask about the history turn `turn_id` alone.
    pub(crate) fn chunk_questions(&self, turn_id: u32) -> &[Question] {
        self.gold
            .chunk_questions
            .get(&turn_id)
            .map_or(&[], Vec::as_slice)
    }

    /// Where the evidence for the answer of the target turn `turn_id` was read: utterances and sessions that
    /// its gold names. Names that nothing in the task bears are left out.
    pub(crate) fn evidence(&self, turn_id: u32) -> Vec<Evidence> {
        let gold = self.gold.answers.get(&turn_id);
        let names = gold.map_or(&[][..], |gold| &gold.evidence);
        let found = names.iter().flat_map(|name| {
            self.public.turns.iter().filter_map(move |turn| {
                let is_named = |id: &Option<String>| id.as_ref() == Some(name);
                let source_id = if is_named(&turn.session_id) {
                    None
                } else if turn.utterances.iter().any(|said| is_named(&said.source_id)) {
                    Some(name.clone())
                } else {
                    return None;
                };
                Some(Evidence {
                    turn_id: turn.turn_id,
                    source_id,
                })
            })
        });
        let mut evidence: Vec<Evidence> = found.collect();
        evidence.sort();
        evidence.dedup();
        evidence
    }
}

impl TurnSpec {
    /// What was said, one line an utterance, each behind its speaker.
    pub fn observation(&self) -> String {
        let lines: Vec<String> = self.utterances.iter().map(Utterance::line).collect();
        lines.join("\n")
    }

    pub fn expected_action(&self) -> ActionType {
        match self.turn_role {
            TurnRole::History => ActionType::MemoryOps,
            TurnRole::Target => ActionType::Answer,
        }
    }
}

impl TaskRow for Task {
    fn id(&self) -> &TaskId {
        &self.id
    }
}
