//! The planner's environment: it owns the code graph, the memory and the work tree, and pays for steps.
//!
//! Spec of the repair study, section 2. A planner sends one reply a step; what is no action, and what an
//! action cannot do, is told and paid for and never ends the run.
//!
//! Codes of faults in the environment, beside those of [`crate::action::FaultCode`], of
//! [`code::graph::MemoryFault`] and of repairs:
//!
//! | code | |
//! |---|---|
//! | `repeated-action` | the same action too often in a row |
//! | `unknown-node` | none of the ids names a node |
//! | `guarded-test` | the source of a test that decides, or a test file as a target |
//! | `unread-node` | a commit of what was never read, where the recipe asks for that |
//! | `invalid-pattern` | a pattern that is no regular expression |
//! | `empty-memory` | a repair with nothing to repair |
//! | `unseen-failure` | a repair before the failing tests were run, where the recipe asks for that |
//! | `no-proposal` | a proposal is to be revised, submitted or discarded, and there is none |
//!
//! An environment exists from its reset on, so memory is never uninitialised.

mod config;
mod explore;
mod glob;
mod guards;
mod issue;
mod memory;
mod mend;
mod observation;
mod proposal;
mod rewards;
mod sources;
mod state;
mod suspects;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use code::graph::{
    Subgraph,
    files::{load_subgraph, save_subgraph, save_trace},
};
use record::Fault;
use rollout::Cx;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use crate::{
    Task,
    action::{Action, ActionKind},
    repairer::Repairer,
    wire::Reply,
    workplace::Workplace,
};
pub use config::{EndConfig, EnvironmentConfig, ExploreConfig, GuardConfig};
pub use observation::{Observation, ObservationConfig, ObservationForm, first_observation};
use rewards::Event;
pub use rewards::{Gain, NoMagnitude, Penalty, RewardConfig};
pub use sources::Sources;
use state::{Done, State};
pub use suspects::{Raised, Suspect, Told, highest as highest_suspicion, lines as suspect_lines};
pub(crate) use suspects::{described, suspects};

/// Tokens of a text as the planner's policy counts them.
pub type CountTokens = Arc<dyn Fn(&str) -> usize + Send + Sync>;

/// One episode's environment.
pub struct PlannerEnv<'a> {
    task: &'a Task,
    config: &'a EnvironmentConfig,
    repairer: &'a dyn Repairer,
    count: CountTokens,
    sources: Sources,
    workplace: Workplace,
    state: State,
    deadline: Option<Instant>,
}

/// What a step led to.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub observation: Observation,
    pub reward: f64,
    /// What `reward` is the sum of.
    pub components: BTreeMap<String, f64>,
    pub done: bool,
    /// `kind`, `op`, `error`, `detail`, `warnings`, `capped_fields` and what the action has to say (spec,
    /// sections 2.3 to 2.6).
    pub info: Value,
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A submit; its tests pass.
    Submitted,
    /// A submit whose tests fail, where that ends the episode.
    FailedSubmit,
    /// A verified repair, where that ends the episode.
    Repaired,
    MaxSteps,
    /// The patch model may try no more candidates.
    BudgetSpent,
    /// The patch model has no candidate that it has not tried, and may try more.
    CandidatesExhausted,
    RepositoryOperations,
    /// The episode's own time is over.
    Timeout,
}

impl fmt::Debug for PlannerEnv<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannerEnv")
            .field("task", &self.task.id)
            .field("steps", &self.state.steps)
            .finish_non_exhaustive()
    }
}

impl<'a> PlannerEnv<'a> {
    /// Begins an episode in a fresh workplace of the task, and says what the planner sees first. `sources`
    /// are those of that workplace.
    pub fn reset(
        task: &'a Task,
        config: &'a EnvironmentConfig,
        repairer: &'a dyn Repairer,
        count: CountTokens,
        sources: Sources,
        workplace: Workplace,
    ) -> (Self, Observation) {
        let mut env = Self {
            task,
            config,
            repairer,
            count,
            sources,
            workplace,
            state: State::new(config),
            deadline: config.end.max_seconds.and_then(deadline),
        };
        env.load();
        let observation = env.observe("reset");
        (env, observation)
    }

