//! Measures of programs that are criticised and revised round after round, with 95 % intervals over problems.
//!
//! Definitions as in the spec of the critique study, section 6.3. Several programs of one problem, and several
//! branches of one program, are one draw of a problem, never several.

use std::collections::{BTreeMap, BTreeSet};

use record::{Cluster, Estimate, bootstrap, pass_at_k, proportion};

use super::Confusion;
use crate::format::Judgment;

/// One program on its way through the rounds: one path from an initial program to a last one.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// Intervals are over these.
    pub problem: String,
    /// What results are broken down by: `difficulty`, `data_source`, `family`, where they are known.
    pub kinds: BTreeMap<&'static str, String>,
    /// The share of its initial program that this path stands for: 1 without branches.
    pub weight: f64,
    /// The program at the start and after every round, in which it may have stayed as it was.
    pub states: Vec<State>,
    /// The number of that program among all of its round: paths that part later share it.
    pub programs: Vec<usize>,
    /// What was said in every round; `None` where nothing was.
    pub rounds: Vec<Option<Said>>,
}

/// A program at one point of its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// It passes every test.
    pub right: bool,
    /// Its tests ran out of time.
    pub timed_out: bool,
}

/// A critique and what was made of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// The critique has any text.
    pub spoken: bool,
    /// Absent when the critique gives no readable judgment.
    pub judgment: Option<Judgment>,
    /// Of the programs before and after; absent where there was no revision.
    pub similarity: Option<f64>,
}

/// The measures of all rounds, by name. A measure without anything to measure is absent; `K` is a round, 0 the
/// start.
///
/// | name | over | what |
/// |---|---|---|
/// | `pass_at_1/round-K` | all | right after K rounds |
/// | `delta_up/round-K`, `regression_rate/round-K` | all | wrong then right, right then wrong, in that round |
/// | `delta_up_from_start/round-K`, `delta_down_from_start/round-K` | all | the same against the start |
/// | `gain_over_start/round-K` | all | growth of pass@1 over that of the start, as a share of it |
/// | `timeout_rate/round-K` | all | tests ran out of time |
/// | `criticised/round-K` | all | share that had a critique in that round |
/// | `judgment_f1/round-K`, `…_correct`, `…_incorrect` | the criticised, where any critique has text | F1 of judgments: mean of both classes, each class |
/// | `similarity/round-K` | the revised | mean ratio of the program before and after |
/// | `pass_at_k/round-K/N` | problems | some of N programs is right after K rounds, where every problem has as many |
/// | `pass_at_1/round-K/KIND/VALUE` | that kind | at the start and after the last round |
///
/// Shares have Wilson intervals at the effective number of independent items, the others the percentiles of a
/// bootstrap over problems.
pub fn of_rounds(trajectories: &[Trajectory]) -> BTreeMap<String, Estimate> {
    let problems: Vec<Problem<'_>> = by_problem(trajectories).into_values().collect();
    let last = trajectories
        .iter()
        .map(|one| one.rounds.len())
        .max()
        .unwrap_or(0);
    let mut measures = BTreeMap::new();
    let mut add = |name: String, found: Option<Estimate>| {
        measures.extend(found.map(|found| (name, found)));
    };
    for round in 0..=last {
        for (name, from, measure) in SHARES {
            if round >= from {
                let measure = |one: &Trajectory| measure(one, round);
                add(format!("{name}/round-{round}"), share(&problems, measure));
            }
        }
        for k in [2, 4, 8, 16, 32] {
            let found = at_least_one(&problems, round, k);
            add(format!("pass_at_k/round-{round}/{k}"), found);
        }
        if round == 0 {
            continue;
        }
        let pairs = [0, round].map(|round| rights(&problems, round));
        add(
            format!("gain_over_start/round-{round}"),
            gain(&pairs[0], &pairs[1]),
        );
        let judged: Vec<Confusion> = problems
            .iter()
            .map(|problem| confusion(problem, round))
            .collect();
        let spoken = |one: &Trajectory| one.said_in(round).is_some_and(|said| said.spoken);
        let f1s = super::F1S
            .iter()
            .filter(|_| trajectories.iter().any(spoken));
        for (name, f1) in f1s {
            let of_sample = |sample: &mut dyn Iterator<Item = usize>| {
                f1(&sample.fold(Confusion::default(), |sum, index| sum.plus(&judged[index])))
            };
            let found = bootstrap(judged.len(), of_sample);
            add(format!("{name}/round-{round}"), found);
        }
        let alike: Vec<Cluster> = problems
            .iter()
            .map(|problem| similarity(problem, round))
            .collect();
        let mean = |sample: &mut dyn Iterator<Item = usize>| {
            let sum = sample.fold(Cluster::default(), |sum, index| plus(sum, alike[index]));
            (sum.total > 0.0).then(|| sum.hits / sum.total)
        };
        add(
            format!("similarity/round-{round}"),
            bootstrap(alike.len(), mean),
        );
    }
    for (kind, value) in kinds(trajectories) {
        for round in BTreeSet::from([0, last]) {
            let of_kind = |one: &Trajectory| {
                let counts = one.kinds.get(kind) == Some(value);
                one.right_after(round).filter(|_| counts)
            };
            let name = format!("pass_at_1/round-{round}/{kind}/{value}");
            add(name, share(&problems, of_kind));
        }
    }
    measures
}

