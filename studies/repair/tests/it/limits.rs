//! Tests that never end, ended one by one: they fail where they are, and the others run on.

use std::time::Duration;

use crate::place::{Place, all, only};
use judge::pytest::TestStatus::{Failed, Passed};
use repair::{
    TestFramework::{Pytest, Unittest},
    workplace::{Ended, TIMEOUT, TestRequest},
};

const SOURCE: &str = "\
import time


def count(limit):
    number = 0
    while number < limit:
        try:
            number += 0
        except Exception:
            pass
    return number


def wait(seconds):
    time.sleep(seconds)
";

const PYTEST: &str = "\
import source


def test_count():
    assert source.count(3) == 3


def test_wait():
    source.wait(1000)


def test_last():
    source.wait(0.01)
";

const UNITTEST: &str = "\
import unittest
import source


class TestIt(unittest.TestCase):
    def test_count(self):
        self.assertEqual(source.count(3), 3)

    def test_last(self):
        source.wait(0.01)

    def test_wait(self):
        source.wait(1000)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_never_ends_fails_where_it_is_and_the_others_run() {
    for (framework, tests, prefix) in [
        (Pytest, PYTEST, "test_it.py::"),
        (Unittest, UNITTEST, "test_it.TestIt."),
    ] {
        let files = [("source.py", SOURCE), ("test_it.py", tests)];
        let Some(mut place) = Place::new(framework, &files).await else {
            continue;
        };
        place.testbed.test_limit = Some(Duration::from_secs(1));
        let mut workplace = place.open().await;
        let traced = TestRequest {
            trace: true,
            ..all()
        };
        for run in workplace.run_tests(&[all(), traced]).await.unwrap() {
            assert_eq!(run.ended, Ended::Finished, "{}", run.output);
            let id = |name: &str| format!("{prefix}{name}");
            for (name, function, lines) in [
                ("test_count", "count", 6..=8),
                ("test_wait", "wait", 15..=15),
            ] {
                assert_eq!(run.statuses[&id(name)], Failed, "{name}");
                let failure = &run.failures[&id(name)];
                assert_eq!(failure.kind, TIMEOUT);
                let last = failure.frames.last().unwrap();
                assert_eq!(
                    (last.path.as_str(), last.function.as_str()),
                    ("source.py", function)
                );
                assert!(lines.contains(&last.line), "{failure:?}");
            }
            assert_eq!(run.statuses[&id("test_last")], Passed);
            assert!((0.01..1.0).contains(&run.longest), "{}", run.longest);
            let limit = Duration::from_secs(60);
            assert_eq!(
                run.test_limit(limit),
                Duration::from_secs(5).max(Duration::from_secs_f64(8.0 * run.longest))
            );
        }
        workplace.limit_tests(Duration::from_secs(2));
        let last = only(&[&format!("{prefix}test_last")]);
        let run = workplace.run_tests(&[last]).await.unwrap().remove(0);
        assert_eq!(
            run.test_limit(Duration::from_secs(60)),
            Duration::from_secs(60)
        );
        assert_eq!(run.statuses.len(), 1);
        workplace.close().await.unwrap();
    }
}
