//! Who waits for how long: deadlines, a full queue, and futures that are dropped.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

use std::time::{Duration, Instant};

use sandbox::{Config, Job, Limits, Sandbox, SandboxError, StatusCounts};
use tokio::task::JoinHandle;

fn sandbox(slots: usize, queue_limit: usize) -> Sandbox {
    let config = Config {
        queue_limit,
        ..Config::new(slots)
    };
    Sandbox::start(config).unwrap()
}

type Running = JoinHandle<Result<sandbox::RunOutcome, SandboxError>>;

fn spawn(sandbox: &Sandbox, job: Job) -> Running {
    let sandbox = sandbox.clone();
    tokio::spawn(async move { sandbox.run(job).await })
}

fn endless() -> Job {
    let limits = Limits {
        wall: Duration::from_secs(600),
        ..Limits::SMALL
    };
    Job::script("import time; time.sleep(600)", limits)
}

/// Waits until the sandbox has `queued` and `running` jobs.
async fn settle(sandbox: &Sandbox, queued: usize, running: usize) {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let stats = sandbox.stats();
        if (stats.queued, stats.running) == (queued, running) {
            return;
        }
        assert!(Instant::now() < patience, "{stats:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn the_job_that_is_due_first_goes_first() {
    let sandbox = sandbox(1, 100);
    let blocker = spawn(&sandbox, endless());
    settle(&sandbox, 0, 1).await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    // A job without a deadline is as urgent as one that is due ten seconds after it came.
    let order = [
        ("last", Some(500)),
        ("third", Some(400)),
        ("first", None),
        ("second", Some(300)),
    ];
    for (queued, (name, seconds)) in (1..).zip(order) {
        let mut job = Job::script("print(1)", Limits::SMALL);
        job.deadline = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let (runner, tell) = (sandbox.clone(), tell.clone());
        tokio::spawn(async move {
            runner.run(job).await.unwrap();
            tell.send(name).unwrap();
        });
        settle(&sandbox, queued, 1).await;
    }
    blocker.abort();
    for expected in ["first", "second", "third", "last"] {
        assert_eq!(told.recv().await, Some(expected));
    }
}

#[tokio::test]
async fn a_full_queue_refuses_and_says_when_to_come_again() {
    let sandbox = sandbox(2, 3);
    let runs: Vec<Running> = (0..5).map(|_| spawn(&sandbox, endless())).collect();
    settle(&sandbox, 3, 2).await;
    for _ in 0..2 {
        match sandbox.run(Job::script("print(1)", Limits::SMALL)).await {
            Err(SandboxError::Overloaded {
                queued,
                retry_after,
            }) => {
                assert_eq!(queued, 3);
                assert!(!retry_after.is_zero() && retry_after <= Duration::from_secs(60));
            }
            other => panic!("{other:?}"),
        }
    }
    let stats = sandbox.stats();
    assert_eq!((stats.refused, stats.errors, stats.queued), (2, 0, 3));
    // Once somebody goes, there is room.
    runs[4].abort();
    settle(&sandbox, 2, 2).await;
    let next = spawn(&sandbox, Job::script("print(1)", Limits::SMALL));
    settle(&sandbox, 3, 2).await;
    runs.iter().for_each(JoinHandle::abort);
    assert!(next.await.unwrap().unwrap().is_ok());
    settle(&sandbox, 0, 0).await;
}

#[tokio::test]
async fn dropped_futures_leave_queue_and_slots_free() {
    let sandbox = sandbox(1, 100);
    for _ in 0..3 {
        let runs: Vec<Running> = (0..10).map(|_| spawn(&sandbox, endless())).collect();
        settle(&sandbox, 9, 1).await;
        runs.iter().for_each(JoinHandle::abort);
        settle(&sandbox, 0, 0).await;
    }
    let outcome = sandbox.run(Job::script("print(1)", Limits::SMALL)).await;
    assert!(outcome.unwrap().is_ok());
    assert_eq!(sandbox.stats().runs, 1);
}

#[tokio::test]
async fn runs_are_counted_by_how_they_ended() {
    let sandbox = sandbox(1, 100);
    let short = Limits {
        wall: Duration::from_millis(200),
        ..Limits::SMALL
    };
    for (source, limits) in [
        ("print(1)", Limits::SMALL),
        ("print(2)", Limits::SMALL),
        ("exit(3)", Limits::SMALL),
        ("import os; os.abort()", Limits::SMALL),
        ("import time; time.sleep(9)", short),
        ("bytes(1 << 40)", Limits::SMALL),
    ] {
        sandbox.run(Job::script(source, limits)).await.unwrap();
    }
    let stats = sandbox.stats();
    let expected = StatusCounts {
        ok: 2,
        non_zero: 1,
        signal: 1,
        wall_timeout: 1,
        memory: 1,
        ..StatusCounts::default()
    };
    assert_eq!((stats.statuses, stats.runs), (expected, 6));
}
