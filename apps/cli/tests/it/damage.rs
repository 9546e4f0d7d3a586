//! Runs whose files were damaged or are in use: said clearly, and left as they are.

use std::{fs, path::Path};

use journal::RunReader;
use tempfile::TempDir;

use crate::{
    bad_input::complaint,
    etude::{last_step, resume, resume_to_end, stderr, wait_while_running},
    runs::{RL, assert_same_metrics, contents, copy, supervised_copy, uninterrupted},
};

/// The files of a run that an attempt to go on with it may not touch.
fn kept(run: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let kept = |path: &Path| {
        [
            "checkpoints",
            "episodes",
            "tasks",
            "recipe.toml",
            "recipe.hash",
        ]
        .iter()
        .any(|name| path.starts_with(name))
    };
    contents(run)
        .into_iter()
        .filter(|(path, _)| kept(path))
        .collect()
}

#[test]
fn a_damaged_checkpoint_is_named_and_nothing_is_overwritten() {
    let directory = TempDir::new().unwrap();
    let whole = directory.path().join("whole");
    supervised_copy(&whole);
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 3] = [
        ("a byte flipped", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }),
        ("cut short", |bytes| bytes.truncate(bytes.len() / 2)),
        ("emptied", Vec::clear),
    ];
    for (name, damage) in damages {
        let run = directory.path().join("damaged");
        copy(&whole, &run);
        let file = run.join("checkpoints/reviser/model.safetensors");
        let mut bytes = fs::read(&file).unwrap();
        damage(&mut bytes);
        fs::write(&file, bytes).unwrap();
        let before = kept(&run);
        let output = resume_to_end(directory.path(), &run);
        let found = complaint(&output, 1, &["checkpoints/reviser", "digest", "restore"]);
        assert_eq!(found, None, "{name}");
        assert!(kept(&run) == before, "{name}: something was overwritten");
        fs::remove_dir_all(&run).unwrap();
    }
}

#[test]
fn damaged_episodes_of_a_committed_step_are_named() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    supervised_copy(&run);
    let mut child = resume(directory.path(), &run);
    assert!(wait_while_running(&mut child, || last_step(&run, RL) >= 2));
    child.kill().unwrap();
    child.wait().unwrap();
    let episodes = RunReader::open(&run)
        .unwrap()
        .replay()
        .last_step(RL)
        .unwrap()
        .episodes
        .clone();
    let file = run.join(episodes.unwrap().file);
    let mut bytes = fs::read(&file).unwrap();
    bytes[40] ^= 4;
    fs::write(&file, bytes).unwrap();
    let output = resume_to_end(directory.path(), &run);
    assert_eq!(
        complaint(&output, 1, &["episodes/rl/", "digest", "restore"]),
        None
    );
}

#[test]
fn a_damaged_journal_is_refused_as_it_is() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    copy(uninterrupted(), &run);
    let file = run.join("journal.log");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let before = contents(&run);
    let output = resume_to_end(directory.path(), &run);
    assert_eq!(
        complaint(&output, 2, &["journal.log", "damaged", "byte"]),
        None
    );
    assert!(contents(&run) == before, "something was overwritten");
}

/// The journal's weights are not of the recipe that the directory now has.
#[test]
fn a_recipe_changed_behind_the_run_is_refused() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    supervised_copy(&run);
    let recipe = run.join("recipe.toml");
    let text = fs::read_to_string(&recipe).unwrap();
    fs::write(
        &recipe,
        text.replace("hidden_size = 64", "hidden_size = 32"),
    )
    .unwrap();
    let before = kept(&run);
    let output = resume_to_end(directory.path(), &run);
    assert_eq!(complaint(&output, 2, &["recipe.toml", "changed"]), None);
    assert!(kept(&run) == before, "something was overwritten");
}

#[test]
fn a_run_that_is_being_written_is_left_alone() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    supervised_copy(&run);
    let mut first = resume(directory.path(), &run);
    assert!(wait_while_running(&mut first, || last_step(&run, RL) >= 1));
    let second = resume_to_end(directory.path(), &run);
    assert_eq!(
        complaint(&second, 2, &["another process"]),
        None,
        "{}",
        stderr(&second)
    );
    assert!(
        first.wait().unwrap().success(),
        "the second process disturbed the first"
    );
    assert_same_metrics(&run, uninterrupted());
}

#[test]
fn an_ended_run_is_not_begun_again() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    copy(uninterrupted(), &run);
    let before = contents(&run);
    let mut command = crate::etude::etude(directory.path(), ["train"]);
    command
        .arg(crate::etude::learning_recipe())
        .arg("--run")
        .arg(&run);
    let output = command.output().unwrap();
    assert_eq!(
        complaint(&output, 2, &["already holds a run", "--resume"]),
        None
    );
    assert!(contents(&run) == before, "something was overwritten");
}
