//! What critics and baselines make of programs over several rounds of critique and revision.

use journal::{Evaluation, Replay};
use serde::Serialize;

use crate::{
    chart::{Chart, Series},
    comparison::{self, Cell, Comparison},
    words::{self, Unit},
};

/// An evaluation over all rounds has this behind the name of its first.
const ROUNDS: &str = "/rounds";

/// Evaluations that are shown beside others in every round, and not where before is compared with after.
pub(super) const BASELINES: [&str; 5] = [
    "start",
    "self-critique",
    "execution-feedback",
    "hinted-critique",
    "oracle",
];

/// What is compared over seeds, of however many rounds there are.
pub(super) const OVER_SEEDS: [&str; 22] = [
    "pass_at_1/round-0",
    "pass_at_1/round-1",
    "pass_at_1/round-2",
    "pass_at_1/round-3",
    "pass_at_1/round-4",
    "pass_at_1/round-5",
    "regression_rate/round-1",
    "regression_rate/round-2",
    "regression_rate/round-3",
    "regression_rate/round-4",
    "regression_rate/round-5",
    "delta_up_from_start/round-5",
    "delta_down_from_start/round-5",
    "gain_over_start/round-1",
    "gain_over_start/round-5",
    "gain_over_no_critique/round-1",
    "gain_over_no_critique/round-2",
    "gain_over_no_critique/round-3",
    "gain_over_no_critique/round-4",
    "gain_over_no_critique/round-5",
    "judgment_f1/round-1",
    "judgment_f1/round-5",
];

/// The page's section.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Rounds {
    charts: Vec<Chart>,
    comparison: Comparison,
    /// The start and the last round by difficulty, family and source.
    by_kind: Vec<ByKind>,
    /// Round by round, everything.
    all: Comparison,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ByKind {
    label: &'static str,
    comparison: Comparison,
}

/// Charts by round: the metric, the round that it begins with, and what it means.
const CHARTS: [(&str, usize, &str, &str); 5] = [
    (
        "pass_at_1",
        0,
        "pass@1",
        "programs that pass every test after so many rounds, with 95 % intervals over problems",
    ),
    (
        "regression_rate",
        1,
        "Regression rate",
        "right programs that a round breaks, of all programs",
    ),
    (
        "delta_up",
        1,
        "Made right",
        "wrong programs that a round makes right, of all programs",
    ),
    (
        "judgment_f1",
        1,
        "Judgment macro F1",
        "of the judgments of a round against the tests before it",
    ),
    (
        "similarity",
        1,
        "Similarity",
        "of a program before and after its revision, as difflib measures it",
    ),
];

const KINDS: [(&str, &str); 3] = [
    ("difficulty", "By difficulty"),
    ("data_source", "By data source"),
    ("family", "By family"),
];

impl Rounds {
    pub(super) fn of(replay: &Replay) -> Option<Self> {
        let evaluations = contenders(replay);
        let last = last_round(&evaluations)?;
        let shown: Vec<&Evaluation> = evaluations.iter().collect();
        let of = |wanted: &dyn Fn(&str) -> bool| Comparison::of_some(&shown, None, wanted);
        let main = main_metrics(last);
        let is_kind = |metric: &str| KINDS.iter().any(|(kind, _)| metric.contains(&part(kind)));
        let by_kind = KINDS.iter().filter_map(|(kind, label)| {
            let comparison = of(&|metric| metric.contains(&part(kind)));
            // One value alone is the whole again.
            (comparison.rows.len() > 2).then_some(ByKind { label, comparison })
        });
        Some(Self {
            charts: CHARTS
                .iter()
                .filter_map(|(metric, from, title, meaning)| {
                    chart(&evaluations, metric, *from..=last, title, meaning)
                })
                .collect(),
            comparison: of(&|metric| main.iter().any(|wanted| wanted == metric)),
            by_kind: by_kind.collect(),
            all: of(&|metric| !is_kind(metric)),
        })
    }
}

fn part(kind: &str) -> String {
    format!("/{kind}/")
}

