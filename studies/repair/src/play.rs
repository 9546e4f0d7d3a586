//! One episode: a planner and its environment, step by step, and the notes of all of it.

use std::collections::BTreeMap;

use record::{Fault, LineLog, LogLine, Reward};
use rollout::Cx;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Task,
    environment::{CountTokens, EnvironmentConfig, PlannerEnv, Sources, StopReason},
    planner::{Planner, PlannerConfig},
    repairer::{Repairer, Selected},
    workplace::Workplace,
};

/// What an episode's `notes` hold: the trace that reports and `logs/events.jsonl` are made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    pub repo: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data_source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    pub title: String,
    /// What the planner saw first.
    pub begin: String,
    pub steps: Vec<StepNote>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The planner had nothing left to try.
    #[serde(default)]
    pub gave_up: bool,
    /// All tests that decide pass on the work tree that the episode left.
    pub resolved: bool,
    /// A repair was verified and kept.
    pub repaired: bool,
    /// All that the repairs that were kept changed, as one unified diff.
    pub patch: String,
    /// Candidate patches that were tried, and runs of tests that everything took: one of a candidate at least, and
    /// those of the checkout before and of the work tree after.
    pub candidates: usize,
    pub test_runs: usize,
    /// How often each fault's code came up.
    #[serde(default)]
    pub faults: BTreeMap<String, usize>,
    /// What memory held at the end.
    pub memory: Value,
    /// Whether the patch, graded in a fresh checkout with the tests as they were, resolves the task; absent where
    /// the episode did not say that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graded: Option<bool>,
    /// Whether it resolves the task and makes the same of its sources as the task's own patch does, layout apart;
    /// absent where the task has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as_gold: Option<bool>,
}

/// A step of the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepNote {
    /// From 1.
    pub step: u32,
    /// As [`Action::record`](crate::action::Action::record) has it; absent for a reply that is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Value>,
    /// What a model wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The call of the episode that it wrote it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// Why rules chose in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    pub reward: f64,
    pub components: BTreeMap<String, f64>,
    pub info: Value,
    /// What the planner saw then.
    pub observation: String,
    pub observation_tokens: usize,
}

/// Is told a step as it is made.
pub(crate) type Watching = dyn Fn(&Task, &StepNote) + Send + Sync;

/// What all episodes are played with.
#[derive(Clone, Copy)]
pub(crate) struct Stage<'a> {
    pub(crate) environment: &'a EnvironmentConfig,
    pub(crate) planner: &'a PlannerConfig,
    pub(crate) repairer: &'a dyn Repairer,
    pub(crate) count: &'a CountTokens,
    pub(crate) watch: Option<&'a Watching>,
}

