//! The patches of `tests/cases`: what they make of the files in `before`, or why they are rejected.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use code::{
    Patch, RelativePath,
    patch::{Applied, FileChange, Mode, Rejection},
};

type Files = BTreeMap<RelativePath, Vec<u8>>;

#[test]
fn every_case_ends_as_it_says() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut folders: Vec<PathBuf> = fs::read_dir(cases)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    assert!(folders.len() > 40);
    let faults: Vec<String> = folders
        .iter()
        .filter_map(|folder| {
            check(folder)
                .err()
                .map(|fault| format!("{folder:?}: {fault}"))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn check(folder: &Path) -> Result<(), String> {
    let before = files_below(&folder.join("before"));
    let outcome = apply(&fs::read(folder.join("patch.txt")).unwrap(), &before);
    if let Ok(expected) = fs::read_to_string(folder.join("rejection.txt")) {
        let rejection = outcome.err().ok_or("was applied")?.to_string();
        return match rejection.contains(expected.trim()) {
            true => Ok(()),
            false => Err(format!("was rejected with {rejection:?}")),
        };
    }
    let applied = outcome.map_err(|rejection| format!("was rejected: {rejection}"))?;
    let report = shown(&applied);
    let mut after = before;
    for change in applied.changes {
        match change {
            FileChange::Write { path, content, .. } => after.insert(path, content),
            FileChange::Remove { path } => after.remove(&path),
        };
    }
    if after != files_below(&folder.join("after")) {
        return Err(format!("gave {after:?}"));
    }
    if let Ok(expected) = fs::read_to_string(folder.join("report.txt"))
        && report.trim() != expected.trim()
    {
        return Err(format!("reported\n{report}"));
    }
    Ok(())
}

fn apply(patch: &[u8], before: &Files) -> Result<Applied, Rejection> {
    let patch = Patch::parse(patch)?;
    // What is asked for, and the folders of it that are files.
    let mut asked = patch.paths();
    let folders: Vec<_> = asked.iter().filter_map(RelativePath::parent).collect();
    asked.extend(folders);
    let files = asked.into_iter().map(|path| {
        let content = before.get(&path).cloned();
        (path, content)
    });
    patch.apply(&files.collect())
}

fn shown(applied: &Applied) -> String {
    let mut lines = Vec::new();
    for hunk in &applied.report.hunks {
        let rung = serde_json::to_value(hunk.rung).unwrap();
        let mut line = format!(
            "{} {} line {} {}",
            hunk.path,
            hunk.number,
            hunk.line,
            rung.as_str().unwrap()
        );
        if let Some(offset) = hunk.offset {
            line += &format!(" offset {offset}");
        }
        if hunk.counts_ignored {
            line += " counts ignored";
        }
        lines.push(line);
    }
    let modes = applied.changes.iter().filter_map(|change| match change {
        FileChange::Write {
            path,
            mode: Mode::Bits(bits),
            ..
        } if *bits != 0o644 => Some(format!("mode {path} {bits:o}")),
        FileChange::Write {
            path,
            mode: Mode::Of(other),
            ..
        } if other != path => Some(format!("mode {path} of {other}")),
        _ => None,
    });
    lines.extend(modes);
    lines.sort();
    lines.join("\n")
}

fn files_below(folder: &Path) -> Files {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
            files.insert(RelativePath::new(name).unwrap(), fs::read(&path).unwrap());
        }
    }
    files
}
