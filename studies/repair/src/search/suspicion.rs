//! How suspicious each line is: spectrum, frames, names and the plan.

use std::collections::{BTreeMap, BTreeSet};

use code::sites::{ScopeKind, Sites, Source, ast::AnyNodeRef};

use super::observation::{Coverage, TestsObserved};
use crate::{
    Issue,
    patch_model::{PatchRequest, PlanTarget},
};

/// By line, above 0.
pub(crate) type Weights = BTreeMap<u32, f64>;

/// Lines of frames that a failure's exception passed, the innermost, and the others.
const INNERMOST: f64 = 2.0;
const FRAME: f64 = 1.3;
/// A function whose name the issue or the failing tests' names have.
const NAMED: f64 = 1.8;
/// Lines that only run when the module is imported, against those that use what they define.
const IMPORTED: f64 = 0.35;
/// The line of a `def`, against its body.
const HEADER: f64 = 0.5;

/// Ochiai's coefficient of every line of sources that failing tests ran, tests themselves apart (Abreu et al.
/// 2007): failing runs of the line over the root of all failing runs times all runs of the line.
pub(crate) fn spectrum(observation: &TestsObserved) -> BTreeMap<String, Weights> {
    Spectra::against(observation).of(observation.failing_lines.values())
}

/// The passing tests of an observation, against which failing ones are held.
pub(super) struct Spectra<'a> {
    observation: &'a TestsObserved,
    passed: BTreeMap<&'a str, BTreeMap<u32, f64>>,
}

impl<'a> Spectra<'a> {
    pub(super) fn against(observation: &'a TestsObserved) -> Self {
        Self {
            observation,
            passed: count(observation.passing_lines.values()),
        }
    }

    /// See [`spectrum`]; of some failing tests, as if no other failed.
    pub(super) fn of<'f>(
        &self,
        failing: impl Iterator<Item = &'f Coverage>,
    ) -> BTreeMap<String, Weights> {
        let failing: Vec<&Coverage> = failing.collect();
        let all = failing.len() as f64;
        let mut weights: BTreeMap<String, Weights> = BTreeMap::new();
        for (path, lines) in count(failing.into_iter()) {
            if !path.ends_with(".py") || self.observation.is_of_tests(path) {
                continue;
            }
            let passed = self.passed.get(path);
            for (line, failing) in lines {
                let passing = passed.and_then(|lines| lines.get(&line)).copied();
                let runs = failing + passing.unwrap_or(0.0);
                let weight = failing / (all * runs).sqrt();
                weights
                    .entry(path.to_owned())
                    .or_default()
                    .insert(line, weight);
            }
        }
        weights
    }
}

fn count<'t>(tests: impl Iterator<Item = &'t Coverage>) -> BTreeMap<&'t str, BTreeMap<u32, f64>> {
    let mut counts: BTreeMap<&str, BTreeMap<u32, f64>> = BTreeMap::new();
    for (path, lines) in tests.flatten() {
        let counts = counts.entry(path).or_default();
        for line in lines {
            *counts.entry(*line).or_default() += 1.0;
        }
    }
    counts
}

/// Lines of the frames of failures where no failing test could be traced.
pub(super) fn frames_alone(observation: &TestsObserved) -> BTreeMap<String, Weights> {
    let mut weights: BTreeMap<String, Weights> = BTreeMap::new();
    let frames = observation
        .failures
        .values()
        .flat_map(|failure| &failure.frames);
    for frame in frames {
        if frame.path.ends_with(".py") && !observation.is_of_tests(&frame.path) {
            let lines = weights.entry(frame.path.clone()).or_default();
            lines.insert(frame.line, 1.0);
        }
    }
    weights
}

