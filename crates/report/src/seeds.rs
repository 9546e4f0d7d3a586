//! Several runs of one recipe with different seeds, compared.

use std::collections::{BTreeMap, BTreeSet};

use journal::Replay;
use record::Estimate;
use serde::Serialize;

use crate::{
    RunView,
    study::{self, OverSeeds, Study},
    terminal,
    words::{self, Unit},
};

/// What the runs of one recipe achieved before and after, seed by seed and together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seeds {
    pub metric: &'static str,
    pub seeds: Vec<SeedResult>,
    /// Mean over seeds of each evaluation, with the t-interval of the mean.
    pub mean: BTreeMap<String, Estimate>,
    /// Mean of after − before over seeds, with its t-interval.
    pub gain: Option<Estimate>,
    /// Seeds whose two intervals share no point, after being the higher.
    pub apart: usize,
    /// What else changed, where the study compares more than one metric.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<MetricChange>,
    /// Other ways that were evaluated with the same policies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    #[serde(skip)]
    pair: [&'static str; 2],
    #[serde(skip)]
    label: &'static str,
    #[serde(skip)]
    shown: &'static [&'static str],
}

/// One metric before and after, over the seeds that measured it both times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricChange {
    pub metric: String,
    pub seeds: usize,
    /// Means over seeds with their t-intervals.
    pub before: Estimate,
    pub after: Estimate,
    /// Mean of after − before, with its t-interval.
    pub gain: Estimate,
}

/// An evaluation beside the main ones, as `rl/full_context` is beside `rl`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    pub evaluation: String,
    pub seeds: usize,
    /// Mean of the metric over seeds, with its t-interval.
    pub mean: Estimate,
    /// Mean of what the main evaluation is ahead of it by, with its t-interval.
    pub ahead: Estimate,
}

/// One run's evaluations of the metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedResult {
    pub run: String,
    pub seed: u64,
    pub evaluations: BTreeMap<String, Estimate>,
    pub apart: bool,
}

/// The runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum SeedsError {
    #[error("{run} has not been evaluated as `{evaluation}`; let it run to its end first")]
    NotEvaluated {
        run: String,
        evaluation: &'static str,
    },
    #[error("{first} and {second} are both of seed {seed}; name one run a seed")]
    SameSeed {
        first: String,
        second: String,
        seed: u64,
    },
    #[error(
        "{first} is a run of the study {study}, {other} is of {other_study}; name runs of one recipe"
    )]
    OtherStudy {
        first: String,
        study: String,
        other: String,
        other_study: String,
    },
}

