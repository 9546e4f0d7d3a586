//! What a session starts from, and what a backend can promise.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a session starts from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// A container image (`docker`) or the image that a `.sif` file is named after (`apptainer-queue`).
    /// The jail has none: its programs see this machine's `/usr`, read-only.
    pub name: Option<String>,
    /// A folder of this machine that becomes the work tree, copied on write or copied. Required by
    /// the jail; elsewhere the image brings its own when this is `None`.
    pub checkout: Option<PathBuf>,
    /// The absolute path of the work tree as commands see it; `None` is `/testbed`.
    pub work_tree: Option<String>,
    /// Set for every command.
    pub env: Vec<(String, String)>,
}

/// What a backend keeps apart and enforces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// `local`, `docker`, `apptainer-queue`, `ssh`.
    pub backend: String,
    /// Commands cannot reach any network.
    pub no_network: bool,
    pub wall: Enforcement,
    pub cpu: Enforcement,
    pub memory: Enforcement,
    pub processes: Enforcement,
    pub disk: Enforcement,
    pub snapshots: SnapshotKind,
    /// CPU time and peak memory of commands are known.
    pub usage: bool,
}

/// How firmly a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// Nothing enforces it.
    None,
    /// Looked at from time to time: it can be passed for some tens of milliseconds.
    Watched,
    /// The kernel enforces it for each process alone.
    PerProcess,
    /// The kernel enforces it for all processes together.
    Whole,
}

/// What a snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotKind {
    /// A layer of an overlay: costs what was changed.
    Layer,
    /// A committed container image.
    Commit,
    /// A copy of the work tree.
    Copy,
}

impl Image {
    /// A folder of this machine as the work tree.
    pub fn checkout(folder: impl Into<PathBuf>) -> Self {
        Self {
            checkout: Some(folder.into()),
            ..Self::default()
        }
    }

    /// A container image that brings its own work tree.
    pub fn container(name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::default()
        }
    }

    /// The absolute path of the work tree as commands see it.
    pub fn work_tree(&self) -> &str {
        self.work_tree.as_deref().unwrap_or("/testbed")
    }
}
