//! Subgraphs of a code graph: what an agent works with, what it keeps, and the file that one is saved in.
//!
//! Spec of the repair study, section 3.1: `.aci/subgraphs/<issue>.json`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Graph, ListedError, ListedGraph, ListedNode, NodeRef, listed::ReadJson};

/// Nodes and the edges between them, in the order in which nodes were last touched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subgraph {
    listed: ListedGraph,
    /// Ids, the last touched last.
    order: Vec<String>,
}

impl Subgraph {
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = &ListedNode> {
        self.order.iter().filter_map(|id| self.listed.nodes.get(id))
    }

    /// Source, target and kind.
    pub fn edges(&self) -> &BTreeSet<(String, String, String)> {
        &self.listed.edges
    }

    pub fn get(&self, id: &str) -> Option<&ListedNode> {
        self.listed.nodes.get(id)
    }

    pub fn get_mut(&mut self, id: &str) -> Option<&mut ListedNode> {
        self.listed.nodes.get_mut(id)
    }

    pub fn contains(&self, id: &str) -> bool {
        self.listed.nodes.contains_key(id)
    }

    pub fn len(&self) -> usize {
        self.listed.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.listed.nodes.is_empty()
    }

    /// Adds a node, or replaces the one with its id; it is the last touched one now.
    pub fn insert(&mut self, node: ListedNode) {
        self.order.retain(|id| *id != node.id);
        self.order.push(node.id.clone());
        self.listed.nodes.insert(node.id.clone(), node);
    }

    /// Adds an edge between nodes that are here; others are left out.
    pub fn connect(&mut self, source: &str, target: &str, kind: &str) {
        if self.contains(source) && self.contains(target) {
            let edge = (source.to_owned(), target.to_owned(), kind.to_owned());
            self.listed.edges.insert(edge);
        }
    }

    /// Adds the edges that `graph` has between the nodes that are here.
    pub fn connect_by(&mut self, graph: &Graph) {
        let places: BTreeSet<NodeRef> = self
            .listed
            .nodes
            .keys()
            .filter_map(|id| graph.find(id))
            .collect();
        for edge in graph.edges_among(&places) {
            let (source, target) = (graph.node(edge.source).id, graph.node(edge.target).id);
            self.connect(&source, &target, edge.kind.name());
        }
    }

    /// Removes a node with the edges at it; whether it was there.
    pub fn remove(&mut self, id: &str) -> bool {
        let was_there = self.contains(id);
        if was_there {
            self.order.retain(|other| other != id);
            self.listed.remove(id);
        }
        was_there
    }

    /// Nodes, edges, files, functions, classes, and nodes by kind.
    pub fn stats(&self) -> Value {
        let mut kinds: Map<String, Value> = Map::new();
        for node in self.listed.nodes.values() {
            let count = kinds.entry(node.kind.clone()).or_insert(0.into());
            *count = (count.as_u64().unwrap_or(0) + 1).into();
        }
        let of = |kind: &str| kinds.get(kind).and_then(Value::as_u64).unwrap_or(0);
        serde_json::json!({
            "nodes": self.len(), "edges": self.listed.edges.len(),
            "files": of("file") + of("t-file"), "funcs": of("function"), "classes": of("class"),
            "kinds": kinds,
        })
    }

    pub fn listed(&self) -> &ListedGraph {
        &self.listed
    }

    /// The text of a subgraph file: indented, with `nodes`, `edges` and `node_ids`.
    pub fn to_file(&self) -> String {
        let mut value = self.listed.to_json();
        if let Value::Object(fields) = &mut value {
            let nodes: Vec<Value> = self.nodes().map(|node| serde_json::json!(node)).collect();
            fields.insert("nodes".to_owned(), nodes.into());
            fields.insert("node_ids".to_owned(), self.order.clone().into());
        }
        format!("{value:#}\n")
    }

    /// Reads a subgraph file, in any of the forms that [`ListedGraph::from_json`] takes. Edges without
    /// both ends are left out.
    ///
    /// # Errors
    /// What is no subgraph, with the line and the field.
    pub fn from_file(text: &str) -> Result<Self, ListedError> {
        let ReadJson {
            graph: mut listed,
            order: listed_order,
            ..
        } = ListedGraph::read_json(text)?;
        let nodes = &listed.nodes;
        listed
            .edges
            .retain(|(source, target, _)| nodes.contains_key(source) && nodes.contains_key(target));
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for id in listed_order {
            if listed.nodes.contains_key(&id) && seen.insert(id.clone()) {
                order.push(id);
            }
        }
        let others = listed.nodes.keys().filter(|id| !seen.contains(*id));
        let others: Vec<String> = others.cloned().collect();
        order.splice(0..0, others);
        Ok(Self { listed, order })
    }
}

/// The name of an issue's subgraph file in `.aci/subgraphs`. Signs that file systems may not take are
/// replaced; names that were changed, and long ones, begin with `_` and end with a digest, so that no two issues share a file.
pub fn subgraph_file_name(issue: &str) -> String {
    const LONGEST: usize = 120;
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let safe: String = issue
        .chars()
        .map(|c| if is_safe(c) { c } else { '_' })
        .take(LONGEST)
        .collect();
    let is_whole = safe == issue && !safe.is_empty() && !safe.starts_with(['.', '_']);
    match is_whole {
        true => format!("{safe}.json"),
        false => {
            let digest = blake3::hash(issue.as_bytes()).to_hex();
            let stem = safe.trim_start_matches('.');
            format!("_{stem}.{}.json", &digest[..12])
        }
    }
}
