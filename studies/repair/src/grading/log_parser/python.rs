//! Logs of Python's test runners: pytest in the forms that repositories call it, Django's, SymPy's.

use std::sync::LazyLock;

use judge::pytest::TestStatus;
use regex::Regex;

use super::pattern;
use crate::grading::statuses::{STATUS_WORDS, Statuses, status_of};

/// How the names in pytest's summary are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    AsTheyAre,
    /// Paths in brackets lose their folders, which differ between machines.
    ShortPaths,
    /// Members of an enumeration that newer versions name are the numbers they were.
    MouseButtons,
}

/// `STATUS name …` lines of the summary that `-rA` makes. The second word is the name.
pub(super) fn pytest(log: &str, names: Names) -> Statuses {
    let mut statuses = Statuses::default();
    for line in log.split('\n') {
        let mut line = line.to_owned();
        if names == Names::MouseButtons {
            line = line
                .replace("MouseButton.LEFT", "1")
                .replace("MouseButton.RIGHT", "3");
        }
        if !begins_with_status(&line) {
            continue;
        }
        if line.starts_with("FAILED") {
            line = line.replace(" - ", " ");
        }
        let mut words = line.split_whitespace();
        let (Some(word), Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        if is_count_of_skipped(word, name) {
            continue;
        }
        let name = match names {
            Names::ShortPaths => with_short_path(name),
            _ => name.to_owned(),
        };
        statuses.insert(name, status_of(word));
    }
    statuses
}

/// The same with whole names, colours taken off, and lines that end in a status as older versions have
/// them.
pub(super) fn pytest_v2(log: &str) -> Statuses {
    static COLOUR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\[(\d+)m"));
    let mut statuses = Statuses::default();
    for line in log.split('\n') {
        let mut line = COLOUR.replace_all(line, "").into_owned();
        line.retain(|character| !('\u{1}'..'\u{20}').contains(&character));
        if begins_with_status(&line) {
            let line = match line.starts_with("FAILED") {
                true => line.split(" - ").next().unwrap_or_default(),
                false => &line,
            };
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [word, first, ..] = words[..]
                && !is_count_of_skipped(word, first)
            {
                statuses.insert(words[1..].join(" "), status_of(word));
            }
        } else if STATUS_WORDS.iter().any(|(word, _)| line.ends_with(word)) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [name @ .., word] = &words[..]
                && !name.is_empty()
            {
                statuses.insert(name.join(" "), status_of(word));
            }
        }
    }
    statuses
}

fn begins_with_status(line: &str) -> bool {
    STATUS_WORDS.iter().any(|(word, _)| line.starts_with(word))
}

/// `SKIPPED [3] path:line: reason` counts tests and names none.
fn is_count_of_skipped(word: &str, name: &str) -> bool {
    let count = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    word == "SKIPPED"
        && count.is_some_and(|count| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()))
}

fn with_short_path(name: &str) -> String {
    let Some((test, rest)) = name.split_once('[') else {
        return name.to_owned();
    };
    let Some((option, _)) = rest.rsplit_once(']') else {
        return name.to_owned();
    };
    let is_path = option.starts_with('/') && !option.starts_with("//") && !option.contains('*');
    match option.rsplit_once('/') {
        Some((_, last)) if is_path => format!("{test}[/{last}]"),
        _ => format!("{test}[{option}]"),
    }
}

/// seaborn's logs: a summary, or lines `name PASSED …` of verbose runs.
pub(super) fn seaborn(log: &str) -> Statuses {
    let mut statuses = Statuses::default();
    for line in log.split('\n') {
        let mut words = line.split_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else {
            continue;
        };
        if line.starts_with("FAILED") {
            statuses.insert(second, Some(TestStatus::Failed));
        } else if line.contains(" PASSED ") {
            if second == "PASSED" {
                statuses.insert(first, Some(TestStatus::Passed));
            }
        } else if line.starts_with("PASSED") {
            statuses.insert(second, Some(TestStatus::Passed));
        }
    }
    statuses
}

