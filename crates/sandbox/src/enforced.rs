//! Which mechanism holds each limit of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Limits, Tier};

/// What holds one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// A control group of the kernel: exact, over all processes together.
    Cgroup,
    /// The kernel's limit of one process, or of one user's processes.
    Rlimit,
    /// Sums over all processes, every 20 ms: more may be used in between.
    Watchdog,
    /// The size of an in-memory file system that is made for the run.
    Tmpfs,
    /// An empty network namespace.
    Namespace,
    /// Landlock rules.
    Landlock,
    /// A filter of system calls.
    Seccomp,
    /// A timer outside of the run.
    Timer,
}

/// Which mechanisms hold each limit. Those of one limit hold it together: each stops what the
/// others let through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    pub memory: Vec<Mechanism>,
    pub processes: Vec<Mechanism>,
    pub cpu: Vec<Mechanism>,
    pub wall: Vec<Mechanism>,
    pub disk: Vec<Mechanism>,
    pub network: Vec<Mechanism>,
}

/// Whose use a control group counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) memory: bool,
    pub(crate) processes: bool,
    pub(crate) cpu: bool,
}

impl Enforced {
    /// In a slot of `tier`, with what its control groups count.
    pub(crate) fn new(tier: Tier, counted: Counted) -> Self {
        use Mechanism::{Cgroup, Landlock, Namespace, Rlimit, Seccomp, Timer, Tmpfs, Watchdog};
        let with_group = |group: bool, rest: &[Mechanism]| {
            let group = group.then_some(Cgroup);
            group.into_iter().chain(rest.iter().copied()).collect()
        };
        Self {
            memory: with_group(counted.memory, &[Rlimit, Watchdog]),
            processes: with_group(counted.processes, &[Rlimit]),
            cpu: with_group(counted.cpu, &[Rlimit, Watchdog]),
            wall: vec![Timer],
            disk: match tier {
                Tier::Namespaces => vec![Rlimit, Tmpfs],
                Tier::Landlock | Tier::Limits => vec![Rlimit, Watchdog],
            },
            network: match tier {
                Tier::Namespaces => vec![Namespace],
                Tier::Landlock => vec![Landlock, Seccomp],
                Tier::Limits => vec![Seccomp],
            },
        }
    }

    /// Of a run with these limits.
    pub(crate) fn of_run(&self, limits: &Limits) -> Self {
        let mut enforced = self.clone();
        if !limits.address_space {
            enforced.memory.retain(|by| *by != Mechanism::Rlimit);
        }
        enforced
    }

    /// The limits by name, in the order of the fields.
    pub fn each(&self) -> [(&'static str, &[Mechanism]); 6] {
        [
            ("memory", &self.memory),
            ("processes", &self.processes),
            ("cpu", &self.cpu),
            ("wall", &self.wall),
            ("disk", &self.disk),
            ("network", &self.network),
        ]
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup => "cgroup",
            Self::Rlimit => "rlimit",
            Self::Watchdog => "watchdog",
            Self::Tmpfs => "tmpfs",
            Self::Namespace => "namespace",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Timer => "timer",
        })
    }
}

/// Such as `memory cgroup+watchdog, processes cgroup+rlimit`.
impl fmt::Display for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, by)) in self.each().into_iter().enumerate() {
            let by: Vec<String> = by.iter().map(Mechanism::to_string).collect();
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{name} {}", by.join("+"))?;
        }
        Ok(())
    }
}
