//! The study's measures over played episodes, with 95 % intervals over tasks.

use std::collections::{BTreeMap, BTreeSet};

use record::{Cluster, Episode, Estimate, Group, bootstrap, proportion};

use crate::play::Notes;

/// The notes of an episode that reached its verdict.
pub fn notes_of(episode: &Episode) -> Option<Notes> {
    episode.outcome.reward()?;
    serde_json::from_value(episode.notes.clone()).ok()
}

/// The measures of an evaluation by name; episodes without a verdict are in none.
///
/// | name | over | what |
/// |---|---|---|
/// | `resolved`, `resolved/repo/NAME`, `resolved/family/NAME` | episodes | share whose tests pass at the end |
/// | `false_resolved` | episodes | share said to be resolved that a fresh checkout does not confirm |
/// | `repaired`, `submitted`, `gave_up` | episodes | share with a verified repair, that ended by a submit, without anything left to try |
/// | `steps`, `test_runs`, `candidates`, `observation_tokens` | episodes | mean; of observations, the mean of each |
/// | `faults` | steps | share with a fault |
/// | `faults/CODE`, `reward/COMPONENT` | episodes | mean number, mean sum |
///
/// Shares have Wilson intervals at the effective number of independent tasks; all others the percentiles of a
/// bootstrap over tasks.
pub fn of_evaluation(groups: &[Group]) -> BTreeMap<String, Estimate> {
    let measured = measure(groups).into_iter();
    let estimated = measured.filter_map(|(name, sample)| Some((name, sample.estimate()?)));
    estimated.collect()
}

/// The same measures without intervals, for the log of a training step.
pub fn of_step(groups: &[Group]) -> BTreeMap<String, f64> {
    let measured = measure(groups).into_iter();
    measured
        .filter_map(|(name, sample)| Some((name, mean(&mut sample.tasks.values())?)))
        .collect()
}

/// What is observed of one measure, by task.
struct Sample {
    is_share: bool,
    tasks: BTreeMap<String, Cluster>,
}

impl Sample {
    fn estimate(&self) -> Option<Estimate> {
        let clusters: Vec<Cluster> = self.tasks.values().copied().collect();
        if self.is_share {
            return proportion(clusters.into_iter());
        }
        bootstrap(clusters.len(), |sample| {
            mean(&mut sample.map(|index| &clusters[index]))
        })
    }
}

fn mean(clusters: &mut dyn Iterator<Item = &Cluster>) -> Option<f64> {
    let (hits, total) = clusters.fold((0.0, 0.0), |(hits, total), cluster| {
        (hits + cluster.hits, total + cluster.total)
    });
    (total > 0.0).then(|| hits / total)
}

fn measure(groups: &[Group]) -> BTreeMap<String, Sample> {
    let mut samples: BTreeMap<String, Sample> = BTreeMap::new();
    let mut add = |name: String, task: &str, is_share: bool, hits: f64, total: f64| {
        let sample = samples.entry(name).or_insert_with(|| Sample {
            is_share,
            tasks: BTreeMap::new(),
        });
        let cluster = sample.tasks.entry(task.to_owned()).or_default();
        cluster.hits += hits;
        cluster.total += total;
    };
    let episodes = groups.iter().flat_map(|group| &group.episodes);
    let played: Vec<(&Episode, Notes)> = episodes
        .filter_map(|episode| Some((episode, notes_of(episode)?)))
        .collect();
    // A code that came up once is counted in every episode.
    let codes: BTreeSet<&String> = played.iter().flat_map(|(_, it)| it.faults.keys()).collect();
    let rewards = played.iter().filter_map(|(it, _)| it.outcome.reward());
    let components: BTreeSet<&String> = rewards.flat_map(|it| it.components.keys()).collect();
    for (episode, notes) in &played {
        let task = episode.task.0.as_str();
        let mut share = |name: &str, holds: bool| {
            add(name.to_owned(), task, true, f64::from(u8::from(holds)), 1.0);
        };
        share("resolved", notes.resolved);
        share(&format!("resolved/repo/{}", notes.repo), notes.resolved);
        if let Some(family) = &notes.family {
            share(&format!("resolved/family/{family}"), notes.resolved);
        }
        share("false_resolved", notes.graded == Some(false));
        share("repaired", notes.repaired);
        let submitted = notes
            .steps
            .last()
            .is_some_and(|it| it.info["submit"] == true);
        share("submitted", submitted);
        share("gave_up", notes.gave_up);
        let steps = notes.steps.len() as f64;
        let faulty = notes.faults.values().sum::<usize>() as f64;
        add("faults".to_owned(), task, true, faulty, steps);
        let mut amount = |name: String, value: f64| add(name, task, false, value, 1.0);
        amount("steps".to_owned(), steps);
        amount("test_runs".to_owned(), notes.test_runs as f64);
        amount("candidates".to_owned(), notes.candidates as f64);
        for code in &codes {
            let count = notes.faults.get(*code).copied().unwrap_or(0);
            amount(format!("faults/{code}"), count as f64);
        }
        for name in &components {
            let reward = episode.outcome.reward();
            let value = reward.and_then(|reward| reward.components.get(*name));
            amount(format!("reward/{name}"), value.copied().unwrap_or(0.0));
        }
        let tokens: usize = notes.steps.iter().map(|it| it.observation_tokens).sum();
        add(
            "observation_tokens".to_owned(),
            task,
            false,
            tokens as f64,
            steps,
        );
    }
    samples
}