    /// Takes a reply of the planner. After the last step there is none: see [`Step::done`].
    ///
    /// # Errors
    /// Infrastructure faults alone.
    pub async fn step(&mut self, reply: &Reply, cx: &mut Cx) -> Result<Step, Fault> {
        let before = self.state.sizes();
        let (name, line, done) = match &reply.action {
            Err(fault) => {
                let mut done = Done::error("invalid", fault.code.code(), &fault.detail);
                done.event = Event::Invalid;
                ("invalid", "a reply that is no action".to_owned(), done)
            }
            Ok(action) => {
                let (action, replaced) = self.guarded(action);
                let mut done = match self.refused(&action, reply) {
                    Some(refused) => refused,
                    None => match in_time(self.deadline, self.dispatch(&action, cx)).await {
                        Some(done) => done?,
                        None => self.cut_short(action.name()),
                    },
                };
                if let Some(replaced) = replaced {
                    done.info.insert("replaced".to_owned(), replaced);
                }
                (action.name(), state::in_a_line(&action), done)
            }
        };
        self.state.remember(reply, &done);
        let mut info = done.info;
        self.tell_meta(&mut info, reply);
        self.tell_sizes(&mut info, before);
        self.state.operations += u32::from(is_repository_operation(reply));
        self.conclude_step((name, &line), info, (done.event, done.ends))
    }

    /// Waits for `work`; `None` when the episode's time is over first, and `work` is cut short.
    pub fn in_time<T>(&self, work: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
        in_time(self.deadline, work)
    }

