//! Sums what all processes of a run use, where no control group does.

use std::{collections::HashMap, fs};

use libc::pid_t;

use crate::sys;

/// What the processes of a run use at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Seconds of user and system time, of living processes and the children they waited for.
    pub(crate) cpu: f64,
    /// Bytes resident; memory shared through `fork` counts once per process.
    pub(crate) resident: u64,
}

/// The living descendants of this process, except `excluded`.
pub(crate) fn descendants(excluded: &[pid_t]) -> Vec<pid_t> {
    let mut found = descendants_but_below(&[]);
    found.retain(|pid| !excluded.contains(pid));
    found
}

/// As [`descendants`], without those of `excluded` too.
pub(crate) fn descendants_but_below(excluded: &[pid_t]) -> Vec<pid_t> {
    let mut children: HashMap<pid_t, Vec<pid_t>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Some(parent) = Stat::read(pid).map(|stat| stat.parent) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let own = pid_t::try_from(std::process::id()).unwrap_or(0);
    let mut found = vec![own];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        let below = children.get(pid).into_iter().flatten();
        let below: Vec<pid_t> = below
            .copied()
            .filter(|pid| !excluded.contains(pid))
            .collect();
        found.extend(below);
        at += 1;
    }
    found.remove(0);
    found
}

/// What `processes` use together.
pub(crate) fn usage(processes: &[pid_t]) -> Usage {
    let (ticks, page) = (sys::clock_ticks() as f64, sys::page_size());
    let mut usage = Usage::default();
    for stat in processes.iter().filter_map(|pid| Stat::read(*pid)) {
        usage.cpu += stat.cpu_ticks as f64 / ticks;
        usage.resident += stat.resident_pages * page;
    }
    usage
}

/// As [`Usage::resident`], but shared memory counts once in all. Slower, so asked only when the
/// cheap sum is past the limit.
pub(crate) fn proportional_memory(processes: &[pid_t]) -> u64 {
    let kibibytes = |pid: &pid_t| {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    };
    processes.iter().filter_map(kibibytes).sum::<u64>() * 1024
}

struct Stat {
    parent: pid_t,
    cpu_ticks: u64,
    resident_pages: u64,
}

impl Stat {
    fn read(pid: pid_t) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Fields are counted behind the command's name, which may contain anything.
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            cpu_ticks: (11..=14).map(|at| number(at).unwrap_or(0)).sum(),
            resident_pages: number(21)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let line = "7 (a) b) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 9 4096 5 6";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(
            (stat.parent, stat.cpu_ticks, stat.resident_pages),
            (3, 100, 5)
        );
    }

    #[test]
    fn this_process_uses_memory() {
        let own = pid_t::try_from(std::process::id()).unwrap();
        assert!(usage(&[own]).resident > 0);
        let proportional = proportional_memory(&[own]);
        assert!(proportional > 0 && proportional <= usage(&[own]).resident * 2);
    }
}
