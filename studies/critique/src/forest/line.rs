//! Nodes of a forest as lines of JSON, with the fields and the order of CTRL's own files (spec of the critique
//! study, section 6.2): layer by layer, each line naming the one that it comes from.

use std::collections::BTreeMap;

use judge::{CaseResult, Verdict};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Value, json};
use thiserror::Error;

use crate::prompts::fenced;

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// A number in files of the original, a name here.
    #[serde(deserialize_with = "name")]
    pub task_id: String,
    /// 40 hexadecimal digits; here made from what the node is, so that equal forests have equal files.
    pub hash: String,
    pub node_type: NodeType,
    /// The hash of the node that it comes from; none of a root.
    pub prev_hash: Option<String>,
    /// What the model answered.
    pub solution: Option<String>,
    /// The program in it, in a fence.
    pub sanitized_solution: Option<String>,
    /// What the program before was told.
    pub critique: Option<String>,
    /// 1 where every test passed, else 0; none of a root.
    pub success: Option<f64>,
    #[serde(default)]
    pub metadata: Metadata,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// The sandbox's reply, as SandboxFusion words it: `accepted`, `tests` and how the first failed.
    #[serde(default)]
    pub result: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeType {
    /// The problem.
    Root,
    /// An initial program.
    Generation,
    /// A program that was revised, and the critique that it was revised by.
    CritiqueRevision,
}

/// A file of nodes is none.
#[derive(Debug, Error)]
pub enum ForestError {
    #[error("line {line}: {reason}")]
    Row { line: usize, reason: String },
    #[error(
        "line {line}: the node {hash} comes from {prev_hash}, which no line before it is; the lines of a forest \
         stand layer by layer"
    )]
    Order {
        line: usize,
        hash: String,
        prev_hash: String,
    },
    #[error("line {line}: the node {hash} is also line {first}")]
    Twice {
        line: usize,
        first: usize,
        hash: String,
    },
    #[error("line {line}: {reason}")]
    Shape { line: usize, reason: String },
    #[error("a generation is of the problem {task_id}, which no evaluation task is of")]
    NoTask { task_id: String },
    #[error(
        "a generation is of the problem {task_id}, which may be {first} or {second}; write its dataset before it, or \
         evaluate on one dataset alone"
    )]
    Ambiguous {
        task_id: String,
        first: String,
        second: String,
    },
    #[error("there is no generation in it, so no program to begin with")]
    NoProgram,
}

/// Reads the lines of a forest and checks that every node follows the one that it comes from.
///
/// # Errors
/// The first line that is no node, comes twice or before its parent, or is of another kind than its place says.
pub fn read_forest(text: &str) -> Result<Vec<Line>, ForestError> {
    let mut seen: BTreeMap<String, (usize, NodeType)> = BTreeMap::new();
    let mut lines = Vec::new();
    for (index, row) in text.lines().enumerate() {
        let number = index + 1;
        if row.trim().is_empty() {
            continue;
        }
        let line: Line = serde_json::from_str(row).map_err(|error| ForestError::Row {
            line: number,
            reason: error.to_string(),
        })?;
        check_place(number, &line, &seen)?;
        seen.insert(line.hash.clone(), (number, line.node_type));
        lines.push(line);
    }
    Ok(lines)
}

fn check_place(
    number: usize,
    line: &Line,
    seen: &BTreeMap<String, (usize, NodeType)>,
) -> Result<(), ForestError> {
    if let Some((first, _)) = seen.get(&line.hash) {
        return Err(ForestError::Twice {
            line: number,
            first: *first,
            hash: line.hash.clone(),
        });
    }
    let shape = |reason: &str| {
        Err(ForestError::Shape {
            line: number,
            reason: reason.to_owned(),
        })
    };
    let parent = match &line.prev_hash {
        None => None,
        Some(prev_hash) => match seen.get(prev_hash) {
            Some((_, of)) => Some(*of),
            None => {
                return Err(ForestError::Order {
                    line: number,
                    hash: line.hash.clone(),
                    prev_hash: prev_hash.clone(),
                });
            }
        },
    };
    match (line.node_type, parent) {
        (NodeType::Root, None)
        | (NodeType::Generation, Some(NodeType::Root))
        | (NodeType::CritiqueRevision, Some(NodeType::Generation | NodeType::CritiqueRevision)) => {
        }
        (NodeType::Root, Some(_)) => return shape("a root comes from nothing"),
        (NodeType::Generation, _) => return shape("a generation comes from a root"),
        (NodeType::CritiqueRevision, _) => {
            return shape("a critique_revision comes from a generation or from another one");
        }
    }
    if line.node_type != NodeType::Root && line.solution.is_none() {
        return shape("only a root has no solution");
    }
    Ok(())
}

