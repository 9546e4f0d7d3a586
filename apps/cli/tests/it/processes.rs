//! Processes as `/proc` shows them.

use std::{collections::BTreeSet, fs, process::Command};

use crate::etude::wait_until;

/// A process that cannot be mistaken for a later one of the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) id: u32,
    parent: u32,
    /// In clock ticks since boot.
    started: u64,
}

/// Sends a signal by its name, `INT` for example. The process may be gone already.
pub(crate) fn signal(name: &str, id: u32) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {id} 2>&-")])
        .status();
    assert!(status.is_ok(), "`sh` is there");
}

/// All descendants of a process that live now.
pub(crate) fn descendants(root: u32) -> BTreeSet<Process> {
    let all = all();
    let mut found = BTreeSet::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            parents.push(process.id);
            found.insert(process.clone());
        }
    }
    found
}

/// The sandbox supervisor of an `etude` process, if it has one now.
pub(crate) fn supervisor_of(etude: u32) -> Option<Process> {
    all().into_iter().find(|process| {
        process.parent == etude
            && fs::read(format!("/proc/{}/cmdline", process.id))
                .is_ok_and(|line| line.starts_with(b"sandbox-supervisor\0"))
    })
}

/// Waits until all of these have ended, however long the machine takes.
pub(crate) fn assert_all_end(processes: &BTreeSet<Process>) {
    wait_until("the children of an ended process have ended too", || {
        let all: BTreeSet<(u32, u64)> = all()
            .into_iter()
            .map(|process| (process.id, process.started))
            .collect();
        processes
            .iter()
            .all(|process| !all.contains(&(process.id, process.started)))
    });
}

/// All processes but the dead ones that nobody has waited for.
fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(read).collect()
}

fn read(id: u32) -> Option<Process> {
    let status = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the fields after it are numbers and a letter.
    let fields: Vec<&str> = status.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(fields[0], "Z" | "X") {
        return None;
    }
    Some(Process {
        id,
        parent: fields[1].parse().ok()?,
        started: fields[19].parse().ok()?,
    })
}
