//! Scripts of assertions are passed by programs that compute what they ask for, and by no others.
//!
//! Each folder of `statements` has `tests.py`, programs that pass in `honest`, and programs that return
//! what would satisfy any assertion in `cheats`.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use judge::{Judge, JudgeConfig, Tests};
use sandbox::{Config, Sandbox};

fn listed(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

#[tokio::test]
async fn honest_programs_pass_and_cheats_do_not() {
    let judge = Judge::new(
        Sandbox::start(Config::new(2)).unwrap(),
        JudgeConfig::small(),
    );
    let mut faults = Vec::new();
    for case in listed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/statements")) {
        let tests = Tests::assert_script(fs::read_to_string(case.join("tests.py")).unwrap(), None);
        for (kind, passes) in [("honest", true), ("cheats", false)] {
            let Ok(true) = case.join(kind).try_exists() else {
                continue;
            };
            for path in listed(&case.join(kind)) {
                let program = fs::read_to_string(&path).unwrap();
                let verdict = judge.verdict(&program, &tests).await.unwrap();
                if verdict.passed != passes {
                    faults.push(format!("{}: {verdict:?}", path.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
