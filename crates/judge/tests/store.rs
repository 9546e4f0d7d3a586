//! Verdicts outlive the judge that reached them.

#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use judge::{
    CaseResult, Judge, JudgeConfig, JudgeParts, Tests, Value, Verdict, VerdictStatus, VerdictStore,
};
use sandbox::{Config, Sandbox, Tier};

fn tests() -> Tests {
    Tests::function("f", [(vec![Value::Int(2)], Value::Int(4))])
}

const PROGRAMS: [&str; 4] = [
    "def f(x):\n    return x + x\n",
    "def f(x):\n    return x * x  # the same verdict, another program\n",
    "def f(x):\n    return x\n",
    "def f(x):\n    while True: pass\n",
];

fn parts(store: VerdictStore) -> JudgeParts {
    JudgeParts {
        store: Some(store),
        ..JudgeParts::default()
    }
}

#[tokio::test]
async fn a_new_judge_finds_what_the_last_one_stored() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::start(Config::new(1)).unwrap();
    let mut verdicts = Vec::new();
    for round in 0..3 {
        let store = VerdictStore::open(folder.path(), 1 << 24).unwrap();
        let judge = Judge::with(sandbox.clone(), JudgeConfig::small(), parts(store));
        let mut found = Vec::new();
        for program in PROGRAMS.iter().chain(&PROGRAMS) {
            let mut verdict = judge.verdict(program, &tests()).await.unwrap();
            verdict.cached = false;
            found.push((verdict.passed, verdict.status, verdict.cases));
        }
        let stats = judge.stats();
        // The CPU timeout is executed once by every judge and never stored.
        let executed = if round == 0 { 4 } else { 1 };
        assert_eq!((stats.executed, stats.disk_hits), (executed, 4 - executed));
        assert_eq!(stats.cache_hits, 8 - executed);
        verdicts.push(found);
    }
    assert_eq!(verdicts[0], verdicts[1]);
    assert_eq!(verdicts[1], verdicts[2]);
}

fn numbered(at: u64) -> Verdict {
    Verdict {
        passed: false,
        n_passed: 0,
        n_tests: 1,
        cases: vec![CaseResult::Error("x".repeat(at as usize % 700))],
        status: VerdictStatus::Error,
        message: None,
        key: serde_json::from_value(format!("{at:064x}").into()).unwrap(),
        cached: false,
        wall_ms: 0.5,
        cpu_ms: at as f64,
        tier: Tier::Namespaces,
    }
}

const CHILD: &str = "ETUDE_TEST_STORE";

/// Not a test of its own: the process that the next test kills. It says what it has stored.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "how the test below tells its child apart"
)]
fn writer() {
    let Ok(folder) = env::var(CHILD) else {
        return;
    };
    let store = VerdictStore::open(Path::new(&folder), 6 << 20).unwrap();
    let first = (0..).find(|at| store.get(numbered(*at).key).is_none());
    for at in first.unwrap().. {
        store.put(&numbered(at));
        println!("stored {at}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a process to kill")]
fn a_writer_that_is_killed_loses_nothing_that_it_had_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut newest = None;
    for lines in [1, 40, 333, 2_500] {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "writer", "--nocapture"])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stored = stdout
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| line.split_once("stored ")?.1.parse::<u64>().ok());
        newest = stored.take(lines).last();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = VerdictStore::open(folder.path(), 6 << 20).unwrap();
        let stats = store.stats();
        assert!(stats.writable && stats.errors == 0, "{stats:?}");
        for at in 0..=newest.unwrap() {
            assert_eq!(store.get(numbered(at).key), Some(numbered(at)));
        }
    }
    assert!(newest >= Some(2_872));
}
