//! A program that runs commands in containers is killed at any moment: the next one to start removes
//! its containers, images and leases, whatever the moment was.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "the owner is a process of its own, and a failed unwrap is a failed test"
)]

mod engine;

use std::{
    fs,
    path::Path,
    process::{Child, Command as Program, Stdio},
    time::Duration,
};

use code::RelativePath;
use engine::{IMAGE, TestEngine};
use rand::RngExt;
use record::Seed;
use sandbox::Limits;
use session::{
    Backend, Command, Image,
    docker::{DockerBackend, DockerConfig},
    lease::{Leases, TIME_TO_LIVE},
};

/// Set in the process that plays the owner: the engine's address and the folder of the leases.
const ENGINE: &str = "ETUDE_TEST_ENGINE";
const LEASES: &str = "ETUDE_TEST_LEASES";

/// How often an owner is killed.
const ROUNDS: u64 = 5;

/// The owner: two sessions at a time, with daemons, snapshots and what they are restored to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owner_process() {
    let (Ok(engine), Ok(leases)) = (std::env::var(ENGINE), std::env::var(LEASES)) else {
        return;
    };
    let leases = Leases::open(leases, TIME_TO_LIVE).unwrap();
    let backend = DockerBackend::connect(DockerConfig::new(engine, leases))
        .await
        .unwrap();
    loop {
        tokio::join!(work(&backend), work(&backend));
    }
}

async fn work(backend: &DockerBackend) {
    let mut session = backend.start(&Image::container(IMAGE)).await.unwrap();
    let path = RelativePath::new("a/file").unwrap();
    session.write(&path, b"content", 0o644).await.unwrap();
    let script = "trap '' TERM; (setsid sleep 1000 &) ; sleep 0.2";
    session
        .exec(&Command::shell(script, Limits::SMALL))
        .await
        .unwrap();
    let snapshot = session.snapshot().await.unwrap();
    session.remove(&path).await.unwrap();
    session.restore(&snapshot).await.unwrap();
    session.read(&path, 100).await.unwrap();
    session.stop().await.unwrap();
}

fn start_owner(engine: &TestEngine, leases: &Path) -> Child {
    Program::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner_process", "--nocapture"])
        .env(ENGINE, engine.address())
        .env(LEASES, leases)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn nothing_is_left_of_owners_killed_at_random_moments() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let folder = engine.folder().join("leases");
    let mut random = Seed(11).stream("docker chaos", 0).rng();
    let mut had = 0;
    let mut longest = 2200;
    for round in 0..ROUNDS {
        let mut owner = start_owner(&engine, &folder);
        // Reaching the engine takes the first part of it.
        tokio::time::sleep(Duration::from_millis(random.random_range(150..longest))).await;
        owner.kill().unwrap();
        owner.wait().unwrap();
        let made = engine.containers().len() + engine.images().len();
        had += made;
        if made == 0 {
            // A busy machine takes longer to come to it.
            longest = (longest * 2).min(20_000);
        }
        // Every other time the leases are lost as well, and the labels must do.
        if round % 2 == 1 {
            fs::remove_dir_all(&folder).unwrap();
        }
        let leases = Leases::open(&folder, TIME_TO_LIVE).unwrap();
        let config = DockerConfig::new(engine.address(), leases.clone());
        let backend = DockerBackend::connect(config).await.unwrap();
        // What a request of the dead owner was still making is there by the second time.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let report = leases.reap(&[backend.engine()]).await.unwrap();
        assert_eq!(report.failed, [], "{report:?}");
        assert_eq!(engine.containers(), [] as [String; 0], "round {round}");
        assert_eq!(engine.images(), [] as [String; 0], "round {round}");
        assert_eq!(engine.volumes(), [] as [String; 0], "round {round}");
        assert!(
            fs::read_dir(&folder).unwrap().next().is_none(),
            "round {round}"
        );
        for _ in 0..500 {
            if engine.monitors().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(engine.monitors(), [0i32; 0], "round {round}");
    }
    assert!(had > 0, "the owners got to do nothing");
}

#[tokio::test]
async fn containers_of_a_living_owner_are_left_alone() {
    let Some(engine) = TestEngine::start() else {
        return;
    };
    let folder = engine.folder().join("leases");
    let mut owner = start_owner(&engine, &folder);
    // Another program that shares nothing but the engine: it sees the labels alone.
    let apart = Leases::open(engine.folder().join("apart"), TIME_TO_LIVE).unwrap();
    let config = DockerConfig::new(engine.address(), apart.clone());
    let backend = DockerBackend::connect(config).await.unwrap();
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        let report = apart.reap(&[backend.engine()]).await.unwrap();
        assert_eq!((report.removed, report.failed), (Vec::new(), Vec::new()));
        assert!(
            owner.try_wait().unwrap().is_none(),
            "the owner lost something"
        );
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    apart.reap(&[backend.engine()]).await.unwrap();
    assert_eq!(engine.containers(), [] as [String; 0]);
}
