//! The study's measures over played episodes, with 95 % intervals over tasks.

use std::collections::{BTreeMap, BTreeSet};

use record::{Cluster, Episode, EpisodeId, Estimate, Group, bootstrap, proportion};

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
/// | `resolved` | episodes | share whose tests pass at the end |
/// | `false_resolved` | episodes | share said to be resolved that a fresh checkout does not confirm |
/// | `same_as_gold` | episodes of tasks with a gold patch | share that is resolved by a patch that makes the same program as it |
/// | `repaired`, `submitted`, `gave_up` | episodes | share with a verified repair, that ended by a submit, without anything left to try |
/// | `steps`, `test_runs`, `candidates`, `observation_tokens` | episodes | mean; of observations, the mean of each |
/// | `ended/REASON` | episodes | share that ended so, of the reasons that came up: a [`StopReason`](crate::environment::StopReason), or `gave_up` |
/// | `faults` | steps | share with a fault |
/// | `faults/CODE`, `reward/COMPONENT` | episodes | mean number, mean sum |
///
/// `resolved`, `test_runs` and `candidates` are there by package and by kind of bug too: `resolved/repo/NAME`,
/// `resolved/family/NAME`.
///
/// Shares have Wilson intervals at the effective number of independent tasks; all others the percentiles of a
/// bootstrap over tasks.
pub fn of_evaluation(groups: &[Group]) -> BTreeMap<String, Estimate> {
    measure(groups).estimates()
}

/// The same measures without intervals, for the log of a training step.
pub fn of_step(groups: &[Group]) -> BTreeMap<String, f64> {
    let measured = measure(groups).0.into_iter();
    measured
        .filter_map(|(name, sample)| Some((name, mean(&mut sample.tasks.values())?)))
        .collect()
}

/// Mean wall seconds of the episodes, `seconds`, over all and by package and kind of bug. Those of an episode are from
/// its beginning to its grade, what it waits for others included: the more episodes at a time, the longer each.
pub fn timings_of_evaluation(
    groups: &[Group],
    seconds: &BTreeMap<EpisodeId, f64>,
) -> BTreeMap<String, Estimate> {
    let mut samples = Samples::default();
    for (episode, notes) in played(groups) {
        if let Some(seconds) = seconds.get(&episode.id) {
            let mut of_task = samples.of(episode);
            of_task.by_group("seconds", &notes, false, *seconds);
        }
    }
    samples.estimates()
}

/// Samples by the names of their measures.
#[derive(Default)]
struct Samples(BTreeMap<String, Sample>);

/// The samples, of one episode's task.
struct OfTask<'a> {
    samples: &'a mut Samples,
    task: &'a str,
}

impl Samples {
    fn of<'a>(&'a mut self, episode: &'a Episode) -> OfTask<'a> {
        let task = episode.task.0.as_str();
        OfTask {
            samples: self,
            task,
        }
    }

    fn estimates(self) -> BTreeMap<String, Estimate> {
        let estimated = self.0.into_iter();
        let estimated = estimated.filter_map(|(name, sample)| Some((name, sample.estimate()?)));
        estimated.collect()
    }
}

impl OfTask<'_> {
    fn add(&mut self, name: &str, is_share: bool, hits: f64, total: f64) {
        let samples = &mut self.samples.0;
        let sample = samples.entry(name.to_owned()).or_insert_with(|| Sample {
            is_share,
            tasks: BTreeMap::new(),
        });
        let cluster = sample.tasks.entry(self.task.to_owned()).or_default();
        cluster.hits += hits;
        cluster.total += total;
    }

    fn share(&mut self, name: &str, holds: bool) {
        self.add(name, true, f64::from(u8::from(holds)), 1.0);
    }

    fn amount(&mut self, name: &str, value: f64) {
        self.add(name, false, value, 1.0);
    }

    /// For all tasks together, and by package and kind of bug.
    fn by_group(&mut self, name: &str, notes: &Notes, is_share: bool, value: f64) {
        self.add(name, is_share, value, 1.0);
        self.add(&format!("{name}/repo/{}", notes.repo), is_share, value, 1.0);
        if let Some(family) = &notes.family {
            self.add(&format!("{name}/family/{family}"), is_share, value, 1.0);
        }
    }
}

/// The episodes that reached their verdicts.
fn played(groups: &[Group]) -> impl Iterator<Item = (&Episode, Notes)> {
    let episodes = groups.iter().flat_map(|group| &group.episodes);
    episodes.filter_map(|episode| Some((episode, notes_of(episode)?)))
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

fn measure(groups: &[Group]) -> Samples {
    let mut samples = Samples::default();
    let played: Vec<(&Episode, Notes)> = played(groups).collect();
    // What came up once is counted in every episode.
    let codes: BTreeSet<&String> = played.iter().flat_map(|(_, it)| it.faults.keys()).collect();
    let ends: BTreeSet<String> = played.iter().filter_map(|(_, it)| it.ended_by()).collect();
    let rewards = played.iter().filter_map(|(it, _)| it.outcome.reward());
    let components: BTreeSet<&String> = rewards.flat_map(|it| it.components.keys()).collect();
    for (episode, notes) in &played {
        let mut of_task = samples.of(episode);
        let resolved = f64::from(u8::from(notes.resolved));
        of_task.by_group("resolved", notes, true, resolved);
        of_task.by_group("test_runs", notes, false, notes.test_runs as f64);
        of_task.by_group("candidates", notes, false, notes.candidates as f64);
        of_task.share("false_resolved", notes.graded == Some(false));
        if let Some(same_as_gold) = notes.same_as_gold {
            of_task.share("same_as_gold", same_as_gold);
        }
        of_task.share("repaired", notes.repaired);
        let submitted = notes
            .steps
            .last()
            .is_some_and(|it| it.info["submit"] == true);
        of_task.share("submitted", submitted);
        of_task.share("gave_up", notes.gave_up);
        let ended_by = notes.ended_by();
        for end in &ends {
            of_task.share(&format!("ended/{end}"), ended_by.as_ref() == Some(end));
        }
        let steps = notes.steps.len() as f64;
        let faulty = notes.faults.values().sum::<usize>() as f64;
        of_task.add("faults", true, faulty, steps);
        of_task.amount("steps", steps);
        for code in &codes {
            let count = notes.faults.get(*code).copied().unwrap_or(0);
            of_task.amount(&format!("faults/{code}"), count as f64);
        }
        for name in &components {
            let reward = episode.outcome.reward();
            let value = reward.and_then(|reward| reward.components.get(*name));
            of_task.amount(&format!("reward/{name}"), value.copied().unwrap_or(0.0));
        }
        let tokens: usize = notes.steps.iter().map(|it| it.observation_tokens).sum();
        of_task.add("observation_tokens", false, tokens as f64, steps);
    }
    samples
}
