//! What an agent works with in an episode: the working graph, the memory graph and notes, under caps.
//!
//! Spec of the repair study, sections 2.4, 2.5, 2.7 and 3.6. Whatever is explored enters the working
//! graph; what is committed is copied to the memory graph, with the edges between what is there. A commit
//! that would exceed a cap is rejected whole and changes nothing.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    Candidate, Graph, ListedNode, NodeRef, Subgraph,
    caps::{MemoryCaps, MemorySize},
    linear::{CountTokens, index_line},
};

/// The state of an episode's memory.
#[derive(Clone, Debug, Default)]
pub struct EpisodeMemory {
    working: Subgraph,
    memory: Subgraph,
    notes: Vec<Note>,
    limits: MemoryLimits,
    /// Grows with each change that was applied.
    version: u64,
    changes: Vec<Change>,
    /// Of the last exploration: ids, the best first.
    frontier: Option<Vec<String>>,
    observation: Option<String>,
    next_note: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    pub caps: MemoryCaps,
    /// Nodes of the working graph before those that are not memorised are pruned,
    pub working: usize,
    /// and how many of these stay, the last touched first.
    pub recent: usize,
    /// Nodes that a commit takes that names none.
    pub top: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            caps: MemoryCaps::default(),
            working: 350,
            recent: 120,
            top: 8,
        }
    }
}

/// A text that an agent keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// `note:1`, `note:2`, …
    pub id: String,
    pub tag: String,
    pub text: String,
    pub step: u64,
}

/// What one commit added, so that it can be taken back.
#[derive(Clone, Debug)]
struct Change {
    tag: String,
    nodes: Vec<String>,
    notes: Vec<String>,
}

/// What to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Nodes of the code graph; when there are none, the best of the working graph are taken.
    pub select_ids: Vec<String>,
    /// Nodes of the working graph that are not pruned.
    pub keep_ids: Vec<String>,
    pub note: Option<String>,
    pub tag: Option<String>,
    pub top: Option<usize>,
}

/// What to take back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    Latest,
    Tag(String),
    /// Nodes and notes.
    Ids(Vec<String>),
}

/// An applied change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryReport {
    pub ok: bool,
    pub rejected: bool,
    pub applied: Applied,
    pub size: MemorySize,
    pub tag: String,
    pub version: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selected_for_memory: Vec<String>,
    pub auto_selected: bool,
    /// Ids that no node has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_ids: Vec<String>,
    pub pruned_unmemorized: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    pub graph_nodes: usize,
    pub graph_edges: usize,
    pub text_chunks: usize,
}

/// Why memory was left as it was. [`MemoryFault::code`] is the fault's code in the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryFault {
    #[error("nothing was explored yet: explore, or name the nodes to keep")]
    MissingExplore,
    #[error("nothing that was asked for is a node of the code graph")]
    EmptyExplore,
    #[error("nothing was observed yet: run something, or give a note")]
    MissingObservation,
    #[error("the note is empty")]
    EmptyObservation,
    #[error("no commit, node or note is called so")]
    NothingToDelete,
    #[error("there is no target `{0}`: explore or observation")]
    UnsupportedTarget(String),
    #[error("there is no intent `{0}`: commit or delete")]
    UnsupportedIntent(String),
    #[error("over budget: {}", .0.exceeded.join(", "))]
    OverBudget(Box<OverBudget>),
}

/// The caps that a commit would exceed, and by how much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OverBudget {
    pub exceeded: Vec<&'static str>,
    pub limits: MemoryCaps,
    pub size_before: MemorySize,
    pub size_after: MemorySize,
}

impl MemoryFault {
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingExplore => "missing-explore",
            Self::EmptyExplore => "empty-explore",
            Self::MissingObservation => "missing-observation",
            Self::EmptyObservation => "empty-observation",
            Self::NothingToDelete => "nothing-to-delete",
            Self::UnsupportedTarget(_) => "unsupported-target",
            Self::UnsupportedIntent(_) => "unsupported-intent",
            Self::OverBudget(_) => "over-budget",
        }
    }
}

/// What an action on memory is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryTarget {
    Explore,
    Observation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryIntent {
    Commit,
    Delete,
}

impl std::str::FromStr for MemoryTarget {
    type Err = MemoryFault;

    fn from_str(text: &str) -> Result<Self, MemoryFault> {
        match text.trim().to_lowercase().as_str() {
            "" | "explore" => Ok(Self::Explore),
            "observation" => Ok(Self::Observation),
            _ => Err(MemoryFault::UnsupportedTarget(text.to_owned())),
        }
    }
}

impl std::str::FromStr for MemoryIntent {
    type Err = MemoryFault;

