//! Telling the right one of two answers, as JudgeBench asks for it: each answer is judged on its own several
//! times, and the one that more judgments find correct is taken (spec of the critique study, section 6.3).

use std::{cmp::Ordering, collections::BTreeMap};

use record::{Cluster, Estimate, proportion};

use crate::format::Judgment;

/// Two answers to one problem, and every judgment of them in order; `None` where a critique gave none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Intervals are over these.
    pub problem: String,
    pub right: Vec<Option<Judgment>>,
    pub wrong: Vec<Option<Judgment>>,
}

/// Shares of pairs, by name, after the first 1, 2, 4, … and after all judgments of an answer.
///
/// | name | share of pairs in which |
/// |---|---|
/// | `pair_accuracy/votes-N` | the right answer is found correct more often |
/// | `pair_ties/votes-N` | both are found correct as often, which tells nothing and is no hit |
/// | `pair_errors/votes-N` | the wrong answer is found correct more often |
///
/// Wilson intervals over problems.
pub fn of_pairs(pairs: &[Pair]) -> BTreeMap<String, Estimate> {
    let all = pairs.iter().map(votes).min().unwrap_or(0);
    let doubled = std::iter::successors(Some(1), |votes| Some(2 * votes));
    let mut counted: Vec<usize> = doubled.take_while(|votes| *votes <= all).collect();
    counted.extend((!counted.contains(&all) && all > 0).then_some(all));
    let mut measures = BTreeMap::new();
    for votes in counted {
        for (name, ordering) in [
            ("pair_accuracy", Ordering::Greater),
            ("pair_ties", Ordering::Equal),
            ("pair_errors", Ordering::Less),
        ] {
            let share = share(pairs, |pair| pair.compared(votes) == ordering);
            measures.extend(share.map(|share| (format!("{name}/votes-{votes}"), share)));
        }
    }
    measures
}

fn votes(pair: &Pair) -> usize {
    pair.right.len().min(pair.wrong.len())
}

impl Pair {
    /// How the right answer's first `votes` judgments compare with the wrong one's.
    fn compared(&self, votes: usize) -> Ordering {
        let found_correct = |judgments: &[Option<Judgment>]| {
            let first = judgments.iter().take(votes);
            first
                .filter(|judgment| **judgment == Some(Judgment::Correct))
                .count()
        };
        found_correct(&self.right).cmp(&found_correct(&self.wrong))
    }
}

fn share(pairs: &[Pair], hit: impl Fn(&Pair) -> bool) -> Option<Estimate> {
    let mut problems: BTreeMap<&str, Cluster> = BTreeMap::new();
    for pair in pairs {
        let cluster = problems.entry(&pair.problem).or_default();
        cluster.hits += f64::from(hit(pair));
        cluster.total += 1.0;
    }
    proportion(problems.into_values())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Judgment::{Correct, Incorrect};

    fn pair(problem: &str, right: &[Judgment], wrong: &[Judgment]) -> Pair {
        let judgments = |of: &[Judgment]| of.iter().copied().map(Some).collect();
        Pair {
            problem: problem.to_owned(),
            right: judgments(right),
            wrong: judgments(wrong),
        }
    }

    #[test]
    fn the_answer_that_is_found_correct_more_often_is_taken() {
        let pairs = [
            pair("a", &[Correct, Correct, Correct], &[Incorrect; 3]),
            pair("b", &[Incorrect, Correct, Incorrect], &[Incorrect; 3]),
            pair("c", &[Correct; 3], &[Correct; 3]),
            pair("d", &[Incorrect; 3], &[Incorrect, Incorrect, Correct]),
        ];
        let measures = of_pairs(&pairs);
        let value = |name: &str| measures[name].value;
        assert_eq!(value("pair_accuracy/votes-1"), 0.25);
        assert_eq!(value("pair_ties/votes-1"), 0.75);
        assert_eq!(value("pair_errors/votes-1"), 0.0);
        assert_eq!(value("pair_accuracy/votes-2"), 0.5);
        assert_eq!(value("pair_accuracy/votes-3"), 0.5);
        assert_eq!(value("pair_ties/votes-3"), 0.25);
        assert_eq!(value("pair_errors/votes-3"), 0.25);
        assert_eq!(measures.len(), 9);
    }

    #[test]
    fn a_critique_without_a_judgment_finds_nothing_correct() {
        let mut silent = pair("a", &[Correct], &[Correct]);
        silent.right = vec![None];
        assert_eq!(of_pairs(&[silent])["pair_errors/votes-1"].value, 1.0);
        assert!(of_pairs(&[]).is_empty());
    }
}
