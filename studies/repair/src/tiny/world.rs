//! Lists of suspects that are made up, and issues to go with them.
//!
//! Half of the lists bear the names of the training packages, the others names that nobody has given: who learned from
//! the former alone would be lost in a repository that it has not seen.

use code::graph::{Contents, Graph, NodeKind, is_test_path};
use rand::{
    Rng, RngExt,
    seq::{IndexedRandom, SliceRandom},
};

use super::names;
use crate::{
    Issue, PACKAGES,
    environment::{Raised, Suspect},
};

/// Functions of the training packages, package by package and in the order of their places.
pub(super) struct World(Vec<(&'static str, Vec<Suspect>)>);

/// Suspects of a list, at least.
const FEWEST: usize = 2;

impl World {
    pub(super) fn new() -> Self {
        let packages = PACKAGES.iter().filter(|package| package.is_for_training);
        Self(
            packages
                .map(|package| {
                    let files = package.files.iter();
                    let contents: Contents = files
                        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
                        .collect();
                    (package.name, functions(&Graph::build(&contents, 1)))
                })
                .collect(),
        )
    }

    /// At most `most` functions of a package, in their order, with what tests might say of them, and an issue.
    pub(super) fn draw(&self, most: usize, rng: &mut impl Rng) -> (Vec<Suspect>, Issue) {
        let Some((package, functions)) = self.0.choose(rng) else {
            return (Vec::new(), Issue::default());
        };
        let most = most.min(functions.len());
        let n = rng.random_range(FEWEST.min(most)..=most);
        let mut places: Vec<usize> = (0..functions.len()).collect();
        places.shuffle(rng);
        places.truncate(n);
        places.sort_unstable();
        let is_wrong_result = rng.random_bool(0.65);
        let mut suspects: Vec<Suspect> = places
            .iter()
            .map(|place| observed(&functions[*place], is_wrong_result, rng))
            .collect();
        let mut package = (*package).to_owned();
        if rng.random_bool(0.5) {
            package = names::rename(&mut suspects, rng);
        }
        let among = match rng.random_bool(0.5) {
            true => &suspects,
            false => functions,
        };
        let about = among.choose(rng).map_or("", own_name).to_owned();
        let issue = issue(&package, &about, is_wrong_result, rng);
        for suspect in &mut suspects {
            suspect.named = own_name(suspect) == about && issue.title.contains('`');
        }
        (suspects, issue)
    }
}

/// Without the names of what it stands in.
fn own_name(suspect: &Suspect) -> &str {
    suspect.name.rsplit('.').next().unwrap_or_default()
}

fn functions(graph: &Graph) -> Vec<Suspect> {
    let functions = graph
        .nodes()
        .filter(|node| graph.kind(*node) == NodeKind::Function && !is_test_path(graph.path(*node)));
    functions
        .map(|node| crate::environment::described(graph, node, &Issue::default()))
        .collect()
}

fn observed(function: &Suspect, is_wrong_result: bool, rng: &mut impl Rng) -> Suspect {
    let mut pick = |choices: &[(f64, f64)]| {
        let drawn = choices.choose_weighted(rng, |(_, weight)| *weight);
        drawn.map_or(0.0, |(value, _)| *value)
    };
    let failing = pick(&[(1.0, 0.6), (0.6, 0.2), (0.2, 0.2)]);
    let passing = pick(&[(0.0, 0.2), (0.1, 0.3), (0.25, 0.25), (0.6, 0.25)]);
    // Steps apart, so that some are as suspicious as others.
    let suspicion = pick(&[(1.0, 0.2), (0.9, 0.2), (0.7, 0.2), (0.5, 0.2), (0.3, 0.2)]);
    let raised = rng.random_bool(if is_wrong_result { 0.1 } else { 0.4 });
    let raised = match (raised, rng.random_bool(0.5)) {
        (false, _) => Raised::Elsewhere,
        (true, true) => Raised::Through,
        (true, false) => Raised::Inside,
    };
    Suspect {
        failing,
        passing,
        suspicion,
        raised,
        ..function.clone()
    }
}

/// About a function, as users write it.
fn issue(package: &str, about: &str, is_wrong_result: bool, rng: &mut impl Rng) -> Issue {
    const WRONG: [&str; 3] = [
        "gives a wrong result",
        "does not do what it should",
        "is not what it was",
    ];
    const KINDS: [&str; 5] = [
        "KeyError",
        "ValueError",
        "TypeError",
        "IndexError",
        "AttributeError",
    ];
    let kind = match is_wrong_result {
        true => "AssertionError",
        false => KINDS.choose(rng).copied().unwrap_or("KeyError"),
    };
    let subject = match rng.random_bool(0.8) {
        true => format!("`{about}`"),
        false => format!("{package}: {}", about.trim_matches('_').replace('_', " ")),
    };
    let title = match is_wrong_result {
        true => {
            let end = WRONG.choose(rng).copied().unwrap_or(WRONG[0]);
            format!("{subject} {end}")
        }
        false => format!("{subject}: unexpected {kind}"),
    };
    let body = match is_wrong_result {
        true => format!("`{kind}: {} != {}`", names::value(rng), names::value(rng)),
        false => format!("`{kind}: {}`", names::value(rng)),
    };
    Issue {
        title,
        body,
        error_kind: Some(kind.to_owned()),
        ..Issue::default()
    }
}
