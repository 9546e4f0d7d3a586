//! Lines for a run's logs: what goes with an episode and is no fact of it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A line, without when it was written and in which run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    pub log: LineLog,
    pub kind: String,
    pub fields: Map<String, Value>,
}

/// Which log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineLog {
    /// `logs/events.jsonl`.
    Events,
    /// `logs/test_runs.jsonl`.
    TestRuns,
}

impl LogLine {
    /// `fields` that are no object make a line without any.
    pub fn new(log: LineLog, kind: &str, fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let kind = kind.to_owned();
        Self { log, kind, fields }
    }
}