/// How far one critic's pass@1 after a round is above another's, as a share of that: of the problems that both
/// were played on, paired. `None` where the other has none right.
pub fn relative_gain(ours: &[Trajectory], theirs: &[Trajectory], round: usize) -> Option<Estimate> {
    let (ours, theirs) = (by_problem(ours), by_problem(theirs));
    let both = ours
        .iter()
        .filter_map(|(problem, ours)| Some((ours, theirs.get(problem)?)));
    let (ours, theirs): (Vec<Problem<'_>>, Vec<Problem<'_>>) = both
        .map(|(ours, theirs)| (ours.clone(), theirs.clone()))
        .unzip();
    gain(&rights(&theirs, round), &rights(&ours, round))
}

/// Whether a path counts as a hit in a round; `None` when the measure does not concern it.
type Measure = fn(&Trajectory, usize) -> Option<bool>;

/// With the first round that they are of.
const SHARES: [(&str, usize, Measure); 7] = [
    ("pass_at_1", 0, |one, round| one.right_after(round)),
    ("timeout_rate", 0, |one, round| {
        Some(one.states.get(round)?.timed_out)
    }),
    ("delta_up", 1, |one, round| {
        Some(!one.right_after(round - 1)? && one.right_after(round)?)
    }),
    ("regression_rate", 1, |one, round| {
        Some(one.right_after(round - 1)? && !one.right_after(round)?)
    }),
    ("delta_up_from_start", 1, |one, round| {
        Some(!one.right_after(0)? && one.right_after(round)?)
    }),
    ("delta_down_from_start", 1, |one, round| {
        Some(one.right_after(0)? && !one.right_after(round)?)
    }),
    ("criticised", 1, |one, round| {
        Some(one.rounds.get(round - 1)?.is_some_and(|said| said.spoken))
    }),
];

impl Trajectory {
    /// `None` where it has no such round.
    fn right_after(&self, round: usize) -> Option<bool> {
        Some(self.states.get(round)?.right)
    }

    fn said_in(&self, round: usize) -> Option<Said> {
        *self.rounds.get(round - 1)?
    }
}

type Problem<'a> = Vec<&'a Trajectory>;

fn by_problem(trajectories: &[Trajectory]) -> BTreeMap<&str, Problem<'_>> {
    let mut problems: BTreeMap<&str, Problem<'_>> = BTreeMap::new();
    for one in trajectories {
        problems.entry(&one.problem).or_default().push(one);
    }
    problems
}

