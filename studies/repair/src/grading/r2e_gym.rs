//! The reward of R2E-Gym (spec of the repair study, section 11.4).

use std::{collections::BTreeMap, sync::LazyLock};

use judge::pytest::TestStatus;
use regex::Regex;

use super::{log_parser::pattern, statuses::status_of};

/// What is expected of a run: the status of every test, by its name as R2E-Gym has it.
pub type ExpectedStatuses = BTreeMap<String, String>;

/// Whether a run of the hidden tests gave just what is expected: as many tests, each with its status.
///
/// A line's first word is its status. (The original looks for the words anywhere, so that a test which fails
/// with the message "PASSED" passes.)
pub fn r2e_gym_resolved(expected: &ExpectedStatuses, log: &str) -> bool {
    let found = read_r2e_gym_log(log);
    let expected: BTreeMap<String, &str> = expected
        .iter()
        .map(|(name, status)| (bare_name(name), status.as_str()))
        .collect();
    found.len() == expected.len()
        && found
            .iter()
            .filter(|(name, _)| !name.is_empty())
            .all(|(name, status)| expected.get(name) == Some(&word(*status)))
}

/// The statuses behind the first headline of pytest's summary. Names are the parts behind the file, joined
/// by dots.
pub fn read_r2e_gym_log(log: &str) -> BTreeMap<String, TestStatus> {
    let log = without_colours(log).replace('\r', "");
    let summary = log.split("short test summary info").nth(1).unwrap_or("");
    let mut statuses = BTreeMap::new();
    for line in summary.trim().split('\n') {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let status = match status_of(first) {
            Some(TestStatus::Skipped | TestStatus::ExpectedFailure) | None => continue,
            Some(status) => status,
        };
        statuses.insert(bare_name(&name_of(rest)), status);
    }
    statuses
}

fn word(status: TestStatus) -> &'static str {
    match status {
        TestStatus::Passed => "PASSED",
        TestStatus::Failed => "FAILED",
        _ => "ERROR",
    }
}

/// `a.py::B::c` as `B.c`; nothing of what names a file alone.
fn name_of(id: &str) -> String {
    let parts: Vec<&str> = id.split("::").skip(1).collect();
    parts.join(".")
}

/// Without colours, and without the message behind it.
pub(super) fn bare_name(name: &str) -> String {
    let name = without_colours(name);
    name.split(" - ").next().unwrap_or_default().to_owned()
}

fn without_colours(text: &str) -> String {
    static COLOUR: LazyLock<Regex> = LazyLock::new(|| pattern("\u{1b}\\[[0-9;]*m"));
    COLOUR.replace_all(text, "").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
PASSED not in the summary
\u{1b}[36m\u{1b}[1m=== short test summary info ===\u{1b}[0m
\u{1b}[32mPASSED\u{1b}[0m r2e_tests/test_1.py::\u{1b}[1mTestA::test_b[x - y]\u{1b}[0m\r
PASSED r2e_tests/test_1.py::test_c
SKIPPED [1] r2e_tests/test_1.py:4: not here
FAILED r2e_tests/test_1.py::test_d - RuntimeError: PASSED
ERROR r2e_tests/test_2.py::test_e - ImportError
=== 1 failed in 0.1s ===
";

    fn expected(statuses: &[(&str, &str)]) -> ExpectedStatuses {
        let owned = |&(name, status): &(&str, &str)| (name.to_owned(), status.to_owned());
        statuses.iter().map(owned).collect()
    }

    const ALL: [(&str, &str); 4] = [
        ("TestA.test_b[x - y]", "PASSED"),
        ("test_c", "PASSED"),
        ("\u{1b}[1mtest_d\u{1b}[0m - RuntimeError", "FAILED"),
        ("test_e", "ERROR"),
    ];

    #[test]
    fn every_test_must_end_as_expected_and_there_may_be_no_other() {
        assert!(r2e_gym_resolved(&expected(&ALL), LOG));
        assert!(!r2e_gym_resolved(&expected(&ALL[..3]), LOG));
        let mut other = ALL;
        other[2].1 = "PASSED";
        assert!(!r2e_gym_resolved(&expected(&other), LOG));
        let more = [&ALL[..], &[("test_f", "PASSED")]].concat();
        assert!(!r2e_gym_resolved(&expected(&more), LOG));
        assert!(!r2e_gym_resolved(&expected(&ALL), "no summary"));
    }
}
