//! Which bug is tried next: spread over functions, families and files.

use std::collections::HashMap;

use code::RelativePath;
use rand::seq::SliceRandom;
use record::Seed;

use super::bugs::{Bug, Family};

/// A bug in a file, and the tests that could notice it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub path: RelativePath,
    pub bug: Bug,
    /// By their place in the survey.
    pub tests: Vec<u32>,
    /// Tells candidates of a repository apart.
    pub key: String,
}

/// Candidates that have not been tried.
#[derive(Debug)]
pub(super) struct Choice {
    pending: Vec<Candidate>,
    tried: Counts,
    kept: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    families: HashMap<Family, u32>,
    functions: HashMap<(RelativePath, String), u32>,
    files: HashMap<RelativePath, u32>,
}

impl Counts {
    fn add(&mut self, candidate: &Candidate) {
        let function = (candidate.path.clone(), candidate.bug.function.clone());
        *self.families.entry(candidate.bug.family).or_default() += 1;
        *self.functions.entry(function).or_default() += 1;
        *self.files.entry(candidate.path.clone()).or_default() += 1;
    }

    fn of(&self, candidate: &Candidate) -> [u32; 3] {
        let function = (candidate.path.clone(), candidate.bug.function.clone());
        [
            self.functions.get(&function).copied().unwrap_or_default(),
            self.families
                .get(&candidate.bug.family)
                .copied()
                .unwrap_or_default(),
            self.files.get(&candidate.path).copied().unwrap_or_default(),
        ]
    }
}

impl Choice {
    pub(super) fn new(mut candidates: Vec<Candidate>, seed: Seed) -> Self {
        candidates.sort_by(|a, b| (&a.path, &a.bug.edit).cmp(&(&b.path, &b.bug.edit)));
        candidates.shuffle(&mut seed.stream("mutate/order", 0).rng());
        // Taken from the end.
        candidates.reverse();
        Self {
            pending: candidates,
            tried: Counts::default(),
            kept: Counts::default(),
        }
    }

    /// At most `count` candidates, of what was kept and tried least.
    pub(super) fn next(&mut self, count: usize) -> Vec<Candidate> {
        let mut chosen = Vec::new();
        while chosen.len() < count {
            let cost = |candidate: &Candidate| {
                let [function, family, file] = self.kept.of(candidate);
                let [tried_function, tried_family, _] = self.tried.of(candidate);
                12 * function + 6 * family + file + 2 * tried_function + tried_family
            };
            let best = (0..self.pending.len())
                .rev()
                .min_by_key(|at| cost(&self.pending[*at]));
            let Some(best) = best else { break };
            let candidate = self.pending.remove(best);
            self.tried.add(&candidate);
            chosen.push(candidate);
        }
        chosen
    }

    /// Counts a candidate as a task.
    pub(super) fn keep(&mut self, candidate: &Candidate) {
        self.kept.add(candidate);
    }
}

#[cfg(test)]
mod tests {
    use code::sites::Source;

    use super::*;
    use crate::mutate::bugs;

    fn candidates() -> Vec<Candidate> {
        let mut text = String::new();
        for name in ["first", "second", "third"] {
            text += &format!(
                "def {name}(a, b):\n    if a < b and a:\n        return a + b\n    return 3\n"
            );
        }
        let source = Source::parse(text).unwrap();
        let path = RelativePath::new("m.py").unwrap();
        let found = bugs(&source).into_iter();
        found
            .map(|bug| Candidate {
                path: path.clone(),
                key: format!("{:?}", bug.edit),
                bug,
                tests: Vec::new(),
            })
            .collect()
    }

    fn order(seed: u64) -> Vec<Candidate> {
        let mut choice = Choice::new(candidates(), Seed(seed));
        let mut order = Vec::new();
        loop {
            let next = choice.next(1);
            let Some(candidate) = next.into_iter().next() else {
                break;
            };
            choice.keep(&candidate);
            order.push(candidate);
        }
        order
    }

    #[test]
    fn everything_comes_once_in_an_order_of_the_seed() {
        let keys = |seed| {
            order(seed)
                .into_iter()
                .map(|one| one.key)
                .collect::<Vec<_>>()
        };
        let mut sorted = keys(1);
        assert_eq!(sorted, keys(1));
        assert_ne!(sorted, keys(2));
        sorted.sort();
        let mut all: Vec<String> = candidates().into_iter().map(|one| one.key).collect();
        all.sort();
        assert_eq!(sorted, all);
    }

    #[test]
    fn functions_and_families_take_turns() {
        for seed in 0..20 {
            let order = order(seed);
            let mut functions: Vec<&str> =
                order[..3].iter().map(|one| &*one.bug.function).collect();
            functions.sort_unstable();
            assert_eq!(functions, ["first", "second", "third"]);
            let families = order[..3].iter().map(|one| one.bug.family);
            let families: std::collections::BTreeSet<Family> = families.collect();
            assert_eq!(families.len(), 3);
        }
    }
}
