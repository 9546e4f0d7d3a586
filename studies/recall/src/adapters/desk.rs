//! What all adapters share: options, counts, chunking, and the checks that every dialogue must pass.

use std::collections::{BTreeMap, BTreeSet};

use dataset::{Place, Row, RowError};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    Options,
    chunk::{self, CountTokens, chunk_tokens},
    values::{Texts, without_nulls},
};
use crate::{
    dialogue::{Answers, ChunkQuestion, Dialogue, Question, Session, Utterance},
    metrics::Metric,
};

/// How often what happened, by name: rows, questions, what was left out and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Counts(pub BTreeMap<String, u64>);

impl Counts {
    /// Nothing is counted where `number` is 0.
    pub fn add(&mut self, what: &str, number: u64) {
        if number > 0 {
            *self.0.entry(what.to_owned()).or_default() += number;
        }
    }

    /// Adds all of another file's.
    pub fn merge(&mut self, other: &Self) {
        for (what, number) in &other.0 {
            self.add(what, *number);
        }
    }
}

pub(super) struct Desk<'a> {
    options: &'a Options,
    count_tokens: &'a CountTokens<'a>,
    counts: Counts,
}

/// A dialogue without its history and questions: how its row names it.
pub(super) struct Sample {
    /// `None` where rows have no names: the row number stands for one.
    pub(super) sample_id: Option<String>,
    /// What the rows say; the options come first.
    pub(super) data_source: String,
    /// `None` where the dataset names none: the content of its history stands for one.
    pub(super) document: Option<String>,
    pub(super) metadata: Map<String, Value>,
}

/// A question as rows have it.
pub(super) struct Asked {
    pub(super) question_id: String,
    pub(super) text: String,
    pub(super) timestamp: Option<String>,
    pub(super) question_type: String,
    pub(super) answers: Vec<String>,
    pub(super) abstain: bool,
    pub(super) evidence: Vec<String>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(options: &'a Options, count_tokens: &'a CountTokens<'a>) -> Self {
        Self {
            options,
            count_tokens,
            counts: Counts::default(),
        }
    }

    pub(super) fn options(&self) -> &Options {
        self.options
    }

    pub(super) fn count(&mut self, what: &str, number: u64) {
        self.counts.add(what, number);
    }

    /// What was counted so far, to be gone back to where a row is rejected.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn go_back_to(&mut self, counts: Counts) {
        self.counts = counts;
    }

    pub(super) fn into_counts(self) -> Counts {
        self.counts
    }

    /// Byte ranges of the chunks of a text.
    pub(super) fn chunks(&self, text: &str, data_source: &str) -> Vec<std::ops::Range<usize>> {
        chunk::chunks(text, self.budget(data_source), self.count_tokens)
    }

    fn budget(&self, data_source: &str) -> usize {
        self.options
            .chunk_tokens
            .unwrap_or_else(|| chunk_tokens(data_source))
    }

    /// The dialogue, its sessions cut to the budget of its source.
    pub(super) fn dialogue(
        &mut self,
        row: &Row,
        sample: Sample,
        sessions: Vec<Session>,
        questions: Vec<Asked>,
    ) -> Dialogue {
        // Another name changes neither how answers are scored nor how turns are cut.
        let metric = Metric::of_source(&sample.data_source);
        let named = self.options.data_source.clone();
        let data_source = named.unwrap_or_else(|| sample.data_source.clone());
        let document = sample.document.unwrap_or_else(|| digest(&sessions));
        let budget = self.budget(&sample.data_source);
        let mut turns = Vec::new();
        for session in sessions {
            let parts = chunk::sessions(session, budget, self.count_tokens);
            self.count("sessions cut to the budget", u64::from(parts.len() > 1));
            turns.extend(parts);
        }
        let sample_id = sample
            .sample_id
            .unwrap_or_else(|| format!("{}{}", self.options.prefix, number(row)));
        Dialogue {
            sample_id: sample_id.replace('/', "_"),
            data_source: data_source.replace('/', "_"),
            split: self.options.split.clone(),
            document,
            metric: Some(metric),
            sessions: turns,
            questions: questions.into_iter().map(Asked::question).collect(),
            chunk_questions: Vec::new(),
            metadata: without_nulls(sample.metadata),
        }
    }
}

