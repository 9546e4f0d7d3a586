//! The first layer of a forest: initial programs and what their tests say of them.

use std::collections::BTreeMap;

use judge::{Judge, Verdict};
use record::{Cluster, Episode, Estimate, Fault, Group, Reward, proportion};
use rollout::{Cx, Played, Study};
use serde::{Deserialize, Serialize};

use crate::{play::verdict_of, study::judge_counters, task::Task};

/// Runs the tests of programs as they are, and asks nobody.
pub struct Start {
    pub judge: Judge,
}

/// What such an episode notes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Started {
    pub program: String,
    pub passed: bool,
    pub verdict: Verdict,
}

impl Started {
    /// The notes of an episode that reached its verdict.
    pub fn of(episode: &Episode) -> Option<Self> {
        episode.outcome.reward()?;
        serde_json::from_value(episode.notes.clone()).ok()
    }
}

impl Study for Start {
    type Task = Task;

    async fn play<'a>(&'a self, task: &'a Task, _: &'a mut Cx) -> Result<Played, Fault> {
        let program = task.public.program.clone();
        let verdict = verdict_of(&self.judge, task, &program).await?;
        let started = Started {
            program,
            passed: verdict.passed,
            verdict,
        };
        Ok(Played {
            reward: Reward::of("pass", f64::from(started.passed)),
            notes: serde_json::to_value(&started).map_err(Fault::grader)?,
        })
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        judge_counters(&self.judge)
    }

    fn step_metrics(&self, _: &[Group], counted: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        counted.clone()
    }

    fn evaluation_metrics(&self, groups: &[Group]) -> BTreeMap<String, Estimate> {
        let clusters = groups.iter().map(|group| {
            let started = group.episodes.iter().filter_map(Started::of);
            started.fold(Cluster::default(), |sum, one| Cluster {
                hits: sum.hits + f64::from(one.passed),
                total: sum.total + 1.0,
            })
        });
        let share = proportion(clusters);
        share
            .map(|share| ("pass_at_1".to_owned(), share))
            .into_iter()
            .collect()
    }

    fn replay(&self, episode: &Episode) {
        if let Some(Started { verdict, .. }) = Started::of(episode) {
            self.judge.prime(verdict.key, verdict);
        }
    }
}
