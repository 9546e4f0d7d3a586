//! What running a program has shown, in words for a critic that is to explain it (spec of the critique study, section
//! 1.3, rule 3).
//!
//! A hint holds gold: inputs and expected outputs of hidden tests. It goes into prompts of teachers, whose critiques
//! are filtered before anybody learns from them, and of baselines that are evaluated with it, and nowhere else.

use judge::{FailedTest, Feedback, VerdictStatus};
use rand::seq::IndexedRandom;
use record::Seed;

/// The program passes everything.
const PASSES: &str =
    "Every test passes. Say so in few and friendly words, and suggest nothing that matters.";
/// Some test ran out of time.
const TOO_SLOW: &str =
    "The program does not finish within its time limit on some tests. Its method is too slow.";
/// No test passes, or nothing short enough can be said.
const ALL_WRONG: &str = "The program fails every test. Its idea is wrong from the ground up; it should be written \
                         anew along another idea.";

/// A message about one test that is this long says too much.
const LONGEST: usize = 1000;

/// The hint of a program's feedback; where several tests have something to say, `seed` draws one of them.
///
/// Of programs that read standard input: a right program is praised. Else the first exception, whatever came before
/// it, is quoted with the line that raised it. Else, if every test fails, the program is to be written anew; and if
/// some pass, one of the failures is told: too slow, or input, expected and actual output. Of programs that are
/// called: praise, too slow, or what the first failing test raised.
pub fn hint(feedback: &Feedback, seed: Seed) -> String {
    let Feedback { verdict, failures } = feedback;
    if verdict.passed {
        return PASSES.to_owned();
    }
    let prints = failures.iter().any(|test| test.printed.is_some());
    if prints {
        of_printing(failures, verdict.n_tests, seed)
    } else {
        of_calls(failures, verdict.status)
    }
}

fn of_printing(failures: &[FailedTest], n_tests: usize, seed: Seed) -> String {
    let mut messages = Vec::new();
    for test in failures {
        if test.status.is_timeout() {
            messages.push(TOO_SLOW.to_owned());
        } else if let Some(raised) = raised(test) {
            return raised;
        } else {
            messages.push(compared(test));
        }
    }
    if messages.len() >= n_tests {
        return ALL_WRONG.to_owned();
    }
    let mut distinct: Vec<String> = Vec::new();
    for message in messages {
        if message.chars().count() < LONGEST && !distinct.contains(&message) {
            distinct.push(message);
        }
    }
    let drawn = distinct.choose(&mut seed.stream("hint", 0).rng());
    drawn.cloned().unwrap_or_else(|| ALL_WRONG.to_owned())
}

fn of_calls(failures: &[FailedTest], status: VerdictStatus) -> String {
    let too_slow = failures.iter().any(|test| test.status.is_timeout());
    if too_slow || status.is_timeout() {
        return TOO_SLOW.to_owned();
    }
    let Some(test) = failures.first() else {
        return ALL_WRONG.to_owned();
    };
    let error = match (&test.error, &test.expected) {
        (Some(error), _) => error.trim_end().to_owned(),
        (None, Some(expected)) => format!("AssertionError: {expected} was expected"),
        (None, None) => "AssertionError".to_owned(),
    };
    match test.input.as_str() {
        "" => error,
        input => format!("{input}\n{error}"),
    }
}

/// The exception of a test with the line that raised it, where its standard error has one.
fn raised(test: &FailedTest) -> Option<String> {
    if test.status == VerdictStatus::Wrong {
        return None;
    }
    let text = test.error.as_deref()?;
    // Below a line of source, newer Pythons underline what is meant.
    let is_underline = |line: &str| line.trim().chars().all(|c| "^~ ".contains(c));
    let mut lines = text.lines().rev().filter(|line| !is_underline(line));
    let error = lines.next()?.trim();
    let name = error.split([':', '(']).next()?;
    let is_name = name
        .chars()
        .all(|c| c.is_alphanumeric() || "._".contains(c));
    let is_exception = text.contains("Traceback (most recent call last)")
        || (is_name
            && ["Error", "Exception", "Exit", "Interrupt"]
                .iter()
                .any(|end| name.ends_with(end)));
    if !is_exception {
        return None;
    }
    let source = lines
        .next()
        .map(str::trim)
        .filter(|line| !line.starts_with("Traceback") && !line.starts_with("File "));
    Some(match source {
        Some(source) => {
            format!("The program ends with an exception at the line\n{source}\n{error}")
        }
        None => format!("The program ends with an exception\n{error}"),
    })
}

