//! The tests of a task: inputs and what is expected of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use code::RelativePath;
use sandbox::Language;
use serde::{Deserialize, Serialize};

use crate::{Comparator, Value};

/// Tests with their expected values. The contents cannot be named outside this crate, so no prompt
/// can be built from them; storage goes through serde.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tests {
    pub(crate) kind: Kind,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Kind {
    Function {
        entry: String,
        cases: Vec<FunctionCase>,
    },
    Stdio {
        cases: Vec<StdioCase>,
        #[serde(default)]
        comparator: Comparator,
    },
    Calls {
        entry: String,
        cases: Vec<FunctionCase>,
    },
    Asserts {
        #[serde(default)]
        setup: String,
        asserts: Vec<String>,
    },
    AssertScript {
        script: String,
        /// The name that the script knows as `candidate`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        candidate: Option<String>,
    },
    Pytest(PytestCases),
    Script {
        #[serde(default = "python")]
        language: Language,
        script: String,
    },
}

fn python() -> Language {
    Language::Python
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FunctionCase {
    pub(crate) args: Vec<Value>,
    pub(crate) expected: Value,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StdioCase {
    pub(crate) stdin: String,
    pub(crate) expected: String,
}

/// Test files and the ids of those tests that count.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PytestCases {
    /// Where the program stands as the tests import it.
    #[serde(default = "solution")]
    pub(crate) program: RelativePath,
    /// By path; written after the program's own files.
    pub(crate) files: BTreeMap<RelativePath, String>,
    pub(crate) fail_to_pass: Vec<String>,
    #[serde(default)]
    pub(crate) pass_to_pass: Vec<String>,
}

fn solution() -> RelativePath {
    #[expect(clippy::expect_used, reason = "a constant that is a path")]
    RelativePath::new("solution.py").expect("a relative path")
}

/// As a program would write it; empty where that is no one way.
fn shown(value: &Value) -> String {
    let all = |items: &[Value]| items.iter().map(shown).collect::<Vec<_>>().join(", ");
    match value {
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Str(text) => text.clone(),
        Value::List(items) | Value::Tuple(items) if items.len() > 1 => all(items),
        _ => String::new(),
    }
}

/// Whether `value` stands in `text`, and not as a part of a longer number or name.
fn holds(text: &str, value: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(value).any(|(place, _)| {
        let (before, after) = (&text[..place], &text[place + value.len()..]);
        !inside(before.chars().next_back()) && !inside(after.chars().next())
    })
}

impl Kind {
    pub(crate) fn needs_python(&self) -> bool {
        !matches!(self, Self::Stdio { .. } | Self::Script { .. })
    }
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
                comparator: Comparator::default(),
            },
        }
    }

    /// The same runs, their outputs compared in another way. Other tests are left as they are.
    pub fn compared_by(mut self, rule: Comparator) -> Self {
        if let Kind::Stdio { comparator, .. } = &mut self.kind {
            *comparator = rule;
        }
        self
    }

    /// Calls as LiveCodeBench makes them: of a function, or of a method of a class `Solution`.
    /// Tuples count as lists, numbers by their value, and what is expected may also be the only item
    /// of a list (spec of the critique study, section 9.3).
    pub fn calls(
        entry: impl Into<String>,
        cases: impl IntoIterator<Item = (Vec<Value>, Value)>,
    ) -> Self {
        let Kind::Function { entry, cases } = Self::function(entry, cases).kind else {
            return Self::asserts(Vec::<String>::new());
        };
        Self {
            kind: Kind::Calls { entry, cases },
        }
    }

    /// `assert` statements, each a test of its own.
    pub fn asserts<S: Into<String>>(asserts: impl IntoIterator<Item = S>) -> Self {
        Self {
            kind: Kind::Asserts {
                setup: String::new(),
                asserts: asserts.into_iter().map(Into::into).collect(),
            },
        }
    }

    /// A script that runs after the program, with its names, and passes when it comes to its end.
    /// Where it is a setup and then assertions, each of these is a test of its own. `candidate` is
    /// the function that the script calls by that word.
    pub fn assert_script(script: impl Into<String>, candidate: Option<String>) -> Self {
        Self {
            kind: Kind::AssertScript {
                script: script.into(),
                candidate,
            },
        }
    }

    /// Test files by path, and the ids of the tests that the program must make pass: those that fail
    /// without it, and those that must go on passing. The program stands in `solution.py`.
    pub fn pytest(
        files: BTreeMap<RelativePath, String>,
        fail_to_pass: Vec<String>,
        pass_to_pass: Vec<String>,
    ) -> Self {
        Self {
            kind: Kind::Pytest(PytestCases {
                program: solution(),
                files,
                fail_to_pass,
                pass_to_pass,
            }),
        }
    }

    /// A script of the tests' author, in any language, that finds the program in the file
    /// `program` beside it and exits with 0 when it passes. What the script starts or imports of the
    /// program runs as the same user in the same folder, and could deceive it: such tests are for
    /// programs that are wrong, not for those that cheat.
    pub fn script(language: Language, script: impl Into<String>) -> Self {
        Self {
            kind: Kind::Script {
                language,
                script: script.into(),
            },
        }
    }

    /// The number of tests, as far as it is known before they run.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Function { cases, .. } | Kind::Calls { cases, .. } => cases.len(),
            Kind::Stdio { cases, .. } => cases.len(),
            Kind::Asserts { asserts, .. } => asserts.len(),
            Kind::AssertScript { script, .. } => {
                code::assertions(script).map_or(1, |found| found.assertions.len())
            }
            Kind::Pytest(cases) => cases.fail_to_pass.len() + cases.pass_to_pass.len(),
            Kind::Script { .. } => 1,
        }
    }

    /// `function`, `stdio`, `calls`, `asserts`, `assert_script`, `pytest` or `script`.
    pub fn kind(&self) -> &'static str {
        match &self.kind {
            Kind::Function { .. } => "function",
            Kind::Stdio { .. } => "stdio",
            Kind::Calls { .. } => "calls",
            Kind::Asserts { .. } => "asserts",
            Kind::AssertScript { .. } => "assert_script",
            Kind::Pytest(_) => "pytest",
            Kind::Script { .. } => "script",
        }
    }

    /// How many different expected values stand in `text` and not in `known`, of those that are not there
    /// by chance: longer than two characters. A count, and nothing of the values.
    pub fn expected_in(&self, text: &str, known: &str) -> usize {
        let values: BTreeSet<String> = match &self.kind {
            Kind::Function { cases, .. } | Kind::Calls { cases, .. } => {
                cases.iter().map(|case| shown(&case.expected)).collect()
            }
            Kind::Stdio { cases, .. } => {
                let lines = cases.iter().flat_map(|case| case.expected.lines());
                lines.map(|line| line.trim().to_owned()).collect()
            }
            Kind::Asserts { asserts, .. } => {
                let sides = asserts.iter().filter_map(|text| text.rsplit_once("=="));
                sides.map(|(_, right)| right.trim().to_owned()).collect()
            }
            Kind::AssertScript { .. } | Kind::Pytest(_) | Kind::Script { .. } => BTreeSet::new(),
        };
        let telling = |value: &&String| value.trim_start_matches('-').chars().count() > 2;
        let held = |value: &&String| holds(text, value) && !holds(known, value);
        values.iter().filter(telling).filter(held).count()
    }

    /// Whether the program is kept apart from what decides about it, so that its verdict may be a reward.
    /// Under pytest and under a script of the author's, it could deceive or read its tests.
    pub fn withstand_cheats(&self) -> bool {
        !matches!(self.kind, Kind::Pytest(_) | Kind::Script { .. })
    }

    /// The language of a script of the tests' author.
    pub fn script_language(&self) -> Option<Language> {
        match &self.kind {
            Kind::Script { language, .. } => Some(*language),
            _ => None,
        }
    }

    /// Whether they can only be run on programs in Python.
    pub fn needs_python(&self) -> bool {
        self.kind.needs_python()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the tests, or a program under them, may look at more of a program than what it does: its
    /// text, its lines.
    pub(crate) fn could_read_programs(&self) -> bool {
        match &self.kind {
            Kind::Function { .. } | Kind::Calls { .. } => false,
            // A script may look at its own file and at what the interpreter says of it.
            Kind::Stdio { .. } => true,
            Kind::Asserts { setup, asserts } => asserts
                .iter()
                .chain([setup])
                .any(|text| code::could_read_layout(text)),
            Kind::AssertScript { script, .. } => code::could_read_layout(script),
            // They are given the program as a file.
            Kind::Pytest(_) | Kind::Script { .. } => true,
        }
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
        write!(f, "Tests({} {} cases)", self.len(), self.kind())
    }
}
