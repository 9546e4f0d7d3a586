//! Rows of trainers that ask one question and keep its gold in `reward_model`: MemAgent's RULER-HotpotQA
//! (arXiv 2507.02259) and MEM1's questions of several objectives (arXiv 2506.15841).

use dataset::{Row, RowError, json_text};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    desk::{Asked, Desk, Sample, required, turn},
    values::{Scalar, Texts, without_nulls},
};
use crate::dialogue::Dialogue;

#[derive(Deserialize)]
struct RewardRow {
    #[serde(default, deserialize_with = "json_text")]
    prompt: Option<Prompt>,
    question: Option<String>,
    /// What is read before the question; rows that search for themselves have none.
    context: Option<String>,
    #[serde(default, deserialize_with = "json_text")]
    reward_model: Option<RewardModel>,
    /// Beside `reward_model` in some files.
    #[serde(default, deserialize_with = "json_text")]
    target: Option<Vec<Texts>>,
    #[serde(default, deserialize_with = "json_text")]
    extra_info: Option<ExtraInfo>,
    data_source: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected messages or a text")]
enum Prompt {
    Messages(Vec<Message>),
    Text(String),
}

#[derive(Deserialize)]
struct Message {
    content: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct RewardModel {
    #[serde(deserialize_with = "json_text")]
    ground_truth: GroundTruth,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected answers, or `target` with the answers of every objective"
)]
enum GroundTruth {
    Targets {
        target: Vec<Texts>,
        #[serde(flatten)]
        rest: Map<String, Value>,
    },
    Answers(Texts),
}

#[derive(Default, Deserialize)]
struct ExtraInfo {
    index: Option<Scalar>,
    question: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A question about a context; any of the answers is right.
pub(super) fn read_ruler(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    read(row, desk, "rulerhqa", |truth, _| match truth {
        GroundTruth::Answers(answers) => required(row, "reward_model.ground_truth", Some(answers)),
        GroundTruth::Targets { .. } => Err(row.error(
            "reward_model.ground_truth",
            "answers of several objectives; their format is `mem1`",
        )),
    })
}

/// Several questions in one text; the k-th answer is the k-th question's.
pub(super) fn read_mem1(row: &Row, desk: &mut Desk<'_>) -> Result<Vec<Dialogue>, RowError> {
    read(row, desk, "mem1", |truth, desk| {
        let targets = match truth {
            GroundTruth::Targets { target, .. } => target,
            GroundTruth::Answers(answers) => answers
                .0
                .into_iter()
                .map(|text| Texts(vec![text]))
                .collect(),
        };
        if targets.is_empty() {
            return Err(row.error("target", "missing answer"));
        }
        let mut answers = Vec::new();
        for (index, target) in targets.into_iter().enumerate() {
            let mut target = required(row, &format!("target[{index}]"), Some(target))?;
            desk.count(
                "further answers of an objective left out",
                target.len() as u64 - 1,
            );
            answers.push(target.swap_remove(0));
        }
        Ok(answers)
    })
}

fn read<'a>(
    row: &Row,
    desk: &mut Desk<'a>,
    source: &str,
    answers: impl FnOnce(GroundTruth, &mut Desk<'a>) -> Result<Vec<String>, RowError>,
) -> Result<Vec<Dialogue>, RowError> {
    let parsed: RewardRow = row.parse()?;
    let extra = parsed.extra_info.unwrap_or_default();
    let mut metadata = parsed.rest;
    let asked_in_prompt = match parsed.prompt {
        Some(Prompt::Messages(mut messages)) => {
            let asked = messages.pop();
            desk.count(
                "messages before the question left out",
                messages.len() as u64,
            );
            if let Some(asked) = &asked
                && !asked.rest.is_empty()
            {
                metadata.insert("prompt".to_owned(), asked.rest.clone().into());
            }
            asked.map(|message| message.content)
        }
        Some(Prompt::Text(text)) => Some(text),
        None => None,
    };
    // A prompt wraps the question in instructions; where it stands alone too, that is taken.
    let alone = parsed.question.or(extra.question.clone());
    let is_wrapped = alone.is_some() && asked_in_prompt.is_some();
    desk.count(
        "prompts made of other columns left out",
        u64::from(is_wrapped),
    );
    let question = alone
        .or(asked_in_prompt)
        .filter(|text| !text.trim().is_empty())
        .ok_or_else(|| row.error("prompt", "no target turn: nothing is asked"))?;
    if let Some(other) = extra.question.filter(|other| *other != question) {
        metadata.insert("question".to_owned(), other.into());
    }
    let also = parsed.reward_model.is_some() && parsed.target.is_some();
    desk.count(
        "targets beside those of `reward_model` left out",
        u64::from(also),
    );
    let truth = match (parsed.reward_model, parsed.target) {
        (Some(model), _) => {
            let mut rest = model.rest;
            if let GroundTruth::Targets { rest: beside, .. } = &model.ground_truth {
                rest.extend(beside.clone());
            }
            if !rest.is_empty() {
                metadata.insert("reward_model".to_owned(), rest.into());
            }
            model.ground_truth
        }
        (None, Some(target)) => GroundTruth::Targets {
            target,
            rest: Map::new(),
        },
        (None, None) => return Err(row.error("reward_model", "missing answer")),
    };
    let answers = answers(truth, desk)?;
    let sessions = match &parsed.context {
        Some(context) if context.trim().is_empty() => {
            return Err(row.error("context", "empty turn"));
        }
        Some(context) => desk
            .chunks(context, source)
            .into_iter()
            .enumerate()
            .map(|(index, range)| turn(context[range].trim().to_owned(), format!("c{index}"), None))
            .collect(),
        None => Vec::new(),
    };
    metadata.extend(without_nulls(extra.rest));
    if let Some(named) = parsed.data_source {
        metadata.insert("data_source".to_owned(), named.into());
    }
    let sample = Sample {
        sample_id: extra.index.map(|Scalar(index)| index),
        data_source: source.to_owned(),
        // Questions without a context share nothing but their words.
        document: sessions.is_empty().then(|| question.clone()),
        metadata,
    };
    let question = Asked {
        question_id: "q0".to_owned(),
        text: question,
        timestamp: None,
        question_type: source.to_owned(),
        answers,
        abstain: false,
        evidence: Vec::new(),
    };
    Ok(vec![desk.dialogue(row, sample, sessions, vec![question])])
}
