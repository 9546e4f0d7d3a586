//! The patch model `search` on a small package in jails: bugs of many kinds are found and mended, whatever runs
//! in parallel, and it says so where it finds nothing.

use std::{collections::BTreeSet, sync::Arc};

use crate::place::{Place, all, path};
use judge::pytest::TestStatus;
use record::LogLine;
use repair::{
    Issue,
    TestFramework::Unittest,
    patch_model::{Answered, Constraints, PatchRequest, PlanTarget, Proposed, SPENT},
    search::{Search, SearchSettings, Sought, observe_after},
};

const SOURCE: &str = "\
SEPARATOR = ', '


class Empty(Exception):
    pass


def chunks(items, size):
    if size < 1:
        raise ValueError('size must be at least 1')
    for start in range(0, len(items), size):
        yield items[start:start + size]


def largest(items, default=None):
    best = None
    for item in items:
        if best is None or item > best:
            best = item
    return default if best is None else best


def joined(words, limit):
    kept = []
    for word in words:
        if not word:
            continue
        if len(kept) == limit:
            break
        kept.append(word.strip())
    return SEPARATOR.join(kept)


class Stack:
    def __init__(self, limit=3):
        self.items = []
        self.limit = limit
        self.dropped = 0

    def push(self, item):
        if len(self.items) >= self.limit:
            self.items.pop(0)
            self.dropped += 1
        self.items.append(item)

    def pop(self):
        if not self.items:
            raise Empty('nothing is left')
        return self.items.pop()
";

const TESTS: &str = "\
import unittest
from bag.core import Empty, Stack, chunks, joined, largest


class TestFunctions(unittest.TestCase):
    def test_chunks(self):
        self.assertEqual(list(chunks([1, 2, 3, 4, 5], 2)), [[1, 2], [3, 4], [5]])
        self.assertEqual(list(chunks([1, 2], 1)), [[1], [2]])

    def test_chunks_refuses(self):
        with self.assertRaises(ValueError):
            list(chunks([1], 0))

    def test_largest(self):
        self.assertEqual(largest([1, 7, 3]), 7)
        self.assertEqual(largest([], 9), 9)
        self.assertEqual(largest([0]), 0)

    def test_joined(self):
        self.assertEqual(joined(['a ', '', 'b', 'c'], 2), 'a, b')
        self.assertEqual(joined([], 2), '')


class TestStack(unittest.TestCase):
    def test_order(self):
        stack = Stack()
        for item in range(3):
            stack.push(item)
        self.assertEqual([stack.pop() for _ in range(3)], [2, 1, 0])
        self.assertEqual(stack.dropped, 0)

    def test_limit(self):
        stack = Stack(2)
        for item in range(4):
            stack.push(item)
        self.assertEqual((stack.items, stack.dropped), ([2, 3], 2))

    def test_empty(self):
        with self.assertRaises(Empty):
            Stack().pop()
";

/// Texts of the source, and what stands there by mistake.
const BUGS: &[(&str, &str)] = &[
    ("size < 1", "size <= 1"),
    ("item > best", "item < best"),
    ("= ', '", "= '; '"),
    ("self.dropped += 1", "self.dropped -= 1"),
    ("else best", "else item"),
    ("        self.limit = limit\n", ""),
];

async fn place(source: &str, slots: usize) -> Option<Place> {
    let files = [
        ("bag/__init__.py", ""),
        ("bag/core.py", source),
        ("tests/__init__.py", ""),
        ("tests/test_core.py", TESTS),
    ];
    let mut place = Place::new(Unittest, &files).await?;
    place.testbed.slots = slots;
    Some(place)
}

fn request() -> PatchRequest {
    PatchRequest {
        issue: Issue::default(),
        plan: Vec::new(),
        targets: Vec::new(),
        graph: code::graph::ListedGraph::default(),
        snippets: Vec::new(),
        feedback: Vec::new(),
        constraints: Constraints::default(),
        of_tests: Arc::default(),
        observed: None,
        searched: None,
    }
}

fn search(settings: SearchSettings) -> Search {
    Search::new(settings).unwrap()
}

