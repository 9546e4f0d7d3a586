//! Logs with a line a test: one pattern each, and the words for the statuses.

use std::sync::LazyLock;

use judge::pytest::TestStatus::{self, Failed, Passed, Skipped};
use regex::Regex;

use super::pattern;
use crate::grading::statuses::{STATUS_WORDS, Statuses};

/// A line a test. `status` and `name` are groups of the pattern, which must match at the beginning of a
/// line without the spaces around it.
pub(super) struct LinePattern {
    regex: Regex,
    words: &'static [(&'static str, TestStatus)],
}

impl LinePattern {
    fn new(text: &str, words: &'static [(&'static str, TestStatus)]) -> Self {
        let regex = pattern(text);
        Self { regex, words }
    }

    fn find<'a>(&self, line: &'a str) -> Option<(&'a str, TestStatus)> {
        let found = self.regex.captures(line.trim())?;
        let word = found.name("status")?.as_str();
        let (_, status) = self.words.iter().find(|(known, _)| *known == word)?;
        Some((found.name("name")?.as_str(), *status))
    }

    pub(super) fn read(&self, log: &str) -> Statuses {
        log.split('\n').filter_map(|line| self.find(line)).collect()
    }
}

macro_rules! line_patterns {
    ($($(#[$doc:meta])* $name:ident: $regex:literal, $words:expr;)*) => {
        $($(#[$doc])* pub(super) static $name: LazyLock<LinePattern> =
            LazyLock::new(|| LinePattern::new($regex, $words));)*
    };
}

line_patterns! {
    /// `go test -v`.
    GO: r"^--- (?<status>PASS|FAIL|SKIP): (?<name>.+) \(.+\)$",
        &[("PASS", Passed), ("FAIL", Failed), ("SKIP", Skipped)];
    /// `cargo test`.
    CARGO: r"^test\s+(?<name>\S+)\s+\.\.\.\s+(?<status>\w+)$",
        &[("ok", Passed), ("FAILED", Failed)];
    /// Names of several words too.
    CARGO_VERBOSE: r"^(?:test )?(?<name>.+?) \.\.\. (?<status>ok|FAILED|ignored)\b",
        &[("ok", Passed), ("FAILED", Failed), ("ignored", Skipped)];
    PYTEST_VERBOSE: r"^(?<name>\S+)\s+(?<status>PASSED|FAILED|ERROR|SKIPPED|XFAIL)\b", &STATUS_WORDS;
    PYTEST_WORKERS: r"^\[gw\d+\]\s(?:\[\s*\d+%\]\s)?(?<status>PASSED|FAILED|ERROR|SKIPPED|XFAIL)\s(?<name>\S+)",
        &STATUS_WORDS;
    JQ: r"^(?<status>PASS|FAIL):\s(?<name>.+)$",
        &[("PASS", Passed), ("FAIL", Failed)];
    MICROPYTHON: r"^(?<status>pass|FAIL|skip)\s+(?<name>.+)$",
        &[("pass", Passed), ("FAIL", Failed), ("skip", Skipped)];
    GOOGLETEST: r"^.*\[\s*(?<status>OK|FAILED)\s*\]\s(?<name>.*)\s\(.*\)$",
        &[("OK", Passed), ("FAILED", Failed)];
    /// JUnit below Ant.
    ANT: r"^\[junit\]\s+\[(?<status>PASS|FAIL|ERR)\]\s+(?<name>.*)$",
        &[("PASS", Passed), ("FAIL", Failed), ("ERR", Failed)];
    MINITEST: r"^(?<name>.+)\. .*=.*(?<status>\.|F|E).*$",
        &[(".", Passed), ("F", Failed), ("E", Failed)];
    /// `--format progress`.
    CUCUMBER: r"^(?<name>.*) \.+(?<status>\.|F)",
        &[(".", Passed), ("F", Failed)];
    RUBY_UNIT: r"^(?:test: )?(?<name>.+):\s+(?<status>\.|E\b|F\b|O\b)",
        &[(".", Passed), ("E", Failed), ("F", Failed), ("O", Skipped)];
    /// RSpec's JSON, made lines of by the evaluation script.
    RSPEC: r"^(?<name>.+) - (?<status>passed|failed)",
        &[("passed", Passed), ("failed", Failed)];
    /// `jest --verbose`.
    JEST: r"^(?<status>✓|✕|○)\s(?<name>.+?)(?:\s\(\d+\s*m?s\))?$",
        &[("✓", Passed), ("✕", Failed), ("○", Skipped)];
    /// Jest's JSON, made lines of by the evaluation script.
    JEST_JSON: r"^\[(?<status>PASSED|FAILED)\]\s(?<name>.+)$",
        &[("PASSED", Passed), ("FAILED", Failed)];
    /// `mocha --reporter spec`.
    MOCHA: r"^(?<status>✔|✖|-)\s(?<name>.+?)(?:\s\(\d+\s*m?s\))?$",
        &[("✔", Passed), ("✖", Failed), ("-", Skipped)];
    /// `vitest --reporter=verbose`.
    VITEST: r"^(?<status>✓|×|↓)\s(?<name>.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?$",
        &[("✓", Passed), ("×", Failed), ("↓", Skipped)];
    TAP: r"^(?<status>ok|not ok) \d+ (?<name>.+)$",
        &[("ok", Passed), ("not ok", Failed)];
    REDIS: r"^\[(?<status>ok|err|skip|ignore)\]:\s(?<name>.+?)(?:\s\(\d+\s*m?s\))?$",
        &[("ok", Passed), ("err", Failed), ("skip", Skipped), ("ignore", Skipped)];
}

/// Redis' and Valkey's logs: where a failed test stands is no part of its name.
pub(super) fn redis(log: &str) -> Statuses {
    static PLACE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\s+in\s+\S+$"));
    log.split('\n')
        .filter_map(|line| REDIS.find(line))
        .map(|(name, status)| match status {
            Failed => (PLACE.replace(name, "").into_owned(), status),
            _ => (name.to_owned(), status),
        })
        .collect()
}

/// `phpunit --testdox`: tests below the headline of their suite.
pub(super) fn phpunit(log: &str) -> Statuses {
    static SUITE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\w.+) \(.+\)$"));
    static TEST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*([✔✘↩])\s*(.*)$"));
    let mut suite = "None".to_owned();
    let mut statuses = Statuses::default();
    for line in log.split('\n') {
        if let Some(found) = SUITE.captures(line) {
            suite = found[1].to_owned();
        } else if let Some(found) = TEST.captures(line) {
            let status = match &found[1] {
                "✔" => Passed,
                "✘" => Failed,
                _ => Skipped,
            };
            statuses.insert(format!("{suite} > {}", &found[2]), Some(status));
        }
    }
    statuses
}

/// Maven says how a build ended and names no test that passed, so the script runs each test by itself: the
/// commands that the shell's trace shows and the builds' ends are matched in their order.
pub(super) fn maven(log: &str) -> Statuses {
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| pattern(r"^.*-Dtest=(\S+).*$"));
    static END: LazyLock<Regex> = LazyLock::new(|| pattern(r"^.*BUILD (SUCCESS|FAILURE)$"));
    let (mut tests, mut ends) = (Vec::new(), Vec::new());
    for line in log.split('\n').map(str::trim) {
        if let Some(found) = COMMAND.captures(line) {
            tests.push(found[1].to_owned());
        }
        if let Some(found) = END.captures(line) {
            ends.push(match &found[1] {
                "SUCCESS" => Passed,
                _ => Failed,
            });
        }
    }
    tests.into_iter().zip(ends).collect()
}

/// Maven's Surefire with a line a test, `[INFO] name -- Time elapsed: …` or, in older versions, `name(class)  Time
/// elapsed: …`; what did not pass says so at the end of its line.
pub(super) fn surefire(log: &str) -> Statuses {
    static NEW: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^\[(?:INFO|ERROR|WARNING)\]\s+(.*?)\s+--\s+Time elapsed:\s+[\d.]+\s")
    });
    static OLD: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(\w+)\(([\w.$]+)\)\s+Time elapsed:\s+[\d.]+\s+s"));
    let mut statuses = Statuses::default();
    for line in log.split('\n').map(str::trim) {
        let name = match (NEW.captures(line), OLD.captures(line)) {
            (Some(found), _) => found[1].to_owned(),
            (None, Some(found)) => format!("{}.{}", &found[2], &found[1]),
            (None, None) => continue,
        };
        // A line that sums up a class.
        if name.starts_with("Tests run:") {
            continue;
        }
        let ending = line.rsplit_once("<<<").map(|(_, ending)| ending.trim());
        let status = match ending {
            Some("FAILURE!") => Failed,
            Some("ERROR!") => TestStatus::Error,
            Some("SKIPPED!") => Skipped,
            _ => Passed,
        };
        statuses.insert(name, Some(status));
    }
    statuses
}

