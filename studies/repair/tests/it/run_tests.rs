//! Runs of tests in jails: what is told of them, by both frameworks, and what they cannot do to each other.

use std::time::Duration;

use crate::place::{Place, all, only, path, with};
use judge::pytest::TestStatus::{self, Error, ExpectedFailure, Failed, Passed, Skipped};
use repair::{
    TestFramework::{self, Pytest, Unittest},
    workplace::{Ended, TestRequest, TestRun},
};
use session::Command;

const SOURCE: &str = "\
LIMIT = 3


def double(x):
    if x > LIMIT:
        return twice(x)
    return x * 2


def twice(x):
    return x + x
";

const PYTEST: &str = "\
import pytest
from package.core import double


@pytest.mark.parametrize('x', [1, 5], ids=['small', 'large [x::y]'])
def test_double(x):
    assert double(x) == 2 * x


class TestMore:
    def test_zero(self):
        assert double(0) == 0

    @pytest.mark.skip
    def test_skipped(self):
        raise KeyError

    @pytest.mark.xfail
    def test_expected(self):
        assert double(1) == 3

    def test_error(self, absent):
        pass
";

const UNITTEST: &str = "\
import unittest
from package.core import double


class TestDouble(unittest.TestCase):
    def test_small(self):
        self.assertEqual(double(1), 2)

    def test_large(self):
        self.assertEqual(double(5), 10)

    def test_parts(self):
        for x in range(7):
            with self.subTest(x=x):
                self.assertEqual(double(x), 2 * x)

    @unittest.skip('not here')
    def test_skipped(self):
        raise KeyError

    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(double(1), 3)


class TestBroken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise OSError('no disk')

    def test_never(self):
        pass
";

fn statuses(run: &TestRun) -> Vec<(&str, TestStatus)> {
    let statuses = run.statuses.iter();
    statuses
        .map(|(id, status)| (id.as_str(), *status))
        .collect()
}