impl Seeds {
    /// # Errors
    /// A run without both evaluations; two runs of one seed; runs of two studies.
    pub fn of(runs: &[RunView]) -> Result<Self, SeedsError> {
        let OverSeeds {
            metric,
            label,
            pair,
            shown,
            further,
            beside,
        } = study_of(runs)?.over_seeds(runs);
        let mut seeds: Vec<SeedResult> = Vec::new();
        let mut seen = BTreeSet::new();
        for view in runs {
            let run = view.path.display().to_string();
            let summary = view.replay.summary();
            let evaluations: BTreeMap<String, Estimate> = summary
                .evaluations
                .iter()
                .filter(|one| shown.contains(&one.name.as_str()))
                .filter_map(|one| Some((one.name.clone(), *one.metrics.get(metric)?)))
                .collect();
            for evaluation in pair {
                if !evaluations.contains_key(evaluation) {
                    return Err(SeedsError::NotEvaluated { run, evaluation });
                }
            }
            if !seen.insert(summary.seed)
                && let Some(first) = seeds.iter().find(|other| other.seed == summary.seed)
            {
                let first = first.run.clone();
                return Err(SeedsError::SameSeed {
                    first,
                    second: run,
                    seed: summary.seed,
                });
            }
            let (before, after) = (evaluations[pair[0]], evaluations[pair[1]]);
            let apart = before.overlaps(&after) == Some(false) && after.value > before.value;
            seeds.push(SeedResult {
                run,
                seed: summary.seed,
                evaluations,
                apart,
            });
        }
        seeds.sort_by_key(|result| result.seed);
        let values = |name: &str| -> Vec<f64> {
            seeds
                .iter()
                .filter_map(|one| Some(one.evaluations.get(name)?.value))
                .collect()
        };
        let mean = shown
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), Estimate::over_seeds(&values(name))?)))
            .collect();
        let gains: Vec<f64> = values(pair[1])
            .iter()
            .zip(values(pair[0]))
            .map(|(after, before)| after - before)
            .collect();
        let compared = pair[0] != pair[1];
        let apart = seeds.iter().filter(|one| one.apart).count();
        Ok(Self {
            metric,
            label,
            pair,
            shown,
            changes: changes(runs, pair, metric, further),
            beside: if beside {
                others_of(runs, metric)
            } else {
                Vec::new()
            },
            mean,
            gain: Estimate::over_seeds(&gains).filter(|_| compared),
            apart,
            seeds,
        })
    }

    /// A table for the terminal.
    pub fn text(&self) -> String {
        let cell = |found: Option<&Estimate>| {
            found.map_or_else(String::new, |found| {
                format!(
                    "{:5.1} [{:4.1}, {:4.1}]",
                    100.0 * found.value,
                    100.0 * found.low,
                    100.0 * found.high
                )
            })
        };
        let row = |label: &str, of: &BTreeMap<String, Estimate>, last: &str| {
            let cells: Vec<String> = self
                .shown
                .iter()
                .map(|name| format!("{:>20}", cell(of.get(*name))))
                .collect();
            format!("{label:<8}{}  {last}\n", cells.concat())
        };
        let mut text = format!(
            "{} in %, 95 % intervals ({} seeds)\n",
            self.label,
            self.seeds.len()
        );
        let headings: Vec<String> = self
            .shown
            .iter()
            .map(|name| format!("{name:>20}"))
            .collect();
        let [before, after] = self.pair;
        let compared = before != after;
        let relations = match compared {
            true => format!("  intervals of {before} and {after}"),
            false => String::new(),
        };
        text += &format!("{:<8}{}{relations}\n", "seed", headings.concat());
        for one in &self.seeds {
            let relation = match one.evaluations[before].overlaps(&one.evaluations[after]) {
                _ if !compared => "",
                Some(false) => "apart",
                Some(true) => "overlap",
                None => "no interval",
            };
            text += &row(&one.seed.to_string(), &one.evaluations, relation);
        }
        text += &row("mean", &self.mean, "(t-interval over seeds)");
        if let Some(gain) = self.gain {
            text += &format!(
                "gain of {after} over {before}: {:.1} points [{:.1}, {:.1}] over seeds; apart in {} of {} seeds\n",
                100.0 * gain.value,
                100.0 * gain.low,
                100.0 * gain.high,
                self.apart,
                self.seeds.len()
            );
        }
        text + &self.further_text()
    }

    /// Other metrics and other evaluations; empty for studies of one metric.
    fn further_text(&self) -> String {
        let interval = Unit::write_with_bounds;
        let mut text = String::new();
        if !self.changes.is_empty() {
            let [before, after] = self.pair;
            let heading = ["", before, after, "gain", "seeds"].map(str::to_owned);
            let rows = self.changes.iter().map(|one| {
                // The t-interval of a share may reach beyond what a share can be.
                let means = [one.before, one.after].map(|found| Estimate {
                    low: found.value,
                    high: found.value,
                    ..found
                });
                let unit = Unit::of_metric(&one.metric, means.iter());
                vec![
                    words::label_of(&one.metric),
                    interval(unit, one.before),
                    interval(unit, one.after),
                    difference(unit, one.gain),
                    one.seeds.to_string(),
                ]
            });
            let table: Vec<Vec<String>> = [heading.to_vec()].into_iter().chain(rows).collect();
            text += "\nmeans over seeds, with t-intervals\n";
            text += &(terminal::aligned(&table).join("\n") + "\n");
        }
        if !self.beside.is_empty() {
            let heading = ["", self.label, "ahead of it", "seeds"].map(str::to_owned);
            let rows = self.beside.iter().map(|one| {
                let main = one.evaluation.split('/').next().unwrap_or_default();
                vec![
                    one.evaluation.clone(),
                    interval(Unit::Share, one.mean),
                    format!("{main}: {}", difference(Unit::Share, one.ahead)),
                    one.seeds.to_string(),
                ]
            });
            let table: Vec<Vec<String>> = [heading.to_vec()].into_iter().chain(rows).collect();
            text += &format!(
                "\n{} of baselines over seeds, with t-intervals\n",
                self.label
            );
            text += &(terminal::aligned(&table).join("\n") + "\n");
        }
        text
    }
}

