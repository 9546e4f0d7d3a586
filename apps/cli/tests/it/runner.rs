//! `etude runner`: a queue served, asked with the older one-shot form, and ended by signals.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    etude::{etude, stderr, wait_until},
    processes::signal,
};

struct House {
    place: TempDir,
}

impl House {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for name in ["queue", "sif/a-b-1.sif.d", "share", "state", "bin"] {
            fs::create_dir_all(place.path().join(name)).unwrap();
        }
        fs::write(place.path().join("sif/a-b-1.sif"), "").unwrap();
        fs::write(place.path().join("sif/a-b-1.sif.d/README"), "read me\n").unwrap();
        let stand_in = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../crates/session/tests/remote/apptainer.sh");
        let state = place.path().join("state");
        let script = format!(
            "#!/bin/sh\nSTATE={} exec {} \"$@\"\n",
            state.display(),
            stand_in.display()
        );
        let program = place.path().join("bin/apptainer");
        fs::write(&program, script).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(program, executable).unwrap();
        Self { place }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = etude(self.place.path(), ["runner"]);
        command
            .args(arguments)
            .arg("--queue")
            .arg(self.at("queue"))
            .env("LEAKED", "this must reach nobody");
        command
    }

    fn runner(&self) -> Child {
        let runner = self
            .command(&["--id", "0"])
            .arg("--sif-dir")
            .arg(self.at("sif"))
            .arg("--share")
            .arg(self.at("share"))
            .arg("--apptainer")
            .arg(self.at("bin/apptainer"))
            .spawn()
            .unwrap();
        wait_until("the runner is ready", || {
            self.at("queue/runner-0/ready.json").exists()
        });
        runner
    }

    /// One JSON object in, one out.
    fn proxy(&self, payload: &serde_json::Value) -> serde_json::Value {
        let mut asked = self
            .command(&["--swe-proxy"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = asked.stdin.take().unwrap();
        stdin.write_all(payload.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = asked.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn assert_clean(&self) {
        assert_eq!(fs::read_dir(self.at("state")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(self.at("share/gp_work")).unwrap().count(), 0);
        assert!(!self.at("queue/runner-0/ready.json").exists());
    }
}

#[test]
fn graphs_are_built_where_the_repository_is() {
    let house = House::new();
    let repository = house.at("repository");
    fs::create_dir(&repository).unwrap();
    fs::write(repository.join("tree.py"), "def grow():\n    return 1\n").unwrap();
    let ask = |operation: &str, repo: &str, most: usize| {
        house.proxy(&serde_json::json!({
            "op": operation, "issue_id": "i", "repo": repo, "max_stdout_bytes": most
        }))
    };
    let path = repository.to_str().unwrap();
    for operation in ["build_graph", "build_repo_graph"] {
        let graph = ask(operation, path, 1 << 20);
        assert_eq!(graph["ok"], true, "{graph}");
        let lines = graph["stdout"].as_str().unwrap();
        assert!(lines.contains("func:tree.py:grow:1"), "{lines}");
        assert!(
            lines
                .lines()
                .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
        );
    }
    for (repo, most, says) in [
        ("r", 1 << 20, "absolute path"),
        ("/absent", 1 << 20, "/absent is no folder"),
        (path, 10, "max_stdout_bytes (10)"),
    ] {
        let graph = ask("build_graph", repo, most);
        assert_eq!(graph["ok"], false);
        assert!(graph["error"].as_str().unwrap().contains(says), "{graph}");
    }
}

#[test]
fn a_queue_is_served_until_a_signal_and_nothing_is_left() {
    let house = House::new();
    for (name, code) in [("TERM", 0), ("INT", 130)] {
        let mut runner = house.runner();
        let start = serde_json::json!({"op": "start", "run_id": "gp-t__1", "image": "a/b:1", "cwd": "/repo"});
        let started = house.proxy(&start);
        assert_eq!(started["ok"], true, "{started}");
        let exec = |cmd: &str| serde_json::json!({"op": "exec", "run_id": "gp-t__1", "cmd": cmd, "cwd": "/repo", "timeout": 60});
        let ran = house.proxy(&exec("cat README; echo \"[$LEAKED]\"; exit 5"));
        assert_eq!(
            (&ran["ok"], &ran["returncode"]),
            (&true.into(), &5.into()),
            "{ran}"
        );
        assert_eq!(ran["stdout"], "read me\n[]\n");
        signal(name, runner.id());
        assert_eq!(runner.wait().unwrap().code(), Some(code));
        house.assert_clean();
    }
}

#[test]
fn what_a_killed_runner_left_is_removed_by_the_next() {
    let house = House::new();
    let mut killed = house.runner();
    let start =
        serde_json::json!({"op": "start", "run_id": "gp-t__1", "image": "a/b:1", "cwd": "/repo"});
    assert_eq!(house.proxy(&start)["ok"], true);
    signal("KILL", killed.id());
    killed.wait().unwrap();
    assert_eq!(fs::read_dir(house.at("state")).unwrap().count(), 1);
    fs::remove_file(house.at("queue/runner-0/ready.json")).unwrap();
    let mut next = house.runner();
    assert_eq!(fs::read_dir(house.at("state")).unwrap().count(), 0);
    signal("TERM", next.id());
    assert_eq!(next.wait().unwrap().code(), Some(0));
    house.assert_clean();
}

#[test]
fn a_payload_that_is_none_is_said_to_be_asked_wrongly() {
    let house = House::new();
    let mut asked = house.command(&["--swe-proxy"]);
    let output = asked.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("the payload"),
        "{}",
        stderr(&output)
    );
}
