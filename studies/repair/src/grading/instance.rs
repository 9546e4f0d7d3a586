//! A row of SWE-bench: the issue, the checkout, and all that grades a patch (spec of the repair study,
//! section 11.1).

use dataset::json_text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    log_parser::{LogParser, UnknownLogParser},
    report::{EvalType, Expected},
};

/// One instance, with every column of its row. Rows of version 5.0 bring their image, script, parser and
/// type of evaluation; for older rows they are made from the repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    pub repo: String,
    pub instance_id: String,
    pub base_commit: String,
    /// The gold patch.
    #[serde(default)]
    pub patch: String,
    #[serde(default)]
    pub test_patch: String,
    pub problem_statement: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(rename = "FAIL_TO_PASS", deserialize_with = "json_text")]
    pub fail_to_pass: Vec<String>,
    #[serde(rename = "PASS_TO_PASS", deserialize_with = "json_text")]
    pub pass_to_pass: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_setup_commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_script: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_parser: Option<LogParser>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_type: Option<EvalType>,
    /// The columns that nothing here speaks of: hints, dates, binary files.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Instance {
    /// The image that the row names, or the one that SWE-bench builds for it.
    pub fn image(&self) -> String {
        self.image.clone().unwrap_or_else(|| {
            format!("sweb.eval.x86_64.{}:latest", self.instance_id).to_lowercase()
        })
    }

    /// The image as a registry has it, whose names may not have two underscores in a row.
    pub fn remote_image(&self, namespace: &str) -> String {
        let name = format!("{namespace}/sweb.eval.x86_64.{}:latest", self.instance_id);
        name.replace("__", "_1776_").to_lowercase()
    }

    /// What its logs are graded by.
    ///
    /// # Errors
    /// No parser: the row names none, and its repository is not known.
    pub fn expected(&self) -> Result<Expected, UnknownLogParser> {
        let log_parser = self
            .log_parser
            .or_else(|| LogParser::of_repo(&self.repo))
            .ok_or_else(|| UnknownLogParser::Repo {
                repo: self.repo.clone(),
            })?;
        Ok(Expected {
            instance_id: self.instance_id.clone(),
            log_parser,
            eval_type: self
                .eval_type
                .unwrap_or_else(|| EvalType::of_repo(&self.repo)),
            fail_to_pass: self.fail_to_pass.clone(),
            pass_to_pass: self.pass_to_pass.clone(),
        })
    }
}
