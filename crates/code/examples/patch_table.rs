//! How often damaged patches land, beside `git apply` and `patch -p1`: `cargo run --example patch_table`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that prints a table"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "other programs are what this one compares with"
)]

#[path = "../tests/commits/mod.rs"]
mod commits;

use std::{
    collections::BTreeMap,
    fs,
    process::{Command, Stdio},
};

use code::{Patch, RelativePath, patch::FileChange};
use commits::{Commit, DAMAGES, PATH, commit, damaged};
use record::Seed;

const COMMITS: u64 = 500;

fn main() {
    println!("| damage | this crate | `git apply` | `patch -p1` |");
    println!("|---|---|---|---|");
    for (damage, name) in DAMAGES {
        let mut cells = [Cell::default(), Cell::default(), Cell::default()];
        for at in 0..COMMITS {
            let seed = Seed(20).stream("commits", at);
            let commit = damaged(&commit(seed), damage, seed);
            cells[0].count(&commit, ours(&commit));
            cells[1].count(&commit, theirs(&commit, "git", &["apply", "../patch"]));
            cells[2].count(
                &commit,
                theirs(&commit, "patch", &["-p1", "-i", "../patch"]),
            );
        }
        let [a, b, c] = cells.map(|cell| cell.shown());
        println!("| {name} | {a} | {b} | {c} |");
    }
}

#[derive(Default)]
struct Cell {
    right: u64,
    wrong: u64,
}

impl Cell {
    fn count(&mut self, commit: &Commit, outcome: Option<Vec<u8>>) {
        match outcome {
            Some(content) if content == commit.after.as_bytes() => self.right += 1,
            Some(_) => self.wrong += 1,
            None => {}
        }
    }

    fn shown(&self) -> String {
        let percent = 100.0 * self.right as f64 / COMMITS as f64;
        match self.wrong {
            0 => format!("{percent:.1} %"),
            wrong => format!("{percent:.1} %, {wrong} wrong"),
        }
    }
}

fn ours(commit: &Commit) -> Option<Vec<u8>> {
    let path = RelativePath::new(PATH).unwrap();
    let files = BTreeMap::from([(path, Some(commit.before.clone().into_bytes()))]);
    let applied = Patch::parse(commit.patch.as_bytes())
        .ok()?
        .apply(&files)
        .ok()?;
    match applied.changes.into_iter().next()? {
        FileChange::Write { content, .. } => Some(content),
        FileChange::Remove { .. } => None,
    }
}

/// `None` when the program says that it failed.
fn theirs(commit: &Commit, program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    let file = work.join(PATH);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, &commit.before).unwrap();
    fs::write(folder.path().join("patch"), &commit.patch).unwrap();
    let status = Command::new(program)
        .args(arguments)
        .current_dir(&work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.success().then(|| fs::read(&file).unwrap())
}
