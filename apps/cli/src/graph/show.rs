//! `etude graph show`: a node, what it contains, and what it has to do with, of any graph.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

use anyhow::{Context, anyhow};
use code::graph::{EdgeKind, Graph, ListedGraph, ListedNode, NodeKind, NodeRef};
use serde_json::{Value, json};

use crate::{
    failure::{Classify, Outcome},
    report::{print_json, print_text},
};

/// How a node is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
    Dot,
}

/// Source, kind and target.
type Edge<N> = (N, String, N);

const CONTAINS: &str = "contains";

/// What a node can be shown of.
pub(super) trait Shown {
    type Node: Copy + Ord;
    /// What nothing contains.
    fn tops(&self) -> Vec<Self::Node>;
    /// The node that an id or a file's path means.
    fn named(&self, name: &str) -> Option<Self::Node>;
    fn all(&self) -> Vec<Self::Node>;
    fn listed(&self, node: Self::Node) -> ListedNode;
    fn outgoing(&self, node: Self::Node) -> Vec<Edge<Self::Node>>;
    fn incoming(&self, node: Self::Node) -> Vec<Edge<Self::Node>>;
}

/// Prints the node that `name` means, or what nothing contains.
pub(super) fn show<G: Shown>(
    graph: &G,
    path: &Path,
    name: Option<&str>,
    depth: usize,
    form: Form,
) -> Outcome<()> {
    let shown = match name {
        None => graph.tops(),
        Some(name) => {
            let unknown = || {
                let near = near(graph, name);
                let near = match near.is_empty() {
                    true => String::new(),
                    false => format!("; is it {}?", near.join(" or ")),
                };
                anyhow!(
                    "no node has the id `{name}`{near}; find ids with: etude graph query {} WORDS",
                    path.display()
                )
            };
            vec![graph.named(name).with_context(unknown).asked()?]
        }
    };
    let id = |node: G::Node| graph.listed(node).id;
    let edges = || shown.iter().flat_map(|node| edges(graph, *node, depth));
    match form {
        Form::Json => {
            let edges = edges().map(
                |(source, kind, target)| json!({"src": id(source), "dst": id(target), "etype": kind}),
            );
            let edges: Vec<Value> = edges.collect();
            let node = match shown.as_slice() {
                [node] => json!(graph.listed(*node)),
                _ => Value::Null,
            };
            print_json(&json!({"node": node, "edges": edges}))
        }
        Form::Dot => {
            let edges: Vec<Edge<String>> = edges()
                .map(|(source, kind, target)| (id(source), kind, id(target)))
                .collect();
            let edges = edges.iter();
            print_text(&dot(edges.map(|(source, kind, target)| {
                (source.as_str(), target.as_str(), kind.as_str())
            })))
        }
        Form::Text => {
            let mut text = String::new();
            for node in shown {
                tree(graph, node, &mut Vec::new(), depth, &mut text);
                neighbours(graph, node, &mut text);
            }
            print_text(&text)
        }
    }
}

/// A node in one line.
pub(super) fn described(node: &ListedNode) -> String {
    let is_file = node.kind == NodeKind::File.name() || node.kind == NodeKind::TestFile.name();
    let lines = match node.span {
        Some(span) if !is_file => format!("  [{}-{}]", span.start, span.end),
        _ => String::new(),
    };
    // Ids that are not ours say nothing.
    let name = match node.id.contains(&node.name) {
        true => String::new(),
        false => format!("  {} {}", node.kind, node.name),
    };
    let place = match node.id.contains(&node.path) {
        true => String::new(),
        false => format!("  {}", node.path),
    };
    let documentation = match node.documentation.lines().next() {
        None | Some("") => String::new(),
        Some(text) => format!("  {}", text.chars().take(80).collect::<String>()),
    };
    format!("{}{name}{place}{lines}{documentation}", node.id)
}

/// Edges in DOT: source, target and kind.
pub(super) fn dot<'a>(edges: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = "digraph code {\n  rankdir = LR;\n  node [shape = box];\n".to_owned();
    for (source, target, kind) in edges {
        let (source, target) = (quoted(source), quoted(target));
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let label = match kind.chars().all(is_word) && !kind.is_empty() {
            true => kind.to_owned(),
            false => quoted(kind),
        };
        let _ = writeln!(text, "  {source} -> {target} [label = {label}];");
    }
    text + "}\n"
}

