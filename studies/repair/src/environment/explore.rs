//! Exploring: find, expand, read, grep (spec of the repair study, section 2.4).

use std::collections::BTreeSet;

use code::graph::{
    Anchor, Candidate, CandidateLimits, Chunk, EdgeKind, Graph, NodeKind, NodeRef, Query,
};
use regex::RegexBuilder;
use serde_json::{Value, json};

use super::{
    PlannerEnv, glob,
    state::{Done, listed},
};
use crate::action::{ExpandMode, Explore, FindType, Operation, View};

/// Memorised nodes and notes that a search recalls.
const RECALLED: usize = 20;
/// Found nodes that are shown with their first lines.
const PREVIEWS: usize = 6;
const PREVIEW_LINES: u32 = 24;
/// Lines around what is read.
const AROUND: u32 = 3;
/// Lines around the line of `around_line`.
const AROUND_LINE: u32 = 10;
/// Lines of a header that nothing tells the end of.
const HEADER: u32 = 12;
/// Lines that one step shows of sources.
const MOST_LINES: u32 = 400;

/// Only the anchors themselves.
const ANCHORS_ALONE: CandidateLimits = CandidateLimits {
    hops: 0,
    per_anchor: 1,
    total: 300,
    per_folder: 0,
};

impl PlannerEnv<'_> {
    pub(super) fn explore(&mut self, explore: &Explore) -> Done {
        let mut done = match explore.op {
            Operation::Find => self.find(explore),
            Operation::Expand => self.expand(explore),
            Operation::Read => self.read(explore),
            Operation::Grep => self.grep(explore),
        };
        done.tell("op", explore.op.word());
        done
    }

    fn find(&mut self, explore: &Explore) -> Done {
        let mut done = Done::new("explore");
        let graph = self.sources.graph();
        let step = u64::from(self.state.steps);
        let recalled = self.state.memory.recall(&explore.query, RECALLED);
        let (notes, nodes): (Vec<String>, Vec<String>) =
            recalled.into_iter().partition(|id| id.starts_with("note:"));
        let places: Vec<NodeRef> = nodes.iter().filter_map(|id| graph.find(id)).collect();
        let again = graph.candidates(&places, |_| true, ANCHORS_ALONE);
        let lines = self.config.explore.snippet_lines;
        let sources = &self.sources;
        let memory = &mut self.state.memory;
        let (more, _) = memory.explored(graph, &again, "recalled", step, |node| {
            sources.snippet(node, lines)
        });
        if !notes.is_empty() {
            let told = memory
                .notes()
                .iter()
                .filter(|note| notes.contains(&note.id));
            done.tell("recalled_notes", json!(told.collect::<Vec<_>>()));
        }
        if !nodes.is_empty() {
            done.tell("recalled", listed(&nodes));
        }
        let total = explore.total_limit.unwrap_or(explore.limit) as usize;
        let candidates = match explore.anchors.is_empty() {
            false => self.anchored(explore, total),
            true => self.searched(explore, total, &mut done),
        };
        if candidates.is_empty() && explore.anchors.iter().any(|anchor| self.is_guarded(anchor)) {
            return done.with_error("guarded-test", "the tests that decide are not shown");
        }
        let seeds = &candidates[..candidates.len().min(self.config.explore.find_to_working)];
        let (gained, _) =
            self.state
                .memory
                .explored(self.sources.graph(), seeds, "found", step, |node| {
                    sources.snippet(node, lines)
                });
        done.tell("gained", (more + gained) as i64);
        done.tell("query_terms", json!(code::graph::words(&explore.query)));
        done.tell("seeded_working_ids", listed(seeds.iter().map(|it| &it.id)));
        let previews = candidates.iter().take(PREVIEWS);
        let previews = previews.filter_map(|it| self.preview(it)).collect();
        self.show(done, candidates, previews, "found")
    }

    fn expand(&mut self, explore: &Explore) -> Done {
        let done = Done::new("explore");
        let graph = self.sources.graph();
        let ids = explore.nodes.iter().map(|id| Anchor::id(id));
        let anchors: Vec<Anchor> = explore.anchors.iter().cloned().chain(ids).collect();
        let places: Vec<NodeRef> = match anchors.is_empty() {
            true => self.frontier().into_iter().collect(),
            false => anchors
                .iter()
                .flat_map(|anchor| anchor.resolve(graph))
                .collect(),
        };
        if places.is_empty() {
            return match anchors.iter().any(|anchor| self.is_guarded(anchor)) {
                true => done.with_error("guarded-test", "the tests that decide are not shown"),
                false if anchors.is_empty() => done.with_error(
                    "missing-required-param",
                    "nothing was found yet: name an anchor",
                ),
                false => done.with_error("unknown-node", "no anchor names a node: find it first"),
            };
        }
        let config = &self.config.explore;
        let total = match (explore.total_limit, explore.limit) {
            (Some(total), _) => total as usize,
            // The action's own default is no wish.
            (None, 50) => config.expand_total,
            (None, limit) => limit as usize,
        };
        let per_folder = explore.dir_diversity_k.map(|k| k as usize);
        let limits = CandidateLimits {
            hops: explore.hop as usize,
            per_anchor: explore.max_per_anchor.unwrap_or(50) as usize,
            total,
            per_folder: per_folder.unwrap_or(config.expand_per_folder),
        };
        let memory = &self.state.memory;
        let is_known = |node: NodeRef| memory.knows(&graph.node(node).id);
        let mut candidates = match explore.expand_mode {
            ExpandMode::Related => graph.candidates(&places, is_known, limits),
            mode => {
                let around: BTreeSet<NodeRef> = places
                    .iter()
                    .flat_map(|place| around(graph, *place, mode))
                    .collect();
                let around: Vec<NodeRef> = around
                    .into_iter()
                    .filter(|node| *node != NodeRef::Repository && !places.contains(node))
                    .collect();
                let alone = CandidateLimits {
                    total,
                    per_folder: limits.per_folder,
                    ..ANCHORS_ALONE
                };
                graph.candidates(&around, is_known, alone)
            }
        };
        let symbol = explore.symbol.trim().to_lowercase();
        candidates.retain(|it| it.name.to_lowercase().contains(&symbol));
        candidates.retain(|it| it.node != NodeRef::Repository);
        let lines = config.snippet_lines;
        let sources = &self.sources;
        let (gained, edges) = self.state.memory.explored(
            graph,
            &candidates,
            "explored",
            u64::from(self.state.steps),
            |node| sources.snippet(node, lines),
        );
        let mut done = done;
        done.tell("gained", gained as i64);
        done.tell("gained_edges", edges as i64);
        let anchors: Vec<String> = places.iter().map(|place| graph.node(*place).id).collect();
        done.tell("anchors", listed(&anchors));
        let previews = candidates.iter().take(2);
        let previews = previews.filter_map(|it| self.preview(it)).collect();
        self.show(done, candidates, previews, "around it")
    }

    fn read(&mut self, explore: &Explore) -> Done {
        let mut done = Done::new("explore");
        let graph = self.sources.graph();
        let wanted: Vec<String> = match explore.nodes.is_empty() && explore.anchors.is_empty() {
            true => self.candidates().take(3).map(str::to_owned).collect(),
            false => explore.nodes.clone(),
        };
        let ids = wanted.iter().map(|id| Anchor::id(id));
        let anchors: Vec<Anchor> = ids.chain(explore.anchors.iter().cloned()).collect();
        let (mut places, mut unknown, mut guarded) = (Vec::new(), Vec::new(), false);
        for anchor in anchors.iter().take(explore.limit as usize) {
            match anchor.resolve(graph).first() {
                Some(place) if !places.contains(place) => places.push(*place),
                Some(_) => {}
                None if self.is_guarded(anchor) => guarded = true,
                None => unknown.extend(anchor.id.clone().or(anchor.text.clone())),
            }
        }
        if places.is_empty() {
            let (code, detail) = match (guarded, unknown.is_empty()) {
                (true, _) => ("guarded-test", "the tests that decide are not shown"),
                (false, true) => ("missing-required-param", "`read` needs `nodes`"),
                (false, false) => ("unknown-node", "no id names a node: find it first"),
            };
            return done.with_error(code, detail);
        }
        let chunks: Vec<(NodeRef, Chunk)> = places
            .iter()
            .filter_map(|place| Some((*place, self.view(*place, explore.view)?)))
            .collect();
        let candidates = graph.candidates(&places, |_| true, ANCHORS_ALONE);
        let lines = self.config.explore.snippet_lines;
        let sources = &self.sources;
        let step = u64::from(self.state.steps);
        let (gained, _) = self
            .state
            .memory
            .explored(graph, &candidates, "read", step, |node| {
                sources.snippet(node, lines)
            });
        let results: Vec<Value> = chunks
            .iter()
            .map(|(place, chunk)| {
                let node = graph.node(*place);
                let numbered = (chunk.start..).zip(chunk.text.lines());
                let lines: Vec<String> = numbered
                    .map(|(number, line)| format!("{number:04}: {line}"))
                    .collect();
                json!({
                    "node_id": node.id, "path": chunk.path,
                    "abs_path": self.sources.absolute(&chunk.path),
                    "start": chunk.start, "end": chunk.end, "span": node.span, "snippet": lines,
                })
            })
            .collect();
        let read = places.iter().map(|place| graph.node(*place).id);
        let read: Vec<String> = read.collect();
        done.tell("gained", gained as i64);
        done.tell("results", results);
        done.tell("summary", format!("{} read", chunks.len()));
        if !unknown.is_empty() {
            done.tell("unknown_ids", listed(&unknown));
        }
        done.observed = format!("read {}", read.join(", "));
        self.state.read.extend(read);
        self.state.snippets = chunks.into_iter().map(|(_, chunk)| chunk).collect();
        done
    }

    fn grep(&mut self, explore: &Explore) -> Done {
        let mut done = Done::new("explore");
        if self.sources.is_guarded(explore.path_glob.trim()) {
            return done.with_error("guarded-test", "the tests that decide are not shown");
        }
        let pattern = match explore.regex {
            true => explore.pattern.clone(),
            false => regex::escape(&explore.pattern),
        };
        let pattern = match RegexBuilder::new(&pattern).size_limit(1 << 20).build() {
            Ok(pattern) => pattern,
            Err(error) => return done.with_error("invalid-pattern", &error.to_string()),
        };
        let most = explore.limit.min(50) as usize;
        let (mut matches, mut chunks, mut shown) = (Vec::new(), Vec::new(), 0);
        let mut left_out = 0;
        for (path, text) in self.sources.texts() {
            if !glob::fits(&explore.path_glob, path) {
                continue;
            }
            let mut last: Option<(u32, u32)> = None;
            for (number, line) in (1u32..).zip(text.lines()) {
                if !pattern.is_match(line) {
                    continue;
                }
                if matches.len() >= most || shown >= MOST_LINES {
                    left_out += 1;
                    continue;
                }
                matches.push(json!({"path": path, "line": number}));
                let (start, end) = (
                    number.saturating_sub(explore.context_lines).max(1),
                    number + explore.context_lines,
                );
                shown += 1 + 2 * explore.context_lines;
                match &mut last {
                    Some((_, known)) if start <= *known + 1 => *known = end,
                    _ => {
                        chunks.extend(last.map(|(from, to)| (path, from, to)));
                        last = Some((start, end));
                    }
                }
            }
            chunks.extend(last.map(|(from, to)| (path, from, to)));
        }
        let chunks: Vec<Chunk> = chunks
            .into_iter()
            .filter_map(|(path, start, end)| self.sources.window(path, start, end))
            .collect();
        done.tell("summary", format!("{} lines", matches.len()));
        done.tell("n_matches", matches.len());
        done.observed = format!("{} lines have {}", matches.len(), explore.pattern);
        done.tell("matches", matches);
        if left_out > 0 {
            done.tell("left_out", left_out);
        }
        self.state.snippets = chunks;
        done
    }

    /// The nodes that anchors mean, as candidates.
    fn anchored(&self, explore: &Explore, total: usize) -> Vec<Candidate> {
        let graph = self.sources.graph();
        let places: Vec<NodeRef> = explore
            .anchors
            .iter()
            .flat_map(|anchor| {
                let mut found = anchor.resolve(graph);
                found.truncate(explore.max_per_anchor.unwrap_or(50) as usize);
                found
            })
            .filter(|place| self.fits(*place, explore))
            .collect();
        let memory = &self.state.memory;
        let is_known = |node: NodeRef| memory.knows(&graph.node(node).id);
        let limits = CandidateLimits {
            total,
            ..ANCHORS_ALONE
        };
        graph.candidates(&places, is_known, limits)
    }

    /// What a query finds; relaxed where it finds nothing.
    fn searched(&self, explore: &Explore, total: usize, done: &mut Done) -> Vec<Candidate> {
        let graph = self.sources.graph();
        let narrowed = explore.find_type != FindType::Any
            || !explore.class_name.is_empty()
            || !explore.path_glob.is_empty();
        let most = if narrowed { 1000 } else { total };
        let search = |query: &Query| {
            let (hits, relaxed) = self.sources.index().search(query, most);
            let hits = hits.into_iter().filter(|hit| self.fits(hit.node, explore));
            (hits.take(total).collect::<Vec<_>>(), relaxed)
        };
        let query = Query::parse(&explore.query);
        let (mut hits, mut relaxed) = search(&query);
        if hits.is_empty() && !relaxed {
            relaxed = true;
            hits = search(&query.relaxed()).0;
        }
        if relaxed {
            let words = query.relaxed().words.join(" ");
            done.tell(
                "query_relaxed",
                json!({"from": explore.query, "to": words, "cands": hits.len()}),
            );
        }
        let candidate = |hit: code::graph::Hit| {
            let mut found = graph.candidates(&[hit.node], |_| true, ANCHORS_ALONE);
            found.pop().map(|candidate| Candidate {
                score: hit.score,
                reasons: hit.reasons,
                ..candidate
            })
        };
        hits.into_iter().filter_map(candidate).collect()
    }

    fn fits(&self, node: NodeRef, explore: &Explore) -> bool {
        let graph = self.sources.graph();
        let owner = graph.parent(node).map(|parent| graph.node(parent));
        let owner = owner.filter(|owner| owner.kind == NodeKind::Class);
        let kind = graph.kind(node);
        let is_kind = match explore.find_type {
            FindType::Any => true,
            FindType::File => kind.is_file(),
            FindType::Class => kind == NodeKind::Class,
            FindType::Function => kind == NodeKind::Function,
            FindType::Method => kind == NodeKind::Function && owner.is_some(),
            FindType::Assignment => kind == NodeKind::Attribute,
        };
        let class = explore.class_name.trim();
        is_kind
            && (class.is_empty() || owner.is_some_and(|owner| owner.name == class))
            && glob::fits(&explore.path_glob, graph.path(node))
    }

    /// The best of the last exploration.
    fn frontier(&self) -> Option<NodeRef> {
        let best = self.candidates().next();
        let best = best.or(self.state.memory.frontier().first().map(String::as_str));
        self.sources.graph().find(best?)
    }

    fn is_guarded(&self, anchor: &Anchor) -> bool {
        let named = [&anchor.id, &anchor.text];
        let mut named = named.into_iter().flatten();
        named.any(|text| self.sources.is_guarded(text))
    }

    fn preview(&self, candidate: &Candidate) -> Option<Chunk> {
        let span = candidate.span?;
        let end = span.end.min(span.start + PREVIEW_LINES - 1);
        self.sources.window(&candidate.path, span.start, end)
    }

    fn view(&self, place: NodeRef, view: View) -> Option<Chunk> {
        let node = self.sources.graph().node(place);
        let span = node.span?;
        let (start, end) = match view {
            View::Body => {
                let last = span.start.saturating_add(MOST_LINES - 1);
                (
                    span.start.saturating_sub(AROUND),
                    span.end.min(last) + AROUND,
                )
            }
            View::Header => (span.start, self.header_end(place, span.start, span.end)),
            View::AroundLine(line) => (line.saturating_sub(AROUND_LINE), line + AROUND_LINE),
            View::FileWindow(start, end) => (start, end.min(start.saturating_add(MOST_LINES - 1))),
        };
        self.sources.window(&node.path, start, end)
    }

    /// The line before the first thing in it, or some lines on.
    fn header_end(&self, place: NodeRef, start: u32, end: u32) -> u32 {
        let graph = self.sources.graph();
        let inside = graph.children(place).into_iter();
        let first = inside
            .filter_map(|child| graph.node(child).span)
            .map(|span| span.start)
            .filter(|line| *line > start)
            .min();
        let last = first.map_or(end, |line| line - 1);
        last.min(start + HEADER - 1).min(end)
    }

    fn show(
        &mut self,
        mut done: Done,
        candidates: Vec<Candidate>,
        snippets: Vec<Chunk>,
        how: &str,
    ) -> Done {
        done.tell("n_candidates", candidates.len());
        done.tell("summary", format!("{} nodes {how}", candidates.len()));
        if let Some(best) = candidates.first() {
            done.tell("frontier_anchor_id", best.id.as_str());
        }
        done.observed = match candidates.first() {
            Some(best) => format!("{} nodes {how}, {} first", candidates.len(), best.id),
            None => format!("0 nodes {how}"),
        };
        done.tell("candidates", json!(candidates));
        self.state.candidates = candidates;
        self.state.snippets = snippets;
        done
    }
}