impl Asked {
    fn question(self) -> Question {
        Question {
            question_id: self.question_id,
            text: self.text,
            timestamp: self.timestamp,
            question_type: self.question_type,
            gold: Answers {
                answers: self.answers,
                abstain: self.abstain,
                evidence: self.evidence,
            },
        }
    }
}

fn number(row: &Row) -> u64 {
    match row.place() {
        Place::Line(number) | Place::Row(number) => number,
    }
}

/// Names a history by its content.
fn digest(sessions: &[Session]) -> String {
    let mut hasher = blake3::Hasher::new();
    for utterance in sessions.iter().flat_map(|session| &session.utterances) {
        hasher.update(&(utterance.text.len() as u64).to_le_bytes());
        hasher.update(utterance.text.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// A text as a history turn of its own.
pub(super) fn turn(text: String, source_id: String, timestamp: Option<String>) -> Session {
    Session {
        session_id: None,
        timestamp,
        utterances: vec![Utterance {
            source_id: Some(source_id),
            speaker: None,
            text,
        }],
    }
}

/// Fails where lists of a row that belong together differ in length.
pub(super) fn equally_long(row: &Row, lists: [(&str, Option<usize>); 2]) -> Result<(), RowError> {
    match lists {
        [(first, Some(expected)), (second, Some(found))] if expected != found => Err(row.error(
            second,
            format!("{found} entries, but `{first}` has {expected}"),
        )),
        _ => Ok(()),
    }
}

/// The answers, of which there must be some.
pub(super) fn required(
    row: &Row,
    field: &str,
    answers: Option<Texts>,
) -> Result<Vec<String>, RowError> {
    let answers = answers.unwrap_or_default().0;
    if answers.iter().all(|answer| answer.trim().is_empty()) {
        return Err(row.error(field, "missing answer"));
    }
    Ok(answers)
}

/// What every dialogue must have, whatever it was read from.
pub(super) fn check(row: &Row, dialogue: &Dialogue) -> Result<(), RowError> {
    for (index, session) in dialogue.sessions.iter().enumerate() {
        if session
            .utterances
            .iter()
            .all(|utterance| utterance.text.trim().is_empty())
        {
            return Err(row.error("", format!("history turn {} is empty", index + 1)));
        }
    }
    if dialogue.questions.is_empty() {
        return Err(row.error("", "no target turn: nothing is asked"));
    }
    let mut ids = BTreeSet::new();
    for question in &dialogue.questions {
        let id = &question.question_id;
        if !ids.insert(id) {
            return Err(row.error("", format!("question `{id}` is there twice")));
        }
        if question.text.trim().is_empty() {
            return Err(row.error("", format!("the target turn of question `{id}` is empty")));
        }
        let answers = &question.gold.answers;
        if !question.gold.abstain && answers.iter().all(|answer| answer.trim().is_empty()) {
            return Err(row.error("", format!("question `{id}` has no answer")));
        }
    }
    for ChunkQuestion { session, question } in &dialogue.chunk_questions {
        let id = &question.question_id;
        if *session >= dialogue.sessions.len() {
            let many = dialogue.sessions.len();
            let message =
                format!("chunk question `{id}` is about session {session} of {many}, from 0");
            return Err(row.error("", message));
        }
        let empty = |text: &String| text.trim().is_empty();
        if empty(&question.text) || question.gold.answers.iter().all(empty) {
            return Err(row.error(
                "",
                format!("chunk question `{id}` has no text or no answer"),
            ));
        }
    }
    Ok(())
}
