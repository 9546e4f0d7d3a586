//! Planted bugs, measured in jails: what is kept is noticed by the tests that it says, whatever was interrupted before.

use std::collections::BTreeMap;

use crate::place::{Place, only};
use judge::pytest::TestStatus::Passed;
use record::Seed;
use repair::{
    Checkout, KeptSources, SourceStore, Task,
    TestFramework::Unittest,
    mutate::{MutateError, Mutated, Options, Progress, Style, mutate, notes_beside},
    read_tasks, write_tasks,
};
use session::Image;

const SOURCE: &str = "\
LIMITS = (0, 10)


def clamp(x, low=0, high=10):
    if x < low:
        return low
    if x > high:
        return high
    return x


def total(numbers, start=0):
    result = start
    for number in numbers:
        result += clamp(number)
    return result


def forever(n):
    while n > 0:
        n -= 1
    return n


def unused(a, b):
    return a - b
";

const TESTS: &str = "\
import time
import unittest

from numbers_kit.core import clamp, forever, total


class TestNumbers(unittest.TestCase):
    def test_clamp(self):
        self.assertEqual([clamp(x) for x in (-1, 0, 5, 10, 11)], [0, 0, 5, 10, 10])

    def test_clamp_with_limits(self):
        self.assertEqual(clamp(5, low=6), 6)
        self.assertEqual(clamp(5, high=2), 2)

    def test_total(self):
        self.assertEqual(total([1, 2, 30]), 13)
        self.assertEqual(total([], start=4), 4)

    def test_forever(self):
        self.assertEqual(forever(3), 0)

    def test_nothing(self):
        self.assertTrue(clamp)

    def test_more_of_nothing(self):
        self.assertTrue(total)

    def test_broken(self):
        self.fail('on purpose')

    def test_flaky(self):
        self.assertEqual(time.time_ns() % 1_000_000_007, 5)
";

/// The place with its sources kept beside a file of tasks.
async fn place() -> Option<(Place, KeptSources, tempfile::TempDir)> {
    place_with_tests_in("tests/test_numbers.py").await
}

async fn place_with_tests_in(path: &str) -> Option<(Place, KeptSources, tempfile::TempDir)> {
    let files = [
        ("numbers_kit/__init__.py", ""),
        ("numbers_kit/core.py", SOURCE),
        (path, TESTS),
    ];
    let mut place = Place::new(Unittest, &files).await?;
    let scratch = tempfile::tempdir().unwrap();
    let store = SourceStore::beside(&scratch.path().join("tasks.jsonl"));
    let checkout = place.testbed.image.checkout.clone().unwrap();
    let kept = store.keep(&checkout, "numbers-kit").unwrap();
    place.testbed.image = Image::checkout(kept.folder.clone());
    place.testbed.slots = 2;
    Some((place, kept, scratch))
}

fn options(scratch: &tempfile::TempDir, count: usize, seed: u64) -> Options {
    Options {
        count,
        seed: Seed(seed),
        style: Style::Normal,
        name: "numbers-kit".to_owned(),
        notes: notes_beside(&scratch.path().join("tasks.jsonl")),
    }
}

async fn made(place: &Place, kept: &KeptSources, options: &Options) -> Mutated {
    mutate(&place.testbed, kept, options, |_| {}).await.unwrap()
}

