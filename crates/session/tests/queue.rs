//! The file queue, its runner and apptainer, the last as a stand-in that checks its arguments.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use code::RelativePath;
use sandbox::{Limits, Status};
use session::{
    Apptainer, ApptainerOptions, Backend, Command, Image, Session, SessionError,
    queue::{Queue, QueueOptions, RunnerError, RunnerOptions, instance_name, serve},
};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};

/// A queue, an image `owner/repo:1` with a `README` in it, and the stand-in's state.
struct House {
    place: TempDir,
}

impl House {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for name in ["queue", "sif", "share", "state"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let image = place.path().join("sif/owner-repo-1.sif");
        fs::write(&image, "").unwrap();
        fs::create_dir(place.path().join("sif/owner-repo-1.sif.d")).unwrap();
        fs::write(
            place.path().join("sif/owner-repo-1.sif.d/README"),
            "read me\n",
        )
        .unwrap();
        Self { place }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn apptainer(&self, id: u32) -> Apptainer {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/remote/apptainer.sh");
        let state = self.at("state").display().to_string();
        Apptainer::new(ApptainerOptions {
            program,
            env: vec![
                ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
                ("STATE".to_owned(), state),
            ],
            sif_dir: self.at("sif"),
            share: Some(self.at("share")),
            work: self.at("share"),
            instance: instance_name(id),
            record: self.at(&format!("queue/runner-{id}.instance.json")),
        })
    }

    fn options(&self, id: u32) -> RunnerOptions {
        RunnerOptions {
            queue: self.at("queue"),
            id,
            idle_timeout: Duration::from_secs(1800),
            orphan_ttl: Duration::from_secs(1800),
            once: false,
            clock: || 1e9,
        }
    }

    async fn runner(&self, id: u32) -> Running {
        self.runner_with(self.options(id)).await
    }

    async fn runner_with(&self, options: RunnerOptions) -> Running {
        let ready = self.at(&format!("queue/runner-{}/ready.json", options.id));
        let backend = Box::new(self.apptainer(options.id));
        backend.reap().await.unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(serve(options, backend, async {
            let _ = stopped.await;
        }));
        while !ready.exists() && !task.is_finished() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Running { task, stop }
    }

    fn queue(&self) -> Queue {
        Queue::new(QueueOptions {
            wait: Duration::from_secs(5),
            ..QueueOptions::new(self.at("queue"))
        })
    }

    /// What the stand-in was asked wrongly, and what is left of instances and work trees.
    fn assert_clean(&self) {
        let complaints = fs::read_to_string(self.at("state/complaints")).unwrap_or_default();
        assert_eq!(complaints, "");
        assert_eq!(fs::read_dir(self.at("state")).unwrap().count(), 0);
        let left = fs::read_dir(self.at("share/gp_work")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "work trees are left");
    }
}

struct Running {
    task: JoinHandle<Result<(), RunnerError>>,
    stop: oneshot::Sender<()>,
}

impl Running {
    async fn end(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
    }
}

fn image() -> Image {
    Image::container("owner/repo:1")
}

fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

fn shell(script: &str) -> Command {
    Command::shell(script, Limits::SMALL)
}

async fn text(session: &mut dyn Session, script: &str) -> String {
    let outcome = session.exec(&shell(script)).await.unwrap();
    assert_eq!(
        outcome.status,
        Status::Ok,
        "{script}: {}",
        outcome.stderr.text()
    );
    outcome.stdout.text()
}

#[tokio::test]
async fn a_session_runs_commands_and_keeps_what_they_change() {
    let house = House::new();
    let runner = house.runner(0).await;
    let mut session = house.queue().start(&image()).await.unwrap();
    assert_eq!(
        text(&mut *session, "cat README; echo 1 > made").await,
        "read me\n"
    );
    assert_eq!(text(&mut *session, "cat made").await, "1\n");

    let told = shell("cat; printf \"$A\"; printf '\\377' >&2; exit 7")
        .with_stdin(b"\0\xfe".to_vec())
        .with_env("A", "x,y=z\n");
    let outcome = session.exec(&told).await.unwrap();
    assert_eq!(outcome.status, Status::NonZero(7));
    assert_eq!(outcome.stdout.bytes(), b"\0\xfex,y=z\n");
    assert_eq!(outcome.stderr.bytes(), b"\xff");

    session
        .write(&path("src/deep/a b"), b"\x00bytes", 0o755)
        .await
        .unwrap();
    assert_eq!(
        text(&mut *session, "stat -c %a 'src/deep/a b'").await,
        "755\n"
    );
    let here = shell("ls").in_folder(path("src/deep"));
    assert_eq!(session.exec(&here).await.unwrap().stdout.text(), "a b\n");
    assert_eq!(
        session.read(&path("src/deep/a b"), 6).await.unwrap(),
        b"\x00bytes"
    );
    let too_large = session.read(&path("src/deep/a b"), 5).await.unwrap_err();
    assert!(matches!(
        too_large,
        SessionError::FileTooLarge {
            bytes: 6,
            limit: 5,
            ..
        }
    ));
    let absent = session.read(&path("absent"), 5).await.unwrap_err();
    assert_eq!(
        absent,
        SessionError::NotFound {
            path: path("absent")
        }
    );
    session.remove(&path("made")).await.unwrap();
    session.stop().await.unwrap();

    let left = |name: &str| {
        fs::read_dir(house.at("queue/runner-0").join(name))
            .unwrap()
            .count()
    };
    assert_eq!(
        [left("in"), left("out"), left("claimed"), left("quarantine")],
        [0; 4]
    );
    runner.end().await;
    assert!(!house.at("queue/runner-0/ready.json").exists());
    house.assert_clean();
}

#[tokio::test]
async fn snapshots_bring_back_the_work_tree() {
    let house = House::new();
    let runner = house.runner(0).await;
    let mut session = house.queue().start(&image()).await.unwrap();
    text(
        &mut *session,
        "mkdir d; echo 1 > d/a; ln -s a d/l; chmod 700 d/a",
    )
    .await;
    let first = session.snapshot().await.unwrap();
    text(
        &mut *session,
        "rm -r d README; mkdir -p n/o; touch n/.h; chmod 000 n",
    )
    .await;
    let second = session.snapshot().await.unwrap();
    session.restore(&first).await.unwrap();
    let all = "find . | sort; cat d/l; stat -c %a d/a";
    let before = "./README\n./d\n./d/a\n./d/l\n1\n700\n";
    assert_eq!(text(&mut *session, all).await, format!(".\n{before}"));
    session.restore(&second).await.unwrap();
    assert_eq!(text(&mut *session, "ls -A; stat -c %a n").await, "n\n0\n");
    for name in ["7", "../..", "00"] {
        let unknown = session::SnapshotId(name.to_owned());
        let refused = session.restore(&unknown).await.unwrap_err();
        assert!(
            matches!(refused, SessionError::NoSuchSnapshot { .. }),
            "{refused}"
        );
    }
    drop(session);
    runner.end().await;
    house.assert_clean();
}

#[tokio::test]
async fn a_command_ends_at_its_limits_with_all_that_it_started() {
    let house = House::new();
    let runner = house.runner(0).await;
    let mut session = house.queue().start(&image()).await.unwrap();
    let mut limits = Limits::SMALL;
    limits.wall = Duration::from_millis(300);
    let slow = Command::shell("echo begun; setsid sleep 1000 & sleep 1000", limits);
    let outcome = session.exec(&slow).await.unwrap();
    assert_eq!(outcome.status, Status::WallTimeout);
    assert_eq!(outcome.stdout.text(), "begun\n");

    limits = Limits::SMALL;
    limits.output_max = 100_000;
    let loud = session.exec(&Command::shell("yes", limits)).await.unwrap();
    assert_eq!(loud.status, Status::Output);
    limits.cpu = Duration::from_secs(1);
    let busy = Command::shell("while :; do :; done", limits);
    assert_eq!(
        session.exec(&busy).await.unwrap().status,
        Status::CpuTimeout
    );
    limits.disk = 1 << 20;
    let large = Command::shell("head -c 9000000 /dev/zero > f", limits);
    let large = session.exec(&large).await.unwrap();
    assert_ne!(large.status, Status::Ok);
    assert!(session.read(&path("f"), 2 << 20).await.unwrap().len() <= 1 << 20);
    let killed = session.exec(&shell("kill -9 $$")).await.unwrap();
    assert_eq!(killed.status, Status::Signal(9));
    assert_eq!(text(&mut *session, "echo still").await, "still\n");
    session.stop().await.unwrap();
    runner.end().await;
    house.assert_clean();
}

#[tokio::test]
async fn no_link_of_the_work_tree_leads_outside() {
    let house = House::new();
    fs::write(house.at("secret"), "s").unwrap();
    let runner = house.runner(0).await;
    let mut session = house.queue().start(&image()).await.unwrap();
    let outside = house.place.path().display().to_string();
    text(
        &mut *session,
        &format!("ln -s {outside} out; ln -s {outside}/secret file"),
    )
    .await;
    for name in ["file", "out", "out/secret"] {
        let refused = session.read(&path(name), 9).await.unwrap_err();
        assert!(
            matches!(refused, SessionError::NotAFile { .. }),
            "{name}: {refused}"
        );
    }
    assert!(session.write(&path("out/new"), b"", 0o644).await.is_err());
    session.write(&path("file"), b"own", 0o644).await.unwrap();
    assert_eq!(fs::read_to_string(house.at("secret")).unwrap(), "s");
    assert!(!house.at("new").exists());
    session.stop().await.unwrap();
    runner.end().await;
    house.assert_clean();
}

#[tokio::test]
async fn two_runners_take_two_sessions_and_a_third_waits() {
    let house = House::new();
    let (first, second) = (house.runner(0).await, house.runner(1).await);
    let queue = house.queue();
    let mut one = queue.start(&image()).await.unwrap();
    let mut two = queue.start(&image()).await.unwrap();
    text(&mut *one, "echo one > who").await;
    text(&mut *two, "echo two > who").await;
    assert_eq!(text(&mut *one, "cat who").await, "one\n");
    let impatient = Queue::new(QueueOptions {
        wait: Duration::ZERO,
        ..QueueOptions::new(house.at("queue"))
    });
    let busy = impatient.start(&image()).await.unwrap_err();
    assert!(
        busy.is_infrastructure() && busy.to_string().contains("busy"),
        "{busy}"
    );
    let image = image();
    let (third, ()) = tokio::join!(queue.start(&image), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        two.stop().await.unwrap();
    });
    let mut third = third.unwrap();
    assert_eq!(text(&mut *third, "ls").await, "README\n");
    drop((one, third));
    first.end().await;
    second.end().await;
    house.assert_clean();
}

