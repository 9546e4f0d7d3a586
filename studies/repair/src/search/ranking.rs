//! Which candidates are run, and in what order: cheapest first, spread over lines and kinds.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use code::{
    NormalForm, RelativePath,
    edit_operators::{Candidate, Family, Hints, candidates},
    normal_form,
    sites::Source,
};

use super::{searched::ProgramId, suspicion::Weights};

/// How much a line's suspicion counts against an edit's cost: the suspicion's power.
const SUSPICION: f64 = 1.5;
/// What every candidate before costs the next one of its line, and the next one of its kind there.
const SAME_LINE: f64 = 0.04;
const SAME_FAMILY: f64 = 0.12;

/// A file that may be edited.
#[derive(Debug)]
pub(super) struct Suspect {
    pub(super) path: RelativePath,
    pub(super) source: Source,
    pub(super) weights: Weights,
}

/// A candidate and its place in the order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ranked {
    /// Among the suspects.
    pub(super) file: usize,
    pub(super) candidate: Candidate,
    /// The logarithm of how promising it is, up to a constant.
    pub(super) score: f64,
}

impl Ranked {
    pub(super) fn content(&self, suspects: &[Suspect]) -> String {
        self.candidate.edit.apply(suspects[self.file].source.text())
    }

    /// What it makes of its definition; `None` where that is the program that there is.
    pub(super) fn program(&self, suspects: &[Suspect]) -> Option<ProgramId> {
        let Suspect { path, source, .. } = &suspects[self.file];
        let edit = &self.candidate.edit;
        let NormalForm { digest, .. } = normal_form(&edit.definition(source));
        let mut nothing = edit.clone();
        source.text()[edit.start..edit.end].clone_into(&mut nothing.replacement);
        let before = normal_form(&nothing.definition(source));
        if before.digest == digest {
            return None;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(path.as_str().as_bytes());
        hasher.update(&[0]);
        hasher.update(&definition_line(source, edit.start).to_le_bytes());
        hasher.update(&digest);
        Some(*hasher.finalize().as_bytes())
    }
}

/// Candidates for `suspects`, the most promising first. Of those that make the same program one is listed, and
/// none that changes nothing.
pub(super) fn rank(suspects: &[Suspect], hints: &Hints) -> Vec<Ranked> {
    let mut found = Vec::new();
    for (file, suspect) in suspects.iter().enumerate() {
        let weight = |line: u32| suspect.weights.get(&line).copied().unwrap_or(0.0);
        for candidate in candidates(&suspect.source, &weight, hints) {
            let score = SUSPICION * candidate.weight.ln() - candidate.cost;
            found.push(Ranked {
                file,
                candidate,
                score,
            });
        }
    }
    found.sort_by(order);
    spread(found)
}

/// The first `count` programs among `ranked` that differ from each other and from those `known`.
pub(super) fn different(
    suspects: &[Suspect],
    ranked: Vec<Ranked>,
    known: &BTreeSet<ProgramId>,
    count: usize,
) -> Vec<Ranked> {
    let mut seen = known.clone();
    let is_new = |ranked: &Ranked| {
        let program = ranked.program(suspects);
        program.is_some_and(|program| seen.insert(program))
    };
    ranked.into_iter().filter(is_new).take(count).collect()
}

/// Tells definitions of one file apart.
fn definition_line(source: &Source, offset: usize) -> u32 {
    let body = &source.syntax().body;
    let after = body
        .partition_point(|statement| code::sites::Ranged::start(statement).to_usize() <= offset);
    after as u32
}

fn order(a: &Ranked, b: &Ranked) -> Ordering {
    b.score
        .total_cmp(&a.score)
        .then_with(|| a.file.cmp(&b.file))
        .then_with(|| a.candidate.edit.cmp(&b.candidate.edit))
}

/// Orders by score less what the candidates before have used up of the same line and kind.
fn spread(found: Vec<Ranked>) -> Vec<Ranked> {
    #[derive(Debug)]
    struct Waiting {
        score: f64,
        /// Among `found`, which is in order.
        place: usize,
    }
    impl PartialEq for Waiting {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other) == Ordering::Equal
        }
    }
    impl Eq for Waiting {}
    impl PartialOrd for Waiting {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Waiting {
        fn cmp(&self, other: &Self) -> Ordering {
            let score = self.score.total_cmp(&other.score);
            score.then_with(|| other.place.cmp(&self.place))
        }
    }
    let mut lines: BTreeMap<(usize, u32), f64> = BTreeMap::new();
    let mut kinds: BTreeMap<(usize, u32, Family), f64> = BTreeMap::new();
    let mut waiting: BinaryHeap<Waiting> = found
        .iter()
        .enumerate()
        .map(|(place, ranked)| Waiting {
            score: ranked.score,
            place,
        })
        .collect();
    let mut ordered = Vec::with_capacity(found.len());
    while let Some(Waiting { score, place }) = waiting.pop() {
        let ranked = &found[place];
        let line = (ranked.file, ranked.candidate.line);
        let kind = (line.0, line.1, ranked.candidate.family);
        let used = SAME_LINE * lines.get(&line).copied().unwrap_or(0.0)
            + SAME_FAMILY * kinds.get(&kind).copied().unwrap_or(0.0);
        let now = ranked.score - used;
        if now < score {
            waiting.push(Waiting { score: now, place });
            continue;
        }
        *lines.entry(line).or_default() += 1.0;
        *kinds.entry(kind).or_default() += 1.0;
        let mut ranked = ranked.clone();
        ranked.score = now;
        ordered.push(ranked);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspects(text: &str, weights: &[(u32, f64)]) -> Vec<Suspect> {
        vec![Suspect {
            path: RelativePath::new("a.py").unwrap(),
            source: Source::parse(text).unwrap(),
            weights: weights.iter().copied().collect(),
        }]
    }

    #[test]
    fn suspicious_lines_and_cheap_edits_come_first_and_lines_take_turns() {
        let text = "def f(a, b):\n    if a < b:\n        a = b + 1\n    return a\n";
        let suspects = suspects(text, &[(2, 1.0), (3, 1.0), (4, 0.1)]);
        let ranked = rank(&suspects, &Hints::default());
        let first = &ranked[0].candidate;
        assert_eq!((first.line, first.family), (2, Family::ComparisonBoundary));
        let lines: BTreeSet<u32> = ranked[..6]
            .iter()
            .map(|ranked| ranked.candidate.line)
            .collect();
        assert_eq!(lines, BTreeSet::from([2, 3]));
        for pair in ranked.windows(2) {
            assert!(pair[0].score >= pair[1].score);
        }
    }

    #[test]
    fn programs_that_are_the_same_are_run_once() {
        let text = "def f(a, b):\n    return (a  <  b)\n";
        let suspects = suspects(text, &[(2, 1.0)]);
        let ranked = rank(&suspects, &Hints::default());
        let mut twice = ranked.clone();
        twice.extend(ranked.iter().cloned());
        let all = different(&suspects, twice, &BTreeSet::new(), usize::MAX);
        assert!(all.len() <= ranked.len());
        let forms: BTreeSet<[u8; 32]> = all
            .iter()
            .map(|ranked| normal_form(&ranked.content(&suspects)).digest)
            .collect();
        assert_eq!(forms.len(), all.len());
        assert!(!forms.contains(&normal_form(text).digest));
        let first = different(&suspects, ranked.clone(), &BTreeSet::new(), 3);
        assert_eq!(first, all[..3]);
        let known = first
            .iter()
            .filter_map(|it| it.program(&suspects))
            .collect();
        let others = different(&suspects, ranked, &known, usize::MAX);
        assert_eq!(others, all[3..]);
    }
}