/// Weighs the lines of one file by all that is known beside the spectrum.
pub(super) fn refine(
    path: &str,
    source: &Source,
    weights: &mut Weights,
    observation: &TestsObserved,
    request: &PatchRequest,
    target_factor: f64,
) {
    let sites = Sites::of(source);
    named(&sites, weights, observation, &request.issue);
    frames(path, weights, observation);
    headers(&sites, weights);
    definitions(&sites, weights);
    targets(path, weights, &request.targets, target_factor);
}

fn frames(path: &str, weights: &mut Weights, observation: &TestsObserved) {
    let mut innermost = BTreeSet::new();
    let mut others = BTreeSet::new();
    for failure in observation.failures.values() {
        let mut own = failure
            .frames
            .iter()
            .rev()
            .filter(|frame| !observation.is_of_tests(&frame.path));
        let last = own.next();
        innermost.extend(
            last.filter(|frame| frame.path == path)
                .map(|frame| frame.line),
        );
        others.extend(
            own.filter(|frame| frame.path == path)
                .map(|frame| frame.line),
        );
    }
    for (line, weight) in weights {
        if innermost.contains(line) {
            *weight *= INNERMOST;
        } else if others.contains(line) {
            *weight *= FRAME;
        }
    }
}

/// Raises functions that the issue or the ids of failing tests name.
fn named(sites: &Sites<'_>, weights: &mut Weights, observation: &TestsObserved, issue: &Issue) {
    let mut words = words_of(&issue.title);
    words.extend(words_of(&issue.body));
    let ids: Vec<String> = observation.failing.iter().map(|id| squeezed(id)).collect();
    for (_, scope) in sites.scopes() {
        let Some(function) = scope.function() else {
            continue;
        };
        let name = function.name.as_str();
        let short = squeezed(name);
        let is_named =
            words.contains(name) || short.len() >= 4 && ids.iter().any(|id| id.contains(&short));
        if is_named {
            let (first, last) = sites.source().lines(scope.range);
            for (_, weight) in weights.range_mut(first..=last) {
                *weight *= NAMED;
            }
        }
    }
}

fn words_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words
        .filter(|word| word.len() >= 3)
        .map(str::to_owned)
        .collect()
}

