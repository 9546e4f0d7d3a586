//! Requests and replies as SandboxFusion spells them (spec of the critique study, section 9.1).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::object::Object;

/// `POST /run_code`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RunCodeRequest {
    pub code: String,
    pub language: String,
    /// Seconds.
    #[serde(default = "ten", deserialize_with = "or_ten")]
    pub compile_timeout: f64,
    /// Seconds.
    #[serde(default = "ten", deserialize_with = "or_ten")]
    pub run_timeout: f64,
    /// -1 or absent: the server's own limit.
    #[serde(
        default,
        rename = "memory_limit_MB",
        deserialize_with = "whole_or_none"
    )]
    pub memory_limit_mb: Option<i64>,
    #[serde(default)]
    pub stdin: Option<String>,
    /// Base64 by path; null makes no file.
    #[serde(default, deserialize_with = "or_default")]
    pub files: BTreeMap<String, Option<String>>,
    #[serde(default, deserialize_with = "or_default")]
    pub fetch_files: Vec<String>,
}

/// `POST /submit`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SubmitRequest {
    pub dataset: String,
    pub id: Id,
    pub completion: String,
    #[serde(default, deserialize_with = "object_or_default")]
    pub config: TestConfig,
}

/// A problem's name: a number or a text, answered as it came.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    Number(i64),
    Text(String),
}

/// How a submission is to be judged.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct TestConfig {
    #[serde(default)]
    pub dataset_type: Option<String>,
    #[serde(default)]
    pub language: Option<String>,
    #[serde(default)]
    pub compile_timeout: Option<f64>,
    #[serde(default)]
    pub run_timeout: Option<f64>,
    #[serde(default)]
    pub custom_extract_logic: Option<String>,
    /// The problem's columns, instead of a row of a registered dataset.
    #[serde(default)]
    pub provided_data: Option<Value>,
    #[serde(default, deserialize_with = "or_default")]
    pub extra: Map<String, Value>,
}

/// `POST /get_prompts`, `/get_prompt_by_id`, `/list_ids`, `/get_metrics`, `/get_metrics_function`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DatasetRequest {
    pub dataset: String,
    #[serde(default)]
    pub id: Option<Id>,
    #[serde(default)]
    pub offset: Option<usize>,
    #[serde(default)]
    pub limit: Option<usize>,
    #[serde(default, deserialize_with = "object_or_default")]
    pub config: TestConfig,
    #[serde(default, deserialize_with = "or_default")]
    pub results: Vec<Value>,
}

/// How the parts of a run ended together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum RunStatus {
    Success,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum CommandRunStatus {
    Finished,
    TimeLimitExceeded,
}

/// One command: a build or a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CommandRunResult {
    pub(crate) status: CommandRunStatus,
    /// Seconds of wall time.
    pub(crate) execution_time: f64,
    /// Seconds of CPU time. Beyond SandboxFusion's fields, as are those below the next three.
    pub(crate) cpu_time: f64,
    /// Null where time ran out; minus the signal where one ended it.
    pub(crate) return_code: Option<i32>,
    /// Invalid UTF-8 is replaced.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The middle of an output was left out.
    pub(crate) truncated: bool,
    /// In the words of `etude sandbox run`: `ok`, `non_zero`, `cpu_timeout`, `memory`, …
    pub(crate) outcome: &'static str,
    pub(crate) peak_memory_mb: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RunCodeResponse {
    pub(crate) status: RunStatus,
    pub(crate) message: String,
    pub(crate) compile_result: Option<CommandRunResult>,
    pub(crate) run_result: Option<CommandRunResult>,
    pub(crate) executor_pod_name: Option<String>,
    /// Base64 by path.
    pub(crate) files: BTreeMap<String, String>,
    /// Why a file that was asked for is not among `files`, by path. Left out when empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) files_not_fetched: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EvalTest {
    pub(crate) passed: bool,
    pub(crate) exec_info: RunCodeResponse,
    pub(crate) test_info: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EvalResult {
    pub(crate) id: Id,
    pub(crate) accepted: bool,
    pub(crate) extracted_code: String,
    pub(crate) full_code: Option<String>,
    pub(crate) test_code: Option<String>,
    pub(crate) tests: Vec<EvalTest>,
    pub(crate) extracted_type: Option<&'static str>,
    pub(crate) extra: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Prompt {
    pub(crate) id: Id,
    pub(crate) prompt: Value,
    pub(crate) labels: Value,
}

fn ten() -> f64 {
    10.0
}

fn or_ten<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or_else(ten))
}

/// A number without a fraction, however it is written.
fn whole_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let real = number.as_f64().filter(|real| real.fract() == 0.0);
    let whole = number.as_i64().or_else(|| {
        // Within it, every whole number is exact.
        real.filter(|real| real.abs() < 9e15)
            .map(|real| real as i64)
    });
    let odd = || serde::de::Error::custom(format!("{number} is no whole number"));
    whole.ok_or_else(odd).map(Some)
}

/// Null stands for the default, as clients write it out.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Null stands for an object without fields.
fn object_or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let object = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(object.map_or_else(T::default, |Object(value)| value))
}