/// `+3.1 points (1.0 to 5.2)`
fn difference(unit: Unit, found: Estimate) -> String {
    let bound = |value: f64| match unit {
        Unit::Share => format!("{:.1}", 100.0 * value),
        Unit::Number => words::number(value),
    };
    format!(
        "{} ({} to {})",
        unit.difference(found.value),
        bound(found.low),
        bound(found.high)
    )
}

/// The study that all runs are of.
fn study_of(runs: &[RunView]) -> Result<&'static dyn Study, SeedsError> {
    let name = |run: &RunView| {
        let started = run.replay.started();
        started.map_or_else(String::new, |started| started.study.clone())
    };
    if let Some(first) = runs.first()
        && let Some(other) = runs.iter().find(|run| name(run) != name(first))
    {
        return Err(SeedsError::OtherStudy {
            first: first.path.display().to_string(),
            study: name(first),
            other: other.path.display().to_string(),
            other_study: name(other),
        });
    }
    Ok(study::of(
        runs.first().map_or(&Replay::default(), |run| &run.replay),
    ))
}

/// A metric of an evaluation of a run, or of all rounds that it began.
fn value(run: &RunView, evaluation: &str, metric: &str) -> Option<f64> {
    let value = |name: &str| {
        let evaluation = run.replay.evaluation(name)?;
        evaluation.metrics.get(metric).map(|found| found.value)
    };
    value(evaluation).or_else(|| value(&format!("{evaluation}/rounds")))
}

/// Means of two values over the runs that have both, and of their difference.
struct Paired {
    seeds: usize,
    before: Estimate,
    after: Estimate,
    gain: Estimate,
}

impl Paired {
    fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let over = |of: fn(&(f64, f64)) -> f64| {
            Estimate::over_seeds(&pairs.iter().map(of).collect::<Vec<_>>())
        };
        Some(Self {
            seeds: pairs.len(),
            before: over(|pair| pair.0)?,
            after: over(|pair| pair.1)?,
            gain: over(|pair| pair.1 - pair.0)?,
        })
    }
}

fn changes(
    runs: &[RunView],
    [before, after]: [&'static str; 2],
    metric: &'static str,
    further: &[&str],
) -> Vec<MetricChange> {
    if further.is_empty() || before == after {
        return Vec::new();
    }
    // The parts of the main metric too, as `f1/temporal` of `f1`.
    let mut metrics: BTreeSet<&str> = further.iter().copied().chain([metric]).collect();
    for evaluation in runs.iter().filter_map(|run| run.replay.evaluation(after)) {
        let parts = evaluation.metrics.keys().map(String::as_str);
        metrics.extend(parts.filter(|name| {
            let rest = name.strip_prefix(metric);
            rest.is_some_and(|rest| rest.starts_with('/'))
        }));
    }
    let mut metrics: Vec<&str> = metrics.into_iter().collect();
    metrics.sort_by_key(|name| words::rank(name));
    let change = |name: &str| {
        let pairs = runs
            .iter()
            .filter_map(|run| Some((value(run, before, name)?, value(run, after, name)?)));
        let found = Paired::of(&pairs.collect::<Vec<_>>())?;
        Some(MetricChange {
            metric: name.to_owned(),
            seeds: found.seeds,
            before: found.before,
            after: found.after,
            gain: found.gain,
        })
    };
    metrics.into_iter().filter_map(change).collect()
}

fn others_of(runs: &[RunView], metric: &str) -> Vec<Beside> {
    let mut names: Vec<&str> = Vec::new();
    for evaluation in runs.iter().flat_map(|run| run.replay.evaluations()) {
        let name = evaluation.name.as_str();
        if name.contains('/') && !names.contains(&name) {
            names.push(name);
        }
    }
    let over = |name: &str| {
        let (main, _) = name.split_once('/')?;
        let pairs = runs
            .iter()
            .filter_map(|run| Some((value(run, name, metric)?, value(run, main, metric)?)));
        let found = Paired::of(&pairs.collect::<Vec<_>>())?;
        Some(Beside {
            evaluation: name.to_owned(),
            seeds: found.seeds,
            mean: found.before,
            ahead: found.gain,
        })
    };
    names.into_iter().filter_map(over).collect()
}
