//! What an episode has come to: counters, memory, and what was seen and done last.

use std::sync::Arc;

use code::graph::{Candidate, Chunk, Commit, EpisodeMemory, MemoryLimits, Subgraph};
use serde_json::{Map, Value, json};

use super::{CountTokens, EnvironmentConfig, Event, Sources, StopReason, proposal::Pending};
use crate::{
    action::{Action, ActionKind, ProposalAction},
    patch_model::Feedback,
    search::Searched,
    wire::Reply,
};

pub(super) struct State {
    pub(super) steps: u32,
    pub(super) operations: u32,
    pub(super) memory: EpisodeMemory,
    /// Of the last exploration, the best first.
    pub(super) candidates: Vec<Candidate>,
    /// Lines that the last action led to.
    pub(super) snippets: Vec<Chunk>,
    /// Nodes whose source was read.
    pub(super) read: Vec<String>,
    pub(super) recent: Vec<String>,
    /// The info of the last step.
    pub(super) last: Map<String, Value>,
    /// What became of repairs, the oldest first.
    pub(super) feedback: Vec<Feedback>,
    /// Candidate patches that repairs have tried.
    pub(super) tried: usize,
    /// What searches have come to.
    pub(super) searched: Option<Arc<Searched>>,
    /// The failing tests were run, and what they say was shown.
    pub(super) failure_seen: bool,
    /// What the patch model proposed last, until it is submitted or discarded.
    pub(super) pending: Option<Pending>,
    /// Diffs of the patches that are in the work tree.
    pub(super) patches: Vec<String>,
    pub(super) ended: Option<StopReason>,
    /// The actions so far as the planner wrote them, without thoughts, with what became of searches.
    pub(super) past: Vec<Past>,
}

/// An action, and how far it led.
pub(super) struct Past {
    pub(super) action: Option<ActionKind>,
    pub(super) found: usize,
    pub(super) gained: i64,
}

/// What an action came to.
pub(super) struct Done {
    pub(super) info: Map<String, Value>,
    pub(super) event: Event,
    pub(super) ends: Option<StopReason>,
    /// What to say of it in a note; empty where there is nothing to observe.
    pub(super) observed: String,
}

impl Done {
    pub(super) fn new(kind: &str) -> Self {
        let mut info = Map::new();
        info.insert("kind".to_owned(), kind.into());
        Self {
            info,
            event: Event::Other,
            ends: None,
            observed: String::new(),
        }
    }

    pub(super) fn error(kind: &str, code: &str, detail: &str) -> Self {
        Self::new(kind).with_error(code, detail)
    }

    pub(super) fn with_error(mut self, code: &str, detail: &str) -> Self {
        self.tell("error", code);
        self.tell("detail", detail);
        self.event = Event::Error;
        self
    }

    pub(super) fn tell(&mut self, name: &str, value: impl Into<Value>) {
        self.info.insert(name.to_owned(), value.into());
    }
}

impl State {
    pub(super) fn new(config: &EnvironmentConfig) -> Self {
        let explore = &config.explore;
        Self {
            steps: 0,
            operations: 0,
            memory: EpisodeMemory::new(MemoryLimits {
                caps: config.memory,
                working: explore.working,
                recent: explore.recent,
                top: explore.commit_top,
            }),
            candidates: Vec::new(),
            snippets: Vec::new(),
            read: Vec::new(),
            recent: Vec::new(),
            last: Map::new(),
            feedback: Vec::new(),
            tried: 0,
            searched: None,
            failure_seen: false,
            pending: None,
            patches: Vec::new(),
            ended: None,
            past: Vec::new(),
        }
    }

    /// Nodes and edges of the working and of the memory graph.
    pub(super) fn sizes(&self) -> [usize; 4] {
        let (working, memory) = (self.memory.working(), self.memory.memory());
        [
            working.len(),
            working.edges().len(),
            memory.len(),
            memory.edges().len(),
        ]
    }