/// Edges of a node, and those to what it contains that many levels down.
fn edges<G: Shown>(graph: &G, node: G::Node, depth: usize) -> Vec<Edge<G::Node>> {
    let mut edges = graph.outgoing(node);
    let mut level: Vec<G::Node> = children(&edges).collect();
    edges.extend(graph.incoming(node));
    let mut seen = BTreeSet::from([node]);
    for _ in 1..depth {
        // What a file says may contain itself.
        level.retain(|node| seen.insert(*node));
        if level.is_empty() {
            break;
        }
        let mut next = Vec::new();
        for node in level {
            let outgoing = graph.outgoing(node);
            next.extend(children(&outgoing));
            edges.extend(outgoing.into_iter().filter(|(_, kind, _)| kind == CONTAINS));
        }
        level = next;
    }
    edges
}

fn children<N: Copy>(outgoing: &[Edge<N>]) -> impl Iterator<Item = N> {
    let contained = outgoing.iter().filter(|(_, kind, _)| kind == CONTAINS);
    contained.map(|(_, _, target)| *target)
}

fn tree<G: Shown>(
    graph: &G,
    node: G::Node,
    above: &mut Vec<G::Node>,
    depth: usize,
    text: &mut String,
) {
    let indent = "  ".repeat(above.len());
    let _ = writeln!(text, "{indent}{}", described(&graph.listed(node)));
    if above.len() < depth {
        above.push(node);
        for child in children(&graph.outgoing(node)) {
            if !above.contains(&child) {
                tree(graph, child, above, depth, text);
            }
        }
        above.pop();
    }
}

/// What a node has to do with, kind by kind, but for what contains it and what it contains.
fn neighbours<G: Shown>(graph: &G, node: G::Node, text: &mut String) {
    let (outgoing, incoming) = (graph.outgoing(node), graph.incoming(node));
    let known = EdgeKind::ALL.map(EdgeKind::name);
    let others: BTreeSet<&str> = outgoing
        .iter()
        .chain(&incoming)
        .map(|(_, kind, _)| kind.as_str())
        .filter(|kind| !known.contains(kind))
        .collect();
    for kind in known.into_iter().chain(others) {
        if kind == CONTAINS {
            continue;
        }
        for (_, _, target) in outgoing.iter().filter(|edge| edge.1 == kind) {
            let _ = writeln!(text, "{kind:<14} {}", graph.listed(*target).id);
        }
        for (source, _, _) in incoming.iter().filter(|edge| edge.1 == kind) {
            let _ = writeln!(text, "{:<14} {}", passive(kind), graph.listed(*source).id);
        }
    }
}

fn passive(kind: &str) -> String {
    match EdgeKind::named(kind) {
        Some(EdgeKind::Contains) => "contained in".to_owned(),
        Some(EdgeKind::Imports) => "imported by".to_owned(),
        Some(EdgeKind::Extends) => "extended by".to_owned(),
        Some(EdgeKind::Calls) => "called by".to_owned(),
        Some(EdgeKind::References) => "referenced by".to_owned(),
        Some(EdgeKind::Overrides) => "overridden by".to_owned(),
        Some(EdgeKind::Tests) => "tested by".to_owned(),
        None => format!("{kind} from"),
    }
}

/// Ids of up to three nodes whose ids or names have `wanted` in them, those that are called so first.
fn near<G: Shown>(graph: &G, wanted: &str) -> Vec<String> {
    let last = wanted.rsplit([':', '/']).find(|part| {
        let is_line = part.chars().all(|character| character.is_ascii_digit());
        !is_line
    });
    let last = last.unwrap_or(wanted).to_lowercase();
    let is_near =
        |node: &ListedNode| [&node.id, &node.name].map(|it| it.to_lowercase().contains(&last));
    let nodes = graph.all().into_iter().map(|node| graph.listed(node));
    let mut near: Vec<(bool, String)> = nodes
        .filter(|node| is_near(node).contains(&true))
        .map(|node| (node.name.to_lowercase() != last, node.id))
        .collect();
    near.sort_unstable();
    near.truncate(3);
    near.into_iter().map(|(_, id)| id).collect()
}

impl Shown for Graph {
    type Node = NodeRef;

    fn tops(&self) -> Vec<NodeRef> {
        vec![NodeRef::Repository]
    }

    fn named(&self, name: &str) -> Option<NodeRef> {
        let by_path = || self.file(name).map(NodeRef::File);
        self.find(name).or_else(by_path)
    }

