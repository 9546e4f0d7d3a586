//! Verdicts on programs that mean well, and the accounts kept of them.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests stop at the first surprise"
)]

use judge::{CaseResult, Evaluation, Judge, JudgeConfig, Tests, Value, Verdict, VerdictStatus};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use sandbox::{Config, Sandbox};

fn judge() -> Judge {
    judge_with(JudgeConfig::small())
}

fn judge_with(config: JudgeConfig) -> Judge {
    Judge::new(Sandbox::start(Config::new(2)).unwrap(), config)
}

/// `f(x) = 2 * x` on 1 and -3.
fn doubling() -> Tests {
    let case = |x: i64| (vec![Value::Int(x)], Value::Int(2 * x));
    Tests::function("f", [case(1), case(-3)])
}

async fn verdict(judge: &Judge, program: &str) -> Verdict {
    judge.verdict(program, &doubling()).await.unwrap()
}

#[tokio::test]
async fn functions_are_judged_by_what_they_return() {
    use {CaseResult as C, VerdictStatus as S};
    let judge = judge();
    let error = |text: &str| C::Error(text.to_owned());
    let cases: Vec<(&str, S, [C; 2], Option<&str>)> = vec![
        (
            "def f(x): return x + x",
            S::Passed,
            [C::Passed, C::Passed],
            None,
        ),
        (
            "f = lambda x: x << 1",
            S::Passed,
            [C::Passed, C::Passed],
            None,
        ),
        (
            "def f(x): return x + 1",
            S::Wrong,
            [C::Passed, C::Wrong],
            None,
        ),
        (
            "def f(x): return 2.0 * x",
            S::Wrong,
            [C::Wrong, C::Wrong],
            None,
        ),
        (
            "def f(x):\n    return x // (x + 3)",
            S::Error,
            [
                C::Wrong,
                error("ZeroDivisionError: integer division or modulo by zero (line 2)"),
            ],
            Some("ZeroDivisionError: integer division or modulo by zero (line 2)"),
        ),
        (
            "def g(x): return 2 * x",
            S::Error,
            [
                error("the program defines no f"),
                error("the program defines no f"),
            ],
            Some("the program defines no f"),
        ),
        (
            "import time\ntime.sleep(60)",
            S::WallTimeout,
            [C::Missing, C::Missing],
            Some("wall time limit exceeded"),
        ),
        (
            "def f(x):\n    while x < 0: pass\n    return 2 * x",
            S::CpuTimeout,
            [C::Passed, C::Missing],
            Some("CPU time limit exceeded"),
        ),
    ];
    let mut config = JudgeConfig::small();
    config.limits.wall = std::time::Duration::from_secs(2);
    config.limits.cpu = std::time::Duration::from_millis(500);
    let quick = judge_with(config);
    for (program, status, results, message) in cases {
        let judge = if status.is_timeout() { &quick } else { &judge };
        let verdict = verdict(judge, program).await;
        assert_eq!(verdict.status, status, "{program}: {verdict:?}");
        assert_eq!(verdict.cases, results, "{program}");
        assert_eq!(verdict.message.as_deref(), message, "{program}");
        assert_eq!(verdict.passed, status == S::Passed);
        assert_eq!(
            verdict.n_passed,
            results.iter().filter(|case| **case == C::Passed).count()
        );
        assert_eq!(verdict.n_tests, 2);
    }
    let syntax = verdict(&judge, "def f(x: return").await;
    assert!(syntax.message.unwrap().starts_with("SyntaxError"));
}

#[tokio::test]
async fn scripts_are_judged_by_what_they_print() {
    let judge = judge();
    let case = |stdin: &str, out: &str| (stdin.to_owned(), out.to_owned());
    let tests = Tests::stdio([case("1 2\n", "3\n"), case("4 5\n", "9\n")]);
    let right = "a, b = map(int, input().split())\nprint(a + b)";
    let verdict = judge.verdict(right, &tests).await.unwrap();
    assert!(verdict.passed, "{verdict:?}");
    let once = judge.verdict("print(3)", &tests).await.unwrap();
    assert_eq!(once.cases, [CaseResult::Passed, CaseResult::Wrong]);
    assert_eq!(once.status, VerdictStatus::Wrong);
    let printed_then_failed =
        "a, b = map(int, input().split())\nprint(a + b)\nraise ValueError('x')";
    let verdict = judge.verdict(printed_then_failed, &tests).await.unwrap();
    assert!(!verdict.passed);
    assert_eq!(verdict.message.as_deref(), Some("ValueError: x"));
}

