//! Nothing is overwritten, and one process at a time writes a run.

use std::{
    fs,
    path::Path,
    sync::{Arc, Barrier},
    thread,
};

use journal::{Error, RunDir, RunReader};
use tempfile::TempDir;

use crate::fixture::{self, RECIPE, started};

#[test]
fn a_run_is_begun_in_a_new_or_an_empty_directory_only() {
    let dir = TempDir::new().unwrap();
    let new = dir.path().join("deep/new");
    drop(RunDir::create(&new, RECIPE, started()).unwrap());
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    drop(RunDir::create(&empty, RECIPE, started()).unwrap());

    let occupied = dir.path().join("occupied");
    fs::create_dir(&occupied).unwrap();
    fs::write(occupied.join("thesis.txt"), "years of work").unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "years of work").unwrap();
    let before = fixture::tree(dir.path());
    for (path, says) in [
        (&new, "--resume"),
        (&empty, "--resume"),
        (&occupied, "another directory"),
        (&file, "another directory"),
    ] {
        let error = RunDir::create(path, RECIPE, started())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(says) && error.contains(&*path.to_string_lossy()),
            "{error}"
        );
    }
    assert_eq!(fixture::tree(dir.path()), before);
}

#[test]
fn a_file_that_appears_while_a_run_is_begun_stays() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    let line = Arc::new(Barrier::new(2));
    // The file may come before the check, between the check and the rename, or after.
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let (path, line) = (path.clone(), line.clone());
            thread::spawn(move || {
                line.wait();
                if number == 0 {
                    return RunDir::create(&path, RECIPE, started()).is_ok();
                }
                fs::create_dir_all(&path).unwrap();
                fs::write(path.join("thesis.txt"), "years of work").is_ok()
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let has_run = path.join("journal.log").exists();
    let has_thesis = path.join("thesis.txt").exists();
    assert!(has_thesis, "a file that was there is there still");
    assert!(!has_run || RunReader::open(&path).is_ok());
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing half-made stays"
    );
}

#[test]
fn a_second_writer_is_refused_and_a_reader_is_not() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    let first = RunDir::create(&path, RECIPE, started()).unwrap();
    assert!(matches!(RunDir::open(&path), Err(Error::Locked { .. })));
    first.commit_step(fixture::step("rl", 1), None).unwrap();
    assert_eq!(
        RunReader::open(&path)
            .unwrap()
            .replay()
            .last_step("rl")
            .unwrap()
            .step,
        1
    );
    drop(first);
    let (second, _) = RunDir::open(&path).unwrap();
    assert!(matches!(RunDir::open(&path), Err(Error::Locked { .. })));
    drop(second);
    RunDir::open(&path).unwrap();
}

#[test]
fn a_directory_without_a_journal_is_no_run() {
    let dir = TempDir::new().unwrap();
    for path in [dir.path(), Path::new("/nowhere/at/all")] {
        assert!(matches!(RunDir::open(path), Err(Error::NotARun { .. })));
        assert!(matches!(RunReader::open(path), Err(Error::NotARun { .. })));
        assert!(matches!(
            journal::write_report(path, "x"),
            Err(Error::NotARun { .. })
        ));
    }
    fs::write(dir.path().join("journal.log"), "dear diary, today").unwrap();
    assert!(matches!(
        RunDir::open(dir.path()),
        Err(Error::Format { .. })
    ));
    assert_eq!(
        fs::read(dir.path().join("journal.log")).unwrap(),
        b"dear diary, today"
    );
}

#[test]
fn what_is_committed_is_committed_once() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let (run, _) = RunDir::open(&path).unwrap();
    let before = fixture::tree(&path);
    for number in [1, 4] {
        let again = run.commit_step(fixture::step("rl", number), Some(&fixture::groups(9)));
        assert!(matches!(again, Err(Error::StepOrder { last: 4, .. })));
    }
    let again = run.commit_evaluation(fixture::evaluation("sft"), Some(&fixture::groups(9)));
    assert!(matches!(again, Err(Error::Name { .. })));
    let again = run.checkpoint("rl-4", "rl", 4, |dir| fixture::fill(dir, 9));
    assert!(matches!(again, Err(Error::Name { .. })));
    assert_eq!(fixture::tree(&path), before);
}

#[test]
fn task_files_are_written_once() {
    let dir = TempDir::new().unwrap();
    let run = RunDir::create(&dir.path().join("run"), RECIPE, started()).unwrap();
    let path = run.write_tasks("train.jsonl", b"{}\n").unwrap();
    run.write_tasks("train.jsonl", b"{}\n").unwrap();
    assert!(matches!(
        run.write_tasks("train.jsonl", b"[]\n"),
        Err(Error::TasksDiffer { .. })
    ));
    assert_eq!(fs::read(path).unwrap(), b"{}\n");
}

#[test]
fn a_report_can_be_written_anew_beside_a_writer() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    let _writer = RunDir::create(&path, RECIPE, started()).unwrap();
    journal::write_report(&path, "<p>1").unwrap();
    let written = journal::write_report(&path, "<p>2").unwrap();
    assert_eq!(fs::read_to_string(written).unwrap(), "<p>2");
}
