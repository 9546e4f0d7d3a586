//! The log of an evaluation: what it says of the tests, or why it says nothing (spec of the repair study,
//! section 11.3).

use std::{fmt, sync::LazyLock};

use judge::pytest::TestStatus;
use regex::Regex;

use super::{
    log_parser::{LogParser, pattern},
    statuses::Statuses,
};

/// Stands before what the tests print.
pub const START_OF_TESTS: &str = ">>>>> Start Test Output";
/// Stands behind what the tests print.
pub const END_OF_TESTS: &str = ">>>>> End Test Output";
/// Stands before the exit code of the command that ran the tests, behind [`END_OF_TESTS`].
pub const TEST_EXIT_CODE: &str = ">>>>> Test Exit Code";
pub const PATCH_APPLIED: &str = ">>>>> Applied Patch";
pub const PATCH_FAILED: &str = ">>>>> Patch Apply Failed";

/// Any of them anywhere in a log says that it has no results.
const FAILURES: [&str; 4] = [
    PATCH_FAILED,
    ">>>>> Reset Failed",
    ">>>>> Tests Errored",
    ">>>>> Tests Timed Out",
];

/// Why a log is not one of a run of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// It has the marker of a failure before or during the tests.
    Failure(&'static str),
    /// The marker of the tests' beginning or end is missing.
    Unmarked,
    /// It names no test, and there is no sign that a suite ran.
    NothingRan,
    /// The tests' command failed, and no test did.
    ExitCode(i64),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(marker) => write!(f, "the log says `{marker}`"),
            Self::Unmarked => write!(f, "the log lacks `{START_OF_TESTS}` or `{END_OF_TESTS}`"),
            Self::NothingRan => f.write_str("the log names no test, and no suite ran"),
            Self::ExitCode(code) => write!(
                f,
                "the tests' command ended with {code}, but the log has no test that failed"
            ),
        }
    }
}

/// What the log of an instance's evaluation says of its tests.
///
/// # Errors
/// Why it says nothing.
pub fn read_log(parser: LogParser, instance_id: &str, log: &str) -> Result<Statuses, Invalid> {
    // Progress that overwrites itself ends its lines in carriage returns.
    let log = log.replace("\r\n", "\n").replace('\r', "\n");
    if let Some(marker) = FAILURES.into_iter().find(|marker| log.contains(marker)) {
        return Err(Invalid::Failure(marker));
    }
    let mut pieces = log.split(START_OF_TESTS).skip(1);
    let (Some(tests), true) = (pieces.next(), log.contains(END_OF_TESTS)) else {
        return Err(Invalid::Unmarked);
    };
    let tests = tests.split(END_OF_TESTS).next().unwrap_or_default();
    let mut statuses = parser.read(tests, instance_id);
    if statuses.is_empty() {
        // Where streams are joined late, results stand outside of the markers.
        statuses = parser.read(&log, instance_id);
    }
    if statuses.is_empty() && !suite_ran(&log) {
        return Err(Invalid::NothingRan);
    }
    let failed = |status| matches!(status, Some(TestStatus::Failed | TestStatus::Error));
    match exit_code(&log) {
        Some(code)
            if !statuses.is_empty() && !statuses.iter().any(|(_, status)| failed(status)) =>
        {
            Err(Invalid::ExitCode(code))
        }
        _ => Ok(statuses),
    }
}

/// The first code that is not 0, of those that are recorded: a patch can print the line too.
fn exit_code(log: &str) -> Option<i64> {
    static CODE: LazyLock<Regex> =
        LazyLock::new(|| pattern(&format!(r"{TEST_EXIT_CODE}:\s*(-?\d+)")));
    let mut codes = CODE.captures_iter(log);
    codes.find_map(|found| found[1].parse().ok().filter(|code: &i64| *code != 0))
}

/// Whether some runner counted at least one test. Runners that print failures alone say nothing else when
/// all is well; one that counts none has lost its browser.
fn suite_ran(log: &str) -> bool {
    static COUNTS: LazyLock<Regex> = LazyLock::new(|| {
        let counts = [
            r"Executed [1-9]\d* of \d+",
            r"TOTAL: [1-9]\d* (?:SUCCESS|FAILED)",
            r"[1-9]\d* passing",
            r"Tests:\s+[1-9]\d*",
            r"Test Suites:\s+(?:\d+ \w+, )*[1-9]\d* total",
            r"^# tests [1-9]\d*",
            r"[1-9]\d* specs?, \d+ failures?",
            // A case of openlayers' rendering tests.
            r"': ok$",
        ];
        pattern(&format!("(?m){}", counts.join("|")))
    });
    COUNTS.is_match(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(tests: &str, code: Option<i32>) -> String {
        let code = code.map_or_else(String::new, |code| format!("{TEST_EXIT_CODE}: {code}\n"));
        format!("setup\n+ : '{START_OF_TESTS}'\n{tests}\n+ : '{END_OF_TESTS}'\n{code}")
    }

    fn read(log: &str) -> Result<usize, Invalid> {
        read_log(LogParser::Pytest, "a__b-1", log).map(|statuses| statuses.len())
    }

    #[test]
    fn markers_of_failure_and_missing_ones_make_a_log_invalid() {
        let good = log("PASSED a.py::b", None);
        assert_eq!(read(&good), Ok(1));
        for marker in FAILURES {
            assert_eq!(
                read(&format!("{good}{marker}\n")),
                Err(Invalid::Failure(marker))
            );
        }
        assert_eq!(read("PASSED a.py::b"), Err(Invalid::Unmarked));
        let cut = good.split(END_OF_TESTS).next().unwrap();
        assert_eq!(read(cut), Err(Invalid::Unmarked));
    }

    #[test]
    fn results_outside_the_markers_count_where_none_are_within() {
        let late = format!("{}PASSED a.py::b\nFAILED a.py::c\n", log("", None));
        assert_eq!(read(&late), Ok(2));
        let both = format!("{}PASSED a.py::c\n", log("PASSED a.py::b", None));
        assert_eq!(read(&both), Ok(1));
    }

    #[test]
    fn a_silent_log_is_one_of_a_suite_that_counted_tests_or_none_at_all() {
        assert_eq!(read(&log("boom", None)), Err(Invalid::NothingRan));
        for (line, ran) in [
            ("Executed 12 of 12 SUCCESS", true),
            ("Executed 0 of 0 ERROR", false),
            ("Test Suites: 1 failed, 3 total", true),
            ("Test Suites: 0 total", false),
            ("# tests 4", true),
            ("  17 passing (2s)", true),
            ("0 passing", false),
            ("3 specs, 0 failures", true),
        ] {
            assert_eq!(read(&log(line, None)).is_ok(), ran, "{line}");
        }
    }

    #[test]
    fn a_command_that_fails_without_a_failed_test_makes_the_log_invalid() {
        assert_eq!(read(&log("PASSED a.py::b", Some(0))), Ok(1));
        assert_eq!(
            read(&log("PASSED a.py::b", Some(2))),
            Err(Invalid::ExitCode(2))
        );
        assert_eq!(read(&log("PASSED a.py::b\nFAILED a.py::c", Some(1))), Ok(2));
        // The patch said so itself before the script did.
        let forged = format!("PASSED a.py::b\n{TEST_EXIT_CODE}: 0");
        assert_eq!(read(&log(&forged, Some(1))), Err(Invalid::ExitCode(1)));
    }
}