/// `bin/test`: a line a test that ends in its status, and a headline over each failure.
pub(super) fn sympy(log: &str) -> Statuses {
    static HEADLINE: LazyLock<Regex> = LazyLock::new(|| pattern(r"_* (.*)\.py:(.*) _*"));
    let mut statuses = Statuses::default();
    for found in HEADLINE.captures_iter(log) {
        let name = format!("{}.py:{}", &found[1], &found[2]);
        statuses.insert(name, Some(TestStatus::Failed));
    }
    for line in log.split('\n').map(str::trim) {
        let Some(name) = line.split_whitespace().next() else {
            continue;
        };
        let endings = [
            (" E", TestStatus::Error),
            (" F", TestStatus::Failed),
            (" ok", TestStatus::Passed),
        ];
        for (_, status) in endings.iter().filter(|(end, _)| line.ends_with(end)) {
            if line.starts_with("test_") {
                statuses.insert(name, Some(*status));
            }
        }
    }
    statuses
}

/// Verbose runs of unittest: `name (class) ... ok`, and a headline over each failure, `FAIL: name (class)`.
pub(super) fn unittest(log: &str) -> Statuses {
    let mut statuses = Statuses::default();
    for line in log.split('\n').map(str::trim_end) {
        let headline = [
            ("FAIL: ", TestStatus::Failed),
            ("ERROR: ", TestStatus::Error),
        ]
        .into_iter()
        .find_map(|(begin, status)| Some((line.strip_prefix(begin)?, status)));
        if let Some((rest, status)) = headline {
            let name: Vec<&str> = rest.split_whitespace().take(2).collect();
            statuses.insert(name.join(" "), Some(status));
            continue;
        }
        let Some((name, end)) = line.rsplit_once(" ... ") else {
            continue;
        };
        let status = match end.split_whitespace().next() {
            Some("ok") => TestStatus::Passed,
            Some("FAIL") => TestStatus::Failed,
            Some("ERROR") => TestStatus::Error,
            Some("skipped") => TestStatus::Skipped,
            Some("expected") => TestStatus::ExpectedFailure,
            _ => continue,
        };
        statuses.insert(name.trim_start(), Some(status));
    }
    statuses
}

/// Django's runner at verbosity 2: `name ... status`, where a test's own output may stand between the dots
/// and the status.
pub(super) fn django(log: &str) -> Statuses {
    /// What is known to stand there, with the status on the next line.
    static TORN: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        [
            r"(?m)^(.*?)\s\.\.\.\sTesting against Django installed in (?s:.*?) silenced\)\.\nok$",
            r"(?m)^(.*?)\s\.\.\.\sInternal Server Error: /.*/\nok$",
            r"(?m)^(.*?)\s\.\.\.\sSystem check identified no issues \(0 silenced\)\nok$",
        ]
        .map(pattern)
    });
    const VERSION: &str = "--version is equivalent to version";
    let mut statuses = Statuses::default();
    let mut before = None;
    for line in log.split('\n').map(str::trim) {
        if line.contains(VERSION) {
            statuses.insert(VERSION, Some(TestStatus::Passed));
        }
        if let Some((name, _)) = line.split_once(" ... ") {
            before = Some(name);
        }
        let passed = [" ... ok", " ... OK", " ...  OK"]
            .into_iter()
            .find_map(|end| line.strip_suffix(end));
        if let Some(name) = passed {
            // A migration's own line runs into the first test behind it (django__django-7188).
            let migration = "Applying sites.0002_alter_domain_unique...";
            let name = match name.strip_prefix(migration) {
                Some(rest) if rest.starts_with("test_no_migrations") => rest,
                _ => name,
            };
            statuses.insert(name.trim_start(), Some(TestStatus::Passed));
        }
        if let Some((name, _)) = line.split_once(" ... skipped") {
            statuses.insert(name, Some(TestStatus::Skipped));
        }
        for (word, status) in [("FAIL", TestStatus::Failed), ("ERROR", TestStatus::Error)] {
            let end = format!(" ... {word}");
            if line.ends_with(&end) {
                let name = line.split(&end).next().unwrap_or_default();
                statuses.insert(name, Some(status));
            }
            if line.starts_with(&format!("{word}:"))
                && let Some(name) = line.split_whitespace().nth(1)
            {
                statuses.insert(name, Some(status));
            }
        }
        if let (Some(name), true) = (before, line.starts_with("ok")) {
            statuses.insert(name, Some(TestStatus::Passed));
        }
    }
    for torn in TORN.iter() {
        for found in torn.captures_iter(log) {
            statuses.insert(&found[1], Some(TestStatus::Passed));
        }
    }
    statuses
}
