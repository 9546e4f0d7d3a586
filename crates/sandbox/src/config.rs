//! How a sandbox is set up, and how strong its walls are.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::Workspace;

/// The setup of a [`Sandbox`](crate::Sandbox). Built with [`Config::new`], changed by field.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    /// Runs at the same time. One slot keeps about one core busy.
    pub slots: usize,
    /// Which walls to use.
    pub tier: TierChoice,
    /// Untrusted code runs at [`Tier::Namespaces`] only, unless this is set.
    pub allow_weak_tier: bool,
    /// The interpreter; `None` searches the usual places, then `search`. A shim is resolved to the
    /// real binary.
    pub python: Option<PathBuf>,
    /// Where programs are looked for, such as the folders of `PATH`.
    pub search: Vec<PathBuf>,
    /// Folders outside the system's that programs may read, such as those of
    /// [`Toolchains`](crate::Toolchains). One that is not there is an error.
    pub readable: Vec<PathBuf>,
    /// Modules imported once per slot, so that programs importing them pay nothing.
    pub preload: Vec<String>,
    /// Modules that are slow to import: a program that mentions one runs in a second interpreter of
    /// its slot, which has imported them all. Started by the first such program; those that are not
    /// installed are left out.
    pub preload_on_mention: Vec<String>,
    /// Jobs that may wait for a slot; more are refused with
    /// [`SandboxError::Overloaded`](crate::SandboxError::Overloaded).
    pub queue_limit: usize,
    /// A slot is replaced after this many runs.
    pub runs_per_slot: u32,
    /// Where the working folders of the weaker tiers are made. [`Tier::Namespaces`] needs none.
    pub scratch: PathBuf,
    /// A folder of this machine that programs may change, kept from run to run.
    pub workspace: Option<Workspace>,
    /// Programs of a slot reach each other by `127.0.0.1` and `::1`, and nobody else. At [`Tier::Namespaces`] alone.
    pub loopback: bool,
}

/// Which walls to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierChoice {
    /// The strongest tier that works here, found by trying.
    Strongest,
    /// This tier or an error.
    Exactly(Tier),
}

/// How strong the walls are; recorded with every outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// T1: user, pid, mount, net, ipc and uts namespaces, a private root, seccomp, rlimits, no capabilities.
    Namespaces,
    /// T2: Landlock, seccomp, rlimits, no capabilities. Host processes are visible, cleanup walks `/proc`.
    Landlock,
    /// T3: seccomp, rlimits, no capabilities. Host files are readable.
    Limits,
}

impl Config {
    /// `slots` runs at a time behind the strongest walls available, Python found by searching.
    pub fn new(slots: usize) -> Self {
        let preload = [
            "bisect",
            "collections",
            "copy",
            "dataclasses",
            "datetime",
            "decimal",
            "enum",
            "fractions",
            "functools",
            "heapq",
            "io",
            "itertools",
            "json",
            "math",
            "operator",
            "random",
            "re",
            "statistics",
            "string",
            "threading",
            "typing",
        ];
        Self {
            slots: slots.max(1),
            tier: TierChoice::Strongest,
            allow_weak_tier: false,
            python: None,
            search: Vec::new(),
            readable: Vec::new(),
            preload: preload.map(str::to_owned).to_vec(),
            preload_on_mention: vec!["numpy".to_owned()],
            queue_limit: 100_000,
            runs_per_slot: 2000,
            scratch: PathBuf::from("/tmp"),
            workspace: None,
            loopback: false,
        }
    }
}

impl Tier {
    /// From strongest to weakest.
    pub const ALL: [Self; 3] = [Self::Namespaces, Self::Landlock, Self::Limits];
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "T1 namespaces",
            Self::Landlock => "T2 landlock",
            Self::Limits => "T3 limits",
        })
    }
}
