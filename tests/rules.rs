//! House rules that prose alone would not hold.

use std::path::Path;

use house::{files_below, workspace_root};

/// Lines of a Rust file, tests included.
const MAX_LINES: usize = 800;

#[test]
fn rust_files_are_small_and_say_what_they_are_for() {
    let root = workspace_root();
    let mut faults = Vec::new();
    for path in files_below(&root, "rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = shown(&path, &root);
        if text.lines().count() > MAX_LINES {
            faults.push(format!("{name} has more than {MAX_LINES} lines; split it"));
        }
        if !text.starts_with("//!") {
            faults.push(format!(
                "{name} must begin with a //! line that says what it is for"
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_crate_has_a_paragraph_and_every_dependency_a_line() {
    let root = workspace_root();
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let dependencies = manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().trim_start_matches('#').trim());
    let missing: Vec<&str> = dependencies
        .filter(|name| !architecture.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md does not speak of {missing:?}"
    );
}

#[test]
fn nothing_is_left_undone_or_ignored() {
    let root = workspace_root();
    // Spelled in pieces so that this file does not find itself.
    let banned = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("#[", "ignore]"),
    ];
    let mut faults = Vec::new();
    for path in files_below(&root, "rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        for word in banned {
            if text.contains(word) {
                faults.push(format!("{} contains {word}", shown(&path, &root)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Rows of the table of hostile inputs (spec of the sandbox, section 4).
const HOSTILE_ROWS: usize = 38;

#[test]
fn every_row_of_hostile_inputs_has_a_test() {
    let root = workspace_root();
    let tests: String = files_below(&root.join("crates"), "rs")
        .iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "tests"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    // What is a test stands right behind its attribute.
    let is_tested = |row: usize| {
        let name = format!("fn row_{row:02}_");
        let mut lines = tests.lines().zip(tests.lines().skip(1));
        lines.any(|(before, line)| {
            let function = line.strip_prefix("async ").unwrap_or(line);
            function.starts_with(&name) && matches!(before, "#[test]" | "#[tokio::test]")
        })
    };
    let missing: Vec<usize> = (1..=HOSTILE_ROWS).filter(|row| !is_tested(*row)).collect();
    assert!(missing.is_empty(), "rows without a test: {missing:?}");
}
