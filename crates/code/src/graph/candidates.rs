//! What lies around nodes, and which of it a planner should see first.
//!
//! Spec of the repair study, sections 3.3 and 3.4.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Edge, Graph, NodeKind, NodeRef, Span};

/// A node that may be worth a look, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    #[serde(skip)]
    pub node: NodeRef,
    pub id: String,
    pub kind: NodeKind,
    pub path: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// Edges from the node and to it.
    pub degree: usize,
    /// Whether edges lead here from an anchor; else it only lies near one.
    pub from_anchor: bool,
    pub score: f64,
    pub reasons: Vec<String>,
}

/// How many candidates there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateLimits {
    /// Edges to follow; with 0 the anchors alone are candidates.
    pub hops: usize,
    pub per_anchor: usize,
    pub total: usize,
    /// Candidates of one folder before those of all folders compete by score; 0 for no such turns.
    pub per_folder: usize,
}

impl Default for CandidateLimits {
    fn default() -> Self {
        Self {
            hops: 1,
            per_anchor: 50,
            total: 200,
            per_folder: 3,
        }
    }
}

impl Graph {
    /// Edges from a node and to it.
    pub fn degree(&self, node: NodeRef) -> usize {
        self.outgoing(node).len() + self.incoming(node).len()
    }

    /// Nodes that an edge joins to this one, in either direction; each once, in order.
    pub fn neighbours(&self, node: NodeRef) -> Vec<NodeRef> {
        let outgoing = self.outgoing(node).into_iter().map(|edge| edge.target);
        let incoming = self.incoming(node).into_iter().map(|edge| edge.source);
        let found: BTreeSet<NodeRef> = outgoing.chain(incoming).collect();
        found.into_iter().filter(|found| *found != node).collect()
    }

    /// The nodes within so many edges of `from`, nearest first and without `from`, at most `most`.
    pub fn within_hops(&self, from: &[NodeRef], hops: usize, most: usize) -> Vec<NodeRef> {
        let mut seen: BTreeSet<NodeRef> = from.iter().copied().collect();
        let (mut found, mut ring) = (Vec::new(), from.to_vec());
        for _ in 0..hops {
            let mut next = Vec::new();
            for node in ring {
                for neighbour in self.neighbours(node) {
                    if found.len() >= most {
                        return found;
                    }
                    if seen.insert(neighbour) {
                        found.push(neighbour);
                        next.push(neighbour);
                    }
                }
            }
            ring = next;
        }
        found
    }

    /// Edges of the graph between any two of these nodes.
    pub fn edges_among(&self, nodes: &BTreeSet<NodeRef>) -> Vec<Edge> {
        let all = nodes.iter().flat_map(|node| self.outgoing(*node));
        all.filter(|edge| nodes.contains(&edge.target)).collect()
    }

    /// What to look at around `anchors`: what edges lead to, then what stands in the same file, then what
    /// stands in files of the same folder; scored, and spread over folders. `is_known` tells what the
    /// planner has already.
    pub fn candidates(
        &self,
        anchors: &[NodeRef],
        is_known: impl Fn(NodeRef) -> bool,
        limits: CandidateLimits,
    ) -> Vec<Candidate> {
        let mut best: BTreeMap<NodeRef, Candidate> = BTreeMap::new();
        for anchor in anchors {
            for (node, from_anchor) in self.around(*anchor, limits) {
                let candidate = self.candidate(node, *anchor, from_anchor, is_known(node));
                let known = best.entry(node).or_insert_with(|| candidate.clone());
                if candidate.score > known.score {
                    *known = candidate;
                }
            }
        }
        let mut ranked: Vec<Candidate> = best.into_values().collect();
        by_score(&mut ranked);
        if limits.per_folder > 0 {
            ranked = folders_in_turn(ranked, limits.per_folder, limits.total);
        }
        ranked.truncate(limits.total);
        by_score(&mut ranked);
        ranked
    }

    fn around(&self, anchor: NodeRef, limits: CandidateLimits) -> Vec<(NodeRef, bool)> {
        let most = limits.per_anchor;
        if limits.hops == 0 {
            return [(anchor, true)].into_iter().take(most).collect();
        }
        let mut seen = BTreeSet::from([anchor]);
        let mut found: Vec<(NodeRef, bool)> = Vec::new();
        for node in self.within_hops(&[anchor], limits.hops, most) {
            if node != NodeRef::Repository && seen.insert(node) {
                found.push((node, true));
            }
        }
        let file = match anchor {
            NodeRef::File(file) | NodeRef::Definition(file, _) => Some(file),
            _ => None,
        };
        let of_file = |file: u32| {
            let count = self.facts(file).definitions.len() as u32;
            (0..count).map(move |index| NodeRef::Definition(file, index))
        };
        let folder = folder(self.path(anchor)).to_owned();
        let siblings = file.into_iter().flat_map(of_file);
        let nearby = (0..self.files.len() as u32)
            .filter(|other| {
                Some(*other) != file && self::folder(self.path(NodeRef::File(*other))) == folder
            })
            .flat_map(|other| std::iter::once(NodeRef::File(other)).chain(of_file(other)));
        for node in siblings.chain(nearby) {
            if found.len() >= most {
                break;
            }
            if seen.insert(node) {
                found.push((node, false));
            }
        }
        found
    }

    fn candidate(
        &self,
        node: NodeRef,
        anchor: NodeRef,
        from_anchor: bool,
        is_known: bool,
    ) -> Candidate {
        let found = self.node(node);
        let degree = self.degree(node);
        let same_file = !found.path.is_empty() && found.path == self.path(anchor);
        let same_folder = folder(&found.path) == folder(self.path(anchor));
        let is_test = super::is_test_path(&found.path);
        let mut score = 0.6 * (degree as f64 / 8.0).min(1.0);
        let mut reasons = vec![format!("degree:{degree}")];
        for (holds, weight, reason) in [
            (from_anchor, 1.0, "anchor"),
            (same_file, 0.8, "same-file"),
            (same_folder, 0.3, "same-dir"),
            (is_test, 0.25, "test-file"),
            (!is_known, 0.5, "new"),
            // Whoever looks for code wants what runs, not its declarations beside it.
            (found.path.ends_with(".pyi"), -1.0, "stub"),
        ] {
            if holds {
                score += weight;
                reasons.push(reason.to_owned());
            }
        }
        Candidate {
            node,
            id: found.id,
            kind: found.kind,
            path: found.path,
            name: found.name,
            span: found.span,
            degree,
            from_anchor,
            score,
            reasons,
        }
    }
}

fn by_score(candidates: &mut [Candidate]) {
    candidates.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then_with(|| one.node.cmp(&other.node))
    });
}

/// `per_folder` of each folder first, the best folder first, until there are `total`; then the others.
fn folders_in_turn(ranked: Vec<Candidate>, per_folder: usize, total: usize) -> Vec<Candidate> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for candidate in ranked {
        let count = taken.entry(folder(&candidate.path).to_owned()).or_default();
        if *count < per_folder && first.len() < total {
            *count += 1;
            first.push(candidate);
        } else {
            others.push(candidate);
        }
    }
    first.extend(others);
    first
}

pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