async fn place(framework: TestFramework, text: &str) -> Option<Place> {
    let files = [
        ("src/package/__init__.py", ""),
        ("src/package/core.py", SOURCE),
        ("tests/test_core.py", text),
    ];
    Place::new(framework, &files).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pytest_tells_of_all_tests_and_of_some() {
    let Some(place) = place(Pytest, PYTEST).await else {
        return;
    };
    let mut workplace = place.open().await;
    let wrong = SOURCE.replace("x + x", "x + x + 1");
    let large = "tests/test_core.py::test_double[large [x::y]]";
    let requests = [
        all(),
        with("src/package/core.py", &wrong),
        only(&[
            "tests/test_core.py::TestMore::test_zero",
            large,
            "tests/no.py::test",
            "tests/test_core.py::none",
        ]),
        only(&["tests/test_core.py::TestMore"]),
        only(&["tests/absent.py::test"]),
    ];
    let runs = workplace.run_tests(&requests).await.unwrap();
    let expected = |large_status| {
        vec![
            ("tests/test_core.py::TestMore::test_error", Error),
            (
                "tests/test_core.py::TestMore::test_expected",
                ExpectedFailure,
            ),
            ("tests/test_core.py::TestMore::test_skipped", Skipped),
            ("tests/test_core.py::TestMore::test_zero", Passed),
            (large, large_status),
            ("tests/test_core.py::test_double[small]", Passed),
        ]
    };
    assert_eq!(statuses(&runs[0]), expected(Passed), "{}", runs[0].output);
    assert_eq!(statuses(&runs[1]), expected(Failed));
    assert_eq!(
        statuses(&runs[2]),
        [
            ("tests/test_core.py::TestMore::test_zero", Passed),
            (large, Passed)
        ]
    );
    assert_eq!(runs[3].statuses.len(), 4);
    assert_eq!(statuses(&runs[4]), []);
    assert!(runs.iter().all(|run| run.ended == Ended::Finished));
    let failure = &runs[1].failures[large];
    assert_eq!(failure.kind, "AssertionError");
    assert!(
        failure.message.contains("assert 11 == (2 * 5)"),
        "{}",
        failure.message
    );
    assert_eq!(failure.frames[0].path, "tests/test_core.py");
    assert_eq!(failure.frames[0].line, 7);
    assert_eq!(failure.frames[0].function, "test_double");
    assert!(
        runs[1].failures["tests/test_core.py::TestMore::test_error"]
            .message
            .contains("absent")
    );
    workplace.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unittest_tells_of_all_tests_and_of_some() {
    let Some(place) = place(Unittest, UNITTEST).await else {
        return;
    };
    let mut workplace = place.open().await;
    let wrong = SOURCE.replace("x + x", "x / 0");
    let requests = [
        all(),
        with("src/package/core.py", &wrong),
        only(&[
            "tests.test_core.TestDouble.test_small",
            "tests.test_core.TestBroken.test_never",
            "tests.none.T.t",
        ]),
        only(&["tests.test_core.TestDouble"]),
        TestRequest {
            stop_at_failure: true,
            ..with("src/package/core.py", "syntax error here")
        },
    ];
    let runs = workplace.run_tests(&requests).await.unwrap();
    let expected = |status| {
        vec![
            ("setUpClass (tests.test_core.TestBroken)", Error),
            ("tests.test_core.TestBroken.test_never", Error),
            ("tests.test_core.TestDouble.test_expected", ExpectedFailure),
            ("tests.test_core.TestDouble.test_large", status),
            ("tests.test_core.TestDouble.test_parts", status),
            ("tests.test_core.TestDouble.test_skipped", Skipped),
            ("tests.test_core.TestDouble.test_small", Passed),
        ]
    };
    assert_eq!(statuses(&runs[0]), expected(Passed), "{}", runs[0].output);
    assert_eq!(statuses(&runs[1]), expected(Failed), "{}", runs[1].output);
    assert_eq!(
        runs[2].statuses["tests.test_core.TestDouble.test_small"],
        Passed
    );
    assert_eq!(
        runs[2].failures["tests.test_core.TestBroken.test_never"].message,
        "no disk"
    );
    assert_eq!(runs[3].statuses.len(), 5);
    assert_eq!(statuses(&runs[4]), [("tests.test_core", Error)]);
    let failure = &runs[4].failures["tests.test_core"];
    assert_eq!(failure.kind, "SyntaxError");
    assert_eq!(failure.frames.last().unwrap().path, "src/package/core.py");
    let failure = &runs[1].failures["tests.test_core.TestDouble.test_large"];
    assert_eq!(failure.kind, "ZeroDivisionError");
    let frames: Vec<_> = failure
        .frames
        .iter()
        .map(|f| (f.path.as_str(), f.line))
        .collect();
    assert_eq!(
        frames,
        [
            ("tests/test_core.py", 10),
            ("src/package/core.py", 6),
            ("src/package/core.py", 11)
        ]
    );
    workplace.close().await.unwrap();
}

const SEVERAL: &str = "\
import unittest


class TestB(unittest.TestCase):
    def test_z(self):
        pass

    def test_a(self):
        pass


class TestA(unittest.TestCase):
    def test_c(self):
        pass
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn some_tests_run_in_the_order_of_all() {
    // By names alone neither the folders nor the files nor the classes would come in this order.
    let configured = "[pytest]\ntestpaths = tests first\n";
    let files = [
        ("pytest.ini", configured),
        ("first/__init__.py", ""),
        ("first/test_c.py", SEVERAL),
        ("tests/__init__.py", ""),
        ("tests/test_b.py", SEVERAL),
        ("tests/a/__init__.py", ""),
        ("tests/a/test_d.py", SEVERAL),
        // Not found by itself.
        ("more/__init__.py", ""),
        ("more/check_e.py", SEVERAL),
    ];
    for (framework, unfound) in [
        (Pytest, "more/check_e.py::TestA::test_c"),
        (Unittest, "more.check_e.TestA.test_c"),
    ] {
        let Some(place) = Place::new(framework, &files).await else {
            continue;
        };
        let mut workplace = place.open().await;
        let mut run = async |ids: &[&str]| {
            let mut runs = workplace.run_tests(&[only(ids)]).await.unwrap();
            let run = runs.remove(0);
            assert_eq!(run.ended, Ended::Finished, "{}", run.output);
            assert!(run.statuses.values().all(|status| *status == Passed));
            run.order
        };
        let natural = run(&[]).await;
        assert_eq!(natural.len(), 9);
        assert!(!natural.is_sorted());
        let mut ids: Vec<&str> = natural.iter().map(String::as_str).collect();
        ids.sort_unstable();
        assert_eq!(run(&ids).await, natural);
        ids.reverse();
        assert_eq!(run(&ids).await, natural);
        ids.insert(0, unfound);
        let order = run(&ids).await;
        assert_eq!((&order[..9], order[9].as_str()), (&natural[..], unfound));
        let mut some = vec![natural[8].as_str(), &natural[4], &natural[1]];
        let order = run(&some).await;
        some.reverse();
        assert_eq!(order, some);
        workplace.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_of_objects_are_in_no_message() {
    let text = "import unittest\n\n\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n        \
                raise ValueError(object(), 'at 0x12 or 0xffffffffff')\n";
    for framework in [Pytest, Unittest] {
        let Some(place) = place(framework, text).await else {
            continue;
        };
        let mut workplace = place.open().await;
        let run = workplace.run_tests(&[all()]).await.unwrap().remove(0);
        let messages: Vec<&str> = run
            .failures
            .values()
            .map(|it| it.message.as_str())
            .collect();
        assert_eq!(
            messages,
            ["(<object object at 0x...>, 'at 0x12 or 0xffffffffff')"]
        );
        workplace.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_of_documentations_fail_in_words() {
    let text = "\
def twice(x):
    \"\"\"
    >>> twice(2)
    5
    >>> twice(3)
    7
    \"\"\"
    return x + x


def lines(x):
    \"\"\"
    Lines.

    >>> lines(3)
    1
    x 4
    \"\"\"
    print(1)
    print('x', x)


def raises(x):
    \"\"\"
    >>> raises(1)
    Traceback (most recent call last):
    ...
    ValueError: 2
    \"\"\"
    raise ValueError(x)


def breaks(x):
    \"\"\"
    >>> breaks({})
    3
    \"\"\"
    return x['a']
";
    let files = [
        ("setup.cfg", "[tool:pytest]\naddopts = --doctest-modules\n"),
        ("package/__init__.py", ""),
        ("package/core.py", text),
    ];
    let Some(place) = Place::new(Pytest, &files).await else {
        return;
    };
    let mut workplace = place.open().await;
    let run = workplace.run_tests(&[all()]).await.unwrap().remove(0);
    let told: Vec<(&str, &str, &str, u32)> = run
        .failures
        .iter()
        .map(|(id, failure)| {
            let name = id.rsplit('.').next().unwrap();
            let line = failure.frames[0].line;
            (name, &*failure.kind, &*failure.message, line)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("breaks", "KeyError", "'a'", 35),
            ("lines", "AssertionError", "assert x 3 == x 4", 15),
            (
                "raises",
                "AssertionError",
                "assert ValueError: 1 == ValueError: 2",
                25
            ),
            ("twice", "AssertionError", "assert 4 == 5", 3),
        ]
    );
    workplace.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_those_that_each_test_runs() {
    for framework in [Pytest, Unittest] {
        let text = match framework {
            Pytest => PYTEST,
            Unittest => UNITTEST,
        };
        let Some(place) = place(framework, text).await else {
            continue;
        };
        let mut workplace = place.open().await;
        let request = TestRequest {
            trace: true,
            ..all()
        };
        let run = workplace.run_tests(&[request]).await.unwrap().remove(0);
        let (small, large) = match framework {
            Pytest => (
                "tests/test_core.py::test_double[small]",
                "tests/test_core.py::test_double[large [x::y]]",
            ),
            Unittest => (
                "tests.test_core.TestDouble.test_small",
                "tests.test_core.TestDouble.test_large",
            ),
        };
        assert_eq!(
            run.lines[small]["src/package/core.py"],
            [5, 7],
            "{}",
            run.output
        );
        assert_eq!(run.lines[large]["src/package/core.py"], [5, 6, 11]);
        assert_eq!(run.lines[""]["src/package/core.py"], [1, 4, 10]);
        assert!(run.lines[small].contains_key("tests/test_core.py"));
        workplace.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_loops_hide_no_lines() {
    let test = "\
import unittest
from posixpath import normcase
from core import double, forever


class TestDouble(unittest.TestCase):
    def test_1_long(self):
        for number in range(300_000):
            double(1)

    def test_2_short(self):
        double(5)

    def test_3_after_calls_of_others(self):
        for number in range(700_000):
            normcase('a')
        double(5)

    def test_4_after_a_loop_of_its_own(self):
        forever(700_000)
        double(5)
";
    let core = SOURCE.replace("package.", "")
        + "\n\ndef forever(times):\n    for number in range(times):\n        last = number\n    return last\n";
    let Some(place) = Place::new(Unittest, &[("core.py", &core), ("test_it.py", test)]).await
    else {
        return;
    };
    let mut workplace = place.open().await;
    let request = TestRequest {
        trace: true,
        ..all()
    };
    let run = workplace.run_tests(&[request]).await.unwrap().remove(0);
    let lines = |name: &str| &run.lines[&format!("test_it.TestDouble.{name}")]["core.py"];
    assert_eq!(lines("test_1_long"), &[5, 7], "{}", run.output);
    assert_eq!(lines("test_2_short"), &[5, 6, 11]);
    assert_eq!(lines("test_3_after_calls_of_others"), &[5, 6, 11]);
    // The loop's own function was given up before its last line.
    let own = [5, 6, 11, 15, 16];
    assert_eq!(lines("test_4_after_a_loop_of_its_own"), &own);
    workplace.close().await.unwrap();
}

const HOSTILE: &str = "\
import os, sys, time, unittest
import state


class TestIt(unittest.TestCase):
    def test_1_before(self):
        self.assertEqual(state.seen, [])
        state.seen.append(1)

    def test_2_act(self):
        ACT

    def test_3_after(self):
        print('after')
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_test_does_the_other_requests_are_served() {
    let Some(place) =
        Place::new(Unittest, &[("state.py", "seen = []\n"), ("test_it.py", "")]).await
    else {
        return;
    };
    let [before, act, after] =
        ["1_before", "2_act", "3_after"].map(|name| format!("test_it.TestIt.test_{name}"));
    let act_passes = [
        "os.closerange(0, 200)",
        "os.chdir('/'); os.close(1)",
        "os.fork() or os._exit(0)",
        "os.fork()",
        "os.fork() or sys.exit(3)",
        "os.fork() or (os.setsid(), time.sleep(100))",
        "print('{\"done\": 0}' * 100000)",
        "sys.stdout = sys.stderr = None",
        "os.write = os.open = os.getpid = json = None",
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork() or time.sleep(100)",
        "import threading; threading.Thread(target=time.sleep, args=(100,)).start()",
        "os.mkdir('made'); open('made/file', 'w').close()",
    ];
    let act_ends = [
        ("os._exit(0)", Ended::Crashed),
        ("os._exit(3)", Ended::Crashed),
        ("os.kill(os.getpid(), 11)", Ended::Crashed),
        ("os.killpg(0, 15)", Ended::Crashed),
        ("import ctypes; ctypes.string_at(0)", Ended::Crashed),
        ("time.sleep(100)", Ended::TimedOut),
        ("os.fork(); time.sleep(100)", Ended::TimedOut),
        (
            "import signal; [signal.signal(n, signal.SIG_IGN) for n in range(1, 65) if n not in (9, 19, 32, 33)]; \
          time.sleep(100)",
            Ended::TimedOut,
        ),
    ];
    let request = |act: &str| TestRequest {
        wall: Duration::from_secs(3),
        ..with("test_it.py", &HOSTILE.replace("ACT", act))
    };
    let passing = act_passes.iter().map(|act| request(act));
    let requests: Vec<_> = passing
        .chain(act_ends.iter().map(|(act, _)| request(act)))
        .collect();
    let mut workplace = place.open().await;
    let runs = workplace.run_tests(&requests).await.unwrap();
    for (act, run) in act_passes.iter().zip(&runs) {
        assert_eq!(run.ended, Ended::Finished, "{act}: {}", run.output);
        let all_passed = run.statuses.values().all(|status| *status == Passed);
        assert!(
            all_passed && run.statuses.contains_key(&after),
            "{act}: {run:?}"
        );
    }
    for ((act_text, ended), run) in act_ends.iter().zip(&runs[act_passes.len()..]) {
        assert_eq!(run.ended, *ended, "{act_text}");
        assert_eq!(statuses(run), [(before.as_str(), Passed)], "{act_text}");
        let kind = if *ended == Ended::TimedOut {
            "Timeout"
        } else {
            "Crash"
        };
        assert_eq!(run.failures[&act].kind, kind, "{act_text}");
        assert!(run.seconds < 10.0);
    }
    // Nothing of it stays.
    let kept = workplace.read(&path("test_it.py")).await.unwrap();
    assert_eq!(kept.unwrap(), b"");
    let left = Command::shell(
        "ls; ps -e 2>/dev/null | grep -c sleep; ls /tmp",
        crate::place::LIMITS,
    );
    let left = workplace
        .session()
        .await
        .unwrap()
        .exec(&left)
        .await
        .unwrap()
        .stdout
        .text();
    assert!(
        !left.contains("tests-") && !left.contains("__pycache__"),
        "{left}"
    );
    workplace.close().await.unwrap();
}
