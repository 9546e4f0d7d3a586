//! Which failing tests an issue is about: a checkout may have others, which fail for reasons of their own and would
//! go on failing whatever repairs the issue.
//!
//! A test is spoken of when the issue has the words of its failure, the place where it failed or the test's name.
//! Those that run lines which the tests spoken of make suspicious belong to them. Where an issue speaks of no
//! test, all that fail are its concern.

use std::collections::BTreeSet;

use super::{observation::TestsObserved, suspicion::spectrum};
use crate::{Issue, workplace::Failure};

/// What the words of a failure count, where it failed, its kind, and the test's name.
const WORDS: u32 = 3;
const PLACE: u32 = 2;
const KIND: u32 = 1;
const NAME: u32 = 2;
/// A test that counts less is not spoken of.
const SPOKEN_OF: u32 = 3;
/// Shorter words of a failure, and shorter names, stand in many texts.
const MIN_WORDS: usize = 8;
/// Lines that weigh at least so much of what the heaviest weighs tie tests together.
const TIE: f64 = 0.3;

/// `observation` without the traced failing tests that are no concern of `issue`.
pub(super) fn of_concern(mut observation: TestsObserved, issue: &Issue) -> TestsObserved {
    let spoken = spoken_of(&observation, issue);
    if spoken.is_empty() {
        return observation;
    }
    let others: Vec<String> = observation
        .failing_lines
        .keys()
        .filter(|id| !spoken.contains(*id))
        .cloned()
        .collect();
    let mut alone = observation.clone();
    alone.failing_lines.retain(|id, _| spoken.contains(id));
    let weights = spectrum(&alone);
    let heaviest = weights.values().flat_map(|lines| lines.values());
    let least = TIE * heaviest.copied().fold(0.0, f64::max);
    for id in others {
        let coverage = &observation.failing_lines[&id];
        let is_tied = coverage.iter().any(|(path, lines)| {
            let suspicious = weights.get(path);
            suspicious.is_some_and(|weights| {
                let weight = |line| weights.get(line).copied().unwrap_or(0.0);
                lines
                    .iter()
                    .any(|line| weight(line) >= least.max(f64::MIN_POSITIVE))
            })
        });
        if !is_tied {
            observation.failing.retain(|other| *other != id);
            observation.failures.remove(&id);
            observation.failing_lines.remove(&id);
        }
    }
    observation
}

/// Traced failing tests that the issue speaks of.
fn spoken_of(observation: &TestsObserved, issue: &Issue) -> BTreeSet<String> {
    let said = format!("{}\n{}", issue.title, issue.body);
    let squeezed = squeezed(&said);
    let of = |id: &&String| {
        let failure = observation.failures.get(*id);
        let shown = failure.map_or(0, |failure| shown(failure, issue, &said));
        let name = id.rsplit([':', '.']).next().unwrap_or(id);
        let name = name.split('[').next().unwrap_or(name);
        let name = self::squeezed(name.trim_start_matches("test"));
        let is_named = name.len() >= MIN_WORDS && squeezed.contains(&name);
        shown + NAME * u32::from(is_named) >= SPOKEN_OF
    };
    let traced = observation.failing_lines.keys();
    traced.filter(of).cloned().collect()
}

fn shown(failure: &Failure, issue: &Issue, said: &str) -> u32 {
    let words = failure.message.lines().next().unwrap_or_default().trim();
    let has_words = words.len() >= MIN_WORDS && said.contains(words);
    let has_place = issue.failure_frame.as_deref().is_some_and(|place| {
        let mut frames = failure.frames.iter();
        frames.any(|frame| format!("{}:{}", frame.path, frame.line) == place)
    });
    let has_kind = issue.error_kind.as_deref() == Some(&*failure.kind);
    WORDS * u32::from(has_words) + PLACE * u32::from(has_place) + KIND * u32::from(has_kind)
}

fn squeezed(text: &str) -> String {
    let letters = text.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::workplace::Frame;

    fn observation() -> TestsObserved {
        let tests = [
            (
                "tests/test_a.py::test_grows",
                "KeyError",
                "'the missing key'",
                3,
            ),
            (
                "tests/test_a.py::test_grows_twice",
                "TypeError",
                "not that",
                3,
            ),
            (
                "tests/test_b.py::test_network",
                "OSError",
                "nobody answers",
                90,
            ),
        ];
        let mut observation = TestsObserved::default();
        for (id, kind, message, line) in tests {
            let frame = Frame {
                path: "a.py".to_owned(),
                line,
                function: "f".to_owned(),
            };
            let failure = Failure {
                kind: kind.to_owned(),
                message: message.to_owned(),
                frames: vec![frame],
            };
            observation.failing.push(id.to_owned());
            observation.failures.insert(id.to_owned(), failure);
            let lines = BTreeMap::from([("a.py".to_owned(), vec![1, line])]);
            observation.failing_lines.insert(id.to_owned(), lines);
        }
        let everywhere = BTreeMap::from([("a.py".to_owned(), vec![1])]);
        for number in 0..30 {
            let id = format!("tests/test_a.py::test_{number}");
            observation.passing_lines.insert(id, everywhere.clone());
        }
        observation
    }

    fn failing(issue: &Issue) -> Vec<String> {
        of_concern(observation(), issue).failing
    }

    #[test]
    fn tests_that_fail_on_their_own_are_left_out() {
        let all = observation().failing;
        let issue = |body: &str, place: Option<&str>, kind: &str| Issue {
            body: body.to_owned(),
            failure_frame: place.map(str::to_owned),
            error_kind: Some(kind.to_owned()),
            ..Issue::default()
        };
        let words = issue("It says KeyError: 'the missing key'", None, "KeyError");
        assert_eq!(failing(&words), all[..2]);
        let place = issue("It ends", Some("a.py:90"), "OSError");
        assert_eq!(failing(&place), all[2..]);
        let name = issue("What the network test shows", None, "OSError");
        assert_eq!(failing(&name), all);
    }

    #[test]
    fn an_issue_that_speaks_of_no_test_is_about_all() {
        assert_eq!(failing(&Issue::default()), observation().failing);
    }
}
