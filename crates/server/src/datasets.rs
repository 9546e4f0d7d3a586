//! Problems that requests name instead of bringing them along.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;

use crate::dialect::{Id, Prompt};

/// How the problems of a dataset are judged, by SandboxFusion's class names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    CommonOj,
    LiveCodeBench,
    AutoEval,
    HumanEval,
    Mbpp,
}

/// Rows by id.
#[derive(Clone, Debug)]
pub struct Dataset {
    pub class: Class,
    rows: BTreeMap<Id, Value>,
}

/// A dataset that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error(transparent)]
    Rows(#[from] dataset::DatasetError),
    #[error("{file}: line {line} has no `id`, a number or a text")]
    NoId { file: String, line: usize },
    #[error("{file}: line {line} has the id of an earlier line")]
    SameId { file: String, line: usize },
}

/// Names that SandboxFusion's own configuration gives to datasets.
const USUAL: [(&str, Class); 6] = [
    ("code_contests", Class::CommonOj),
    ("live_code_bench_v1", Class::LiveCodeBench),
    ("humaneval_python", Class::HumanEval),
    ("mbpp", Class::Mbpp),
    ("autoeval", Class::AutoEval),
    ("common_oj", Class::CommonOj),
];

impl Class {
    /// By the name of SandboxFusion's class, such as `CommonOJDataset`, or without `Dataset`.
    pub fn named(name: &str) -> Option<Self> {
        match name.strip_suffix("Dataset").unwrap_or(name) {
            "CommonOJ" => Some(Self::CommonOj),
            "LiveCodeBench" => Some(Self::LiveCodeBench),
            "AutoEval" => Some(Self::AutoEval),
            "HumanEval" => Some(Self::HumanEval),
            "MBPP" => Some(Self::Mbpp),
            _ => None,
        }
    }

    /// The class of a dataset that every server knows by name.
    pub(crate) fn of_usual(dataset: &str) -> Option<Self> {
        let found = USUAL.iter().find(|(name, _)| *name == dataset);
        found.map(|(_, class)| *class)
    }
}

impl Dataset {
    /// Reads rows with an `id`, the problem's `content` and the columns of the class from a JSONL
    /// file.
    ///
    /// # Errors
    /// Files that cannot be read, rows that are no objects, and ids that are missing or not unique.
    pub fn read(class: Class, path: &Path) -> Result<Self, DatasetError> {
        let file = path.display().to_string();
        let mut rows = BTreeMap::new();
        for (index, row) in dataset::read_jsonl::<Value>(path)?.into_iter().enumerate() {
            let line = index + 1;
            let id = row.get("id").cloned();
            let id = id.and_then(|id| serde_json::from_value::<Id>(id).ok());
            let Some(id) = id else {
                return Err(DatasetError::NoId { file, line });
            };
            if rows.insert(id, row).is_some() {
                return Err(DatasetError::SameId { file, line });
            }
        }
        Ok(Self { class, rows })
    }

    pub(crate) fn row(&self, id: &Id) -> Option<&Value> {
        self.rows.get(id)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = &Id> {
        self.rows.keys()
    }

    pub(crate) fn prompts(&self) -> impl Iterator<Item = Prompt> {
        self.rows.iter().map(|(id, row)| prompt(id, row))
    }

    pub(crate) fn prompt(&self, id: &Id) -> Option<Prompt> {
        Some(prompt(id, self.row(id)?))
    }
}

/// The public part of a row.
fn prompt(id: &Id, row: &Value) -> Prompt {
    let labels = match row.get("labels") {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(labels) => labels.clone(),
        None => Value::Null,
    };
    let labels = if labels.is_object() {
        labels
    } else {
        serde_json::json!({})
    };
    let content = ["content", "prompt", "problem"]
        .iter()
        .find_map(|column| row.get(*column));
    Prompt {
        id: id.clone(),
        prompt: content.cloned().unwrap_or_default(),
        labels,
    }
}