#[tokio::test]
async fn no_tests_are_not_passed() {
    let judge = judge();
    for tests in [Tests::function("f", []), Tests::stdio([])] {
        let verdict = judge.verdict("def f(): pass", &tests).await.unwrap();
        assert_eq!(
            (verdict.passed, verdict.status),
            (false, VerdictStatus::NoTests)
        );
    }
}

#[tokio::test]
async fn every_value_travels_in_and_out_unchanged() {
    let judge = judge();
    let mut runner = TestRunner::deterministic();
    let mut values = vec![
        Value::Float(f64::NAN),
        Value::Float(f64::NEG_INFINITY),
        Value::Float(1e300),
        Value::Float(5e-324),
        Value::Float(0.1 + 0.2),
        Value::Float(1e16),
        Value::Int(i64::MIN),
        Value::Int(i64::MAX),
        Value::BigInt("0x8000000000000000".into()),
        Value::BigInt("-0x8000000000000001".into()),
        Value::BigInt(format!("0x1{}", "0".repeat(5000))),
        Value::str("é\u{1f600}\0\"\\\n\u{2028}"),
        Value::Bytes(vec![0, 255]),
    ];
    for _ in 0..150 {
        values.push(any_value().new_tree(&mut runner).unwrap().current());
    }
    let tests = values
        .iter()
        .map(|value| (vec![value.clone()], value.clone()));
    let tests = Tests::function("f", tests);
    let verdict = judge.verdict("def f(x): return x", &tests).await.unwrap();
    let failed: Vec<_> = verdict
        .cases
        .iter()
        .zip(&values)
        .filter(|(c, _)| **c != CaseResult::Passed)
        .collect();
    assert!(verdict.passed, "{failed:?}");

    let stored = serde_json::to_string(&tests).unwrap();
    assert_eq!(serde_json::from_str::<Tests>(&stored).unwrap(), tests);
    assert_eq!(
        serde_json::from_str::<Tests>(&stored).unwrap().digest(),
        tests.digest()
    );
    assert!(!format!("{tests:?}").contains("1f600"));
}

fn any_value() -> impl Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::None),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Float),
        ".{0,8}".prop_map(Value::Str),
        proptest::collection::vec(any::<u8>(), 0..5).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let items = proptest::collection::vec(inner.clone(), 0..4);
        let keys = proptest::collection::btree_map("[a-z]{0,3}", inner, 0..4);
        prop_oneof![
            items.clone().prop_map(Value::List),
            items.prop_map(Value::Tuple),
            keys.prop_map(|map| {
                Value::Dict(
                    map.into_iter()
                        .map(|(key, value)| (Value::Str(key), value))
                        .collect(),
                )
            }),
            proptest::collection::btree_set(any::<i64>(), 0..4)
                .prop_map(|set| Value::Set(set.into_iter().map(Value::Int).collect())),
        ]
    })
}

#[tokio::test]
async fn types_are_compared_exactly() {
    let judge = judge();
    let check = async |returned: &str, expected: Value, passes: bool| {
        let tests = Tests::function("f", [(vec![], expected)]);
        let program = format!("def f(): return {returned}");
        let verdict = judge.verdict(&program, &tests).await.unwrap();
        assert_eq!(verdict.passed, passes, "{returned}: {verdict:?}");
    };
    check("True", Value::Int(1), false).await;
    check("1.0", Value::Int(1), false).await;
    check("1", Value::Float(1.0), false).await;
    check("(1,)", vec![Value::Int(1)].into(), false).await;
    check("'1'", Value::Int(1), false).await;
    check("b'a'", Value::str("a"), false).await;
    check("float('nan')", Value::Float(f64::NAN), true).await;
    check("-0.0", Value::Float(0.0), true).await;
    check(
        "{2, 1}",
        Value::Set(vec![Value::Int(1), Value::Int(2)]),
        true,
    )
    .await;
    let dict = Value::Dict(vec![
        (Value::Int(1), Value::None),
        (Value::Int(2), Value::None),
    ]);
    check("{2: None, 1: None}", dict.clone(), true).await;
    check("{2: None, 1: 0}", dict, false).await;
    check("[[]]", vec![Value::List(vec![])].into(), true).await;
}