fn squeezed(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Defaults and decorators run at the `def`, and matter to whoever runs the body.
fn headers(sites: &Sites<'_>, weights: &mut Weights) {
    for (_, scope) in sites.scopes() {
        let Some(function) = scope.function() else {
            continue;
        };
        let (first, last) = sites.source().lines(scope.range);
        let body = function
            .body
            .first()
            .map(|first| sites.source().lines(first).0);
        let Some(body) = body.filter(|body| *body > first) else {
            continue;
        };
        let most = weights.range(body..=last).map(|(_, weight)| *weight);
        let most = most.fold(0.0, f64::max);
        if most > 0.0 {
            for line in first..body {
                let weight = weights.entry(line).or_insert(0.0);
                *weight = weight.max(most * HEADER);
            }
        }
    }
}

/// Values of a module or a class that suspicious lines use.
fn definitions(sites: &Sites<'_>, weights: &mut Weights) {
    let mut used: BTreeMap<&str, f64> = BTreeMap::new();
    for (_, site) in sites.iter() {
        let name = match site.node {
            AnyNodeRef::ExprName(name) => name.id.as_str(),
            AnyNodeRef::ExprAttribute(attribute) => attribute.attr.as_str(),
            _ => continue,
        };
        let (line, _) = sites.source().lines(site.node);
        if let Some(weight) = weights.get(&line) {
            let most = used.entry(name).or_default();
            *most = most.max(*weight);
        }
    }
    let mut found: Vec<(u32, u32, f64)> = Vec::new();
    for (_, site) in sites.iter() {
        let kind = sites.scope(site.scope).kind;
        if !matches!(kind, ScopeKind::Module | ScopeKind::Class(_)) {
            continue;
        }
        let targets = match site.node {
            AnyNodeRef::StmtAssign(assignment) => &assignment.targets[..],
            AnyNodeRef::StmtAnnAssign(assignment) => std::slice::from_ref(&*assignment.target),
            _ => continue,
        };
        let names = targets.iter().filter_map(|target| target.as_name_expr());
        let uses = names.filter_map(|name| used.get(name.id.as_str()));
        let most = uses.copied().fold(0.0, f64::max);
        if most > 0.0 {
            let (first, last) = sites.source().lines(site.node);
            found.push((first, last, most * IMPORTED));
        }
    }
    for (first, last, value) in found {
        for line in first..=last {
            let weight = weights.entry(line).or_insert(0.0);
            *weight = weight.max(value);
        }
    }
}

fn targets(path: &str, weights: &mut Weights, targets: &[PlanTarget], factor: f64) {
    let own = || targets.iter().filter(|target| target.path == path);
    for (line, weight) in weights {
        if own().any(|target| (target.start..=target.end).contains(line)) {
            *weight *= factor;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workplace::{Failure, Frame};

    fn coverage(path: &str, lines: &[u32]) -> Coverage {
        Coverage::from([(path.to_owned(), lines.to_vec())])
    }

    fn observation() -> TestsObserved {
        let failing = [("t.F.test_grow", coverage("a.py", &[2, 3]))];
        let passing = [
            ("t.F.test_1", coverage("a.py", &[2])),
            ("t.F.test_2", coverage("a.py", &[2, 9])),
            ("t.F.test_3", coverage("a.py", &[2])),
        ];
        let own = |tests: &[(&str, Coverage)]| {
            let tests = tests.iter();
            tests
                .map(|(id, lines)| ((*id).to_owned(), lines.clone()))
                .collect()
        };
        TestsObserved {
            failing: vec!["t.F.test_grow".to_owned()],
            failing_lines: own(&failing),
            passing_lines: own(&passing),
            ..TestsObserved::default()
        }
    }

    #[test]
    fn lines_that_fail_more_than_they_pass_are_more_suspicious() {
        let weights = spectrum(&observation());
        let lines = &weights["a.py"];
        assert_eq!(lines.keys().copied().collect::<Vec<_>>(), [2, 3]);
        assert!((lines[&2] - 0.5).abs() < 1e-12);
        assert!((lines[&3] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn frames_names_headers_definitions_and_targets_count() {
        let text = "LIMIT = 3\ndef grow(a, b=1):\n    a += LIMIT\n    return a\ndef other():\n    return 1\n";
        let source = Source::parse(text).unwrap();
        let mut observation = observation();
        let frame = |line| Frame {
            path: "a.py".to_owned(),
            line,
            function: "grow".to_owned(),
        };
        let failure = Failure {
            kind: "TypeError".to_owned(),
            message: String::new(),
            frames: vec![frame(4), frame(3)],
        };
        observation
            .failures
            .insert("t.F.test_grow".to_owned(), failure);
        let request = PatchRequest {
            issue: Issue::default(),
            plan: Vec::new(),
            targets: vec![PlanTarget {
                path: "a.py".to_owned(),
                start: 6,
                end: 6,
                ..PlanTarget::default()
            }],
            graph: code::graph::ListedGraph::default(),
            snippets: Vec::new(),
            feedback: Vec::new(),
            constraints: crate::patch_model::Constraints::default(),
            of_tests: std::sync::Arc::default(),
            observed: None,
            searched: None,
        };
        let mut weights = Weights::from([(3, 0.5), (4, 0.5), (6, 0.5)]);
        refine("a.py", &source, &mut weights, &observation, &request, 4.0);
        let close = |line: u32, value: f64| {
            assert!(
                (weights[&line] - value).abs() < 1e-12,
                "{line}: {weights:?}"
            );
        };
        close(3, 0.5 * NAMED * INNERMOST);
        close(4, 0.5 * NAMED * FRAME);
        close(6, 0.5 * 4.0);
        close(2, 0.5 * NAMED * INNERMOST * HEADER);
        close(1, 0.5 * NAMED * INNERMOST * IMPORTED);
    }
}