impl Line {
    /// A problem, which `name` tells apart from all others of the forest.
    pub(crate) fn root(task_id: &str, name: &str) -> Self {
        Self {
            task_id: task_id.to_owned(),
            hash: hash(&["root", name]),
            node_type: NodeType::Root,
            prev_hash: None,
            solution: None,
            sanitized_solution: None,
            critique: None,
            success: None,
            metadata: Metadata::default(),
        }
    }

    /// An answer and the program in it that come from `parent`, as its child of this number.
    pub(crate) fn below(
        parent: &Self,
        number: usize,
        (solution, program): (&str, &str),
        critique: Option<&str>,
        right: bool,
        verdict: Option<&Verdict>,
    ) -> Self {
        let number = number.to_string();
        let parts = [
            &parent.hash,
            &number,
            solution,
            critique.unwrap_or_default(),
        ];
        Self {
            task_id: parent.task_id.clone(),
            hash: hash(&parts),
            node_type: match parent.node_type {
                NodeType::Root => NodeType::Generation,
                NodeType::Generation | NodeType::CritiqueRevision => NodeType::CritiqueRevision,
            },
            prev_hash: Some(parent.hash.clone()),
            solution: Some(solution.to_owned()),
            sanitized_solution: Some(fenced(program)),
            critique: critique.map(ToOwned::to_owned),
            success: Some(f64::from(right)),
            metadata: Metadata {
                result: verdict.map_or(Value::Null, reply),
            },
        }
    }
}

/// The first 40 digits of BLAKE3 of the parts, each with its length.
fn hash(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..40].to_owned()
}

/// A verdict in the words of SandboxFusion's `EvalResult`; times are left out, so that equal forests are equal
/// files.
fn reply(verdict: &Verdict) -> Value {
    let passed = |case: &CaseResult| json!({ "passed": *case == CaseResult::Passed });
    json!({
        "accepted": verdict.passed,
        "tests": verdict.cases.iter().map(passed).collect::<Vec<_>>(),
        "extra": { "status": verdict.status, "message": verdict.message },
    })
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(name) => Ok(name),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(D::Error::custom(format!(
            "task_id is {other}; expected a text or a number"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<Line> {
        let root = Line::root("7", "7");
        let first = Line::below(&root, 0, ("x = 1", "x = 1"), None, false, None);
        let second = Line::below(&first, 0, ("x = 2", "x = 2"), Some("use 2"), true, None);
        vec![root, first, second]
    }

    fn text(lines: &[Line]) -> String {
        let lines = lines
            .iter()
            .map(|line| serde_json::to_string(line).unwrap());
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn lines_read_back_as_they_were_written() {
        let lines = three();
        assert_eq!(read_forest(&text(&lines)).unwrap(), lines);
        assert!(lines.iter().all(|line| line.hash.len() == 40));
        assert_eq!(lines[2].node_type, NodeType::CritiqueRevision);
    }

    #[test]
    fn lines_of_the_original_are_read() {
        let text = r#"
{"task_id": 3, "hash": "aa", "node_type": "root", "prev_hash": null, "solution": null, "sanitized_solution": null, "critique": null, "success": null, "metadata": {}}
{"task_id": 3, "hash": "bb", "node_type": "generation", "prev_hash": "aa", "solution": "print(1)", "sanitized_solution": "print(1)", "critique": null, "success": 0.0, "metadata": {"result": {"accepted": false, "tests": []}, "more": 1}, "problem": "?"}
"#;
        let lines = read_forest(text).unwrap();
        assert_eq!(lines[1].task_id, "3");
        assert_eq!(lines[1].metadata.result["accepted"], false);
    }

    #[test]
    fn bad_lines_say_which_they_are() {
        let lines = three();
        let error = |lines: &[Line]| read_forest(&text(lines)).unwrap_err().to_string();
        assert!(error(&[lines[0].clone(), lines[2].clone()]).starts_with("line 2: the node"));
        assert!(error(&[lines[0].clone(), lines[0].clone()]).contains("is also line 1"));
        let mut orphan = lines[1].clone();
        orphan.prev_hash = None;
        assert_eq!(error(&[orphan]), "line 1: a generation comes from a root");
        let mut early = lines[2].clone();
        early.prev_hash = Some(lines[0].hash.clone());
        assert!(error(&[lines[0].clone(), early]).starts_with("line 2: a critique_revision"));
        assert!(
            read_forest("{}")
                .unwrap_err()
                .to_string()
                .starts_with("line 1: missing field")
        );
    }
}