/// `gradle test` with a line a test; the status may come some lines later.
pub(super) fn gradle(log: &str) -> Statuses {
    static WHOLE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^([^>].+)\s+(PASSED|FAILED)$"));
    static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[^>]\S*\s+>\s+\S+$"));
    let status = |word: &str| match word {
        "PASSED" => Passed,
        _ => Failed,
    };
    let mut waiting = None;
    let mut statuses = Statuses::default();
    for line in log.split('\n').map(str::trim) {
        if let Some(found) = WHOLE.captures(line) {
            statuses.insert(&found[1], Some(status(&found[2])));
            waiting = None;
        } else if NAME.is_match(line) {
            waiting = Some(line);
        } else if let ("PASSED" | "FAILED", Some(name)) = (line, waiting) {
            statuses.insert(name, Some(status(line)));
            waiting = None;
        }
    }
    statuses
}

/// Karma's tree of suites, from the browser's start to the summary.
pub(super) fn karma(log: &str) -> Statuses {
    static LINE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\s*)?([✔✖])?\s(.*)$"));
    let mut statuses = Statuses::default();
    let mut suites: Vec<String> = Vec::new();
    let mut depth = None;
    let lines = log
        .split('\n')
        .skip_while(|line| !line.contains("Starting browser"))
        .take_while(|line| !line.starts_with("SUMMARY:"));
    for line in lines.filter(|line| !line.contains("Starting browser")) {
        let Some(found) = LINE.captures(line) else {
            continue;
        };
        let indent = found.get(1).map_or(0, |indent| indent.len());
        let name = &found[3];
        match found.get(2).map(|mark| mark.as_str()) {
            Some(mark) => {
                let status = if mark == "✔" { Passed } else { Failed };
                let path: Vec<&str> = suites.iter().map(String::as_str).chain([name]).collect();
                statuses.insert(path.join(" > "), Some(status));
            }
            None if indent > 0 => {
                if depth.is_none_or(|depth| indent > depth) {
                    suites.push(name.to_owned());
                } else if depth.is_some_and(|depth| indent < depth) {
                    suites.pop();
                }
                depth = Some(indent);
            }
            None => {}
        }
    }
    statuses
}
