//! A run of several roles that is killed again and again ends with the bytes of an undisturbed one.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use journal::{Replay, RunDir, RunReader};

use crate::world::{Setting, config, supervise, train};

const CHILD: &str = "ETUDE_TRAIN_TEST_RUN";

#[expect(
    clippy::disallowed_methods,
    reason = "the test kills a process of its own making"
)]
fn start(test: &str, path: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", test])
        .env(CHILD, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Every file of a checkpoint, by its path in it.
fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_owned();
                    found.push((name, fs::read(path).unwrap()));
                }
            }
        }
    }
    found.sort();
    found
}

fn names(replay: &Replay) -> Vec<String> {
    let checkpoints = replay.checkpoints().into_iter();
    checkpoints.map(|one| one.name.clone()).collect()
}

fn killed_run_ends_alike(test: &str, setting: Setting) {
    if let Some(path) = env::var_os(CHILD) {
        train(Path::new(&path), setting, &config());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let undisturbed = dir.path().join("undisturbed");
    let expected = train(&undisturbed, setting, &config());
    let killed = dir.path().join("killed");
    let size = || fs::metadata(killed.join("journal.log")).map_or(0, |file| file.len());
    let whole = fs::metadata(undisturbed.join("journal.log")).unwrap().len();
    let mut kills = 0;
    loop {
        let mut child = start(test, &killed);
        // Each sitting gets past another record of the journal, steps and checkpoints alike.
        let enough = size().max(400) + whole / 12;
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if size() >= enough {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            thread::sleep(Duration::from_micros(200));
        };
        if let Some(status) = ended {
            assert!(status.success(), "the run failed: {status}");
            break;
        }
        kills += 1;
    }
    assert!(kills >= 3, "only {kills} kills");
    let reader = RunReader::open(&killed).unwrap();
    let found: &Replay = reader.replay();
    assert_eq!(
        found.metrics_without_timings(),
        expected.metrics_without_timings()
    );
    assert_eq!(names(found), names(&expected));
    for name in names(found) {
        let path = Path::new("checkpoints").join(&name);
        let (one, other) = (files(&killed.join(&path)), files(&undisturbed.join(&path)));
        assert!(one.len() >= 4 && one == other, "{name}");
    }
}

#[test]
fn of_shared_weights() {
    killed_run_ends_alike("kill::of_shared_weights", Setting::Shared);
}

#[test]
fn of_a_policy_each() {
    killed_run_ends_alike("kill::of_a_policy_each", Setting::Separate);
}

/// As if the process had died between the last checkpoint and the removal of those before it.
#[test]
fn checkpoints_that_nobody_came_to_remove_are_removed() {
    type Job = fn(&Path) -> Replay;
    let jobs: [(&str, Job); 2] = [
        ("rl", |path| train(path, Setting::Shared, &config())),
        ("sft", supervise),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (phase, job) in jobs {
        let path = dir.path().join(phase);
        let expected = names(&job(&path));
        let (run, _) = RunDir::open(&path).unwrap();
        for step in [1, 2] {
            let fill = |folder: &Path| fs::write(folder.join("weights"), "old");
            run.checkpoint(&format!("old-{step}"), phase, step, fill)
                .unwrap();
        }
        assert_eq!(names(&run.replay()).len(), expected.len() + 2);
        drop(run);
        assert_eq!(names(&job(&path)), expected);
        let mut there: Vec<String> = fs::read_dir(path.join("checkpoints"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        there.sort();
        assert_eq!(there, expected);
    }
}
