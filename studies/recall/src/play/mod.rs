//! One episode: history turns are read and remembered, target turns are answered.

mod ask;
mod chunk;
mod writing;

use std::{collections::BTreeMap, sync::Arc};

use record::{Fault, Message, Reward, StopReason};
use rollout::Answer;

use crate::{
    config::RecallConfig,
    event::{Event, Grade, Notes, Retrieved},
    memory::{
        BlockTokens, Extraction, Hit, MemoryManager, MemoryState, MemoryView, RetrieveOptions,
        SnapshotCache, SnapshotKey,
    },
    metrics::{Metric, grade_turn},
    model_judge::ModelJudge,
    prompts::{answer_prompt, shown},
    step_reward::Likelihoods,
    task::{Task, TurnRole, TurnSpec},
};

pub(crate) use ask::Ask;

/// The role that answers target turns.
pub const ANSWER: &str = "answer";
/// The role that writes operations in history turns, under `extraction = "policy"`.
pub const MEMORY: &str = "memory";
/// The role that lists facts as JSON, under `extraction = "model"`.
pub const EXTRACT: &str = "extract";
/// Takes a turn apart, under `extraction = "four_roles"`.
pub const FACT_SPLIT: &str = "fact_split";
/// Decides what becomes of an important fact, under `extraction = "four_roles"`.
pub const LONG_MEM: &str = "long_mem";
/// Writes the summary, under `extraction = "four_roles"`.
pub const SHORT_MEM: &str = "short_mem";

/// Answers questions about what was read in a turn, under `step_rewards.chunk_qa.ask`. Its calls train nobody.
pub const CHUNK_QA: &str = "chunk_qa";

/// The roles that a way of extraction asks, [`ANSWER`] the last.
pub fn roles_of(extraction: Extraction) -> &'static [&'static str] {
    match extraction {
        Extraction::None | Extraction::Chunk | Extraction::Rule => &[ANSWER],
        Extraction::Model => &[EXTRACT, ANSWER],
        Extraction::Policy => &[MEMORY, ANSWER],
        Extraction::FourRoles => &[FACT_SPLIT, LONG_MEM, SHORT_MEM, ANSWER],
    }
}

/// What all episodes are played with.
#[derive(Clone, Copy)]
pub(crate) struct Stage<'a> {
    pub(crate) config: &'a RecallConfig,
    pub(crate) manager: &'a MemoryManager,
    /// What was read before; without it, every episode reads its history itself.
    pub(crate) histories: Option<&'a SnapshotCache<History>>,
    /// Who says whether answers are right, where their metric does not.
    pub(crate) judge: Option<&'a ModelJudge>,
}

/// What is left of a history in which no policy was asked: the same for all episodes that begin with it
/// (spec, section 1.4).
#[derive(Clone)]
pub(crate) struct History {
    state: MemoryState,
    events: Arc<Vec<Event>>,
}

/// An episode on its way.
struct Walk<'a> {
    stage: Stage<'a>,
    task: &'a Task,
    state: MemoryState,
    notes: Notes,
    /// Index of the turn that is being played.
    at: usize,
}

/// What a prompt is to show of the memory.
struct Seen {
    view: MemoryView,
    retrieved: Vec<Retrieved>,
}

impl Stage<'_> {
    /// Walks through the turns in their order; whoever answers for the roles is asked through `asker`.
    ///
    /// # Errors
    /// What a policy or the memory's machinery could not do.
    pub(crate) async fn play(&self, task: &Task, asker: &mut impl Ask) -> Result<Notes, Fault> {
        let mut walk = Walk {
            stage: *self,
            task,
            state: self.manager.initialize(),
            notes: Notes {
                data_source: task.facts.data_source.clone(),
                document: task.facts.document.clone(),
                ..Notes::default()
            },
            at: 0,
        };
        let turns = &task.public.turns;
        let first = walk.read_before()?;
        for (at, turn) in turns.iter().enumerate().skip(first) {
            walk.at = at;
            match turn.turn_role {
                TurnRole::History => walk.remember(turn, asker).await?,
                TurnRole::Target => walk.answer(turn, asker).await?,
            }
        }
        walk.notes.facts = walk.state.facts().cloned().collect();
        walk.notes.core = walk.state.core().to_owned();
        walk.notes.summary = walk.state.summary().to_owned();
        Ok(walk.notes)
    }
}

