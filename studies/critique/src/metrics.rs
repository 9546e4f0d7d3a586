//! The study's measures over played items, with 95 % intervals over problems.
//!
//! An item is one (task, sample) pair; definitions as in the spec of the critique study, section 6.3.
//! Several programs of one problem, and several samples of one program, are one draw of a problem, never
//! several: every interval widens with the agreement inside problems.

pub mod pairs;
pub mod rounds;
pub mod similarity;

use std::collections::BTreeMap;

use record::{Cluster, Estimate, bootstrap, proportion};

use crate::format::Judgment;

/// One critique of one program, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Intervals are over these.
    pub problem: String,
    /// The program under criticism passes every test.
    pub initially_right: bool,
    /// The last program passes every test.
    pub finally_right: bool,
    /// Absent when the critique gives no readable judgment.
    pub judgment: Option<Judgment>,
    /// The critique passes the gate.
    pub gate_ok: bool,
    /// The critique is exactly the right one; absent where nobody knows the right one.
    pub exact: Option<bool>,
    /// Somebody said something.
    pub criticised: bool,
}

/// The measures of an evaluation by name. A measure without any item to measure (the fix rate where
/// no program is wrong) is absent.
///
/// | name | over | share of |
/// |---|---|---|
/// | `pass_at_1`, `initial_pass_at_1` | all items | right after, right before |
/// | `delta_up`, `delta_down` | all items | wrong then right, right then wrong |
/// | `fix_rate`, `break_rate` | wrong items, right items | right after, wrong after |
/// | `judgment_accuracy`, `…_on_right`, `…_on_wrong` | all, right, wrong items | judged truly; no judgment is not |
/// | `judgment_f1`, `…_correct`, `…_incorrect` | all items | F1: mean of both classes, each class |
/// | `exact_on_wrong` | wrong items with a known right critique | critiques that are exactly that |
/// | `gate_fail_rate` | all items | critiques that the gate refuses |
///
/// What judges critiques is absent where every one of them is empty: then nobody was asked to judge.
///
/// Shares have Wilson intervals at the effective number of independent items, F1 the percentiles of a
/// bootstrap over problems (1000 resamples, always the same ones for the same items).
pub fn of_evaluation(items: &[Item]) -> BTreeMap<String, Estimate> {
    let problems = by_problem(items);
    let mut measures = BTreeMap::new();
    let criticised = items.iter().any(|item| item.criticised);
    let applies = |(_, of_critiques, _): &(&str, bool, Measure)| criticised || !of_critiques;
    for (name, _, measure) in SHARES.into_iter().filter(applies) {
        let clusters = problems.iter().map(|items| share_of(items, measure));
        measures.extend(proportion(clusters).map(|estimate| (name.to_owned(), estimate)));
    }
    if !criticised {
        return measures;
    }
    let counts: Vec<Confusion> = problems.iter().map(|items| confusion(items)).collect();
    for (name, f1) in F1S {
        let of_sample = |sample: &mut dyn Iterator<Item = usize>| {
            f1(&sample.fold(Confusion::default(), |sum, index| sum.plus(&counts[index])))
        };
        let estimate = bootstrap(counts.len(), of_sample);
        measures.extend(estimate.map(|estimate| (name.to_owned(), estimate)));
    }
    measures
}

/// The same measures without intervals, for the log of a training step.
pub fn of_step(items: &[Item]) -> BTreeMap<String, f64> {
    let all: Vec<&Item> = items.iter().collect();
    let shares = SHARES.into_iter().filter_map(|(name, _, measure)| {
        let Cluster { hits, total } = share_of(&all, measure);
        (total > 0.0).then(|| (name.to_owned(), hits / total))
    });
    let counts = confusion(&all);
    let f1s = F1S
        .into_iter()
        .filter_map(|(name, f1)| Some((name.to_owned(), f1(&counts)?)));
    shares.chain(f1s).collect()
}

/// Whether an item counts as a hit; `None` when the measure does not concern it.
type Measure = fn(&Item) -> Option<bool>;

