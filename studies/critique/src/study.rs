//! The study as the runner plays it.

use std::collections::BTreeMap;

use judge::Judge;
use record::{Episode, Estimate, Fault, Group};
use rollout::{Cx, Played, Study};

use crate::{
    metrics::{self, Item},
    play::{Notes, Purpose, play},
    reward::RewardConfig,
    task::Task,
};

/// The critique study with its judge and its reward.
pub struct Critique {
    pub judge: Judge,
    pub reward: RewardConfig,
    pub purpose: Purpose,
}

impl Study for Critique {
    type Task = Task;

    async fn play<'a>(&'a self, task: &'a Task, cx: &'a mut Cx) -> Result<Played, Fault> {
        play(&self.judge, &self.reward, self.purpose, task, cx).await
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        judge_counters(&self.judge)
    }

    fn step_metrics(
        &self,
        groups: &[Group],
        counted: &BTreeMap<String, f64>,
    ) -> BTreeMap<String, f64> {
        let mut measured = metrics::of_step(&items(groups));
        measured.extend(counted.clone());
        let count = |name: &str| counted.get(name).copied().unwrap_or(0.0);
        let verdicts = count("judge/verdicts");
        if verdicts > 0.0 {
            measured.insert("cache/hit_rate".to_owned(), count("cache/hits") / verdicts);
        }
        measured
    }

    fn evaluation_metrics(&self, groups: &[Group]) -> BTreeMap<String, Estimate> {
        metrics::of_evaluation(&items(groups))
    }

    fn replay(&self, episode: &Episode) {
        if let Some(verdict) = notes_of(episode).and_then(|notes| notes.verdict) {
            self.judge.prime(verdict.key, verdict);
        }
    }
}

pub(crate) fn judge_counters(judge: &Judge) -> BTreeMap<String, f64> {
    let stats = judge.stats();
    let counts = [
        ("judge/verdicts", stats.verdicts),
        ("judge/executed", stats.executed),
        ("cache/hits", stats.cache_hits),
        ("sandbox/errors", stats.sandbox_errors),
        ("sandbox/timeouts", stats.timeouts),
    ];
    counts
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count as f64))
        .collect()
}

/// The notes of an episode that reached its verdict.
pub fn notes_of(episode: &Episode) -> Option<Notes> {
    episode.outcome.reward()?;
    serde_json::from_value(episode.notes.clone()).ok()
}

fn items(groups: &[Group]) -> Vec<Item> {
    let episodes = groups.iter().flat_map(|group| &group.episodes);
    let item = |episode: &Episode| {
        let notes = notes_of(episode)?;
        Some(Item {
            problem: notes.problem.unwrap_or_else(|| episode.task.0.clone()),
            initially_right: notes.initially_right,
            finally_right: notes.passed,
            judgment: notes.judgment,
            gate_ok: notes.gate_ok,
            exact: notes.exact,
            criticised: !notes.critique.is_empty(),
        })
    };
    episodes.filter_map(item).collect()
}
