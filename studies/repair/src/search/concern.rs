//! Which failing tests an issue is about: a checkout may have others, which fail for reasons of their own and would
//! go on failing whatever repairs the issue.
//!
//! Those that run lines which the tests spoken of ([`super::spoken`]) make suspicious belong to them. Where an issue
//! speaks of no test, all that fail are its concern but for those that fail by what surrounds the program.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    observation::{Coverage, TestsObserved},
    spoken::{function, spoken_of},
    surroundings::{failing_by_surroundings, lacks_fixture},
    suspicion::{Spectra, Weights, spectrum},
};
use crate::{Issue, workplace::Failure};

/// Which of the failing tests a search is for.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    pub issue: &'a Issue,
    /// Failing tests that the user names: of concern are these and those that run the same suspicious lines, whatever
    /// the issue says. None where the issue decides.
    pub named: &'a [String],
    /// Tests that fail now and then, and tell nothing.
    pub unsteady: &'a BTreeSet<String>,
}

/// At most `count` of the failing tests, those that are `named` or that the issue speaks of first, and of the others
/// one of each function before a second of any.
pub fn foremost(
    failing: &[String],
    failures: &BTreeMap<String, Failure>,
    (issue, named): (&Issue, &[String]),
    count: usize,
) -> Vec<String> {
    let spoken = spoken_of(failing.iter(), failures, issue, named);
    let mut of_function: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ranked: Vec<(bool, usize, usize)> = Vec::with_capacity(failing.len());
    for (place, id) in failing.iter().enumerate() {
        let before = of_function.entry(function(id)).or_default();
        ranked.push((!spoken.contains(id), *before, place));
        *before += 1;
    }
    ranked.sort_unstable();
    let first = ranked.iter().take(count);
    first.map(|(_, _, place)| failing[*place].clone()).collect()
}

/// Lines that weigh at least this share of what the heaviest weighs tie tests together: the more tests are spoken of, the
/// better it is known which lines are theirs, and the more alike those of others must be. 0.3 for one test, 0.85 for 26.
fn tie(n_spoken: usize) -> f64 {
    let n_spoken = n_spoken as f64;
    (n_spoken / (n_spoken + TIE_HALF)).sqrt()
}

/// So many tests are worth a tie of the root of a half.
const TIE_HALF: f64 = 10.0;

/// `observation` without the failing tests that are no concern of `issue`.
pub(super) fn of_concern(mut observation: TestsObserved, issue: &Issue) -> TestsObserved {
    let TestsObserved {
        failing_lines,
        failures,
        named,
        ..
    } = &observation;
    let spoken = spoken_of(failing_lines.keys(), failures, issue, named);
    if spoken.is_empty() {
        let aside = failing_by_surroundings(&observation);
        return without(observation, |id| aside.contains(id));
    }
    let Some(kept) = tied(&observation, spoken) else {
        return observation;
    };
    let all = observation.failing_lines.len();
    observation.failing_lines.retain(|id, _| kept.contains(id));
    if observation.failing_lines.len() == all {
        return observation;
    }
    // What was not traced goes with the tests of its function that were.
    let kept: BTreeSet<&str> = observation
        .failing_lines
        .keys()
        .map(|id| function(id))
        .collect();
    let TestsObserved {
        failing,
        failures,
        named,
        ..
    } = &observation;
    let spoken = spoken_of(failing.iter(), failures, issue, named);
    let aside = observation.failing.iter();
    let aside = aside.filter(|id| !kept.contains(function(id)) && !spoken.contains(*id));
    let aside: BTreeSet<String> = aside.cloned().collect();
    without(observation, |id| aside.contains(id))
}