/// With whether they are of what was said, rather than of programs.
const SHARES: [(&str, bool, Measure); 11] = [
    ("pass_at_1", false, |item| Some(item.finally_right)),
    ("initial_pass_at_1", false, |item| {
        Some(item.initially_right)
    }),
    ("delta_up", false, |item| {
        Some(!item.initially_right && item.finally_right)
    }),
    ("delta_down", false, |item| {
        Some(item.initially_right && !item.finally_right)
    }),
    ("fix_rate", false, |item| {
        (!item.initially_right).then_some(item.finally_right)
    }),
    ("break_rate", false, |item| {
        item.initially_right.then_some(!item.finally_right)
    }),
    ("judgment_accuracy", true, |item| Some(judged_truly(item))),
    ("judgment_accuracy_on_right", true, |item| {
        item.initially_right.then(|| judged_truly(item))
    }),
    ("judgment_accuracy_on_wrong", true, |item| {
        (!item.initially_right).then(|| judged_truly(item))
    }),
    ("exact_on_wrong", true, |item| {
        item.exact.filter(|_| !item.initially_right)
    }),
    ("gate_fail_rate", true, |item| Some(!item.gate_ok)),
];

/// An F1 of a confusion; `None` when its class does not occur.
type F1 = fn(&Confusion) -> Option<f64>;

const F1S: [(&str, F1); 3] = [
    ("judgment_f1", Confusion::macro_f1),
    ("judgment_f1_correct", Confusion::f1_correct),
    ("judgment_f1_incorrect", Confusion::f1_incorrect),
];

fn judged_truly(item: &Item) -> bool {
    item.judgment == Some(truth(item))
}

fn truth(item: &Item) -> Judgment {
    if item.initially_right {
        Judgment::Correct
    } else {
        Judgment::Incorrect
    }
}

fn by_problem(items: &[Item]) -> Vec<Vec<&Item>> {
    let mut problems: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for item in items {
        problems.entry(&item.problem).or_default().push(item);
    }
    problems.into_values().collect()
}

fn share_of(items: &[&Item], measure: Measure) -> Cluster {
    items
        .iter()
        .filter_map(|item| measure(item))
        .fold(Cluster::default(), |sum, hit| Cluster {
            hits: sum.hits + f64::from(hit),
            total: sum.total + 1.0,
        })
}

/// How judgments met the truth. An item without a judgment is missed by its true class and claimed by
/// none.
#[derive(Clone, Copy, Debug, Default)]
struct Confusion {
    right: f64,
    right_judged_correct: f64,
    wrong: f64,
    wrong_judged_incorrect: f64,
    judged_correct: f64,
    judged_incorrect: f64,
}

impl Confusion {
    fn of(right: bool, judgment: Option<Judgment>) -> Self {
        let judged = |one| f64::from(judgment == Some(one));
        let right = f64::from(right);
        let wrong = 1.0 - right;
        Self {
            right,
            wrong,
            right_judged_correct: right * judged(Judgment::Correct),
            wrong_judged_incorrect: wrong * judged(Judgment::Incorrect),
            judged_correct: judged(Judgment::Correct),
            judged_incorrect: judged(Judgment::Incorrect),
        }
    }

    /// As so much of an item.
    fn scaled(self, weight: f64) -> Self {
        Self {
            right: weight * self.right,
            right_judged_correct: weight * self.right_judged_correct,
            wrong: weight * self.wrong,
            wrong_judged_incorrect: weight * self.wrong_judged_incorrect,
            judged_correct: weight * self.judged_correct,
            judged_incorrect: weight * self.judged_incorrect,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            right: self.right + other.right,
            right_judged_correct: self.right_judged_correct + other.right_judged_correct,
            wrong: self.wrong + other.wrong,
            wrong_judged_incorrect: self.wrong_judged_incorrect + other.wrong_judged_incorrect,
            judged_correct: self.judged_correct + other.judged_correct,
            judged_incorrect: self.judged_incorrect + other.judged_incorrect,
        }
    }

    fn f1_correct(&self) -> Option<f64> {
        f1(self.right_judged_correct, self.right, self.judged_correct)
    }

    fn f1_incorrect(&self) -> Option<f64> {
        f1(
            self.wrong_judged_incorrect,
            self.wrong,
            self.judged_incorrect,
        )
    }

    /// The mean over the classes that occur, in the truth or in the judgments.
    fn macro_f1(&self) -> Option<f64> {
        match (self.f1_correct(), self.f1_incorrect()) {
            (Some(correct), Some(incorrect)) => Some(f64::midpoint(correct, incorrect)),
            (one, other) => one.or(other),
        }
    }
}

/// 2 · hits / (true members + claimed members); undefined for a class that does not occur.
fn f1(hits: f64, members: f64, claimed: f64) -> Option<f64> {
    (members + claimed > 0.0).then(|| 2.0 * hits / (members + claimed))
}

fn confusion(items: &[&Item]) -> Confusion {
    items.iter().fold(Confusion::default(), |sum, item| {
        sum.plus(&Confusion::of(item.initially_right, item.judgment))
    })
}

#[cfg(test)]
mod tests;