impl Walk<'_> {
    /// Takes over the history that the task begins with, if rules alone remember it, and says how many turns
    /// that were.
    fn read_before(&mut self) -> Result<usize, Fault> {
        let turns = &self.task.public.turns;
        let history = turns
            .iter()
            .take_while(|turn| turn.turn_role == TurnRole::History);
        let history = &turns[..history.count()];
        let Some(histories) = self.stage.histories.filter(|_| self.writes_by_rule()) else {
            return Ok(0);
        };
        let key = SnapshotKey::of(self.stage.manager.config(), history, "");
        let read = histories.get_or_make(key, || {
            for turn in history {
                self.by_rule(turn);
            }
            Ok::<_, Fault>(History {
                state: self.state.clone(),
                events: Arc::new(std::mem::take(&mut self.notes.events)),
            })
        })?;
        self.state = read.state;
        self.notes.events = read.events.to_vec();
        Ok(history.len())
    }

    async fn answer(&mut self, turn: &TurnSpec, asker: &mut impl Ask) -> Result<(), Fault> {
        let config = self.stage.config;
        let (hits, view) = self.found(&turn.observation())?;
        let seen = self.seen(view, &hits);
        let prompt = answer_prompt(
            &config.prompt,
            shown(&seen.view),
            &turn.observation(),
            turn.timestamp.as_deref(),
        );
        let step_id = Some(asker.next_step());
        let said = asker.ask(ANSWER, turn.turn_id, &prompt).await?;
        let metric = self.metric();
        let reading = &config.answer;
        let response = said_to_the_end(&said);
        let mut grade = grade_turn(self.task, turn.turn_id, response, metric, reading);
        let asked = self.task.asked(turn.turn_id);
        if let (Some(judge), Some(asked), Some(grade)) = (self.stage.judge, asked, &mut grade) {
            let question = turn.observation();
            judge
                .judge(asker, turn.turn_id, &question, &asked, grade, reading)
                .await?;
        }
        if let Some(grade) = &mut grade {
            grade.likelihoods = self.likelihoods(turn, &prompt, grade, asker).await?;
        }
        let memory_ops = self
            .stage
            .manager
            .update_memory(&mut self.state, turn, &said.text);
        let event = self.event(turn, ANSWER);
        self.notes.events.push(Event {
            step_id,
            memory_ops,
            retrieved: seen.retrieved,
            budget: blocks(seen.view.tokens),
            response: Some(said.text),
            grade,
            ..event
        });
        Ok(())
    }

    /// What is retrieved for a question, and what its prompt shows of the memory.
    fn found(&self, question: &str) -> Result<(Vec<Hit>, MemoryView), Fault> {
        let manager = self.stage.manager;
        let hits = manager
            .retrieve(&self.state, question, &RetrieveOptions::default())
            .map_err(Fault::infra)?;
        let budget = self.stage.config.prompt.reading_budget();
        let view = manager.render_view(&self.state, &hits, &budget);
        Ok((hits, view))
    }

    /// How likely the gold answer was after `prompt`, and after the same one with nothing remembered: of answers
    /// that earned something, where `info_gain` is paid.
    async fn likelihoods(
        &self,
        turn: &TurnSpec,
        prompt: &[Message],
        grade: &Grade,
        asker: &mut impl Ask,
    ) -> Result<Option<Likelihoods>, Fault> {
        let config = self.stage.config;
        let wanted = config.step_rewards.info_gain.is_some() && grade.score > 0.0;
        if !wanted || grade.abstain || grade.gold.trim().is_empty() {
            return Ok(None);
        }
        let empty = answer_prompt(
            &config.prompt,
            String::new(),
            &turn.observation(),
            turn.timestamp.as_deref(),
        );
        let with_memory = asker.likelihood(ANSWER, prompt, &grade.gold).await?;
        let without_memory = asker.likelihood(ANSWER, &empty, &grade.gold).await?;
        Ok(with_memory
            .zip(without_memory)
            .map(|(with_memory, without_memory)| Likelihoods {
                with_memory,
                without_memory,
            }))
    }

    fn metric(&self) -> Metric {
        let own = self.stage.config.reward.metric;
        own.unwrap_or_else(|| self.task.metric())
    }

    /// Counts a view that was cut, and says which of the hits it shows.
    fn seen(&mut self, view: MemoryView, hits: &[Hit]) -> Seen {
        self.notes.truncated += u32::from(!view.cut.is_nothing());
        let shown = |hit: &Hit| view.facts.iter().any(|fact| fact.id == hit.item_id);
        let retrieved = hits.iter().map(|hit| Retrieved {
            item_id: hit.item_id,
            score: hit.score,
            shown: shown(hit),
        });
        Seen {
            retrieved: retrieved.collect(),
            view,
        }
    }

    /// An event of a turn in which nothing has been said yet, with the memory as it stands.
    fn event(&self, turn: &TurnSpec, agent_role: &str) -> Event {
        let observation = turn.observation();
        Event {
            turn_id: turn.turn_id,
            turn_role: turn.turn_role,
            agent_role: agent_role.to_owned(),
            step_id: None,
            observation_tokens: self.stage.manager.count(&observation) as u32,
            observation,
            timestamp: turn.timestamp.clone(),
            response: None,
            memory_ops: Vec::new(),
            retrieved: Vec::new(),
            budget: BTreeMap::new(),
            memory_tokens: self.state.token_len() as u32,
            memory_items: self.state.len() as u32,
            grade: None,
            step_rewards: BTreeMap::new(),
            step_reward: None,
        }
    }
}

/// What ran out of tokens said nothing to the end.
fn said_to_the_end(said: &Answer) -> &str {
    match said.stop {
        StopReason::Stop => &said.text,
        StopReason::Length => "",
    }
}

fn blocks(tokens: BlockTokens) -> BTreeMap<String, u32> {
    let blocks = [
        ("core", tokens.core),
        ("summary", tokens.summary),
        ("facts", tokens.facts),
        ("window", tokens.window),
    ];
    let used = blocks.into_iter().filter(|(_, tokens)| *tokens > 0);
    used.map(|(block, tokens)| (block.to_owned(), tokens as u32))
        .collect()
}

/// What an episode is paid: the mean score of its target turns.
pub(crate) fn rewarded(notes: &Notes) -> Reward {
    let grades = || notes.events.iter().filter_map(|event| event.grade.as_ref());
    let n = grades().count().max(1) as f64;
    let score = grades().map(|grade| grade.score).sum::<f64>() / n;
    let mut reward = Reward::of("score", score);
    let parts = [
        (
            "exact_match",
            grades().map(|grade| grade.exact_match).sum::<f64>() / n,
        ),
        ("f1", grades().map(|grade| grade.f1).sum::<f64>() / n),
    ];
    for (name, value) in parts {
        reward.components.insert(name.to_owned(), value);
    }
    reward
}