#[tokio::test]
async fn a_checkout_is_copied_and_an_absent_image_is_refused() {
    let house = House::new();
    let runner = house.runner(0).await;
    let checkout = house.at("checkout");
    fs::create_dir(&checkout).unwrap();
    fs::write(checkout.join("mine"), "m").unwrap();
    let image = Image {
        checkout: Some(checkout.clone()),
        work_tree: Some("/work".to_owned()),
        env: vec![("FROM_IMAGE".to_owned(), "i".to_owned())],
        ..image()
    };
    let mut session = house.queue().start(&image).await.unwrap();
    assert_eq!(
        text(&mut *session, "cat mine; rm mine; echo $FROM_IMAGE").await,
        "mi\n"
    );
    assert!(checkout.join("mine").exists());
    session.stop().await.unwrap();
    let absent = house
        .queue()
        .start(&Image::container("ab/sent"))
        .await
        .unwrap_err();
    assert!(matches!(&absent, SessionError::Image { .. }), "{absent}");
    assert!(absent.to_string().contains("ab-sent.sif"), "{absent}");
    runner.end().await;
    house.assert_clean();
}

#[tokio::test]
async fn an_ended_runner_is_a_lost_session_and_the_next_one_cleans_up() {
    let house = House::new();
    let runner = house.runner(0).await;
    let mut session = house.queue().start(&image()).await.unwrap();
    text(&mut *session, "true").await;
    // As if it were killed: nothing is tidied up.
    let kept = fs::read(house.at("queue/runner-0.instance.json")).unwrap();
    runner.end().await;
    fs::write(house.at("queue/runner-0.instance.json"), &kept).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&kept).unwrap();
    fs::create_dir_all(Path::new(record["folder"].as_str().unwrap()).join("tree")).unwrap();
    fs::create_dir(house.at("state/gp-00")).unwrap();

    let lost = session.exec(&shell("true")).await.unwrap_err();
    assert!(matches!(lost, SessionError::Lost { .. }), "{lost}");
    house.apptainer(0).reap().await.unwrap();
    house.assert_clean();
}