    fn from_str(text: &str) -> Result<Self, MemoryFault> {
        match text.trim().to_lowercase().as_str() {
            "" | "commit" | "save" | "store" | "remember" | "keep" | "add" => Ok(Self::Commit),
            "delete" | "remove" | "drop" | "forget" | "clear" => Ok(Self::Delete),
            _ => Err(MemoryFault::UnsupportedIntent(text.to_owned())),
        }
    }
}

impl EpisodeMemory {
    /// Empty graphs and no notes.
    pub fn new(limits: MemoryLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    pub fn working(&self) -> &Subgraph {
        &self.working
    }

    pub fn memory(&self) -> &Subgraph {
        &self.memory
    }

    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    /// What the last exploration led to, the best first.
    pub fn frontier(&self) -> &[String] {
        self.frontier.as_deref().unwrap_or_default()
    }

    /// Whether a planner has seen this node: it is in the working graph or in memory.
    pub fn knows(&self, id: &str) -> bool {
        self.working.contains(id) || self.memory.contains(id)
    }

    /// Puts what was found into the working graph, with the edges between what is there; `status` is how
    /// it was found (`found`, `explored`, `recalled`), `snippet` some lines of a node. How many nodes and
    /// edges it gained.
    pub fn explored(
        &mut self,
        graph: &Graph,
        candidates: &[Candidate],
        status: &str,
        step: u64,
        snippet: impl Fn(&ListedNode) -> Vec<String>,
    ) -> (isize, isize) {
        let before = (self.working.len(), self.working.edges().len());
        // The best is touched last, so that it is pruned last.
        for candidate in candidates.iter().rev() {
            let mut node = match self.working.get(&candidate.id) {
                Some(known) => known.clone(),
                None => ListedNode {
                    added_step: Some(step),
                    status: status.to_owned(),
                    ..graph.node(candidate.node).into()
                },
            };
            node.degree = u32::try_from(candidate.degree).ok();
            node.score = Some(candidate.score);
            node.last_touched_step = Some(step);
            if node.snippet_lines.is_empty() {
                node.snippet_lines = snippet(&node);
            }
            self.working.insert(node);
        }
        self.working.connect_by(graph);
        self.frontier = Some(candidates.iter().map(|it| it.id.clone()).collect());
        if self.working.len() > self.limits.working {
            self.prune(&[]);
        }
        let gained = |now: usize, before: usize| now as isize - before as isize;
        (
            gained(self.working.len(), before.0),
            gained(self.working.edges().len(), before.1),
        )
    }

    /// Remembers what to say of the last observation, for a commit of it.
    pub fn observed(&mut self, line: &str) {
        self.observation = Some(line.trim().to_owned());
    }

    /// Copies nodes to the memory graph and adds a note: the given one, or what the best three are.
    ///
    /// # Errors
    /// See [`MemoryFault`]; nothing is changed then.
    pub fn commit(
        &mut self,
        graph: &Graph,
        commit: &Commit,
        step: u64,
        count: &CountTokens,
    ) -> Result<MemoryReport, MemoryFault> {
        let auto_selected = commit.select_ids.is_empty();
        let (selected, unknown_ids) = match auto_selected {
            true => (
                self.best(commit.top.unwrap_or(self.limits.top))?,
                Vec::new(),
            ),
            false => self.known(graph, &commit.select_ids),
        };
        if selected.is_empty() {
            return Err(MemoryFault::EmptyExplore);
        }
        let mut next = self.clone();
        let tag = commit.tag.clone().unwrap_or_else(|| next.next_tag());
        let mut added = Vec::new();
        for mut node in selected.iter().cloned() {
            node.memorized = true;
            node.memorized_at_step.get_or_insert(step);
            if !node.tags.contains(&tag) {
                node.tags.push(tag.clone());
            }
            if !next.memory.contains(&node.id) {
                added.push(node.id.clone());
            }
            next.working.insert(node.clone());
            next.memory.insert(node);
        }
        let edges = next.memory.edges().len();
        next.memory.connect_by(graph);
        let graph_edges = next.memory.edges().len() - edges;
        let text = match &commit.note {
            Some(note) => note.trim().to_owned(),
            None => summary(&selected),
        };
        let notes: Vec<String> = next.add_note(&text, &tag, step).into_iter().collect();
        self.check(&next, count)?;
        let applied = Applied {
            graph_nodes: added.len(),
            graph_edges,
            text_chunks: notes.len(),
        };
        next.changes.push(Change {
            tag: tag.clone(),
            nodes: added,
            notes,
        });
        let pruned = next.prune(&commit.keep_ids);
        let ids = selected.into_iter().map(|node| node.id).collect();
        *self = next;
        Ok(MemoryReport {
            selected_for_memory: ids,
            auto_selected,
            unknown_ids,
            pruned_unmemorized: pruned,
            ..self.applied(applied, tag, count)
        })
    }

    /// Adds a note: the given one, or the last observation.
    ///
    /// # Errors
    /// See [`MemoryFault`]; nothing is changed then.
    pub fn commit_note(
        &mut self,
        note: Option<&str>,
        tag: Option<&str>,
        step: u64,
        count: &CountTokens,
    ) -> Result<MemoryReport, MemoryFault> {
        let text = match note {
            Some(note) => note.trim().to_owned(),
            None => self
                .observation
                .clone()
                .ok_or(MemoryFault::MissingObservation)?,
        };
        let mut next = self.clone();
        let tag = tag.map_or_else(|| next.next_tag(), str::to_owned);
        let note = next.add_note(&text, &tag, step);
        let notes = vec![note.ok_or(MemoryFault::EmptyObservation)?];
        self.check(&next, count)?;
        next.changes.push(Change {
            tag: tag.clone(),
            nodes: Vec::new(),
            notes,
        });
        *self = next;
        let applied = Applied {
            text_chunks: 1,
            ..Applied::default()
        };
        Ok(self.applied(applied, tag, count))
    }

    /// Takes back what a commit added, or removes nodes with the edges at them, and notes.
    ///
    /// # Errors
    /// [`MemoryFault::NothingToDelete`] if nothing is selected.
    pub fn delete(
        &mut self,
        selector: &Selector,
        count: &CountTokens,
    ) -> Result<MemoryReport, MemoryFault> {
        let (tag, nodes, notes) = match selector {
            Selector::Ids(ids) => {
                let (notes, nodes) = ids.iter().cloned().partition(|id| id.starts_with("note:"));
                (String::new(), nodes, notes)
            }
            Selector::Latest | Selector::Tag(_) => {
                let is_it = |change: &Change| match selector {
                    Selector::Tag(tag) => change.tag == *tag,
                    _ => true,
                };
                let found = self.changes.iter().rposition(is_it);
                let change = self
                    .changes
                    .remove(found.ok_or(MemoryFault::NothingToDelete)?);
                (change.tag, change.nodes, change.notes)
            }
        };
        let edges = self.memory.edges().len();
        let mut applied = Applied::default();
        let nodes: BTreeSet<String> = nodes.into_iter().collect();
        for id in &nodes {
            if self.memory.remove(id) {
                applied.graph_nodes += 1;
                if let Some(node) = self.working.get_mut(id) {
                    node.memorized = false;
                    node.memorized_at_step = None;
                }
            }
        }
        let notes_before = self.notes.len();
        self.notes.retain(|note| !notes.contains(&note.id));
        applied.text_chunks = notes_before - self.notes.len();
        applied.graph_edges = edges - self.memory.edges().len();
        if matches!(selector, Selector::Ids(_)) && applied == Applied::default() {
            return Err(MemoryFault::NothingToDelete);
        }
        self.version += 1;
        Ok(self.applied(applied, tag, count))
    }

    /// Memorised nodes and notes that mention a word of `query`, the best `most`: ids. What has it in its
    /// path counts twice what has it in its name or summary.
    pub fn recall(&self, query: &str, most: usize) -> Vec<String> {
        let words = super::words(query);
        let score = |path: &str, text: &str| -> usize {
            let (path, text) = (path.to_lowercase(), text.to_lowercase());
            let of = |word: &String| {
                2 * usize::from(path.contains(word)) + usize::from(text.contains(word))
            };
            words.iter().map(of).sum()
        };
        let nodes = self.memory.nodes().map(|node| {
            let text = format!("{} {} {}", node.name, node.summary, node.documentation);
            (score(&node.path, &text), node.id.clone())
        });
        let notes = self.notes.iter();
        let notes = notes.map(|note| (score("", &note.text), note.id.clone()));
        let mut found: Vec<(usize, String)> = nodes.chain(notes).collect();
        found.retain(|(score, _)| *score > 0);
        found.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.cmp(&two.1)));
        found.into_iter().take(most).map(|(_, id)| id).collect()
    }

    /// What memory takes. Tokens for the planner are those of its index lines and notes; tokens for the
    /// patch model are those of its source and notes, and no fewer.
    pub fn size(&self, count: &CountTokens) -> MemorySize {
        let notes: usize = self.notes.iter().map(|note| count(&note.text)).sum();
        let lines = self.memory.nodes().map(|node| count(&index_line(node)));
        let source = self
            .memory
            .nodes()
            .filter(|node| !node.snippet_lines.is_empty())
            .map(|node| count(&node.snippet_lines.join("\n")));
        let planner_tokens = notes + lines.sum::<usize>();
        let touched: BTreeSet<&String> = self.frontier().iter().collect();
        let is_open = |node: &&ListedNode| !node.memorized && touched.contains(&node.id);
        MemorySize {
            nodes: self.memory.len(),
            edges: self.memory.edges().len(),
            frontier: self.working.nodes().filter(is_open).count(),
            planner_tokens,
            cgm_tokens: planner_tokens.max(notes + source.sum::<usize>()),
        }
    }

    fn check(&self, next: &Self, count: &CountTokens) -> Result<(), MemoryFault> {
        let (size_before, mut size_after) = (self.size(count), next.size(count));
        size_after.frontier = size_after.frontier.max(size_before.frontier);
        let exceeded = self.limits.caps.exceeded(&size_after);
        if exceeded.is_empty() {
            return Ok(());
        }
        Err(MemoryFault::OverBudget(Box::new(OverBudget {
            exceeded,
            limits: self.limits.caps,
            size_before,
            size_after,
        })))
    }

    fn applied(&self, applied: Applied, tag: String, count: &CountTokens) -> MemoryReport {
        MemoryReport {
            ok: true,
            rejected: false,
            applied,
            size: self.size(count),
            tag,
            version: self.version,
            selected_for_memory: Vec::new(),
            auto_selected: false,
            unknown_ids: Vec::new(),
            pruned_unmemorized: 0,
        }
    }

    fn next_tag(&mut self) -> String {
        format!("session:{}", self.version + 1)
    }

    fn add_note(&mut self, text: &str, tag: &str, step: u64) -> Option<String> {
        self.version += 1;
        if text.is_empty() {
            return None;
        }
        self.next_note += 1;
        let id = format!("note:{}", self.next_note);
        self.notes.push(Note {
            id: id.clone(),
            tag: tag.to_owned(),
            text: text.to_owned(),
            step,
        });
        Some(id)
    }

    /// What is in the working graph and not memorised: the last exploration's first, then what has
    /// source, each by score.
    fn best(&self, most: usize) -> Result<Vec<ListedNode>, MemoryFault> {
        let frontier = self.frontier.as_ref().ok_or(MemoryFault::MissingExplore)?;
        let last = self
            .working
            .nodes()
            .filter_map(|node| node.last_touched_step);
        let last = last.max();
        let mut found: Vec<&ListedNode> = self
            .working
            .nodes()
            .filter(|node| !node.memorized)
            .filter(|node| !node.snippet_lines.is_empty() || node.last_touched_step == last)
            .collect();
        let score = |node: &ListedNode| node.score.unwrap_or(0.0);
        found.sort_by(|one, two| {
            let touched = |node: &ListedNode| frontier.contains(&node.id);
            touched(two)
                .cmp(&touched(one))
                .then_with(|| score(two).total_cmp(&score(one)))
                .then_with(|| one.id.cmp(&two.id))
        });
        Ok(found.into_iter().take(most).cloned().collect())
    }

    /// The nodes with these ids, from the working graph or the code graph; second, ids that no node has.
    fn known(&self, graph: &Graph, ids: &[String]) -> (Vec<ListedNode>, Vec<String>) {
        let (mut found, mut unknown): (Vec<ListedNode>, Vec<String>) = (Vec::new(), Vec::new());
        for id in ids {
            let place = graph.find(id).or_else(|| graph.file(id).map(NodeRef::File));
            let canonical = place.map_or(id.clone(), |place| graph.node(place).id);
            let known = self.working.get(&canonical).cloned();
            match known.or_else(|| Some(graph.node(place?).into())) {
                Some(node) if found.iter().all(|it| it.id != node.id) => found.push(node),
                Some(_) => {}
                None => unknown.push(id.clone()),
            }
        }
        (found, unknown)
    }

    /// Leaves in the working graph what is memorised, what is to be kept and the last touched others;
    /// how many went.
    fn prune(&mut self, keep: &[String]) -> usize {
        let others = self.working.nodes().rev();
        let others = others.filter(|node| !node.memorized && !keep.contains(&node.id));
        let gone: Vec<String> = others
            .skip(self.limits.recent)
            .map(|node| node.id.clone())
            .collect();
        for id in &gone {
            self.working.remove(id);
        }
        gone.len()
    }
}

/// The first three.
fn summary(nodes: &[ListedNode]) -> String {
    let names: Vec<String> = nodes
        .iter()
        .take(3)
        .map(|node| match node.span {
            Some(span) => format!("{} ({}:{}-{})", node.name, node.path, span.start, span.end),
            None => format!("{} ({})", node.name, node.path),
        })
        .collect();
    let more = match nodes.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("kept {}{more}", names.join(", "))
}
