//! Logs of JavaScript runners that name failed tests alone: what they do not name has passed.

use std::sync::LazyLock;

use judge::pytest::TestStatus::Failed;
use regex::Regex;

use super::pattern;
use crate::grading::statuses::Statuses;

fn failures(names: impl Iterator<Item = String>) -> Statuses {
    names.map(|name| (name, Failed)).collect()
}

/// Text without the escape sequences of terminals.
fn without_escapes(log: &str) -> String {
    static ESCAPE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"\x1B(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])"));
    ESCAPE.replace_all(log, "").into_owned()
}

fn one_line(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    words.join(" ")
}

pub(super) fn chart_js(log: &str) -> Statuses {
    static FAILURE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?m)Chrome\s[\d.]+[^\S\r\n]\(.+?\)[^\S\r\n](.*)FAILED$"));
    let log = without_escapes(log);
    failures(FAILURE.captures_iter(&log).map(|found| found[1].to_owned()))
}

pub(super) fn marked(log: &str) -> Statuses {
    static FAILURE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\d+\)\s(.*)"));
    failures(
        FAILURE
            .captures_iter(log)
            .map(|found| found[1].trim().to_owned()),
    )
}

pub(super) fn bpmn_js(log: &str) -> Statuses {
    static FAILURES: LazyLock<[Regex; 4]> = LazyLock::new(|| {
        [
            r"2KPhantomJS\s[\d.]+\s\(Linux\s[\d.]+\)\s(.*)FAILED\n",
            r"2KPhantomJS\s[\d.]+\s\(Linux\sx86_64\)\s(.*)FAILED\n",
            r"Chrome\sHeadless\s.*\s\(Linux\sx86_64\)\s(.*)FAILED\n",
            r"HeadlessChrome\s[\d.]+\s\(Linux\s[\d.]+\)\s(.*)FAILED\n",
        ]
        .map(pattern)
    });
    let found = FAILURES
        .iter()
        .flat_map(|failure| failure.captures_iter(log));
    failures(found.map(|found| found[1].to_owned()))
}

pub(super) fn openlayers(log: &str) -> Statuses {
    static FAILURES: LazyLock<[Regex; 4]> = LazyLock::new(|| {
        [
            r"Chrome\sHeadless\s[\d.]+\s\(Linux\s\S+\)\s(.*)\sFAILED\n",
            r"Chrome\s[\d.]+\s\(Linux\s\S+\)\s(.*)FAILED\n",
            r"(?m)^\s{2}\d+\)([\s\S]*?)Error:",
            r"(?m)^case\s(.*):\smismatch",
        ]
        .map(pattern)
    });
    let found = FAILURES
        .iter()
        .flat_map(|failure| failure.captures_iter(log));
    failures(found.map(|found| one_line(&found[1])))
}

pub(super) fn eslint(log: &str) -> Statuses {
    static FAILURE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"\s{2}\d+\)([\s\S]*?)\s+(?:.*)Error"));
    failures(FAILURE.captures_iter(log).map(|found| one_line(&found[1])))
}

pub(super) fn p5js(log: &str) -> Statuses {
    static FAILURE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\s*\d+\)((?s:.{0,1000}?)):"));
    let log = without_markup(&without_values(&without_escapes(log)));
    let names = FAILURE.captures_iter(&log).filter_map(|found| {
        let lines: Vec<&str> = found[1].split('\n').collect();
        let indent = |line: &str| line.chars().count() - line.trim_start().chars().count();
        // Suites and their test stand below each other, ever deeper; anything else is an error's text.
        let mut depth = 0;
        let deeper = lines.iter().all(|line| {
            let ok = indent(line) > depth;
            depth = indent(line);
            ok
        });
        let names: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
        deeper.then(|| names.join(":"))
    });
    failures(names)
}

/// Without objects and lists that were printed, over one line or several.
fn without_values(log: &str) -> String {
    let (mut in_object, mut in_list) = (false, false);
    let mut kept = Vec::new();
    for line in log.split('\n') {
        let end = line.trim_end();
        if end.ends_with('{') {
            in_object = true;
        } else if end.ends_with('[') {
            in_list = true;
        } else if end == "}" && in_object {
            in_object = false;
        } else if end == "]" && in_list {
            in_list = false;
        } else if !(in_object
            || in_list
            || (end.starts_with('{') && end.ends_with('}'))
            || (end.starts_with('[') && end.ends_with(']')))
        {
            kept.push(line);
        }
    }
    kept.join("\n")
}

/// Without elements of markup and what stands in them.
fn without_markup(log: &str) -> String {
    static OPENING: LazyLock<Regex> = LazyLock::new(|| pattern(r"<(\w+)>"));
    let mut kept = String::new();
    let mut rest = log;
    while let Some(found) = OPENING.captures(rest) {
        let (Some(opening), name) = (found.get(0), &found[1]) else {
            break;
        };
        match end_of_element(&rest[opening.end()..], name) {
            Some(end) => {
                kept.push_str(&rest[..opening.start()]);
                rest = &rest[opening.end() + end..];
            }
            None => {
                kept.push_str(&rest[..opening.end()]);
                rest = &rest[opening.end()..];
            }
        }
    }
    kept + rest
}

/// Where the element ends that was just opened; elements of its own name within it are closed first.
fn end_of_element(text: &str, name: &str) -> Option<usize> {
    let (opening, closing) = (format!("<{name}>"), format!("</{name}>"));
    let (mut depth, mut at) = (1usize, 0);
    let mut last = None;
    while depth > 0 {
        let Some(next) = text[at..].find(&closing).map(|next| at + next) else {
            // Less is closed than opened: the last closing ends it.
            return last;
        };
        depth += text[at..next].matches(&opening).count();
        depth -= 1;
        at = next + closing.len();
        last = Some(at);
    }
    last
}
