//! A crate may use crates on lower floors only.

use std::collections::BTreeMap;

use cargo_metadata::MetadataCommand;
use house::workspace_root;

/// The floors of ARCHITECTURE.md, ground first. A crate that is on no floor fails the test.
const FLOORS: &[&[&str]] = &[
    &["record"],
    &["recipe", "chat", "code", "dataset", "journal", "retrieve"],
    &["sandbox", "engine"],
    &["session", "policy", "learn"],
    &["judge", "rollout"],
    &["critique", "recall", "repair"],
    &["train", "eval", "report", "server"],
    &["etude"],
];

/// Crates that must not know each other although their floors would allow it.
const STRANGERS: &[(&str, &str)] = &[("rollout", "learn"), ("learn", "rollout")];

#[test]
fn dependencies_point_down_the_house() {
    let floor: BTreeMap<&str, usize> = FLOORS
        .iter()
        .enumerate()
        .flat_map(|(floor, crates)| crates.iter().map(move |name| (*name, floor)))
        .collect();
    let metadata = MetadataCommand::new()
        .manifest_path(workspace_root().join("Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .unwrap();
    let mut faults = Vec::new();
    for package in &metadata.packages {
        if package.name.as_str() == "house" {
            continue;
        }
        let Some(&own) = floor.get(package.name.as_str()) else {
            faults.push(format!("{} is on no floor", package.name));
            continue;
        };
        for dependency in package
            .dependencies
            .iter()
            .filter(|found| found.path.is_some())
        {
            let other = dependency.name.as_str();
            if floor.get(other).is_none_or(|&other| other >= own) {
                faults.push(format!("{} (floor {own}) uses {other}", package.name));
            }
            if STRANGERS.contains(&(package.name.as_str(), other)) {
                faults.push(format!(
                    "{} and {other} must not know each other",
                    package.name
                ));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "the layering of ARCHITECTURE.md is broken:\n{}",
        faults.join("\n")
    );
}
