//! Graphs as lists of nodes and edges: what is written to files, read from them, and grown by an agent.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Graph, NodeKind, Span};

/// A graph that nothing is resolved in: nodes by id, and edges between ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedGraph {
    pub nodes: BTreeMap<String, ListedNode>,
    /// Source, target and kind; each once.
    pub edges: BTreeSet<(String, String, String)>,
}

/// A node as subgraph files and `repo_graph.jsonl` have it (spec of the repair study, section 3.1).
/// Fields that are not named here are kept as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListedNode {
    pub id: String,
    /// `file`, `t-file`, `function`, `class`, `module`, `pkg`, `attribute`, `symbol`, `repo`.
    pub kind: String,
    pub path: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    #[serde(rename = "sig", skip_serializing_if = "String::is_empty")]
    pub signature: String,
    #[serde(rename = "doc", skip_serializing_if = "String::is_empty")]
    pub documentation: String,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A line of a file that cannot be read as part of a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {detail}")]
pub struct ListedError {
    /// The first is 1; 0 for a file that is one value.
    pub line: usize,
    pub detail: String,
}

impl ListedGraph {
    /// Everything that a graph has.
    pub fn of(graph: &Graph) -> Self {
        let nodes = graph.nodes().map(|node| {
            let node = graph.node(node);
            let listed = ListedNode {
                id: node.id.clone(),
                kind: node.kind.name().to_owned(),
                path: node.path,
                name: node.name,
                span: node.span,
                signature: node.signature,
                documentation: node.documentation,
                rest: Map::new(),
            };
            (node.id, listed)
        });
        let id = |node| graph.node(node).id;
        let edges = graph.edges().map(|edge| {
            let kind = edge.kind.name().to_owned();
            (id(edge.source), id(edge.target), kind)
        });
        Self {
            nodes: nodes.collect(),
            edges: edges.collect(),
        }
    }

    /// Removes a node with the edges at it.
    pub fn remove(&mut self, id: &str) {
        self.nodes.remove(id);
        self.edges
            .retain(|(source, target, _)| source != id && target != id);
    }

    /// Lines of `{"type": "node" | "edge", "data": {…}}`: Graph Planner's `repo_graph.jsonl`.
    pub fn to_jsonl(&self) -> String {
        let mut text = String::new();
        let line = |kind: &str, data: Value| {
            format!("{}\n", serde_json::json!({"type": kind, "data": data}))
        };
        for node in self.nodes.values() {
            text += &line("node", serde_json::json!(node));
        }
        for (source, target, kind) in &self.edges {
            text += &line(
                "edge",
                serde_json::json!({"src": source, "dst": target, "etype": kind}),
            );
        }
        text
    }

