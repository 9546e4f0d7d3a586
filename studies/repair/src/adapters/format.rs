//! The formats that there are adapters for.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};

/// How files write their tasks (spec of the repair study, sections 7.2, 11.1 and 11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Rows of SWE-bench and its relatives.
    SweBench,
    /// Rows of R2E-Gym, also those of SWE-smith and SWE-bench in it.
    R2eGym,
    /// A task directory with a `task.toml`, or a folder of such.
    Harbor,
    /// Graph Planner's rows, with their `instances/*.json`.
    GraphPlanner,
}

impl Format {
    pub const ALL: [Self; 4] = [
        Self::SweBench,
        Self::R2eGym,
        Self::Harbor,
        Self::GraphPlanner,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::SweBench => "swe-bench",
            Self::R2eGym => "r2e-gym",
            Self::Harbor => "harbor",
            Self::GraphPlanner => "graph-planner",
        }
    }
}

impl Format {
    /// Columns that tell its rows from those of the others.
    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::SweBench => &["instance_id", "repo", "base_commit", "FAIL_TO_PASS"],
            Self::R2eGym => &["repo_name", "docker_image", "expected_output_json"],
            Self::Harbor => &[],
            Self::GraphPlanner => &["task_id", "issue", "sandbox"],
        }
    }

    /// The format whose rows have such columns, or stand in such an object by their ids.
    pub fn of_columns(columns: &Map<String, Value>) -> Option<Self> {
        let within = || Self::of_row(columns.values().next()?.as_object()?);
        Self::of_row(columns).or_else(within)
    }

    fn of_row(columns: &Map<String, Value>) -> Option<Self> {
        // SWE-smith's rows have SWE-bench's columns too.
        if columns.contains_key("image_name") && columns.contains_key("FAIL_TO_PASS") {
            return Some(Self::R2eGym);
        }
        let has_all = |format: &Self| {
            let wanted = format.columns();
            !wanted.is_empty() && wanted.iter().all(|name| columns.contains_key(*name))
        };
        Self::ALL.into_iter().find(has_all)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        // The issue tracker of SWE-bench writes its own name in both ways.
        let name = if name == "swebench" {
            "swe-bench"
        } else {
            name
        };
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no format is called `{name}`; there are {names}")
        })
    }
}