fn kinds(trajectories: &[Trajectory]) -> BTreeSet<(&'static str, &String)> {
    let kinds = trajectories.iter().flat_map(|one| &one.kinds);
    kinds.map(|(kind, value)| (*kind, value)).collect()
}

fn plus(a: Cluster, b: Cluster) -> Cluster {
    Cluster {
        hits: a.hits + b.hits,
        total: a.total + b.total,
    }
}

fn cluster(problem: &Problem<'_>, measure: impl Fn(&Trajectory) -> Option<bool>) -> Cluster {
    let counted = problem.iter().filter_map(|one| {
        let hit = f64::from(measure(one)?);
        Some(Cluster {
            hits: one.weight * hit,
            total: one.weight,
        })
    });
    counted.fold(Cluster::default(), plus)
}

fn share(
    problems: &[Problem<'_>],
    measure: impl Fn(&Trajectory) -> Option<bool>,
) -> Option<Estimate> {
    proportion(problems.iter().map(|problem| cluster(problem, &measure)))
}

/// Those that are right after a round, by problem.
fn rights(problems: &[Problem<'_>], round: usize) -> Vec<Cluster> {
    let right = |problem: &Problem<'_>| cluster(problem, |one| one.right_after(round));
    problems.iter().map(right).collect()
}

/// (after − before) / before of the shares, paired by problem; `None` where nothing was right before.
fn gain(before: &[Cluster], after: &[Cluster]) -> Option<Estimate> {
    bootstrap(before.len(), |sample| {
        let none = (Cluster::default(), Cluster::default());
        let (old, new) = sample.fold(none, |(old, new), index| {
            (plus(old, before[index]), plus(new, after[index]))
        });
        let (old, new) = (old.hits / old.total, new.hits / new.total);
        (old > 0.0 && new.is_finite()).then(|| (new - old) / old)
    })
}

fn confusion(problem: &Problem<'_>, round: usize) -> Confusion {
    let judged = problem.iter().filter_map(|one| {
        let said = one.said_in(round)?;
        let right = one.right_after(round - 1)?;
        Some(Confusion::of(right, said.judgment).scaled(one.weight))
    });
    judged.fold(Confusion::default(), |sum, one| sum.plus(&one))
}

/// The sum of the ratios of a round, and how many there are.
fn similarity(problem: &Problem<'_>, round: usize) -> Cluster {
    let ratios = problem.iter().filter_map(|one| {
        let ratio = one.said_in(round)?.similarity?;
        Some(Cluster {
            hits: one.weight * ratio,
            total: one.weight,
        })
    });
    ratios.fold(Cluster::default(), plus)
}

/// pass@k over problems (Codex, arXiv 2107.03374, equation 1); `None` where some problem has fewer programs, or
/// paths stand for unequal shares.
fn at_least_one(problems: &[Problem<'_>], round: usize, k: usize) -> Option<Estimate> {
    let chance = |problem: &Problem<'_>| {
        let mut programs: BTreeMap<usize, (f64, bool)> = BTreeMap::new();
        for one in problem {
            let number = *one.programs.get(round)?;
            let program = programs
                .entry(number)
                .or_insert((0.0, one.right_after(round)?));
            program.0 += one.weight;
        }
        let (first, _) = *programs.values().next()?;
        // Sums of shares as 1/3, so equal but for rounding.
        let alike = programs
            .values()
            .all(|(weight, _)| (weight - first).abs() < 1e-9);
        let passes = programs.values().filter(|(_, right)| *right).count();
        (alike && programs.len() >= k).then(|| pass_at_k(programs.len(), passes, k))
    };
    let chances: Vec<f64> = problems.iter().map(chance).collect::<Option<_>>()?;
    bootstrap(chances.len(), |sample| {
        let (n, sum) = sample.fold((0.0, 0.0), |(n, sum), index| {
            (n + 1.0, sum + chances[index])
        });
        (n > 0.0).then(|| sum / n)
    })
}

#[cfg(test)]
mod tests;