#[tokio::test]
async fn after_an_error_equal_requests_execute_once() {
    const SLOW: &str = "import time\ntime.sleep(2)\ndef f(x): return 2 * x";
    let sandbox = Sandbox::start(Config::new(2)).unwrap();
    let judge = Judge::new(sandbox.clone(), JudgeConfig::small());
    let ask = || {
        let judge = judge.clone();
        tokio::spawn(async move { judge.verdict(SLOW, &doubling()).await })
    };
    let (mut one, mut other) = (ask(), ask());
    while sandbox.stats().running == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let supervisor = sandbox.supervisor_pid().unwrap().to_string();
    let mut kill = std::process::Command::new("kill");
    let killed = kill.args(["-KILL", &supervisor]).status().unwrap();
    assert!(killed.success());
    let (failed, other) = tokio::select! {
        failed = &mut one => (failed, other),
        failed = &mut other => (failed, one),
    };
    assert!(failed.unwrap().is_err());
    // The other has taken over; a third waits for it.
    let third = ask();
    assert!(other.await.unwrap().unwrap().passed);
    assert!(third.await.unwrap().unwrap().passed);
    let stats = judge.stats();
    assert_eq!(
        (stats.verdicts, stats.executed, stats.sandbox_errors),
        (2, 1, 1)
    );
}

#[tokio::test]
async fn equal_requests_execute_once() {
    let judge = judge();
    let tests = doubling();
    let programs = [
        "def f(x): return 2 * x",
        "def f(x):\n  return 2*x  # same",
        "def f(y): return y",
    ];
    let programs = programs.iter().cycle().take(30);
    let verdicts =
        futures::future::try_join_all(programs.map(|program| judge.verdict(program, &tests)));
    let verdicts = verdicts.await.unwrap();
    let stats = judge.stats();
    // The body on the same line is another token stream than the body on its own.
    assert_eq!(
        (stats.verdicts, stats.executed, stats.cache_hits),
        (30, 3, 27)
    );
    assert_eq!(verdicts.iter().filter(|verdict| !verdict.cached).count(), 3);
    let again = judge.verdict("def f(x): return 2*x", &tests).await.unwrap();
    assert!(again.cached && again.passed);
    assert_eq!(again.key, verdicts[0].key);
    let other_tests = Tests::function("f", [(vec![Value::Int(0)], Value::Int(0))]);
    assert!(
        !judge
            .verdict("def f(x): return 2*x", &other_tests)
            .await
            .unwrap()
            .cached
    );
}

#[tokio::test]
async fn wall_timeouts_are_not_remembered() {
    let mut config = JudgeConfig::small();
    config.limits.wall = std::time::Duration::from_millis(100);
    let judge = judge_with(config);
    let program = "import time\ndef f(x): time.sleep(5)";
    for _ in 0..2 {
        let verdict = verdict(&judge, program).await;
        assert_eq!(
            (verdict.status, verdict.cached),
            (VerdictStatus::WallTimeout, false)
        );
    }
    assert_eq!((judge.stats().timeouts, judge.stats().executed), (2, 2));
}

/// Whether equal requests meet or come one after the other must not show in the counts.
#[tokio::test]
async fn cpu_timeouts_count_alike_together_and_apart() {
    let mut config = JudgeConfig::small();
    config.limits.cpu = std::time::Duration::from_millis(200);
    let program = "def f(x):\n  while True: pass";
    let (together, apart) = (judge_with(config), judge_with(config));
    let (first, second) = tokio::join!(verdict(&together, program), verdict(&together, program));
    assert_eq!(first.status, VerdictStatus::CpuTimeout);
    assert_eq!(second.status, VerdictStatus::CpuTimeout);
    verdict(&apart, program).await;
    verdict(&apart, program).await;
    assert_eq!(together.stats(), apart.stats());
    assert_eq!(
        (
            apart.stats().executed,
            apart.stats().cache_hits,
            apart.stats().timeouts
        ),
        (1, 1, 2)
    );
}

