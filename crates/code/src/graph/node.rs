//! What a graph is made of.

use serde::{Deserialize, Serialize};

use super::facts::{DefinitionIndex, DefinitionKind, Span};

/// A place in the graph's files, which are in the order of their paths.
pub type FileIndex = u32;

/// Spec of the repair study, sections 3.1 and 3.2, and the node types of CodeFuse's graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NodeKind {
    #[serde(rename = "repo")]
    Repository,
    #[serde(rename = "pkg")]
    Package,
    #[serde(rename = "file")]
    File,
    #[serde(rename = "t-file")]
    TestFile,
    #[serde(rename = "class")]
    Class,
    #[serde(rename = "function")]
    Function,
    #[serde(rename = "attribute")]
    Attribute,
}

impl NodeKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Repository => "repo",
            Self::Package => "pkg",
            Self::File => "file",
            Self::TestFile => "t-file",
            Self::Class => "class",
            Self::Function => "function",
            Self::Attribute => "attribute",
        }
    }

    pub fn is_file(self) -> bool {
        matches!(self, Self::File | Self::TestFile)
    }
}

impl From<DefinitionKind> for NodeKind {
    fn from(kind: DefinitionKind) -> Self {
        match kind {
            DefinitionKind::Class => Self::Class,
            DefinitionKind::Function => Self::Function,
            DefinitionKind::Attribute => Self::Attribute,
        }
    }
}

/// What an edge says of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    Contains,
    Imports,
    Extends,
    Calls,
    References,
    Overrides,
    Tests,
}

impl EdgeKind {
    pub const ALL: [Self; 7] = [
        Self::Contains,
        Self::Imports,
        Self::Extends,
        Self::Calls,
        Self::References,
        Self::Overrides,
        Self::Tests,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::Imports => "imports",
            Self::Extends => "extends",
            Self::Calls => "calls",
            Self::References => "references",
            Self::Overrides => "overrides",
            Self::Tests => "tests",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A node of the graph. Its id is a function of the other fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// `file:PATH`, `class:PATH:Outer.Name:LINE`, `func:…`, `attr:…`, `pkg:PATH`, `repo:`.
    pub id: String,
    pub kind: NodeKind,
    /// Below the root of the repository, with `/`; empty for the repository itself.
    pub path: String,
    /// Without what it stands in.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    #[serde(default, rename = "sig", skip_serializing_if = "String::is_empty")]
    pub signature: String,
    #[serde(default, rename = "doc", skip_serializing_if = "String::is_empty")]
    pub documentation: String,
}

/// A node, as a place in one state of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeRef {
    Repository,
    /// A place among the packages, which are in the order of their paths.
    Package(u32),
    File(FileIndex),
    Definition(FileIndex, DefinitionIndex),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    pub source: NodeRef,
    pub kind: EdgeKind,
    pub target: NodeRef,
}

/// A node by its file: the file itself, or a definition in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) file: FileIndex,
    pub(super) definition: Option<DefinitionIndex>,
}

impl Place {
    /// A number below 2^65 in the order of places: sorting compares one number instead of four.
    pub(super) fn rank(self) -> u128 {
        u128::from(self.file) << 33 | u128::from(rank(self.definition))
    }
}

/// A number below 2^33 in the order of definitions, what is in none before them.
pub(super) fn rank(definition: Option<DefinitionIndex>) -> u64 {
    definition.map_or(0, |index| u64::from(index) + 1)
}

impl From<Place> for NodeRef {
    fn from(place: Place) -> Self {
        match place.definition {
            None => Self::File(place.file),
            Some(definition) => Self::Definition(place.file, definition),
        }
    }
}

/// Whether tests are what a file is for, by the folders above it and its name.
pub fn is_test_path(path: &str) -> bool {
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split('.').next().unwrap_or(file);
    let is_python = file.ends_with(".py");
    folders
        .split('/')
        .any(|part| matches!(part, "test" | "tests" | "__tests__"))
        // A package of that name is one for testing other programs, or for specifications.
        || (!is_python && folders.split('/').any(|part| matches!(part, "testing" | "spec")))
        || matches!(stem, "conftest" | "tests")
        // Deeper it may be a command or a client that is called so.
        || (stem == "test" && folders.is_empty())
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || file.contains(".test.")
        || file.contains(".spec.")
        || (stem.ends_with("Test") && file.ends_with(".java"))
}
