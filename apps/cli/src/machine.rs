//! Facts about this machine.

use std::{collections::BTreeMap, path::PathBuf};

/// What a run records about where it was made.
pub(crate) fn facts() -> BTreeMap<String, String> {
    let mut facts = BTreeMap::from([
        ("os".to_owned(), std::env::consts::OS.to_owned()),
        ("arch".to_owned(), std::env::consts::ARCH.to_owned()),
        ("cores".to_owned(), cores().to_string()),
    ]);
    if let Some(memory) = memory_bytes() {
        facts.insert(
            "memory_gib".to_owned(),
            format!("{:.1}", memory as f64 / (1u64 << 30) as f64),
        );
    }
    if let Some(model) = processor() {
        facts.insert("processor".to_owned(), model);
    }
    facts
}

/// What a sandbox of `slots` is set up with here.
pub(crate) fn sandbox_config(slots: usize) -> sandbox::Config {
    sandbox::Config {
        search: search_path(),
        ..sandbox::Config::new(slots)
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The folders of `PATH`.
pub(crate) fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// Memory of the machine, where the system tells.
pub(crate) fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
