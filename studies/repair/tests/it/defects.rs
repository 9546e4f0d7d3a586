//! `docs/repair-defects.md` names tests that exist.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const FOLDERS: [&str; 4] = ["crates", "studies/repair", "apps/cli/tests", "tests"];

#[test]
fn every_test_that_the_table_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = fs::read_to_string(root.join("docs/repair-defects.md")).unwrap();
    let mut tests = BTreeSet::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                tests.extend(
                    text.split("fn ")
                        .skip(1)
                        .filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())),
                );
            }
        }
    }
    let rows = table
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('`'));
    let mut named = 0;
    for row in rows {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        for test in cell.split(", ") {
            let test = test.trim().trim_matches('`');
            assert!(tests.contains(test), "no test is called {test:?}: {row}");
            named += 1;
        }
    }
    assert!(named >= 60, "{named}");
}
