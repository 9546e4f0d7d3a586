//! The recipes of the repository: each can be planned, and none of their tables takes a key that nobody reads.

use std::{fs, path::PathBuf, thread};

use tempfile::TempDir;

use crate::{
    bad_input::complaint,
    etude::{etude, package, stderr},
};

const UNHEARD_OF: &str = "unheard_of";
/// It and a value that the tables of roles, whose keys are names, would take.
const SETTING: &str = "unheard_of = { max_tokens = 1 }";

/// Every `recipes/STUDY/NAME.toml`.
fn recipes() -> Vec<PathBuf> {
    let entries = |directory: PathBuf| {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    let studies = entries(package("../../recipes")).filter(|path| path.is_dir());
    let mut found: Vec<PathBuf> = studies
        .flat_map(entries)
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    found.sort();
    found
}

#[test]
fn every_recipe_can_be_planned() {
    let directory = TempDir::new().unwrap();
    let directory = &directory;
    let recipes = recipes();
    assert!(recipes.len() >= 7, "{recipes:?}");
    thread::scope(|scope| {
        for recipe in &recipes {
            scope.spawn(move || {
                let arguments = ["plan".as_ref(), recipe.as_os_str(), "--json".as_ref()];
                let output = etude(directory.path(), arguments).output().unwrap();
                assert!(
                    output.status.success(),
                    "{}: {}",
                    recipe.display(),
                    stderr(&output)
                );
                let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                // Recipes that only evaluate may do without models.
                let trains = fs::read_to_string(recipe).unwrap().contains("[rl]");
                for part in ["models", "phases"]
                    .into_iter()
                    .filter(|part| trains || *part != "models")
                {
                    let planned = plan[part].as_array().unwrap();
                    assert!(!planned.is_empty(), "{}: no {part}", recipe.display());
                }
            });
        }
    });
}

#[test]
fn no_table_of_a_recipe_takes_an_unknown_key() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("recipe.toml");
    let mut failures = Vec::new();
    for recipe in recipes() {
        let text = fs::read_to_string(&recipe).unwrap();
        let wrong = with_unknown_keys(&text);
        assert!(wrong.len() >= 4, "{}: {}", recipe.display(), wrong.len());
        for (place, text) in wrong {
            fs::write(&file, text).unwrap();
            let output = etude(directory.path(), ["plan".as_ref(), file.as_os_str()]).output();
            let found = complaint(&output.unwrap(), 2, &[UNHEARD_OF]);
            let place = format!("{}, {place}", recipe.display());
            failures.extend(found.map(|found| format!("{place}: {found}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The recipe with an unknown key in one of its tables, for each of them, and where it is.
fn with_unknown_keys(text: &str) -> Vec<(String, String)> {
    let mut wrong = vec![("at the top".to_owned(), format!("{SETTING}\n{text}"))];
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let said = line.split('#').next().unwrap_or("");
        let place = format!("line {}", number + 1);
        if said.starts_with('[') {
            let (before, after) = text.split_at(start + line.len());
            wrong.push((place.clone(), format!("{before}{SETTING}\n{after}")));
        }
        for (at, _) in said.match_indices('{') {
            let (before, after) = text.split_at(start + at + 1);
            let comma = if after.trim_start().starts_with('}') {
                ""
            } else {
                ","
            };
            let key = format!("{before} {SETTING}{comma}{after}");
            wrong.push((format!("{place}, letter {}", at + 1), key));
        }
        start += line.len();
    }
    wrong
}
