//! Several runs of one recipe with different seeds, compared.

use std::collections::{BTreeMap, BTreeSet};

use journal::Interval;
use serde::Serialize;

use crate::RunView;

/// What the runs of one recipe achieved before and after, seed by seed and together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seeds {
    pub metric: &'static str,
    pub seeds: Vec<SeedResult>,
    /// Mean over seeds of each evaluation, with the t-interval of the mean.
    pub mean: BTreeMap<String, Interval>,
    /// Mean of after − before over seeds, with its t-interval.
    pub gain: Option<Interval>,
    /// Seeds whose two intervals over tasks share no point, after being the higher.
    pub apart: usize,
}

/// One run's evaluations of the metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedResult {
    pub run: String,
    pub seed: u64,
    pub evaluations: BTreeMap<String, Interval>,
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
}

const METRIC: &str = "pass_at_1";
const BEFORE: &str = "sft";
const AFTER: &str = "rl";
const SHOWN: [&str; 3] = ["no-critique", BEFORE, AFTER];

impl Seeds {
    /// # Errors
    /// A run without both evaluations; two runs of one seed.
    pub fn of(runs: &[RunView]) -> Result<Self, SeedsError> {
        let mut seeds: Vec<SeedResult> = Vec::new();
        let mut seen = BTreeSet::new();
        for view in runs {
            let run = view.path.display().to_string();
            let summary = view.replay.summary();
            let evaluations: BTreeMap<String, Interval> = summary
                .evaluations
                .iter()
                .filter(|one| SHOWN.contains(&one.name.as_str()))
                .filter_map(|one| Some((one.name.clone(), *one.metrics.get(METRIC)?)))
                .collect();
            for evaluation in [BEFORE, AFTER] {
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
            let apart = evaluations[AFTER].low > evaluations[BEFORE].high;
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
        let mean = SHOWN
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), t_interval(&values(name))?)))
            .collect();
        let gains: Vec<f64> = values(AFTER)
            .iter()
            .zip(values(BEFORE))
            .map(|(after, before)| after - before)
            .collect();
        let apart = seeds.iter().filter(|one| one.apart).count();
        Ok(Self {
            metric: METRIC,
            mean,
            gain: t_interval(&gains),
            apart,
            seeds,
        })
    }

    /// A table for the terminal.
    pub fn text(&self) -> String {
        let cell = |found: Option<&Interval>| {
            found.map_or_else(String::new, |found| {
                format!(
                    "{:5.1} [{:4.1}, {:4.1}]",
                    100.0 * found.value,
                    100.0 * found.low,
                    100.0 * found.high
                )
            })
        };
        let row = |label: &str, of: &BTreeMap<String, Interval>, last: &str| {
            let cells: Vec<String> = SHOWN
                .iter()
                .map(|name| format!("{:>20}", cell(of.get(*name))))
                .collect();
            format!("{label:<8}{}  {last}\n", cells.concat())
        };
        let mut text = format!(
            "pass@1 in %, 95 % intervals over tasks ({} seeds)\n",
            self.seeds.len()
        );
        let headings: Vec<String> = SHOWN.iter().map(|name| format!("{name:>20}")).collect();
        text += &format!(
            "{:<8}{}  intervals of sft and rl\n",
            "seed",
            headings.concat()
        );
        for one in &self.seeds {
            let apart = if one.apart { "apart" } else { "overlap" };
            text += &row(&one.seed.to_string(), &one.evaluations, apart);
        }
        text += &row("mean", &self.mean, "(t-interval over seeds)");
        if let Some(gain) = self.gain {
            text += &format!(
                "gain of rl over sft: {:.1} points [{:.1}, {:.1}] over seeds; apart in {} of {} seeds\n",
                100.0 * gain.value,
                100.0 * gain.low,
                100.0 * gain.high,
                self.apart,
                self.seeds.len()
            );
        }
        text
    }
}

/// Mean and its 95 % interval by Student's t; `None` for fewer than two values.
fn t_interval(values: &[f64]) -> Option<Interval> {
    /// 97.5 % quantiles for 1, 2, … degrees of freedom.
    const QUANTILES: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (n - 1) as f64;
    let quantile = QUANTILES.get(n - 2).copied().unwrap_or(1.96);
    let half = quantile * (variance / n as f64).sqrt();
    Some(Interval {
        value: mean,
        low: mean - half,
        high: mean + half,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_over_five_seeds() {
        let found = t_interval(&[0.7, 0.72, 0.68, 0.74, 0.66]).unwrap();
        // Sample standard deviation sqrt(0.001); 2.776 * sqrt(0.001 / 5).
        assert!((found.value - 0.7).abs() < 1e-12);
        assert!((found.high - found.value - 2.776 * (0.001f64 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(t_interval(&[1.0]), None);
    }
}