    /// The step of a planner that has not answered in time: the last one.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn out_of_time(&mut self) -> Result<Step, Fault> {
        let mut done = self.cut_short("timeout");
        let sizes = self.state.sizes();
        self.tell_sizes(&mut done.info, sizes);
        let told = ("timeout", "no answer in time");
        self.conclude_step(told, done.info, (done.event, done.ends))
    }

    fn cut_short(&self, kind: &str) -> Done {
        let mut done = Done::new(kind);
        let seconds = self.config.end.max_seconds.unwrap_or_default();
        let detail =
            format!("cut short: the episode's {seconds} s are over (environment.end.max_seconds)");
        done.tell("summary", detail.as_str());
        done.tell("detail", detail);
        done.ends = Some(StopReason::Timeout);
        done
    }

    /// Counts, pays and tells a step.
    fn conclude_step(
        &mut self,
        (name, line): (&str, &str),
        mut info: Map<String, Value>,
        (event, ended): (Event, Option<StopReason>),
    ) -> Result<Step, Fault> {
        self.state.steps += 1;
        let ends = ended.or_else(|| self.limit_reached());
        let components = self
            .config
            .rewards
            .of(event, ends.is_some_and(StopReason::is_limit));
        let reward = components.values().sum();
        if let Some(stop) = ends {
            info.insert("stop_reason".to_owned(), json!(stop));
        }
        info.insert("done".to_owned(), ends.is_some().into());
        self.state.ended = ends;
        self.state.note_step(line, &info, reward);
        self.state.last = info.clone();
        let observation = self.observe(name);
        self.trace()?;
        Ok(Step {
            observation,
            reward,
            components,
            done: ends.is_some(),
            info: Value::Object(info),
        })
    }

    pub fn task(&self) -> &Task {
        self.task
    }

    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    pub fn steps(&self) -> u32 {
        self.state.steps
    }

    /// What was explored.
    pub fn working(&self) -> &Subgraph {
        self.state.memory.working()
    }

    /// What is kept.
    pub fn memory(&self) -> &Subgraph {
        self.state.memory.memory()
    }

    /// Ids of what the last exploration led to, the best first.
    pub fn candidates(&self) -> impl Iterator<Item = &str> {
        self.state.candidates.iter().map(|it| it.id.as_str())
    }

    /// Whether a patch model has searched: it goes on where it was, whatever it is asked for.
    pub fn has_searched(&self) -> bool {
        self.state.searched.is_some()
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<StopReason> {
        self.state.ended
    }

    /// Whether the last step was a repair whose tests pass.
    pub fn is_mended(&self) -> bool {
        self.state.last.get("success") == Some(&true.into())
    }

    /// The info of the last step; empty before the first.
    pub fn last_info(&self) -> &Map<String, Value> {
        &self.state.last
    }

    /// The repairs that are in the work tree, as unified diffs.
    pub fn patches(&self) -> &[String] {
        &self.state.patches
    }

    /// The checkout as the repairs left it.
    pub fn workplace(&mut self) -> &mut Workplace {
        &mut self.workplace
    }

    /// Ends the episode: saves the working graph where that is asked for, and closes the workplace.
    ///
    /// # Errors
    /// Infrastructure faults; a subgraph file that cannot be written.
    pub async fn close(self) -> Result<(), Fault> {
        if let Some(folder) = &self.config.subgraphs {
            save_subgraph(folder, self.issue_id(), self.state.memory.working())
                .map_err(Fault::infra)?;
        }
        match self.state.ended {
            // A command may still be under way; where it runs is ended with all that is in it.
            Some(StopReason::Timeout) => Ok(()),
            _ => self.workplace.close().await,
        }
    }

    /// Writes down what the step made of both graphs, where that is asked for.
    fn trace(&self) -> Result<(), Fault> {
        let Some(folder) = &self.config.traces else {
            return Ok(());
        };
        let memory = &self.state.memory;
        for (name, graph) in [("working", memory.working()), ("memory", memory.memory())] {
            save_trace(folder, self.issue_id(), self.state.steps, name, graph)
                .map_err(Fault::infra)?;
        }
        Ok(())
    }

    fn issue_id(&self) -> &str {
        let id = self.task.public.issue.id.as_deref();
        id.unwrap_or(&self.task.id.0)
    }

    /// Takes up the subgraph of an earlier episode, where that is asked for.
    fn load(&mut self) {
        let Some(folder) = &self.config.subgraphs else {
            return;
        };
        let (subgraph, unreadable) = load_subgraph(folder, self.issue_id());
        self.state.take_up(&subgraph, &self.sources, &self.count);
        if let Some(reason) = unreadable {
            self.state
                .last
                .insert("warnings".to_owned(), json!([reason]));
        }
    }

    async fn dispatch(&mut self, action: &Action, cx: &mut Cx) -> Result<Done, Fault> {
        match &action.kind {
            ActionKind::Explore(explore) => Ok(self.explore(explore)),
            ActionKind::Memory(memory) => Ok(self.change_memory(memory)),
            ActionKind::Repair(repair) => self.repair(repair, cx).await,
            ActionKind::Proposal(step) => self.proposal(step, &action.thought, cx).await,
            ActionKind::RunFailedTest => self.run_failed_test().await,
            ActionKind::Submit => self.submit().await,
            ActionKind::Noop => Ok(Done::new("noop")),
        }
    }

    fn limit_reached(&self) -> Option<StopReason> {
        let end = &self.config.end;
        let most = end.max_steps.or(self.task.public.max_steps).unwrap_or(40);
        if self.deadline.is_some_and(|at| Instant::now() >= at) {
            Some(StopReason::Timeout)
        } else if self.state.steps >= most {
            Some(StopReason::MaxSteps)
        } else if self.state.operations >= end.repository_operations {
            Some(StopReason::RepositoryOperations)
        } else {
            None
        }
    }

    fn tell_meta(&self, info: &mut Map<String, Value>, reply: &Reply) {
        let Ok(Value::Object(meta)) = serde_json::to_value(&reply.meta) else {
            return;
        };
        for (name, value) in meta {
            match (info.get_mut(&name), value) {
                (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                (_, value) => {
                    info.insert(name, value);
                }
            }
        }
    }

    fn tell_sizes(&self, info: &mut Map<String, Value>, before: [usize; 4]) {
        let memory = &self.state.memory;
        let memorized = memory
            .working()
            .nodes()
            .filter(|node| node.memorized)
            .count();
        let stats = |graph: &Subgraph, memorized: usize| {
            json!({
                "n_nodes": graph.len(), "n_edges": graph.edges().len(),
                "n_memorized": memorized, "n_unmemorized": graph.len() - memorized,
            })
        };
        info.insert(
            "subgraph_stats".to_owned(),
            stats(memory.working(), memorized),
        );
        info.insert(
            "memory_stats".to_owned(),
            stats(memory.memory(), memory.memory().len()),
        );
        let names = [
            "delta_working_nodes",
            "delta_working_edges",
            "delta_memory_nodes",
            "delta_memory_edges",
        ];
        for ((name, now), before) in names.iter().zip(self.state.sizes()).zip(before) {
            info.insert((*name).to_owned(), json!(now as i64 - before as i64));
        }
    }
}

impl StopReason {
    /// Which is paid for: see [`RewardConfig::timeout`].
    fn is_limit(self) -> bool {
        match self {
            Self::MaxSteps | Self::RepositoryOperations | Self::Timeout => true,
            Self::Submitted
            | Self::FailedSubmit
            | Self::Repaired
            | Self::BudgetSpent
            | Self::CandidatesExhausted => false,
        }
    }
}

/// In so many seconds; `None` where that is later than clocks go.
fn deadline(seconds: f64) -> Option<Instant> {
    let seconds = Duration::try_from_secs_f64(seconds).ok()?;
    Instant::now().checked_add(seconds)
}

async fn in_time<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(at) => timeout_at(at, work).await.ok(),
        None => Some(work.await),
    }
}

fn is_repository_operation(reply: &Reply) -> bool {
    match reply.action.as_ref().map(|action| &action.kind) {
        Ok(ActionKind::Memory(_) | ActionKind::Noop) | Err(_) => false,
        Ok(_) => true,
    }
}