impl Stage<'_> {
    /// Plays to the end of the episode, leaves the lines of its runs of tests with `cx`, and closes the workplace.
    ///
    /// # Errors
    /// What kept the policy, the sandbox or the tests from answering.
    pub(crate) async fn play(
        &self,
        task: &Task,
        sources: Sources,
        workplace: Workplace,
        cx: &mut Cx,
    ) -> Result<Notes, Fault> {
        let mut planner = Planner::new(self.planner, cx.seed("planner"));
        let (mut env, mut observation) = PlannerEnv::reset(
            task,
            self.environment,
            self.repairer,
            self.count.clone(),
            sources,
            workplace,
        );
        let mut notes = Notes {
            repo: task.public.repo.clone(),
            data_source: task.facts.data_source.clone(),
            family: task.facts.family.clone(),
            title: task.public.issue.title.clone(),
            begin: observation.text.clone(),
            ..Notes::default()
        };
        loop {
            let asked = planner.ask(env.steps(), &observation, cx);
            let choice = match env.in_time(asked).await {
                Some(asked) => Some(planner.choose(asked?, &env)),
                None => None,
            };
            let step = match &choice {
                Some(choice) => env.step(&choice.reply, cx).await?,
                None => env.out_of_time()?,
            };
            let choice = choice.as_ref();
            let call = choice.and_then(|choice| choice.call);
            if let Some(call) = call {
                cx.reward_step(call, step.reward)?;
            }
            notes.count(&step.info);
            let action = choice.and_then(|choice| choice.reply.action.as_ref().ok());
            let note = StepNote {
                step: env.steps(),
                action: action.map(|action| action.record()),
                reply: choice.and_then(|choice| choice.text.clone()),
                call,
                fallback: choice.and_then(|choice| choice.fallback.clone()),
                reward: step.reward,
                components: step.components,
                info: slim(step.info),
                observation: step.observation.text.clone(),
                observation_tokens: step.observation.tokens,
            };
            if let Some(watch) = self.watch {
                watch(task, &note);
            }
            notes.steps.push(note);
            observation = step.observation;
            if step.done || choice.is_some_and(|choice| choice.gives_up) {
                notes.gave_up = !step.done;
                break;
            }
        }
        notes.stop_reason = env.ended();
        // What was under way when the time was over may have left anything in the work tree.
        let in_time = notes.stop_reason != Some(StopReason::Timeout);
        notes.patch = match env.patches() {
            [_, ..] if in_time => env.workplace().diff().await?,
            _ => String::new(),
        };
        notes.memory = env.memory_listing();
        notes.resolved = match notes.stop_reason {
            Some(StopReason::Submitted | StopReason::Repaired) => true,
            Some(StopReason::Timeout) => false,
            _ if env.patches().is_empty() => false,
            // Repairs were kept and never submitted: only the tests can tell.
            _ => {
                let report = self
                    .repairer
                    .test(task, Selected::All, env.workplace())
                    .await?;
                notes.test_runs += report.test_runs;
                report.passed
            }
        };
        let log = env.workplace().take_log();
        log.into_iter().for_each(|line| cx.log(line));
        env.close().await?;
        Ok(notes)
    }
}

impl Notes {
    fn count(&mut self, info: &Value) {
        if let Some(code) = info["error"].as_str() {
            *self.faults.entry(code.to_owned()).or_default() += 1;
        }
        let number = |name: &str| info[name].as_u64().unwrap_or(0) as usize;
        self.test_runs += number("test_runs");
        if info["kind"] == "repair" {
            self.candidates += info["candidates"].as_u64().unwrap_or(0) as usize;
            self.repaired |= info["success"] == true;
        }
    }

    /// The episode's reward: the sum over its steps, by components.
    pub fn reward(&self) -> Reward {
        let mut reward = Reward::default();
        for step in &self.steps {
            for (name, value) in &step.components {
                *reward.components.entry(name.clone()).or_default() += value;
            }
        }
        reward.total = reward.components.values().sum();
        // Not paid for: what the tests say at the end.
        let resolved = f64::from(u8::from(self.resolved));
        reward.components.insert("resolved".to_owned(), resolved);
        reward
    }

    /// What ended it, in a word: `gave_up` where it was the planner.
    pub fn ended_by(&self) -> Option<String> {
        let reason = serde_json::to_value(self.stop_reason).ok()?;
        let gave_up = self.gave_up.then(|| "gave_up".to_owned());
        reason.as_str().map(str::to_owned).or(gave_up)
    }

    /// Lines of `logs/events.jsonl`, one a step and one for the whole.
    pub fn events(&self) -> Vec<LogLine> {
        let event = |kind, fields| LogLine::new(LineLog::Events, kind, fields);
        let step = |step: &StepNote| {
            let fields = json!({
                "step": step.step, "action": step.action, "reward": step.reward,
                "info": step.info, "fallback": step.fallback,
            });
            event("planner_step", fields)
        };
        let end = json!({
            "repo": self.repo, "family": self.family, "ended_by": self.ended_by(),
            "resolved": self.resolved, "graded": self.graded, "same_as_gold": self.same_as_gold,
            "steps": self.steps.len(),
            "candidates": self.candidates, "test_runs": self.test_runs,
        });
        let steps = self.steps.iter().map(step);
        steps.chain([event("planner_ended", end)]).collect()
    }
}

/// Lists of candidates as their ids: the rest of them is in the graph.
fn slim(mut info: Value) -> Value {
    if let Some(Value::Array(candidates)) = info.get_mut("candidates") {
        for candidate in candidates {
            *candidate = candidate["id"].take();
        }
    }
    info
}