fn compared(test: &FailedTest) -> String {
    let printed = test.printed.as_deref().unwrap_or_default();
    let ended = match test.status {
        VerdictStatus::Wrong => String::new(),
        status => format!("\nIt did not end as it should: {status}."),
    };
    format!(
        "A test fails.\nInput:\n{}\nExpected output:\n{}\nActual output:\n{}{ended}",
        test.input.trim_end(),
        test.expected.as_deref().unwrap_or_default().trim_end(),
        printed.trim_end(),
    )
}

#[cfg(test)]
mod tests {
    use judge::{CaseResult, Verdict};
    use proptest::prelude::*;

    use super::*;

    fn feedback(n_tests: usize, failures: Vec<FailedTest>) -> Feedback {
        let n_passed = n_tests - failures.len().min(n_tests);
        let passed = failures.is_empty();
        let status = failures
            .first()
            .map_or(VerdictStatus::Passed, |test| test.status);
        let verdict: Verdict = serde_json::from_value(serde_json::json!({
            "passed": passed, "n_passed": n_passed, "n_tests": n_tests,
            "cases": vec![CaseResult::Wrong; failures.len()], "status": status, "message": null,
            "key": "00".repeat(32), "cached": false, "wall_ms": 0.0, "cpu_ms": 0.0, "tier": "namespaces",
        }))
        .unwrap();
        Feedback { verdict, failures }
    }

    fn wrong(input: &str) -> FailedTest {
        FailedTest {
            status: VerdictStatus::Wrong,
            input: input.to_owned(),
            expected: Some("3\n".to_owned()),
            printed: Some("4\n".to_owned()),
            error: None,
        }
    }

    fn slow() -> FailedTest {
        FailedTest {
            status: VerdictStatus::CpuTimeout,
            ..wrong("9")
        }
    }

    fn raising(stderr: &str) -> FailedTest {
        FailedTest {
            status: VerdictStatus::Error,
            printed: Some(String::new()),
            error: Some(stderr.to_owned()),
            ..wrong("x")
        }
    }

    fn called(status: VerdictStatus, error: Option<&str>) -> FailedTest {
        FailedTest {
            status,
            input: "assert f(1) == 2".to_owned(),
            expected: None,
            printed: None,
            error: error.map(str::to_owned),
        }
    }

    const TRACEBACK: &str = "debug\nTraceback (most recent call last):\n  File \"p.py\", line 1, in <module>\n    \
                             print(1 / 0)\n          ~~^~~\nZeroDivisionError: division by zero\n";

    #[track_caller]
    fn check(feedback: &Feedback, expected: &str) {
        for seed in 0..8 {
            assert_eq!(hint(feedback, Seed(seed)), expected);
        }
    }

    #[test]
    fn a_right_program_is_praised() {
        check(&feedback(3, Vec::new()), PASSES);
    }

    #[test]
    fn an_exception_is_told_at_once_whatever_failed_before_it() {
        let told = "The program ends with an exception at the line\nprint(1 / 0)\nZeroDivisionError: division by zero";
        check(&feedback(5, vec![raising(TRACEBACK)]), told);
        check(
            &feedback(3, vec![slow(), wrong("1"), raising(TRACEBACK)]),
            told,
        );
        check(
            &feedback(3, vec![raising(TRACEBACK), raising("ValueError: later")]),
            told,
        );
    }