#[tokio::test]
async fn without_runners_a_start_fails_at_once_if_asked_to() {
    let house = House::new();
    let queue = Queue::new(QueueOptions {
        fail_if_no_runners: true,
        ..QueueOptions::new(house.at("queue"))
    });
    let none = queue.start(&image()).await.unwrap_err();
    assert!(
        none.is_infrastructure() && none.to_string().contains("no runner is alive"),
        "{none}"
    );
}

#[tokio::test]
async fn a_second_runner_of_a_served_folder_is_refused() {
    let house = House::new();
    let runner = house.runner(0).await;
    let second = serve(
        house.options(0),
        Box::new(house.apptainer(0)),
        std::future::pending(),
    );
    let refused = second.await.unwrap_err();
    assert!(matches!(refused, RunnerError::Served { .. }), "{refused}");
    runner.end().await;
}

#[tokio::test]
async fn rubbish_in_the_queue_stops_nobody() {
    let house = House::new();
    let runner = house.runner(0).await;
    let waiting = house.at("queue/runner-0/in");
    fs::write(waiting.join("odd name"), "").unwrap();
    fs::write(waiting.join("half.json"), "{\"req_id\":").unwrap();
    fs::create_dir(waiting.join("folder.json")).unwrap();
    symlink("/dev/zero", waiting.join("endless.json")).unwrap();
    fs::write(waiting.join("t.json"), r#"{"type":"fly","meta":null}"#).unwrap();
    fs::write(
        waiting.join("x.json"),
        r#"{"type":"instance_exec","run_id":"x","cmd":["ls"]}"#,
    )
    .unwrap();
    let mut session = house.queue().start(&image()).await.unwrap();
    assert_eq!(text(&mut *session, "echo on").await, "on\n");
    session.stop().await.unwrap();
    let answered = |name: &str| {
        let text = fs::read(house.at("queue/runner-0/out").join(name)).unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()
    };
    assert_eq!(answered("t.json")["error"], "no request is of type \"fly\"");
    assert_eq!(answered("x.json")["ok"], false);
    while fs::read_dir(&waiting).unwrap().count() > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let aside = fs::read_dir(house.at("queue/runner-0/quarantine"))
        .unwrap()
        .count();
    assert_eq!(aside, 8, "four files and their reasons");
    assert!(
        answered("half.json")["error"]
            .as_str()
            .unwrap()
            .contains("malformed")
    );
    runner.end().await;
    house.assert_clean();
}

#[tokio::test]
async fn the_old_fields_alone_are_enough() {
    let house = House::new();
    let runner = house.runner(0).await;
    let folder = house.at("queue/runner-0");
    let ask = async |request: serde_json::Value| {
        let id = request["req_id"].as_str().unwrap().to_owned();
        fs::write(
            folder.join("in").join(format!("{id}.json")),
            request.to_string(),
        )
        .unwrap();
        let answer = folder.join("out").join(format!("{id}.json"));
        while !answer.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        serde_json::from_slice::<serde_json::Value>(&fs::read(answer).unwrap()).unwrap()
    };
    let request = |id: &str, kind: &str, run: &str, task: &str, cmd: &[&str]| {
        serde_json::json!({"req_id": id, "runner_id": 0, "run_id": run, "type": kind,
            "image": "owner/repo:1", "sif_path": "", "cmd": cmd, "cwd": "/repo", "env": {"A": "b"},
            "timeout_sec": 60, "src": "", "dst": "", "meta": {"task_id": task}})
    };
    let started = ask(request("a1", "instance_start", "r1", "t", &[])).await;
    assert_eq!(started["ok"], true, "{started}");
    let heartbeat: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("heartbeat.json")).unwrap()).unwrap();
    assert_eq!(heartbeat["current_run_id"], "r1");
    assert_eq!(heartbeat["instance"], "gp-00");
    assert_eq!(heartbeat["ts"], 1e9);
    let ran = ask(request(
        "a2",
        "instance_exec",
        "r1",
        "t",
        &["sh", "-c", "echo $A > f; cat f; exit 4"],
    ))
    .await;
    assert_eq!(
        (&ran["returncode"], &ran["stdout"]),
        (&4.into(), &"b\n".into())
    );
    // Another run of the same task and image takes the instance over; others find it busy.
    let busy = ask(request("a3", "instance_start", "r9", "other", &[])).await;
    assert_eq!(
        (&busy["ok"], &busy["meta"]["busy"]),
        (&false.into(), &1.into())
    );
    let rebound = ask(request("a4", "instance_start", "r2", "t", &[])).await;
    assert_eq!(rebound["ok"], true);
    let old = ask(request("a5", "instance_exec", "r1", "t", &["true"])).await;
    assert_eq!(old["meta"]["busy"], 1);
    let new = ask(request("a6", "instance_exec", "r2", "t", &["cat", "f"])).await;
    assert_eq!(new["stdout"], "b\n");
    let mut put = request("a7", "put", "r2", "t", &[]);
    fs::write(house.at("from"), "content").unwrap();
    put["src"] = house.at("from").display().to_string().into();
    put["dst"] = "/testbed/sub/to".into();
    assert_eq!(ask(put).await["ok"], true);
    let mut get = request("a8", "get", "r2", "t", &[]);
    get["src"] = "/testbed/sub/to".into();
    get["dst"] = house.at("back").display().to_string().into();
    assert_eq!(ask(get).await["ok"], true);
    assert_eq!(fs::read_to_string(house.at("back")).unwrap(), "content");
    assert_eq!(
        ask(request("a9", "instance_stop", "r2", "t", &[])).await["ok"],
        true
    );
    let once = ask(request("b1", "exec", "r3", "t", &["cat", "README"])).await;
    assert_eq!(once["stdout"], "read me\n");
    runner.end().await;
    house.assert_clean();
}

