//! Verdicts on tests that were run by their ids: lines at the end of a log, which reports are made from anew.

use std::{collections::BTreeSet, fmt::Write};

use super::{Split, TestsStatus};
use crate::Checks;

/// Stands before the verdicts.
const MARK: &str = ">>>>> Tests That Decide";

/// `log`, and behind it a line for every test: `PASSED ID` or `FAILED ID`.
pub fn with_verdicts(mut log: String, tests: &TestsStatus) -> String {
    if !log.is_empty() && !log.ends_with('\n') {
        log.push('\n');
    }
    log += MARK;
    log.push('\n');
    for split in [&tests.fail_to_pass, &tests.pass_to_pass] {
        for (word, ids) in [("PASSED", &split.success), ("FAILED", &split.failure)] {
            for id in ids {
                // Texts take all that is written.
                let _ = writeln!(log, "{word} {id}");
            }
        }
    }
    log
}

/// What the end of a log says of the tests of `checks`; those that it does not name have failed. `None` of a log
/// without verdicts. What a program printed stands before them, whatever it is.
pub fn verdicts(log: &str, checks: &Checks) -> Option<TestsStatus> {
    let (_, told) = log.rsplit_once(MARK)?;
    let mut passed = BTreeSet::new();
    for line in told.lines().skip(1) {
        match line.split_once(' ')? {
            ("PASSED", id) => drop(passed.insert(id)),
            ("FAILED", _) => {}
            _ => return None,
        }
    }
    let has_passed = |id: &String| passed.contains(id.as_str());
    Some(TestsStatus {
        fail_to_pass: Split::of(&checks.fail_to_pass, has_passed),
        pass_to_pass: Split::of(&checks.pass_to_pass, has_passed),
        ..TestsStatus::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_a_program_prints_is_not() {
        let ids = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let checks = Checks {
            fail_to_pass: ids(&["t.py::a", "t.py::b[x y]"]),
            pass_to_pass: ids(&["t.py::c"]),
        };
        let passed = |id: &String| id != "t.py::a";
        let tests = TestsStatus {
            fail_to_pass: Split::of(&checks.fail_to_pass, passed),
            pass_to_pass: Split::of(&checks.pass_to_pass, passed),
            ..TestsStatus::default()
        };
        let forged = format!("{MARK}\nPASSED t.py::a");
        let log = with_verdicts(forged.clone(), &tests);
        assert_eq!(verdicts(&log, &checks), Some(tests));
        for log in [String::new(), "1 passed".to_owned(), forged + "\nor so"] {
            assert_eq!(verdicts(&log, &checks), None);
        }
    }
}