    /// Reads `repo_graph.jsonl` in any of the forms that are about: with the fields in `data` or beside
    /// `type`, with other names of kinds and of the ends of edges. Empty lines are passed over.
    ///
    /// # Errors
    /// The first line that is no JSON object, or a node without an id, or an edge without its ends.
    pub fn from_jsonl(text: &str) -> Result<Self, ListedError> {
        let mut graph = Self::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let fault = |detail: String| ListedError {
                line: number + 1,
                detail,
            };
            let mut value: Map<String, Value> =
                serde_json::from_str(line).map_err(|error| fault(error.to_string()))?;
            let kind = value.remove("type");
            let data = match value.remove("data") {
                Some(Value::Object(data)) => data,
                Some(_) => return Err(fault("`data` is no object".to_owned())),
                None => value,
            };
            match kind.as_ref().and_then(Value::as_str) {
                Some("node") => graph.add_node(data).map_err(fault)?,
                Some("edge") => graph.add_edge(&data).map_err(fault)?,
                _ => return Err(fault("`type` is neither \"node\" nor \"edge\"".to_owned())),
            }
        }
        Ok(graph)
    }

    /// `{"nodes": […], "edges": […]}`: a subgraph file.
    pub fn to_json(&self) -> Value {
        let edges = self.edges.iter();
        let edges: Vec<Value> = edges
            .map(|(src, dst, etype)| serde_json::json!({"src": src, "dst": dst, "etype": etype}))
            .collect();
        serde_json::json!({"nodes": self.nodes.values().collect::<Vec<_>>(), "edges": edges})
    }

    /// Reads a subgraph file, whose nodes may also be an object by id, and CodeFuse's code graph JSON.
    ///
    /// # Errors
    /// What is no graph, or a node without an id, or an edge without its ends.
    pub fn from_json(text: &str) -> Result<Self, ListedError> {
        let fault = |detail: String| ListedError { line: 0, detail };
        let mut value: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| fault(error.to_string()))?;
        let mut graph = Self::default();
        let nodes = match value.remove("nodes") {
            Some(Value::Array(nodes)) => nodes,
            Some(Value::Object(nodes)) => nodes
                .into_iter()
                .map(|(id, mut node)| {
                    if let Value::Object(node) = &mut node {
                        node.entry("id").or_insert(id.into());
                    }
                    node
                })
                .collect(),
            _ => return Err(fault("there is no list of `nodes`".to_owned())),
        };
        let edges = match value.remove("edges") {
            Some(Value::Array(edges)) => edges,
            None => Vec::new(),
            Some(_) => return Err(fault("`edges` is no list".to_owned())),
        };
        for (index, node) in nodes.into_iter().enumerate() {
            let at = |detail: String| fault(format!("nodes[{index}]: {detail}"));
            match node {
                Value::Object(node) => graph.add_node(node).map_err(at)?,
                _ => return Err(at("is no object".to_owned())),
            }
        }
        for (index, edge) in edges.into_iter().enumerate() {
            let at = |detail: String| fault(format!("edges[{index}]: {detail}"));
            match edge {
                Value::Object(edge) => graph.add_edge(&edge).map_err(at)?,
                _ => return Err(at("is no object".to_owned())),
            }
        }
        Ok(graph)
    }

    fn add_node(&mut self, mut data: Map<String, Value>) -> Result<(), String> {
        let id = take_text(&mut data, &["id", "nodeId"]).ok_or("it has no `id`")?;
        let codefuse = take_text(&mut data, &["nodeType"]);
        let kind = codefuse.or_else(|| take_text(&mut data, &["kind"]));
        let path = take_text(&mut data, &["path", "filePath"]).unwrap_or_default();
        let name = take_text(&mut data, &["name", "className", "fileName", "repoName"]);
        let span = data
            .remove("span")
            .and_then(|span| serde_json::from_value(span).ok());
        let lines = (
            number(&data, &["startLoc", "loc"]),
            number(&data, &["endLoc", "startLoc", "loc"]),
        );
        let node = ListedNode {
            kind: known_kind(&kind.unwrap_or_default()),
            name: name.unwrap_or_else(|| path.rsplit('/').next().unwrap_or_default().to_owned()),
            span: span.or(match lines {
                (Some(start), Some(end)) => Some(Span { start, end }),
                _ => None,
            }),
            signature: take_text(&mut data, &["sig", "header"]).unwrap_or_default(),
            documentation: take_text(&mut data, &["doc", "comment"]).unwrap_or_default(),
            id: id.clone(),
            path,
            rest: data,
        };
        self.nodes.insert(id, node);
        Ok(())
    }

    fn add_edge(&mut self, data: &Map<String, Value>) -> Result<(), String> {
        let end = |names: &[&str]| names.iter().find_map(|name| text(data.get(*name)?));
        let source = end(&["src", "source", "u", "from"]).ok_or("it has no `src`")?;
        let target = end(&["dst", "target", "v", "to"]).ok_or("it has no `dst`")?;
        let kind = end(&["etype", "kind", "edgeType", "type"]).unwrap_or_default();
        self.edges.insert((source, target, kind));
        Ok(())
    }

    /// The code graph JSON of CodeFuse-CGM (spec of the repair study, section 10.1), with the source
    /// text of each node where `source` has its file.
    pub fn to_codefuse<'a>(&self, source: impl Fn(&str) -> Option<&'a str>) -> Value {
        let nodes: Vec<Value> = self
            .nodes
            .values()
            .map(|node| {
                let text = source(&node.path).map(|text| match (node.kind.as_str(), node.span) {
                    ("file" | "t-file", _) | (_, None) => text.to_owned(),
                    (_, Some(span)) => lines_of(text, span),
                });
                codefuse_node(node, text.unwrap_or_default())
            })
            .collect();
        let known = [
            "contains",
            "imports",
            "extends",
            "implements",
            "calls",
            "references",
        ];
        let edges = self
            .edges
            .iter()
            .filter(|(_, _, kind)| known.contains(&kind.as_str()));
        let edges: Vec<Value> = edges
            .map(|(source, target, kind)| {
                serde_json::json!({"edgeType": kind, "source": source, "target": target})
            })
            .collect();
        serde_json::json!({"nodes": nodes, "edges": edges})
    }
}

fn codefuse_node(node: &ListedNode, text: String) -> Value {
    let id = &node.id;
    let (start, end) = node.span.map_or((0, 0), |span| (span.start, span.end));
    match node.kind.as_str() {
        "repo" => {
            serde_json::json!({"id": id, "nodeType": "Repo", "repoName": node.name, "groupName": ""})
        }
        "pkg" => {
            serde_json::json!({"id": id, "nodeType": "Package", "name": node.path.replace('/', ".")})
        }
        "file" | "t-file" => {
            serde_json::json!({"id": id, "nodeType": "File", "fileName": node.name,
            "filePath": node.path, "text": text, "clean_text": text})
        }
        "class" => serde_json::json!({"id": id, "nodeType": "Class", "className": node.name,
            "classType": "", "comment": node.documentation, "text": text, "startLoc": start, "endLoc": end,
            "col": 0, "clean_text": text}),
        "function" => serde_json::json!({"id": id, "nodeType": "Function", "name": node.name,
            "header": node.signature, "comment": node.documentation, "text": text, "startLoc": start,
            "endLoc": end}),
        _ => {
            serde_json::json!({"id": id, "nodeType": "Attribute", "name": node.name, "attributeType": "",
            "comment": node.documentation, "text": text, "loc": start})
        }
    }
}

fn lines_of(text: &str, span: Span) -> String {
    let first = span.start.max(1) as usize - 1;
    let count = (span.end as usize).saturating_sub(first);
    text.split_inclusive('\n').skip(first).take(count).collect()
}

/// Other names that kinds have.
fn known_kind(kind: &str) -> String {
    let lower = kind.to_lowercase();
    let known = match lower.as_str() {
        "func" | "method" | "lambda" => "function",
        "tfile" | "testfile" => "t-file",
        "package" => "pkg",
        "field" => NodeKind::Attribute.name(),
        "textfile" => "file",
        other => other,
    };
    known.to_owned()
}

fn take_text(data: &mut Map<String, Value>, names: &[&str]) -> Option<String> {
    let name = names
        .iter()
        .find(|name| data.get(**name).and_then(text).is_some())?;
    data.remove(*name).as_ref().and_then(text)
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number(data: &Map<String, Value>, names: &[&str]) -> Option<u32> {
    let value = names.iter().find_map(|name| data.get(*name)?.as_u64())?;
    u32::try_from(value).ok()
}