/// The tests `spoken` of, and of the others that were traced those of functions that are tied to them both ways: what
/// they share is suspicious for either. `None` where those spoken of run no sources and others do.
fn tied(observation: &TestsObserved, spoken: BTreeSet<String>) -> Option<BTreeSet<String>> {
    let TestsObserved {
        failing_lines,
        failures,
        ..
    } = observation;
    let mut kept = spoken;
    let spoken = kept.iter().filter_map(|id| failing_lines.get(id));
    let spoken: Vec<&Coverage> = spoken.collect();
    let spectra = Spectra::against(observation);
    let of_spoken = Suspects::of(&spectra, &spoken);
    if of_spoken.heaviest == 0.0 && !spectrum(observation).is_empty() {
        return None;
    }
    let mut others: BTreeMap<&str, Vec<(&String, &Coverage)>> = BTreeMap::new();
    for (id, lines) in failing_lines {
        let is_other = !kept.contains(id) && !failures.get(id).is_some_and(lacks_fixture);
        if is_other && of_spoken.has_any_of(lines) {
            others.entry(function(id)).or_default().push((id, lines));
        }
    }
    for tests in others.values() {
        let lines: Vec<&Coverage> = tests.iter().map(|(_, lines)| *lines).collect();
        let own = Suspects::of(&spectra, &lines);
        if spoken.iter().any(|lines| own.has_any_of(lines)) {
            kept.extend(tests.iter().map(|(id, _)| (*id).clone()));
        }
    }
    Some(kept)
}

/// The suspicious lines of some failing tests.
struct Suspects {
    weights: BTreeMap<String, Weights>,
    heaviest: f64,
    /// Lines that weigh less do not count.
    least: f64,
}

impl Suspects {
    fn of(spectra: &Spectra<'_>, failing: &[&Coverage]) -> Self {
        let weights = spectra.of(failing.iter().copied());
        let all = weights.values().flat_map(|lines| lines.values());
        let heaviest = all.copied().fold(0.0, f64::max);
        Self {
            weights,
            heaviest,
            least: (tie(failing.len()) * heaviest).max(f64::MIN_POSITIVE),
        }
    }

    fn has_any_of(&self, coverage: &Coverage) -> bool {
        coverage.iter().any(|(path, lines)| {
            self.weights.get(path).is_some_and(|weights| {
                let mut weights = lines.iter().filter_map(|line| weights.get(line));
                weights.any(|weight| *weight >= self.least)
            })
        })
    }
}

fn without(mut observation: TestsObserved, is_aside: impl Fn(&str) -> bool) -> TestsObserved {
    let n_leading = observation.leading.len();
    observation.failing.retain(|id| !is_aside(id));
    observation.failures.retain(|id, _| !is_aside(id));
    observation.leading.retain(|id| !is_aside(id));
    observation.failing_lines.retain(|id, _| !is_aside(id));
    if n_leading > 0 && observation.leading.is_empty() {
        let others = observation.failing_lines.keys().take(n_leading);
        observation.leading = others.cloned().collect();
        // Nobody has seen how long these take.
        observation.failing_seconds = f64::MAX;
    }
    observation
}

/// Whether `issue` speaks of any failing test, or the user named one.
pub fn speaks_of_any(observed: &TestsObserved, issue: &Issue) -> bool {
    let TestsObserved {
        failing,
        failures,
        named,
        ..
    } = observed;
    !spoken_of(failing.iter(), failures, issue, named).is_empty()
}