/// The nodes that edges of some kinds lead to.
fn around(graph: &Graph, node: NodeRef, mode: ExpandMode) -> Vec<NodeRef> {
    let out = |node: NodeRef, kinds: &[EdgeKind]| -> Vec<NodeRef> {
        let edges = graph.outgoing(node).into_iter();
        let edges = edges.filter(|edge| kinds.contains(&edge.kind));
        edges.map(|edge| edge.target).collect()
    };
    let back = |node: NodeRef, kinds: &[EdgeKind]| -> Vec<NodeRef> {
        let edges = graph.incoming(node).into_iter();
        let edges = edges.filter(|edge| kinds.contains(&edge.kind));
        edges.map(|edge| edge.source).collect()
    };
    let both = |node: NodeRef, kinds: &[EdgeKind]| [out(node, kinds), back(node, kinds)].concat();
    let parents = || {
        let mut parents = Vec::new();
        let mut at = node;
        while let Some(parent) = graph.parent(at) {
            parents.push(parent);
            at = parent;
        }
        parents
    };
    match mode {
        ExpandMode::Related => graph.neighbours(node),
        ExpandMode::Callers => back(node, &[EdgeKind::Calls, EdgeKind::References]),
        ExpandMode::Callees => out(node, &[EdgeKind::Calls]),
        ExpandMode::Siblings => {
            let parent = graph.parent(node);
            parent.map_or_else(Vec::new, |parent| graph.children(parent))
        }
        ExpandMode::Imports => {
            let file = match node {
                NodeRef::Definition(file, _) => NodeRef::File(file),
                other => other,
            };
            both(file, &[EdgeKind::Imports])
        }
        ExpandMode::Contains => graph.children(node),
        ExpandMode::Uses => out(
            node,
            &[EdgeKind::Calls, EdgeKind::References, EdgeKind::Extends],
        ),
        ExpandMode::Mechanism => {
            let near = both(node, &[EdgeKind::Calls]);
            let far = near.iter().flat_map(|near| both(*near, &[EdgeKind::Calls]));
            let far: Vec<NodeRef> = far.collect();
            [near, far].concat()
        }
        ExpandMode::OwnerFlow => {
            let kin = &[EdgeKind::Extends, EdgeKind::Overrides];
            let owners = parents();
            let of_owners = owners.iter().flat_map(|owner| both(*owner, kin));
            let of_owners: Vec<NodeRef> = of_owners.collect();
            [both(node, kin), of_owners, owners].concat()
        }
    }
}