    fn all(&self) -> Vec<NodeRef> {
        self.nodes().collect()
    }

    fn listed(&self, node: NodeRef) -> ListedNode {
        self.node(node).into()
    }

    fn outgoing(&self, node: NodeRef) -> Vec<Edge<NodeRef>> {
        let edges = Graph::outgoing(self, node).into_iter();
        edges
            .map(|edge| (edge.source, edge.kind.name().to_owned(), edge.target))
            .collect()
    }

    fn incoming(&self, node: NodeRef) -> Vec<Edge<NodeRef>> {
        let edges = Graph::incoming(self, node).into_iter();
        edges
            .map(|edge| (edge.source, edge.kind.name().to_owned(), edge.target))
            .collect()
    }
}

/// A listed graph with the edges of each node at hand. Edges that lead to no node of it are kept: what they
/// name is all that is known of it.
pub(super) struct Neighbours<'a> {
    graph: &'a ListedGraph,
    outgoing: BTreeMap<&'a str, Vec<Edge<&'a str>>>,
    incoming: BTreeMap<&'a str, Vec<Edge<&'a str>>>,
}

impl<'a> Neighbours<'a> {
    pub(super) fn new(graph: &'a ListedGraph) -> Self {
        let mut outgoing: BTreeMap<&str, Vec<Edge<&str>>> = BTreeMap::new();
        let mut incoming = outgoing.clone();
        for (source, target, kind) in &graph.edges {
            let edge = (source.as_str(), kind.clone(), target.as_str());
            outgoing.entry(source).or_default().push(edge.clone());
            incoming.entry(target).or_default().push(edge);
        }
        // As the nodes of a built graph stand: packages, files, definitions in the order of their sources.
        let place = |id: &str| {
            let node = graph.nodes.get(id)?;
            let (rank, start) = match node.kind.as_str() {
                "pkg" => (0, None),
                "class" | "function" | "attribute" | "symbol" => (2, node.span),
                _ => (1, None),
            };
            Some((rank, start, node.path.clone()))
        };
        for edges in outgoing.values_mut() {
            edges.sort_by_cached_key(|(_, _, target)| place(target));
        }
        Self {
            graph,
            outgoing,
            incoming,
        }
    }
}

impl<'a> Shown for Neighbours<'a> {
    type Node = &'a str;

    fn tops(&self) -> Vec<&'a str> {
        let is_contained = |id: &str| {
            let incoming = self.incoming.get(id);
            incoming.is_some_and(|edges| edges.iter().any(|(_, kind, _)| kind == CONTAINS))
        };
        let all = self.all().into_iter();
        let tops: Vec<&str> = all.clone().filter(|id| !is_contained(id)).collect();
        // Where all stand in each other, there is no top.
        if tops.is_empty() { all.collect() } else { tops }
    }

    fn named(&self, name: &str) -> Option<&'a str> {
        let nodes = &self.graph.nodes;
        if let Some((id, _)) = nodes.get_key_value(name) {
            return Some(id);
        }
        let is_file = |node: &ListedNode| node.kind == "file" || node.kind == "t-file";
        let one = |found: Vec<&'a str>| match found.as_slice() {
            [id] => Some(*id),
            _ => None,
        };
        let by_path = nodes
            .values()
            .filter(|node| is_file(node) && node.path == name);
        if let Some(id) = one(by_path.map(|node| node.id.as_str()).collect()) {
            return Some(id);
        }
        let wanted = without_line(name);
        let alike = nodes.keys().filter(|id| without_line(id) == wanted);
        one(alike.map(String::as_str).collect())
    }

    fn all(&self) -> Vec<&'a str> {
        self.graph.nodes.keys().map(String::as_str).collect()
    }

    fn listed(&self, node: &'a str) -> ListedNode {
        let known = self.graph.nodes.get(node);
        known.cloned().unwrap_or_else(|| ListedNode {
            id: node.to_owned(),
            ..ListedNode::default()
        })
    }

    fn outgoing(&self, node: &'a str) -> Vec<Edge<&'a str>> {
        self.outgoing.get(node).cloned().unwrap_or_default()
    }

    fn incoming(&self, node: &'a str) -> Vec<Edge<&'a str>> {
        self.incoming.get(node).cloned().unwrap_or_default()
    }
}

/// An id without the line that it may end with.
fn without_line(id: &str) -> &str {
    match id.rsplit_once(':') {
        Some((rest, line))
            if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            rest
        }
        _ => id,
    }
}