/// Evaluations over all rounds, under the names of their first.
fn contenders(replay: &Replay) -> Vec<Evaluation> {
    let named = replay.evaluations().filter_map(|one| {
        let name = one.name.strip_suffix(ROUNDS)?.to_owned();
        Some(Evaluation {
            name,
            ..one.clone()
        })
    });
    named.collect()
}

fn last_round(evaluations: &[Evaluation]) -> Option<usize> {
    let rounds = evaluations.iter().flat_map(|one| one.metrics.keys());
    let rounds = rounds.filter_map(|metric| metric.strip_prefix("pass_at_1/round-")?.parse().ok());
    rounds.max()
}

fn main_metrics(last: usize) -> Vec<String> {
    let mut metrics = vec!["pass_at_1/round-0".to_owned()];
    for round in [1, last] {
        for metric in [
            "pass_at_1",
            "delta_up_from_start",
            "delta_down_from_start",
            "regression_rate",
            "gain_over_no_critique",
            "judgment_f1",
            "judgment_f1_correct",
            "judgment_f1_incorrect",
            "timeout_rate",
            "similarity",
            "criticised",
        ] {
            metrics.push(format!("{metric}/round-{round}"));
        }
    }
    metrics
}

fn chart(
    evaluations: &[Evaluation],
    metric: &str,
    rounds: std::ops::RangeInclusive<usize>,
    title: &str,
    meaning: &str,
) -> Option<Chart> {
    let series = evaluations.iter().map(|one| {
        let found = rounds.clone().filter_map(|round| {
            let found = one.metrics.get(&format!("{metric}/round-{round}"))?;
            Some(((round as f64, found.value), (found.low, found.high)))
        });
        let (points, bounds) = found.unzip();
        Series {
            label: one.name.clone(),
            points,
            bounds,
        }
    });
    let series: Vec<Series> = series.collect();
    Chart::over("round", title, meaning, Unit::Share, &series)
}

/// The main result, and what it becomes over the rounds.
pub(super) fn sentence(replay: &Replay) -> Option<String> {
    let first = comparison::sentence(replay);
    let evaluations = contenders(replay);
    let Some(last) = last_round(&evaluations).filter(|last| *last > 1) else {
        return first;
    };
    let at_last = format!("pass_at_1/round-{last}");
    let pass = |name: &str| {
        let evaluation = evaluations.iter().find(|one| one.name == name)?;
        evaluation.metrics.get(&at_last).copied()
    };
    let said: Vec<String> = ["no-critique", "sft", "critic", "rl"]
        .iter()
        .filter_map(|name| Some((name, pass(name)?)))
        .map(|(name, found)| format!("{} with {name}", Unit::Share.write_with_bounds(found)))
        .collect();
    let gain = evaluations.iter().rev().find_map(|one| {
        let gain = one
            .metrics
            .get(&format!("gain_over_no_critique/round-{last}"))?;
        Some(format!(
            "; {} is {:+.0}\u{a0}% ({:+.0} to {:+.0}) over no critique",
            one.name,
            100.0 * gain.value,
            100.0 * gain.low,
            100.0 * gain.high
        ))
    });
    Some(format!(
        "{} After {} pass@1 is {}{}.",
        first.unwrap_or_default(),
        words::count(last as u64, "round"),
        said.join(", "),
        gain.unwrap_or_default()
    ))
}

/// pass@1 round by round for the terminal.
pub(super) fn table(replay: &Replay) -> Option<Vec<Vec<String>>> {
    let evaluations = contenders(replay);
    let last = last_round(&evaluations)?;
    let mut heading = vec!["pass@1 by round".to_owned()];
    heading.extend((0..=last).map(|round| round.to_string()));
    heading.push("broken in all".to_owned());
    let rows = evaluations.iter().map(|one| {
        let said = |metric: String| {
            let found = one.metrics.get(&metric);
            let cell = found.map(|found| Cell::of(*found, Unit::Share, 0.0, 1.0));
            cell.map_or("–".to_owned(), |cell| cell.said())
        };
        let mut row = vec![one.name.clone()];
        row.extend((0..=last).map(|round| said(format!("pass_at_1/round-{round}"))));
        row.push(said(format!("delta_down_from_start/round-{last}")));
        row
    });
    Some([heading].into_iter().chain(rows).collect())
}
