//! Starting the binary and waiting for what it does.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::Duration,
};

use journal::{Replay, RunReader};

/// Between two looks at something that is waited for.
pub(crate) const MOMENT: Duration = Duration::from_millis(3);

/// Looks made before a wait is given up: far more than any test needs on any machine.
const PATIENCE: u32 = 100_000;

/// A path below this package.
pub(crate) fn package(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// The recipe whose rewards vary inside groups.
pub(crate) fn learning_recipe() -> PathBuf {
    package("tests/cases/learning.toml")
}

/// `etude ARGUMENTS`, not started yet. Temporary files go to `scratch`.
pub(crate) fn etude<S: AsRef<OsStr>>(
    scratch: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_etude"));
    command
        .args(arguments)
        .env("TMPDIR", scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts `etude train --resume RUN`.
pub(crate) fn resume(scratch: &Path, run: &Path) -> Child {
    let mut command = etude(
        scratch,
        ["train".as_ref(), "--resume".as_ref(), run.as_os_str()],
    );
    // Nobody reads while the tests watch the run, so a full pipe must not hold it up.
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Resumes `run` and lets it end.
pub(crate) fn resume_to_end(scratch: &Path, run: &Path) -> Output {
    etude(
        scratch,
        ["train".as_ref(), "--resume".as_ref(), run.as_os_str()],
    )
    .output()
    .unwrap()
}

pub(crate) fn assert_success(output: &Output) {
    assert!(
        output.status.success(),
        "{}: {}",
        output.status,
        stderr(output)
    );
}

/// Fails unless a command ended with this code and said all of these.
#[track_caller]
pub(crate) fn assert_says(output: &Output, code: i32, parts: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part}: {said}");
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What the run at `path` has committed; empty before the run is there.
pub(crate) fn committed(path: &Path) -> Replay {
    RunReader::open(path)
        .map(|reader| reader.replay().clone())
        .unwrap_or_default()
}

/// The last committed step of a phase, 0 before the first.
pub(crate) fn last_step(path: &Path, phase: &str) -> u64 {
    committed(path).last_step(phase).map_or(0, |step| step.step)
}

/// Waits until `holds`, or panics saying what never came.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..PATIENCE {
        if holds() {
            return;
        }
        sleep(MOMENT);
    }
    panic!("waited in vain until {what}");
}

/// Waits until `holds` or the process has ended; true when it still ran.
pub(crate) fn wait_while_running(child: &mut Child, mut holds: impl FnMut() -> bool) -> bool {
    let mut running = true;
    wait_until("the run comes to the point of the test", || {
        running = child.try_wait().unwrap().is_none();
        !running || holds()
    });
    running
}