    /// Explores and commits again what an earlier episode had, as far as it is still there.
    pub(super) fn take_up(&mut self, known: &Subgraph, sources: &Sources, count: &CountTokens) {
        let graph = sources.graph();
        let ids = |memorized: bool| -> Vec<String> {
            let nodes = known.nodes().filter(|node| node.memorized == memorized);
            nodes.map(|node| node.id.clone()).collect()
        };
        let places: Vec<_> = known
            .nodes()
            .filter_map(|node| graph.find(&node.id))
            .collect();
        let limits = code::graph::CandidateLimits {
            hops: 0,
            per_anchor: 1,
            total: places.len(),
            per_folder: 0,
        };
        let candidates = graph.candidates(&places, |_| true, limits);
        self.memory
            .explored(graph, &candidates, "recalled", 0, |_| Vec::new());
        let commit = Commit {
            select_ids: ids(true),
            keep_ids: ids(false),
            tag: Some("loaded".to_owned()),
            ..Commit::default()
        };
        if !commit.select_ids.is_empty() {
            // What does not fit any more is left out; there is nobody to tell yet.
            let _ = self.memory.commit(graph, &commit, 0, &**count);
        }
    }

    /// For commits of observations, and for the guards.
    pub(super) fn remember(&mut self, reply: &Reply, done: &Done) {
        if !done.observed.is_empty() {
            self.memory.observed(&done.observed);
        }
        let count = |name: &str| done.info.get(name).and_then(Value::as_i64).unwrap_or(0);
        self.past.push(Past {
            action: reply.action.as_ref().ok().map(|action| action.kind.clone()),
            found: usize::try_from(count("n_candidates")).unwrap_or(0),
            gained: count("gained"),
        });
    }

    pub(super) fn note_step(&mut self, line: &str, info: &Map<String, Value>, reward: f64) {
        let text = |name: &str| info.get(name).and_then(Value::as_str);
        let outcome = match (text("error"), text("summary")) {
            (Some(error), _) => error.to_owned(),
            (None, Some(summary)) => summary.to_owned(),
            (None, None) => "done".to_owned(),
        };
        let line = format!("{}. {line}: {outcome} ({reward:+.2})", self.steps);
        self.recent.push(line);
    }
}

/// An action in few words.
pub(super) fn in_a_line(action: &Action) -> String {
    let cut = |text: &str| -> String {
        let line = text.lines().next().unwrap_or_default();
        match line.chars().count() {
            0..=80 => line.to_owned(),
            _ => line.chars().take(79).chain(['…']).collect(),
        }
    };
    match &action.kind {
        ActionKind::Explore(explore) => {
            let anchors = explore.anchors.iter();
            let named =
                anchors.filter_map(|anchor| anchor.id.as_deref().or(anchor.text.as_deref()));
            let mut words: Vec<&str> = vec![explore.op.word(), &explore.query, &explore.pattern];
            words.extend(named);
            words.extend(explore.nodes.iter().map(String::as_str));
            words.retain(|word| !word.is_empty());
            cut(&words.join(" "))
        }
        ActionKind::Memory(memory) => {
            let intent = format!("{:?}", memory.intent).to_lowercase();
            let target = format!("{:?}", memory.target).to_lowercase();
            format!("{intent} of {target}")
        }
        ActionKind::Repair(repair) => cut(&format!("repair: {}", repair.plan.join("; "))),
        ActionKind::Proposal(ProposalAction::Propose(repair)) => {
            cut(&format!("propose: {}", repair.plan.join("; ")))
        }
        ActionKind::Proposal(ProposalAction::Revise(feedback)) => {
            cut(&format!("revise: {feedback}"))
        }
        _ => action.name().to_owned(),
    }
}

pub(super) fn listed<'a>(ids: impl IntoIterator<Item = &'a String>) -> Value {
    json!(ids.into_iter().collect::<Vec<_>>())
}