#[tokio::test]
async fn an_idle_instance_is_stopped_and_an_orphan_can_be_replaced() {
    let house = House::new();
    let idle = RunnerOptions {
        idle_timeout: Duration::from_millis(300),
        once: true,
        ..house.options(0)
    };
    let runner = house.runner_with(idle).await;
    let mut session = house.queue().start(&image()).await.unwrap();
    text(&mut *session, "true").await;
    // The runner ends by itself, as it was to serve one instance.
    runner.task.await.unwrap().unwrap();
    house.assert_clean();
    assert!(
        session
            .exec(&shell("true"))
            .await
            .unwrap_err()
            .is_infrastructure()
    );

    let orphaned = RunnerOptions {
        orphan_ttl: Duration::ZERO,
        ..house.options(1)
    };
    let runner = house.runner_with(orphaned).await;
    let left = house.queue().start(&image()).await.unwrap();
    let id = left.id().to_owned();
    std::mem::forget(left);
    let heartbeat = fs::read_to_string(house.at("queue/runner-1/heartbeat.json")).unwrap();
    assert!(heartbeat.contains(&id));
    let next = house.queue().start(&image()).await.unwrap();
    next.stop().await.unwrap();
    runner.end().await;
    house.assert_clean();
}

#[tokio::test]
async fn a_vanished_instance_is_told_and_a_new_session_starts() {
    let house = House::new();
    let runner = house.runner(0).await;
    let mut session = house.queue().start(&image()).await.unwrap();
    fs::remove_dir_all(house.at("state/gp-00")).unwrap();
    let lost = session.exec(&shell("true")).await.unwrap_err();
    assert!(matches!(lost, SessionError::Lost { .. }), "{lost}");
    let mut again = house.queue().start(&image()).await.unwrap();
    assert_eq!(text(&mut *again, "ls").await, "README\n");
    again.stop().await.unwrap();
    drop(session);
    runner.end().await;
    fs::remove_file(house.at("state/complaints")).unwrap();
    house.assert_clean();
}

#[test]
fn the_stand_in_can_be_executed() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/remote/apptainer.sh");
    assert_ne!(
        fs::metadata(script).unwrap().permissions().mode() & 0o111,
        0
    );
}