/// The failing tests of `observed` that `issue` is about, in order: where it speaks of none all but those that fail by
/// what surrounds the program.
pub fn of_concern_to(observed: &TestsObserved, issue: &Issue) -> Vec<String> {
    of_concern(observed.clone(), issue).failing
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
    fn of_many_failing_tests_those_spoken_of_and_one_of_each_function_come_first() {
        let names = ["a[1]", "a[2]", "a[3]", "grows[1]", "grows[2]", "z"];
        let failing = names.map(|name| format!("tests/test_a.py::test_{name}"));
        let failures = BTreeMap::new();
        let first = |body: &str, count| {
            let body = body.to_owned();
            let issue = Issue {
                body,
                ..Issue::default()
            };
            let first = foremost(&failing, &failures, (&issue, &[]), count);
            let names = first
                .iter()
                .filter_map(|id| id.split_once("test_a.py::test_"));
            names.map(|(_, name)| name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(first("", 4), ["a[1]", "grows[1]", "z", "a[2]"]);
        let spoken = ["grows[1]", "grows[2]", "a[1]"];
        assert_eq!(first("since Monday test_grows fails", 3), spoken);
        assert_eq!(first("", 9).len(), 6);
    }

    #[test]
    fn tests_that_were_not_traced_go_with_those_of_their_function() {
        let mut many = observation();
        for name in ["test_a.py::test_grows[2]", "test_b.py::test_network[2]"] {
            many.failing.push(format!("tests/{name}"));
        }
        let issue = Issue {
            body: "It says KeyError: 'the missing key'".to_owned(),
            ..Issue::default()
        };
        let kept = of_concern(many.clone(), &issue).failing;
        assert_eq!(kept, [&many.failing[..2], &many.failing[3..4]].concat());
        assert_eq!(of_concern(many.clone(), &Issue::default()), many);
        // What the user names wins, and brings those along that run the same lines.
        many.named = many.failing[1..2].to_vec();
        let kept = of_concern(many.clone(), &Issue::default()).failing;
        assert_eq!(kept, [&many.failing[..2], &many.failing[3..4]].concat());
    }

    #[test]
    fn tests_without_lines_leave_the_others_in() {
        let mut many = observation();
        many.failing_lines
            .insert(many.failing[2].clone(), BTreeMap::new());
        let issue = Issue {
            body: "It says OSError: nobody answers".to_owned(),
            ..Issue::default()
        };
        assert_eq!(of_concern(many.clone(), &issue).failing, many.failing);
    }

    #[test]
    fn tests_that_have_better_lines_of_their_own_are_other_bugs() {
        let mut one = observation();
        let lines = |lines: &[u32]| BTreeMap::from([("a.py".to_owned(), lines.to_vec())]);
        // All that is known of the first is line 1, which many run; the second runs a line that nobody else does.
        let (first, second) = (one.failing[0].clone(), one.failing[1].clone());
        one.failing_lines.insert(first.clone(), lines(&[1]));
        one.failing_lines.insert(second, lines(&[1, 7]));
        let issue = Issue {
            body: "It says KeyError: 'the missing key'".to_owned(),
            ..Issue::default()
        };
        assert_eq!(of_concern(one, &issue).failing, [first]);
    }

    #[test]
    fn tests_that_share_helpers_alone_are_other_bugs() {
        let mut many = observation();
        let (first, second) = (many.failing[0].clone(), many.failing[1].clone());
        let lines = |lines: &[u32]| BTreeMap::from([("a.py".to_owned(), lines.to_vec())]);
        // Line 2 is run by both families and by few that pass.
        for number in 0..20 {
            let of_family = |first: &str, lines: BTreeMap<_, _>, many: &mut TestsObserved| {
                let id = format!("{first}[{number}]");
                many.failing.push(id.clone());
                let failure = many.failures[first].clone();
                many.failures.insert(id.clone(), failure);
                many.failing_lines.insert(id, lines);
            };
            of_family(&first, lines(&[1, 2, 3]), &mut many);
            of_family(&second, lines(&[1, 2, 7]), &mut many);
            let passing = format!("tests/test_c.py::test_{number}");
            many.passing_lines.insert(passing, lines(&[2]));
        }
        many.failing_lines.insert(second.clone(), lines(&[1, 2, 7]));
        let issue = Issue {
            body: "It says KeyError: 'the missing key'".to_owned(),
            ..Issue::default()
        };
        let kept = of_concern(many, &issue).failing;
        assert_eq!(kept.len(), 21);
        assert!(
            kept.iter()
                .all(|id| id.starts_with("tests/test_a.py::test_grows") && !id.contains("twice"))
        );
    }

    #[test]
    fn an_issue_that_speaks_of_no_test_is_about_all() {
        assert_eq!(failing(&Issue::default()), observation().failing);
    }
}
