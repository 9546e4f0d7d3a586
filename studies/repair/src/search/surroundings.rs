//! Failing tests that tell of the machine and not of the program: a locale or a fixture that is not there, a folder that
//! cannot be written.

use std::collections::BTreeSet;

use super::observation::TestsObserved;
use crate::workplace::Failure;

/// What a program's own mistakes raise also where none of its lines runs: in whoever imports, calls or compares.
const OF_PROGRAMS: [&str; 13] = [
    "AssertionError",
    "AttributeError",
    "Crash",
    "Failed",
    "ImportError",
    "IndentationError",
    "IndexError",
    "KeyError",
    "ModuleNotFoundError",
    "NameError",
    "SyntaxError",
    "Timeout",
    "TypeError",
];

/// A fixture that nobody defines.
const NO_FIXTURE: &str = "FixtureLookupError";

/// Failing tests that ran no line of the sources, and failed by what programs hardly raise there; with them those that
/// were not traced and failed alike. None where these are all that fail.
pub fn failing_by_surroundings(observed: &TestsObserved) -> BTreeSet<String> {
    let of_machine: BTreeSet<(&str, &str)> = observed
        .failing
        .iter()
        .filter(|id| is_of_machine(observed, id))
        .filter_map(|id| said(observed.failures.get(id)?))
        .collect();
    let is_alike = |id: &&String| {
        let failure = observed.failures.get(*id).and_then(said);
        failure.is_some_and(|failure| of_machine.contains(&failure))
            && (!runs_sources(observed, id)
                || observed.failures.get(*id).is_some_and(lacks_fixture))
            && !observed.named.contains(id)
    };
    let aside: BTreeSet<String> = observed.failing.iter().filter(is_alike).cloned().collect();
    match aside.len() == observed.failing.len() {
        true => BTreeSet::new(),
        false => aside,
    }
}

fn is_of_machine(observed: &TestsObserved, id: &str) -> bool {
    let Some(failure) = observed.failures.get(id) else {
        return false;
    };
    if lacks_fixture(failure) {
        return true;
    }
    !OF_PROGRAMS.contains(&failure.kind.as_str())
        && observed.failing_lines.contains_key(id)
        && !runs_sources(observed, id)
        && failure
            .frames
            .iter()
            .all(|frame| observed.is_of_tests(&frame.path))
}

/// Whether a test asks for a fixture that nobody defines. Whatever ran before, such as fixtures for all tests, says
/// nothing of the program.
pub(super) fn lacks_fixture(failure: &Failure) -> bool {
    failure.kind == NO_FIXTURE
}

/// False also of tests that were not traced.
fn runs_sources(observed: &TestsObserved, id: &str) -> bool {
    let lines = observed.failing_lines.get(id);
    lines.is_some_and(|lines| lines.keys().any(|path| !observed.is_of_tests(path)))
}

fn said(failure: &Failure) -> Option<(&str, &str)> {
    Some((&failure.kind, failure.message.lines().next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workplace::Frame;

    /// A test, what it fails with, and the files that it runs lines of.
    type Case = (&'static str, &'static str, &'static [&'static str]);

    fn observed(cases: &[Case]) -> TestsObserved {
        let mut observed = TestsObserved::default();
        for (id, kind, paths) in cases {
            observed.failing.push((*id).to_owned());
            let failure = Failure {
                kind: (*kind).to_owned(),
                message: "no such thing".to_owned(),
                frames: vec![Frame {
                    path: "tests/test_a.py".to_owned(),
                    line: 3,
                    function: "test".to_owned(),
                }],
            };
            observed.failures.insert((*id).to_owned(), failure);
            if !paths.is_empty() {
                let lines = paths.iter().map(|path| ((*path).to_owned(), vec![3]));
                observed
                    .failing_lines
                    .insert((*id).to_owned(), lines.collect());
            }
        }
        observed
    }

    fn aside(cases: &[Case]) -> Vec<String> {
        failing_by_surroundings(&observed(cases))
            .into_iter()
            .collect()
    }

    const BUG: Case = ("bug", "ValueError", &["tests/test_a.py", "package/a.py"]);
    const LOCALE: Case = ("locale", "Error", &["tests/conftest.py"]);

    #[test]
    fn tests_that_run_no_source_and_fail_by_the_machine_are_set_aside() {
        assert_eq!(aside(&[BUG, LOCALE]), ["locale"]);
        let untraced = ("untraced", "Error", &[] as &[&str]);
        assert_eq!(aside(&[BUG, LOCALE, untraced]), ["locale", "untraced"]);
        assert!(aside(&[BUG, untraced]).is_empty(), "nobody was seen");
        let fixture = ("fixture", "FixtureLookupError", &[] as &[&str]);
        assert_eq!(aside(&[BUG, fixture]), ["fixture"]);
        let after_others = (
            "fixture",
            "FixtureLookupError",
            &["package/a.py"] as &[&str],
        );
        assert_eq!(aside(&[BUG, after_others]), ["fixture"]);
    }

    #[test]
    fn what_may_be_the_bug_is_kept() {
        for kind in OF_PROGRAMS {
            let other = ("other", kind, &["tests/test_a.py"] as &[&str]);
            assert!(aside(&[BUG, other]).is_empty(), "{kind}");
        }
        assert!(aside(&[LOCALE]).is_empty(), "nothing else fails");
        let mut named = observed(&[BUG, LOCALE]);
        named.named.push("locale".to_owned());
        assert!(failing_by_surroundings(&named).is_empty());
        let mut framed = observed(&[BUG, LOCALE]);
        if let Some(failure) = framed.failures.get_mut("locale") {
            failure.frames[0].path = "package/a.py".to_owned();
        }
        assert!(failing_by_surroundings(&framed).is_empty());
    }
}