    #[test]
    fn short_tracebacks_are_told_as_far_as_they_go() {
        for (stderr, told) in [
            (
                "  File \"p.py\", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax",
                "The program ends with an exception at the line\nx = = 1\nSyntaxError: invalid syntax",
            ),
            (
                "ValueError: x",
                "The program ends with an exception\nValueError: x",
            ),
            (
                "Traceback (most recent call last):\nKeyError: 5",
                "The program ends with an exception\nKeyError: 5",
            ),
            (
                "Traceback (most recent call last):\n  File \"p.py\", line 2, in <module>\nEOFError",
                "The program ends with an exception\nEOFError",
            ),
        ] {
            check(&feedback(3, vec![raising(stderr)]), told);
        }
    }

    #[test]
    fn what_is_no_exception_is_compared() {
        let mut killed = raising("some words for people");
        killed.status = VerdictStatus::Memory;
        check(
            &feedback(2, vec![killed]),
            "A test fails.\nInput:\nx\nExpected output:\n3\nActual output:\n\nIt did not end as it should: memory.",
        );
        // Words on standard error of a program that ends well say nothing.
        let mut noisy = wrong("1");
        noisy.error = Some(TRACEBACK.to_owned());
        check(
            &feedback(2, vec![noisy]),
            "A test fails.\nInput:\n1\nExpected output:\n3\nActual output:\n4",
        );
    }

    #[test]
    fn a_program_that_fails_everything_is_to_be_written_anew() {
        check(&feedback(2, vec![wrong("1"), wrong("2")]), ALL_WRONG);
        check(&feedback(2, vec![slow(), slow()]), ALL_WRONG);
    }

    #[test]
    fn a_program_that_is_sometimes_slow_is_told_so() {
        check(&feedback(3, vec![slow(), slow()]), TOO_SLOW);
    }

    #[test]
    fn one_of_several_failures_is_drawn_and_equal_ones_count_once() {
        let failures = vec![wrong("1"), wrong("1"), wrong("1"), wrong("2"), slow()];
        let feedback = feedback(9, failures);
        let mut drawn: Vec<String> = (0..300).map(|seed| hint(&feedback, Seed(seed))).collect();
        assert_eq!(
            drawn,
            (0..300)
                .map(|seed| hint(&feedback, Seed(seed)))
                .collect::<Vec<_>>()
        );
        let of_first = drawn
            .iter()
            .filter(|hint| hint.contains("Input:\n1"))
            .count();
        assert!((60..140).contains(&of_first), "{of_first}");
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len(), 3);
    }

    #[test]
    fn long_messages_are_dropped_and_without_others_the_program_is_to_be_written_anew() {
        let long = wrong(&"7".repeat(1000));
        check(&feedback(3, vec![long.clone()]), ALL_WRONG);
        check(&feedback(3, vec![long, slow()]), TOO_SLOW);
    }

    #[test]
    fn calls_are_told_as_they_raised() {
        let passed = VerdictStatus::Error;
        check(
            &feedback(
                3,
                vec![
                    called(passed, Some("IndexError: list index\n")),
                    called(passed, None),
                ],
            ),
            "assert f(1) == 2\nIndexError: list index",
        );
        check(
            &feedback(3, vec![called(VerdictStatus::Wrong, None)]),
            "assert f(1) == 2\nAssertionError",
        );
        let mut call = called(VerdictStatus::Wrong, None);
        (call.input, call.expected) = ("f(1)".to_owned(), Some("2".to_owned()));
        check(
            &feedback(1, vec![call]),
            "f(1)\nAssertionError: 2 was expected",
        );
        check(
            &feedback(
                3,
                vec![
                    called(passed, Some("x")),
                    called(VerdictStatus::WallTimeout, None),
                ],
            ),
            TOO_SLOW,
        );
    }

    proptest! {
        #[test]
        fn any_standard_error_is_read_without_panic(
            stderr in "(Traceback \\(most recent call last\\):|File |Error|: |\n|\\^|~|\\PC){0,20}", seed: u64
        ) {
            let told = hint(&feedback(2, vec![raising(&stderr)]), Seed(seed));
            prop_assert!(!told.is_empty());
        }
    }
}
