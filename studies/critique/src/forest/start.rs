//! The first layer of a forest: initial programs, given or sampled, and what their tests say of them.

use std::collections::BTreeMap;

use code::{Fence, extract_python};
use judge::{Judge, Verdict};
use record::{Cluster, Episode, Estimate, Fault, Group, Reward, proportion};
use rollout::{Cx, Played, Study};
use serde::{Deserialize, Serialize};

use crate::{
    play::{GENERATOR, verdict_of},
    prompts::generation_prompt,
    study::judge_counters,
    task::Task,
};

/// Runs the tests of initial programs.
pub struct Start {
    pub judge: Judge,
    /// The generator writes the programs, from the problem's statement alone; else they are those of the tasks, and
    /// nobody is asked.
    pub generates: bool,
}

/// What such an episode notes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Started {
    /// What the program is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What the generator answered, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
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

    async fn play<'a>(&'a self, task: &'a Task, cx: &'a mut Cx) -> Result<Played, Fault> {
        let public = &task.public;
        let (answer, program) = if self.generates {
            let asked = generation_prompt(&public.statement, public.prompter);
            let answer = cx.ask(GENERATOR, &asked).await?.text;
            let program = extract_python(&answer, Fence::First).program.to_owned();
            (Some(answer), program)
        } else {
            (None, public.program.clone())
        };
        let running = verdict_of(&self.judge, task, &program);
        let verdict = cx.in_sandbox(running).await?;
        let started = Started {
            problem: Some(task.facts.function.clone()),
            answer,
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
        let mut problems: BTreeMap<String, Cluster> = BTreeMap::new();
        for episode in groups.iter().flat_map(|group| &group.episodes) {
            if let Some(started) = Started::of(episode) {
                let problem = started.problem.unwrap_or_else(|| episode.task.0.clone());
                let cluster = problems.entry(problem).or_default();
                cluster.hits += f64::from(started.passed);
                cluster.total += 1.0;
            }
        }
        let share = proportion(problems.into_values());
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
