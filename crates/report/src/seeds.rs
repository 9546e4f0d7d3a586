//! Several runs of one recipe with different seeds, compared.

use std::collections::{BTreeMap, BTreeSet};

use record::Estimate;
use serde::Serialize;

use crate::RunView;

/// What the runs of one recipe achieved before and after, seed by seed and together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seeds {
    pub metric: &'static str,
    pub seeds: Vec<SeedResult>,
    /// Mean over seeds of each evaluation, with the t-interval of the mean.
    pub mean: BTreeMap<String, Estimate>,
    /// Mean of after − before over seeds, with its t-interval.
    pub gain: Option<Estimate>,
    /// Seeds whose two intervals over tasks share no point, after being the higher.
    pub apart: usize,
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
            let evaluations: BTreeMap<String, Estimate> = summary
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
            .filter_map(|name| Some(((*name).to_owned(), Estimate::over_seeds(&values(name))?)))
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
            gain: Estimate::over_seeds(&gains),
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