fn patch(answered: &Answered) -> &str {
    match &answered.proposed {
        Proposed::Patches(patches) => &patches[0].text,
        Proposed::None { detail, .. } => panic!("{detail}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bugs_of_many_kinds_are_mended() {
    for (right, wrong) in BUGS {
        assert_eq!(SOURCE.matches(right).count(), 1, "{right}");
        let Some(place) = place(&SOURCE.replace(right, wrong), 2).await else {
            return;
        };
        let settings = SearchSettings::default();
        let answered = search(settings).answer(&request(), &place.testbed).await;
        let answered = answered.unwrap();
        let Proposed::Patches(patches) = &answered.proposed else {
            panic!("{right} for {wrong}: {answered:?}");
        };
        let mut workplace = place.open().await;
        workplace.apply(&patches[0].patch).await.unwrap().unwrap();
        let run = workplace.run_tests(&[all()]).await.unwrap().remove(0);
        let passes = run
            .statuses
            .values()
            .all(|status| *status == TestStatus::Passed);
        assert!(passes && run.statuses.len() == 7, "{}", patches[0].text);
        assert!(answered.effort.candidates <= 200);
        workplace.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_in_parallel_changes_nothing() {
    let wrong = SOURCE.replace("start + size]", "start - size]");
    let mut answers = Vec::new();
    for slots in [1, 3] {
        let Some(place) = place(&wrong, slots).await else {
            return;
        };
        let settings = SearchSettings {
            slots,
            wave: 7,
            ..SearchSettings::default()
        };
        answers.push(
            search(settings)
                .answer(&request(), &place.testbed)
                .await
                .unwrap(),
        );
    }
    assert_eq!(patch(&answers[0]), patch(&answers[1]));
    assert_eq!(answers[0].effort, answers[1].effort);
    // The same lines in the same order, but for how long each took.
    let untimed = |answered: &Answered| -> Vec<LogLine> {
        let mut lines = answered.log.clone();
        for line in &mut lines {
            line.fields.remove("duration_sec");
        }
        lines
    };
    assert_eq!(untimed(&answers[0]), untimed(&answers[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_run_all_tests_can_hand_that_on() {
    let wrong = SOURCE.replace("start + size]", "start - size]");
    let Some(place) = place(&wrong, 2).await else {
        return;
    };
    let settings = SearchSettings::default();
    let mut workplace = place.open().await;
    let run = workplace.run_tests(&[all()]).await.unwrap().remove(0);
    let issue = Issue::default();
    let sought = Sought {
        issue: &issue,
        named: &[],
        unsteady: &BTreeSet::new(),
    };
    let observed = observe_after(&run, &sought, &mut workplace, &settings).await;
    // All, those that fail, and with traces these and those that pass.
    assert_eq!(workplace.take_log().len(), 3);
    workplace.close().await.unwrap();
    let asked = PatchRequest {
        observed: Some(Arc::new(observed.unwrap())),
        ..request()
    };
    let handed = search(settings.clone())
        .answer(&asked, &place.testbed)
        .await;
    let alone = search(settings).answer(&request(), &place.testbed).await;
    let (handed, alone) = (handed.unwrap(), alone.unwrap());
    assert_eq!(patch(&handed), patch(&alone));
    assert_eq!(handed.effort.candidates, alone.effort.candidates);
    assert_eq!(handed.effort.test_runs + 3, alone.effort.test_runs);
}

/// Whatever they are called.
#[tokio::test(flavor = "multi_thread")]
async fn tests_are_never_edited() {
    let source =
        "def size(text, scale=2):\n    words = text.split(' ')\n    return len(words) * scale\n";
    let tests = "\
import unittest

from bag.core import size


def expected():
    return 7


class TestSize(unittest.TestCase):
    def test_size(self):
        self.assertEqual(size('a b c'), expected())
";
    let files = [
        ("bag/__init__.py", ""),
        ("bag/core.py", source),
        ("bag/testbag.py", tests),
    ];
    let Some(place) = Place::new(Unittest, &files).await else {
        return;
    };
    let settings = SearchSettings {
        budget: 60,
        ..SearchSettings::default()
    };
    let answered = search(settings).answer(&request(), &place.testbed).await;
    let answered = answered.unwrap();
    assert!(answered.effort.candidates > 10);
    let candidates = answered.log.iter();
    let paths: BTreeSet<&str> = candidates
        .filter_map(|line| line.fields.get("candidate")?["path"].as_str())
        .collect();
    assert_eq!(paths, ["bag/core.py"].into());

    // Where there is nothing but tests, it is said.
    let alone = tests.replace("from bag.core import size", "size = len");
    let Some(place) = Place::new(Unittest, &[("bag/testbag.py", &alone)]).await else {
        return;
    };
    let answered = search(SearchSettings::default())
        .answer(&request(), &place.testbed)
        .await
        .unwrap();
    let Proposed::None { detail, .. } = &answered.proposed else {
        panic!("{:?}", answered.proposed);
    };
    assert!(detail.contains("bag/testbag.py (a test)"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_run_of_tests_has_a_line() {
    let wrong = SOURCE.replace("start + size]", "start - size]");
    let Some(place) = place(&wrong, 2).await else {
        return;
    };
    let settings = SearchSettings {
        wave: 7,
        ..SearchSettings::default()
    };
    // Three were run by a repair before.
    let mut asked = request();
    asked.constraints.tried = 3;
    let answered = search(settings)
        .answer(&asked, &place.testbed)
        .await
        .unwrap();
    assert_eq!(answered.log.len(), answered.effort.test_runs);
    let (observed, candidates): (Vec<&LogLine>, Vec<&LogLine>) = answered
        .log
        .iter()
        .partition(|line| !line.fields.contains_key("candidate"));
    assert_eq!(observed.len(), 3);
    assert_eq!(observed[0].fields["failed"].as_array().unwrap().len(), 1);
    let mut numbers: Vec<u64> = candidates
        .iter()
        .map(|line| line.fields["candidate"]["number"].as_u64().unwrap())
        .collect();
    numbers.dedup();
    let last = 3 + answered.effort.candidates as u64;
    assert_eq!(numbers, (4..=last).collect::<Vec<_>>());
    for line in &candidates {
        let fields = &line.fields;
        let told = &fields["candidate"];
        assert!(told["line"].as_u64().unwrap() > 0 && !told["edit"].as_str().unwrap().is_empty());
        assert_eq!(told["path"], "bag/core.py");
        assert!(fields["duration_sec"].as_f64().unwrap() > 0.0);
        let unmended = told["fate"] == "unmended";
        assert_eq!(
            unmended,
            fields["status"] == "failed" && told["fate"] != "breaking",
            "{fields:?}"
        );
        assert_eq!(
            fields["n_failed"],
            fields["failed"].as_array().unwrap().len()
        );
        // What it is held to first: the failing test.
        if unmended {
            assert_eq!(fields["failed"], fields["selector"]);
            assert!(!told["said"].as_str().unwrap().is_empty());
        }
    }
    let passing = |line: &&&LogLine| line.fields["candidate"]["fate"] == "passing";
    assert!(candidates.iter().filter(passing).count() >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_points_at_the_bug_is_worth_candidates() {
    let wrong = SOURCE.replace("self.dropped += 1", "self.dropped -= 1");
    let Some(place) = place(&wrong, 1).await else {
        return;
    };
    let settings = SearchSettings {
        budget: 6,
        wave: 6,
        ..SearchSettings::default()
    };
    let line = wrong
        .lines()
        .position(|line| line.contains("dropped -= 1"))
        .unwrap() as u32
        + 1;
    let pointed = PatchRequest {
        targets: vec![PlanTarget {
            path: "bag/core.py".to_owned(),
            start: line,
            end: line,
            ..PlanTarget::default()
        }],
        ..request()
    };
    let answered = search(settings)
        .answer(&pointed, &place.testbed)
        .await
        .unwrap();
    assert!(patch(&answered).contains("+            self.dropped += 1\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_gives_up_in_words_and_leaves_nothing_behind() {
    // Two mistakes at once: no single edit mends both.
    let wrong = SOURCE
        .replace("item > best", "item < best")
        .replace("default if", "item if");
    let Some(place) = place(&wrong, 1).await else {
        return;
    };
    let settings = SearchSettings {
        budget: 15,
        wave: 10,
        ..SearchSettings::default()
    };
    let answered = search(settings.clone())
        .answer(&request(), &place.testbed)
        .await
        .unwrap();
    let Proposed::None { code, detail } = &answered.proposed else {
        panic!("{answered:?}");
    };
    assert_eq!(*code, SPENT);
    assert!(detail.starts_with("15 candidates were run"), "{detail}");
    assert!(detail.ends_with("the budget allows no more"), "{detail}");
    assert_eq!(answered.effort.candidates, 15);
    let mut workplace = place.open().await;
    let kept = workplace.read(&path("bag/core.py")).await.unwrap().unwrap();
    assert_eq!(String::from_utf8(kept).unwrap(), wrong);
    workplace.close().await.unwrap();

    let Some(right) = self::place(SOURCE, 1).await else {
        return;
    };
    let answered = search(settings)
        .answer(&request(), &right.testbed)
        .await
        .unwrap();
    let Proposed::None { detail, .. } = &answered.proposed else {
        panic!("{answered:?}");
    };
    assert!(detail.contains("none of the 7 tests"), "{detail}");
    assert_eq!(answered.effort.candidates, 0);
}

/// Two mistakes, each with tests of its own: what mends half of the failing tests is proposed.
fn twice_wrong() -> String {
    SOURCE
        .replace("item > best", "item < best")
        .replace("self.dropped += 1", "self.dropped -= 1")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_goes_on_where_the_one_before_ended() {
    let wrong = twice_wrong();
    let line = |text: &str| wrong.lines().position(|line| line.contains(text)).unwrap() as u32 + 1;
    // The second plan points elsewhere.
    let target = |line| PlanTarget {
        path: "bag/core.py".to_owned(),
        start: line,
        end: line,
        ..PlanTarget::default()
    };
    let targets = [
        target(line("item < best")),
        target(line("self.dropped -= 1")),
    ];
    let mut told = Vec::new();
    for slots in [1, 3] {
        let Some(place) = place(&wrong, slots).await else {
            return;
        };
        let settings = SearchSettings {
            budget: 120,
            slots,
            wave: 7,
            ..SearchSettings::default()
        };
        let search = search(settings);
        let all = search.candidates(&request(), &place.testbed).await.unwrap();
        let (mut asked, mut answers) = (request(), Vec::new());
        loop {
            asked.targets = vec![targets[answers.len() % 2].clone()];
            let answered = search.answer(&asked, &place.testbed).await.unwrap();
            asked.constraints.tried += answered.effort.candidates;
            asked.searched = answered.searched.clone();
            let searched = answered.searched.as_ref().unwrap();
            // Each candidate that is counted is another program.
            assert_eq!(searched.n_programs(), asked.constraints.tried);
            answers.push(answered);
            if matches!(answers.last().unwrap().proposed, Proposed::None { .. }) {
                break;
            }
        }
        assert_eq!(asked.constraints.tried, all.len());
        let patches: Vec<&str> = answers[..answers.len() - 1].iter().map(patch).collect();
        assert!(patches.len() > 1, "{patches:?}");
        let different: BTreeSet<&&str> = patches.iter().collect();
        assert_eq!(different.len(), patches.len(), "{patches:?}");
        let mends = |text: &str| patches.iter().any(|patch| patch.contains(text));
        assert!(
            mends("item > best") && mends("self.dropped += 1"),
            "{patches:?}"
        );
        // Only the first looks what the tests do.
        let observes = |answered: &Answered| {
            let lines = answered.log.iter();
            lines
                .filter(|line| !line.fields.contains_key("candidate"))
                .count()
        };
        let observed: Vec<usize> = answers.iter().map(observes).collect();
        assert_eq!((observed[0], observed[1..].iter().sum::<usize>()), (3, 0));
        let Proposed::None { detail, .. } = &answers.last().unwrap().proposed else {
            panic!("{answers:?}");
        };
        let begins = format!("{} candidates were run and no other mends", all.len());
        assert!(detail.starts_with(&begins), "{detail}");
        let shown = |answered: &Answered| format!("{:?} {:?}", answered.proposed, answered.effort);
        told.push(answers.iter().map(shown).collect::<Vec<_>>());
    }
    assert_eq!(told[0], told[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_unchecked_is_checked_first_and_not_counted_again() {
    // Whatever mends in one wave with the first that passes, and after it, is unchecked.
    let settings = SearchSettings {
        wave: 400,
        ..SearchSettings::default()
    };
    let search = search(settings);
    let fates = |answered: &Answered, fate: &str| -> BTreeSet<u64> {
        let candidates = answered
            .log
            .iter()
            .filter_map(|line| line.fields.get("candidate"));
        let candidates = candidates.filter(|candidate| candidate["fate"] == fate);
        candidates
            .map(|candidate| candidate["number"].as_u64().unwrap())
            .collect()
    };
    let mut begun = None;
    for (right, wrong) in [BUGS, &[("start + size]", "start - size]")]].concat() {
        let Some(place) = place(&SOURCE.replace(right, wrong), 2).await else {
            return;
        };
        let first = search.answer(&request(), &place.testbed).await.unwrap();
        let unchecked = fates(&first, "unchecked");
        if !unchecked.is_empty() {
            begun = Some((place, first, unchecked));
            break;
        }
    }
    let (place, first, unchecked) = begun.expect("a bug that two candidates of a wave mend");
    let mut asked = request();
    asked.constraints.tried = first.effort.candidates;
    asked.searched = first.searched.clone();
    let mut checked = BTreeSet::new();
    while checked.len() < unchecked.len() {
        let answered = search.answer(&asked, &place.testbed).await.unwrap();
        assert_eq!(answered.effort.candidates, 0);
        checked.extend(fates(&answered, "passing"));
        checked.extend(fates(&answered, "breaking"));
        asked.searched = answered.searched.clone();
        if matches!(answered.proposed, Proposed::None { .. }) {
            break;
        }
    }
    assert_eq!(checked, unchecked);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_edited_are_named() {
    let wrong = SOURCE.replace("start + size]", "start - size]");
    let deep = format!("{wrong}\n\nDEEP = {}1\n", "-".repeat(300));
    let Some(place) = place(&deep, 2).await else {
        return;
    };
    let search = search(SearchSettings::default());
    let answered = search.answer(&request(), &place.testbed).await.unwrap();
    let Proposed::None { detail, .. } = &answered.proposed else {
        panic!("{answered:?}");
    };
    let named = "what it cannot edit: bag/core.py (its code is nested deeper than";
    assert!(detail.contains(named), "{detail}");
}

/// A source with four bugs: each makes one test fail, and the last is none that an edit of a line mends.
fn four_bugs() -> String {
    let strange = ("kept.append(word.strip())", "kept.insert(0, word + word)");
    let bugs = [BUGS[0], BUGS[1], BUGS[3], strange];
    bugs.iter()
        .fold(SOURCE.to_owned(), |source, (right, wrong)| {
            source.replace(right, wrong)
        })
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_bugs_the_one_that_is_asked_for_is_mended() {
    let Some(place) = place(&four_bugs(), 2).await else {
        return;
    };
    let settings = SearchSettings::default();
    let mut workplace = place.open().await;
    let run = workplace.run_tests(&[all()]).await.unwrap().remove(0);
    assert_eq!(run.failures.len(), 4, "{:?}", run.failures);
    let asked = [
        ("test_chunks", "size < 1:"),
        ("test_largest", "item >"),
        ("test_limit", "self.dropped += 1"),
    ];
    for (test, mended) in asked {
        // By its id, or by an issue that says what fails.
        let id = run.failures.keys().find(|id| id.ends_with(test)).unwrap();
        let named = Issue {
            body: format!("Since yesterday {test} does not pass any more."),
            ..Issue::default()
        };
        for (issue, tests) in [(Issue::default(), vec![id.clone()]), (named, Vec::new())] {
            let sought = Sought {
                issue: &issue,
                named: &tests,
                unsteady: &BTreeSet::new(),
            };
            let observed = observe_after(&run, &sought, &mut workplace, &settings).await;
            let request = PatchRequest {
                observed: Some(Arc::new(observed.unwrap())),
                issue: issue.clone(),
                ..request()
            };
            let search = search(settings.clone());
            let answered = search.answer(&request, &place.testbed).await.unwrap();
            assert!(patch(&answered).contains(mended), "{answered:?}");
            assert_eq!(answered.spent, None);
        }
    }
    workplace.close().await.unwrap();
}

const OF_THE_MACHINE: &str = "

class TestPlace(unittest.TestCase):
    def setUp(self):
        raise OSError('unsupported locale setting')

    def test_1(self):
        largest([1])

    def test_2(self):
        largest([2])

    def test_3(self):
        largest([3])
";

#[tokio::test(flavor = "multi_thread")]
async fn tests_that_fail_by_the_machine_do_not_decide_unless_the_issue_is_about_them() {
    let tests = format!("{TESTS}{OF_THE_MACHINE}");
    let (right, wrong) = BUGS[1];
    let source = SOURCE.replace(right, wrong);
    let files = [
        ("bag/__init__.py", ""),
        ("bag/core.py", &source),
        ("tests/__init__.py", ""),
        ("tests/test_core.py", &tests),
    ];
    let Some(place) = Place::new(Unittest, &files).await else {
        return;
    };
    let search = search(SearchSettings::default());
    let answered = search.answer(&request(), &place.testbed).await.unwrap();
    let mended = patch(&answered);
    assert!(
        mended.contains("+        if best is None or item >"),
        "{mended}"
    );
    assert_eq!(answered.spent, None, "it mends all that count");
    let asked = PatchRequest {
        issue: Issue {
            body: "OSError: unsupported locale setting".to_owned(),
            ..Issue::default()
        },
        ..request()
    };
    let answered = search.answer(&asked, &place.testbed).await.unwrap();
    let is_one = matches!(answered.proposed, Proposed::Patches(_)) && answered.spent.is_none();
    assert!(!is_one, "{answered:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_mends_most_tests_the_best_that_breaks_none_is_proposed_once() {
    let Some(place) = place(&four_bugs(), 2).await else {
        return;
    };
    let search = search(SearchSettings {
        budget: 60,
        ..SearchSettings::default()
    });
    let mut asked = request();
    let first = search.answer(&asked, &place.testbed).await.unwrap();
    let Proposed::Patches(patches) = &first.proposed else {
        panic!("{first:?}");
    };
    let summary = &patches[0].summary;
    assert!(summary.ends_with("mends 1 of 4 failing tests"), "{summary}");
    let left = first.spent.as_ref().unwrap();
    assert_eq!(left.code, SPENT, "{left:?}");
    let why = &left.detail;
    assert!(why.contains("mends 1 of them and breaks none"), "{why}");
    asked.constraints.tried = first.effort.candidates;
    asked.searched = first.searched.clone();
    let second = search.answer(&asked, &place.testbed).await.unwrap();
    let is_over = matches!(&second.proposed, Proposed::None { code, .. } if *code == SPENT);
    assert!(is_over && second.effort.candidates == 0, "{second:?}");
}

#[test]
fn settings_that_no_search_can_work_with_are_refused() {
    let refused = |settings: SearchSettings| Search::new(settings).unwrap_err();
    let none = SearchSettings {
        budget: 0,
        ..SearchSettings::default()
    };
    assert!(refused(none).contains("`budget`"));
    let endless = SearchSettings {
        suite_seconds: f64::INFINITY,
        ..SearchSettings::default()
    };
    assert!(refused(endless).contains("`suite_seconds`"));
    let unknown = serde_json::from_str::<SearchSettings>("{\"budgte\": 3}");
    assert!(unknown.is_err());
}