#[tokio::test]
async fn a_primed_verdict_is_not_executed() {
    let (first, second) = (judge(), judge());
    let program = "def f(x): return 2 * x";
    let executed = verdict(&first, program).await;
    let stored = serde_json::to_string(&executed).unwrap();
    let restored: Verdict = serde_json::from_str(&stored).unwrap();
    assert_eq!(restored, executed);
    second.prime(restored.key, restored);
    let primed = verdict(&second, program).await;
    assert_eq!(
        primed,
        Verdict {
            cached: true,
            ..executed
        }
    );
    assert_eq!(second.stats().executed, 0);
}

#[tokio::test]
async fn many_programs_are_evaluated_in_few_runs() {
    let config = JudgeConfig {
        evaluation_batch: 100,
        ..JudgeConfig::small()
    };
    let sandbox = Sandbox::start(Config::new(2)).unwrap();
    let judge = Judge::new(sandbox.clone(), config);
    let evaluations = (0..300).map(|i| Evaluation {
        source: format!("def f(x): return x * {i}"),
        entry: "f".into(),
        args: vec![vec![Value::Int(1)], vec![Value::str("a")]],
    });
    let results = judge.evaluate(evaluations.collect()).await.unwrap();
    assert_eq!(results.len(), 300);
    for (i, calls) in results.iter().enumerate() {
        assert_eq!(calls[0], Ok(Value::Int(i as i64)));
        assert_eq!(calls[1], Ok(Value::str("a".repeat(i))));
    }
    assert_eq!(sandbox.stats().runs, 3);
}

#[tokio::test]
async fn one_bad_program_does_not_lose_its_batch() {
    let mut config = JudgeConfig::small();
    config.evaluation_cpu = std::time::Duration::from_millis(50);
    config.limits.cpu = std::time::Duration::from_millis(300);
    config.limits.wall = std::time::Duration::from_secs(5);
    let judge = judge_with(config);
    let bad = [
        "def f(x):\n  while True: pass",
        "def f(x):\n  while True:\n    try:\n      while True: pass\n    except: pass",
        "import os\ndef f(x): os._exit(0)",
        "def f(x): raise SystemExit",
        "raise KeyError('x')",
        "import os\ndef f(x): os.kill(os.getpid(), 11)",
        "import signal\nsignal.setitimer(signal.ITIMER_VIRTUAL, 0)\ndef f(x):\n  signal.signal(26, 1)\n  while 1: pass",
    ];
    let one = |source: &str| Evaluation {
        source: source.to_owned(),
        entry: "f".into(),
        args: vec![vec![Value::Int(1)]],
    };
    let good = "def f(x): return x + 1";
    let mut evaluations = Vec::new();
    for source in bad {
        evaluations.extend([one(good), one(source)]);
    }
    let results = judge.evaluate(evaluations).await.unwrap();
    for (at, pair) in results.chunks(2).enumerate() {
        assert_eq!(pair[0], [Ok(Value::Int(2))], "next to {}", bad[at]);
        assert!(pair[1][0].is_err(), "{}: {:?}", bad[at], pair[1]);
    }
    assert_eq!(results[9], [Err("KeyError: 'x' (line 1)".to_owned())]);
}

/// Row 30 of the table of hostile inputs: noise of others is nobody's timeout.
#[tokio::test]
async fn a_program_that_was_computing_at_its_time_limit_runs_once_more() {
    let sandbox = Sandbox::start(Config::new(1)).unwrap();
    let mut config = JudgeConfig::small();
    config.limits.wall = std::time::Duration::from_millis(300);
    config.limits.cpu = std::time::Duration::from_secs(20);
    let judge = Judge::new(sandbox.clone(), config);
    let tests = Tests::function("f", [(vec![], Value::Int(1))]);
    for (program, runs) in [
        ("def f():\n    import time\n    time.sleep(9)", 1),
        ("def f():\n    while True: pass", 2),
    ] {
        let before = sandbox.stats().runs;
        let verdict = judge.verdict(program, &tests).await.unwrap();
        assert_eq!(verdict.status, VerdictStatus::WallTimeout, "{program}");
        assert_eq!(sandbox.stats().runs - before, runs, "{program}");
    }
}
