//! The tests of a task: inputs and what is expected of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Value;

/// Tests with their expected values. The contents cannot be named outside this crate, so no prompt
/// can be built from them; storage goes through serde.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tests {
    pub(crate) kind: Kind,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Kind {
    Function {
        entry: String,
        cases: Vec<FunctionCase>,
    },
    Stdio {
        cases: Vec<StdioCase>,
    },
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FunctionCase {
    pub(crate) args: Vec<Value>,
    pub(crate) expected: Value,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StdioCase {
    pub(crate) stdin: String,
    pub(crate) expected: String,
}

impl Tests {
    /// Calls of the program's function `entry`, each with fresh arguments, and the exact value
    /// that each must return.
    pub fn function(
        entry: impl Into<String>,
        cases: impl IntoIterator<Item = (Vec<Value>, Value)>,
    ) -> Self {
        let cases = cases
            .into_iter()
            .map(|(args, expected)| FunctionCase { args, expected });
        Self {
            kind: Kind::Function {
                entry: entry.into(),
                cases: cases.collect(),
            },
        }
    }

    /// Runs of the program as a script: standard input, and the standard output expected under the
    /// rules of online judges (see `compare`).
    pub fn stdio(cases: impl IntoIterator<Item = (String, String)>) -> Self {
        let cases = cases
            .into_iter()
            .map(|(stdin, expected)| StdioCase { stdin, expected });
        Self {
            kind: Kind::Stdio {
                cases: cases.collect(),
            },
        }
    }

    /// The number of cases.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Function { cases, .. } => cases.len(),
            Kind::Stdio { cases } => cases.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// BLAKE3 of the contents.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        // Serialising plain data to memory has no way to fail.
        if let Ok(json) = serde_json::to_vec(self) {
            hasher.update(&json);
        }
        *hasher.finalize().as_bytes()
    }
}

/// Shows how many cases there are, and nothing of them.
impl fmt::Debug for Tests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Function { .. } => "function",
            Kind::Stdio { .. } => "stdio",
        };
        write!(f, "Tests({} {kind} cases)", self.len())
    }
}
