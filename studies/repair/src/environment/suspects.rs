//! Whom tests suspect: the functions that failing tests run, with what the tests, the failures and the issue say of
//! each. An environment that is told to looks once, before the first step.
//!
//! Suspicion is Ochiai's coefficient of a function's most suspicious line (Abreu et al. 2007), as the patch model
//! `search` weighs lines. Of tests there are numbers alone: which tests decide, and what they say, is not shown.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Issue,
    search::{self, Coverage, TestsObserved},
};
use code::graph::{Graph, NodeKind, NodeRef, Span, is_test_path};

/// A function that a failing test runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspect {
    /// The graph's node.
    pub id: String,
    pub path: String,
    /// With the names of what it stands in.
    pub name: String,
    pub lines: u32,
    /// Shares of the traced failing and passing tests that run it, between 0 and 1.
    pub failing: f64,
    pub passing: f64,
    /// Between 0 and 1.
    pub suspicion: f64,
    /// The issue has its name.
    pub named: bool,
    pub raised: Raised,
}

/// Where failures passed a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Raised {
    /// Nowhere: what it returned was wrong, or it has nothing to do with the failure.
    #[default]
    Elsewhere,
    /// It was being called.
    Through,
    /// It was the innermost that is no test.
    Inside,
}

/// What a planner is told of a suspect: classes, each a place in the words for it, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub size: usize,
    pub failing: usize,
    pub passing: usize,
    pub suspicion: usize,
    pub named: bool,
    pub raised: Raised,
}

const SIZES: [&str; 4] = ["tiny", "short", "medium", "long"];
const FAILING: [&str; 3] = ["few", "most", "all"];
const PASSING: [&str; 4] = ["no", "some", "several", "many"];
const SUSPICION: [&str; 5] = ["faint", "low", "middle", "high", "highest"];

impl Suspect {
    /// Suspicion is told against `highest`, the greatest of the list.
    pub fn told(&self, highest: f64) -> Told {
        let class = |value: f64, least: &[f64]| least.iter().filter(|it| value >= **it).count();
        let suspicion = self.suspicion / highest.max(f64::MIN_POSITIVE);
        Told {
            size: class(f64::from(self.lines), &[5.0, 10.0, 20.0]),
            failing: class(self.failing, &[0.5, 0.999]),
            passing: class(self.passing, &[1e-9, 0.15, 0.4]),
            suspicion: class(suspicion, &[0.4, 0.6, 0.8, 0.999]),
            named: self.named,
            raised: self.raised,
        }
    }

    /// One line of an observation. The number that the planner names it by stands behind every word, so that a small
    /// reader who knows what it looks for finds whom it holds for in one look.
    fn line(&self, number: usize, highest: f64) -> String {
        let (path, name) = (&self.path, &self.name);
        let Words {
            size,
            failing,
            passing,
            suspicion,
            named,
            raised,
        } = self.told(highest).words();
        format!(
            "{name} in {path}: {size} {number}, failing {failing} {number}, passing {passing} {number}, suspicion \
             {suspicion} {number}, {named} {number}, raised {raised} {number}\n"
        )
    }
}

/// What is told, each in a word of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) size: &'static str,
    /// Of the failing and of the passing tests, how many run it.
    pub(crate) failing: &'static str,
    pub(crate) passing: &'static str,
    pub(crate) suspicion: &'static str,
    pub(crate) named: &'static str,
    pub(crate) raised: &'static str,
}

impl Told {
    pub(crate) fn words(self) -> Words {
        Words {
            size: SIZES[self.size],
            failing: FAILING[self.failing],
            passing: PASSING[self.passing],
            suspicion: SUSPICION[self.suspicion],
            named: if self.named { "named" } else { "unnamed" },
            raised: match self.raised {
                Raised::Elsewhere => "elsewhere",
                Raised::Through => "through",
                Raised::Inside => "inside",
            },
        }
    }
}

/// The greatest suspicion of a list.
pub fn highest(suspects: &[Suspect]) -> f64 {
    suspects.iter().map(|it| it.suspicion).fold(0.0, f64::max)
}

/// The lines of a list of suspects, which the planner names by their number in it.
pub fn lines(suspects: &[Suspect]) -> Vec<String> {
    let highest = highest(suspects);
    let numbered = (1..).zip(suspects);
    numbered
        .map(|(number, suspect)| suspect.line(number, highest))
        .collect()
}