/// What the tests say of a task's checkout, with the gold patch or without.
async fn says(place: &Place, task: &Task, with_gold: bool) -> BTreeMap<String, bool> {
    let mut workplace = place.open().await;
    let checkout = Checkout::of(&task.place).unwrap();
    workplace
        .apply(checkout.patch().unwrap())
        .await
        .unwrap()
        .unwrap();
    if with_gold {
        let gold = code::Patch::parse(task.gold.patch.as_bytes()).unwrap();
        workplace.apply(&gold).await.unwrap().unwrap();
    }
    let ids: Vec<&str> = task
        .checks
        .fail_to_pass
        .iter()
        .chain(&task.checks.pass_to_pass)
        .map(|id| &**id)
        .collect();
    let run = workplace.run_tests(&[only(&ids)]).await.unwrap().remove(0);
    workplace.close().await.unwrap();
    run.statuses
        .into_iter()
        .map(|(id, status)| (id, status == Passed))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_what_their_tests_say() {
    let Some((place, kept, scratch)) = place().await else {
        return;
    };
    let found = made(&place, &kept, &options(&scratch, 6, 1)).await;
    assert_eq!(found.tasks.len(), 6, "{:?}", found.tally);
    let left_out: Vec<(&str, &str)> = found
        .left_out
        .iter()
        .map(|one| (one.test.rsplit('.').next().unwrap(), one.why))
        .collect();
    assert_eq!(found.tests, 6);
    let fails = "it fails";
    assert_eq!(left_out, [("test_broken", fails), ("test_flaky", fails)]);
    assert_eq!(found.tally.kept, 6);
    let file = scratch.path().join("tasks.jsonl");
    write_tasks(&file, &found.tasks).unwrap();
    assert_eq!(read_tasks(&file).unwrap(), found.tasks);
    let functions: std::collections::BTreeSet<String> = found
        .tasks
        .iter()
        .map(|task| task.facts.metadata["function"].to_string())
        .collect();
    assert!(functions.len() >= 2, "{functions:?}");
    for task in &found.tasks {
        let wrong = says(&place, task, false).await;
        for id in &task.checks.fail_to_pass {
            assert_eq!(wrong.get(id), Some(&false), "{} {id}", task.id.0);
        }
        for id in &task.checks.pass_to_pass {
            assert_eq!(wrong.get(id), Some(&true), "{} {id}", task.id.0);
        }
        let right = says(&place, task, true).await;
        assert!(
            right.len() == 6 && right.values().all(|passes| *passes),
            "{}",
            task.id.0
        );
        assert!(!task.public.issue.title.is_empty() && !task.public.issue.body.is_empty());
    }
}

/// Whatever they are called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_bug_is_planted_in_tests() {
    for path in ["numbers_kit/tests.py", "numbers_kit/testnumbers.py"] {
        let Some((place, kept, scratch)) = place_with_tests_in(path).await else {
            return;
        };
        // More than there are, so that none is left out.
        let found = made(&place, &kept, &options(&scratch, 400, 1)).await;
        assert!(found.tasks.len() > 10, "{:?}", found.tally);
        for task in &found.tasks {
            let patch = &task.gold.patch;
            assert!(patch.contains("numbers_kit/core.py"), "{patch}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seed_makes_the_same_tasks_also_when_it_goes_on() {
    let Some((mut place, kept, scratch)) = place().await else {
        return;
    };
    let whole = made(&place, &kept, &options(&scratch, 9, 7)).await;
    let other = made(&place, &kept, &options(&scratch, 2, 8)).await;
    assert_ne!(whole.tasks[..2], other.tasks[..]);
    place.testbed.slots = 1;
    // Dropped when the first fates are known, as it is by Ctrl-C.
    let options = options(&scratch, 9, 7);
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let work = mutate(&place.testbed, &kept, &options, |progress| {
        if let Progress::Tried { tally } = progress {
            told.send(tally.kept).unwrap();
        }
    });
    let kept_before = tokio::select! {
        _ = work => panic!("it ended before it was ended"),
        kept = heard.recv() => kept.unwrap(),
    };
    assert!(kept_before < 9 && options.notes.exists());
    let again = made(&place, &kept, &options).await;
    assert_eq!(again.tasks, whole.tasks);
    assert!(!options.notes.exists());
}

/// The first passes only before the second; by names the second would be the first. The last passes only after one
/// that is always skipped, and is not among those that decide.
const ORDERED: [(&str, &str); 2] = [
    (
        "tests/test_first.py",
        "import unittest\nfrom numbers_kit import core\n\n\nclass TestFirst(unittest.TestCase):\n    \
         def test_limits(self):\n        self.assertEqual(core.LIMITS, (0, 10))\n        \
         self.assertEqual(core.total([1, 2, 30]), 13)\n",
    ),
    (
        "tests/after/test_last.py",
        "import unittest\nfrom numbers_kit import core\n\n\nclass TestLast(unittest.TestCase):\n    \
         def test_a_deletes(self):\n        del core.LIMITS\n        self.assertEqual(core.total([2]), 2)\n\n    \
         def test_b_leaves(self):\n        core.left = 3\n        self.skipTest('always')\n\n    \
         def test_c_finds(self):\n        self.assertEqual(core.total([core.left]), 3)\n",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tests_that_go_by_those_before_them_are_run_in_their_order_or_left_out() {
    let mut files = vec![
        ("numbers_kit/__init__.py", ""),
        ("numbers_kit/core.py", SOURCE),
        ("tests/__init__.py", ""),
        ("tests/after/__init__.py", ""),
    ];
    files.extend(ORDERED);
    let Some(mut place) = Place::new(Unittest, &files).await else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let store = SourceStore::beside(&scratch.path().join("tasks.jsonl"));
    let checkout = place.testbed.image.checkout.clone().unwrap();
    let kept = store.keep(&checkout, "numbers-kit").unwrap();
    place.testbed.image = Image::checkout(kept.folder.clone());
    let found = made(&place, &kept, &options(&scratch, 4, 1)).await;
    // Skipped, and what passes only after it.
    let why: Vec<&str> = found.left_out.iter().map(|one| one.why).collect();
    assert_eq!(found.tests, 2);
    assert_eq!(
        why,
        [
            "it is skipped",
            "it passes only after a test that is left out"
        ]
    );
    assert_eq!(found.tally.unsteady, 0, "{:?}", found.tally);
    assert!(!found.tasks.is_empty(), "{:?}", found.tally);
    for task in &found.tasks {
        let right = says(&place, task, true).await;
        assert!(
            right.len() == 2 && right.values().all(|passes| *passes),
            "{right:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_task_can_be_made_of_is_said() {
    let deep = format!("def f():\n    return {}1\n", "-".repeat(300));
    let tests_of_f = "import unittest\nfrom core import f\nclass A(unittest.TestCase):\n    \
                      def test_a(self):\n        self.assertEqual(f(), 1)\n    def test_b(self):\n        f()\n";
    let one_test = tests_of_f.split("    def test_b").next().unwrap();
    let cases: [(&[(&str, &str)], &str); 5] = [
        (
            &[
                ("core.py", "def f():\n    return 1\n"),
                ("test_a.py", one_test),
            ],
            "only one test of numbers-kit passes every time, test_a.A.test_a",
        ),
        (
            &[("core.py", &deep), ("test_a.py", tests_of_f)],
            "core.py: left out, its code is nested deeper",
        ),
        (
            &[("core.py", "def f():\n    return 1\n")],
            "no tests were found in numbers-kit: unittest finds none",
        ),
        (
            &[(
                "test_a.py",
                "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.fail('no')\n",
            )],
            "none of the 1 tests",
        ),
        (
            &[(
                "test_a.py",
                "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n    def test_b(self):\n        pass\n",
            )],
            "in which a bug could be planted",
        ),
    ];
    for (files, expected) in cases {
        let Some(mut place) = Place::new(Unittest, files).await else {
            return;
        };
        let scratch = tempfile::tempdir().unwrap();
        let store = SourceStore::beside(&scratch.path().join("tasks.jsonl"));
        let checkout = place.testbed.image.checkout.clone().unwrap();
        let kept = store.keep(&checkout, "none").unwrap();
        place.testbed.image = Image::checkout(kept.folder.clone());
        let error: MutateError = mutate(&place.testbed, &kept, &options(&scratch, 1, 0), |_| {})
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