/// The most suspicious functions, at most `most`, in the order of their places: who is first says nothing.
pub(crate) fn suspects(
    issue: &Issue,
    graph: &Graph,
    observed: &TestsObserved,
    most: usize,
) -> Vec<Suspect> {
    let spectrum = search::spectrum(observed);
    let functions = Functions::of(graph);
    let mut found: BTreeMap<NodeRef, Suspect> = BTreeMap::new();
    for (path, weights) in &spectrum {
        for (line, weight) in weights {
            let Some(function) = functions.around(path, *line) else {
                continue;
            };
            let suspect = found
                .entry(function)
                .or_insert_with(|| described(graph, function, issue));
            suspect.suspicion = suspect.suspicion.max(*weight);
        }
    }
    let failing = functions.run_by(&observed.failing_lines);
    let passing = functions.run_by(&observed.passing_lines);
    let share = |runs: &BTreeMap<NodeRef, usize>, function: &NodeRef, of: usize| {
        runs.get(function).copied().unwrap_or(0) as f64 / of.max(1) as f64
    };
    for (function, suspect) in &mut found {
        suspect.failing = share(&failing, function, observed.failing_lines.len());
        suspect.passing = share(&passing, function, observed.passing_lines.len());
    }
    for failure in observed.failures.values() {
        let own = failure.frames.iter().rev();
        let own = own.filter(|frame| !observed.is_of_tests(&frame.path));
        for (depth, frame) in own.enumerate() {
            let function = functions.around(&frame.path, frame.line);
            let suspect = function.and_then(|function| found.get_mut(&function));
            let raised = match depth {
                0 => Raised::Inside,
                _ => Raised::Through,
            };
            if let Some(suspect) = suspect {
                suspect.raised = suspect.raised.max(raised);
            }
        }
    }
    let mut ranked: Vec<(NodeRef, Suspect)> = found.into_iter().collect();
    ranked.sort_by(|(a_place, a), (b_place, b)| {
        let by_suspicion = b.suspicion.total_cmp(&a.suspicion);
        by_suspicion.then_with(|| a_place.cmp(b_place))
    });
    ranked.truncate(most);
    ranked.sort_by_key(|(place, _)| *place);
    ranked.into_iter().map(|(_, suspect)| suspect).collect()
}

pub(crate) fn described(graph: &Graph, function: NodeRef, issue: &Issue) -> Suspect {
    let node = graph.node(function);
    let name = match function {
        NodeRef::Definition(file, definition) => graph.qualified_name(file, definition),
        _ => node.name.clone(),
    };
    Suspect {
        lines: node.span.map_or(0, |span| span.end - span.start + 1),
        named: is_named(&node.name, issue),
        id: node.id,
        path: node.path,
        name,
        failing: 0.0,
        passing: 0.0,
        suspicion: 0.0,
        raised: Raised::Elsewhere,
    }
}

fn is_named(name: &str, issue: &Issue) -> bool {
    let words = |text: &str| {
        let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        words.any(|word| word == name)
    };
    words(&issue.title) || words(&issue.body)
}

/// The functions of a graph that are no tests, by file.
struct Functions(BTreeMap<String, Vec<(Span, NodeRef)>>);

impl Functions {
    fn of(graph: &Graph) -> Self {
        let mut functions: BTreeMap<String, Vec<(Span, NodeRef)>> = BTreeMap::new();
        for node in graph.nodes() {
            let path = graph.path(node);
            if graph.kind(node) == NodeKind::Function
                && !is_test_path(path)
                && let Some(span) = graph.node(node).span
            {
                functions
                    .entry(path.to_owned())
                    .or_default()
                    .push((span, node));
            }
        }
        Self(functions)
    }

    /// The innermost function that a line is in.
    fn around(&self, path: &str, line: u32) -> Option<NodeRef> {
        let inside = self.0.get(path)?.iter();
        let inside = inside.filter(|(span, _)| span.start <= line && line <= span.end);
        let innermost = inside.min_by_key(|(span, _)| span.end - span.start);
        innermost.map(|(_, node)| *node)
    }

    /// By function, how many of these tests run it.
    fn run_by(&self, tests: &BTreeMap<String, Coverage>) -> BTreeMap<NodeRef, usize> {
        let mut runs = BTreeMap::new();
        for coverage in tests.values() {
            let mut run: BTreeSet<NodeRef> = BTreeSet::new();
            for (path, lines) in coverage {
                run.extend(lines.iter().filter_map(|line| self.around(path, *line)));
            }
            for function in run {
                *runs.entry(function).or_default() += 1;
            }
        }
        runs
    }
}
