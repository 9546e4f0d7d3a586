//! Graphs as lists of nodes and edges: what is written to files, read from them, and grown by an agent.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Graph, NodeKind, NodeRef, Span, is_test_path};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degree: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Some of its source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub snippet_lines: Vec<String>,
    /// Whether an agent keeps it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub memorized: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memorized_at_step: Option<u64>,
    #[serde(rename = "gp_added_step", skip_serializing_if = "Option::is_none")]
    pub added_step: Option<u64>,
    #[serde(
        rename = "gp_last_touched_step",
        skip_serializing_if = "Option::is_none"
    )]
    pub last_touched_step: Option<u64>,
    /// How an agent came by it: `recalled`, `found`, `explored`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What cannot be read as a graph, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}{}: {detail}", if field.is_empty() { String::new() } else { format!(", `{field}`") })]
pub struct ListedError {
    /// The first is 1.
    pub line: usize,
    /// Such as `nodes[3].span`; empty where it is no matter of one field.
    pub field: String,
    pub detail: String,
}

/// In what form a graph was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedFormat {
    /// Lines: Graph Planner's `repo_graph.jsonl`.
    Jsonl,
    /// One object of nodes and edges: a subgraph file.
    Json,
    /// CodeFuse-CGM's code graph.
    Codefuse,
}

impl ListedFormat {
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "Graph Planner's lines of nodes and edges",
            Self::Json => "an object of nodes and edges",
            Self::Codefuse => "CodeFuse's code graph",
        }
    }
}

/// What one JSON object holds.
pub(super) struct ReadJson {
    pub(super) graph: ListedGraph,
    /// The ids of the nodes as `node_ids` has them, or else in the order of the file.
    pub(super) order: Vec<String>,
    format: ListedFormat,
}

/// A field, and what is wrong with it.
type Fault = (&'static str, String);

impl ListedGraph {
    /// Everything that a graph has.
    pub fn of(graph: &Graph) -> Self {
        let mut nodes: Vec<(NodeRef, ListedNode)> = graph
            .nodes()
            .map(|node| (node, ListedNode::from(graph.node(node))))
            .collect();
        nodes.sort_by(|(_, one), (_, two)| one.id.cmp(&two.id));
        let ranks: FxHashMap<NodeRef, usize> = (0..)
            .zip(&nodes)
            .map(|(rank, (node, _))| (*node, rank))
            .collect();
        let ends = graph.edges().filter_map(|edge| {
            let (source, target) = (ranks.get(&edge.source)?, ranks.get(&edge.target)?);
            Some((*source, *target, edge.kind.name()))
        });
        // Numbers are put in order many times faster than the texts that they stand for.
        let mut ends: Vec<(usize, usize, &str)> = ends.collect();
        ends.sort_unstable();
        let id = |rank: usize| nodes[rank].1.id.clone();
        let edges = ends
            .into_iter()
            .map(|(source, target, kind)| (id(source), id(target), kind.to_owned()));
        let edges = edges.collect();
        let nodes = nodes.into_iter().map(|(_, node)| (node.id.clone(), node));
        Self {
            nodes: nodes.collect(),
            edges,
        }
    }

    /// Removes a node with the edges at it.
    pub fn remove(&mut self, id: &str) {
        self.nodes.remove(id);
        self.edges
            .retain(|(source, target, _)| source != id && target != id);
    }

    /// Reads a graph in any of the forms that are read, told by what is in the text.
    ///
    /// # Errors
    /// Those of the form that it has. What begins with a whole object on a line and is not that object alone,
    /// or calls itself a node or an edge, is read as lines.
    pub fn from_text(text: &str) -> Result<(Self, ListedFormat), ListedError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let first: Option<Map<String, Value>> = serde_json::from_str(first).ok();
        let is_line =
            |object: &Map<String, Value>| object.contains_key("type") || lines.next().is_some();
        if first.as_ref().is_some_and(is_line) {
            return Ok((Self::from_jsonl(text)?, ListedFormat::Jsonl));
        }
        let read = Self::read_json(text)?;
        Ok((read.graph, read.format))
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
    /// The first line that is no JSON object, or has a field that is missing or of a wrong type.
    pub fn from_jsonl(text: &str) -> Result<Self, ListedError> {
        let mut graph = Self::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let fault = |field: &str, detail: String| ListedError {
                line: number + 1,
                field: field.to_owned(),
                detail,
            };
            let mut value: Map<String, Value> =
                serde_json::from_str(line).map_err(|error| fault("", error.to_string()))?;
            // Flat edges may have a `type` of their own, which is then told apart by their ends.
            let kind = value.remove("type");
            let (data, prefix) = match value.remove("data") {
                Some(Value::Object(data)) => (data, "data."),
                Some(other) => return Err(fault("data", wrong("an object", &other))),
                None => (value, ""),
            };
            let within = |(field, detail): Fault| fault(&format!("{prefix}{field}"), detail);
            match kind.as_ref().and_then(Value::as_str) {
                Some("node") => drop(graph.add_node(data).map_err(within)?),
                Some("edge") => graph.add_edge(&data).map_err(within)?,
                _ => {
                    let found = kind.as_ref().unwrap_or(&Value::Null);
                    return Err(fault("type", wrong("\"node\" or \"edge\"", found)));
                }
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
    /// What is no graph, or the first node or edge with a field that is missing or of a wrong type.
    pub fn from_json(text: &str) -> Result<Self, ListedError> {
        Ok(Self::read_json(text)?.graph)
    }

    pub(super) fn read_json(text: &str) -> Result<ReadJson, ListedError> {
        let fault = |line: usize, field: String, detail: String| ListedError {
            line,
            field,
            detail,
        };
        let mut value: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| fault(error.line(), String::new(), error.to_string()))?;
        let mut keys: Vec<String> = Vec::new();
        let nodes: Vec<Value> = match value.remove("nodes") {
            Some(Value::Array(nodes)) => nodes,
            Some(Value::Object(nodes)) => nodes
                .into_iter()
                .map(|(id, mut node)| {
                    keys.push(id.clone());
                    if let Value::Object(node) = &mut node {
                        node.entry("id").or_insert(id.into());
                    }
                    node
                })
                .collect(),
            other => {
                let detail = wrong("a list", &other.unwrap_or(Value::Null));
                return Err(fault(1, "nodes".to_owned(), detail));
            }
        };
        let list = |field: &str, value: Option<Value>| match value {
            Some(Value::Array(list)) => Ok(list),
            None => Ok(Vec::new()),
            Some(other) => Err(fault(1, field.to_owned(), wrong("a list", &other))),
        };
        let edges = list("edges", value.remove("edges"))?;
        let ids = list("node_ids", value.remove("node_ids"))?;
        let mut graph = Self::default();
        let mut order = Vec::new();
        let mut format = ListedFormat::Json;
        for (index, node) in nodes.into_iter().enumerate() {
            let at = |(field, detail): Fault| {
                let dot = if field.is_empty() { "" } else { "." };
                let (element, place) = match keys.get(index) {
                    Some(key) => (Element::Key(key), format!("{key:?}")),
                    None => (Element::Index(index), index.to_string()),
                };
                let line = line_of(text, "nodes", element);
                fault(line, format!("nodes[{place}]{dot}{field}"), detail)
            };
            match node {
                Value::Object(node) => {
                    if node.contains_key("nodeType") {
                        format = ListedFormat::Codefuse;
                    }
                    order.push(graph.add_node(node).map_err(at)?);
                }
                other => return Err(at(("", wrong("an object", &other)))),
            }
        }
        for (index, edge) in edges.into_iter().enumerate() {
            let at = |(field, detail): Fault| {
                let dot = if field.is_empty() { "" } else { "." };
                let line = line_of(text, "edges", Element::Index(index));
                fault(line, format!("edges[{index}]{dot}{field}"), detail)
            };
            match edge {
                Value::Object(edge) => graph.add_edge(&edge).map_err(at)?,
                other => return Err(at(("", wrong("an object", &other)))),
            }
        }
        for (index, id) in ids.iter().enumerate() {
            let line = || line_of(text, "node_ids", Element::Index(index));
            let id = id
                .as_str()
                .ok_or_else(|| fault(line(), format!("node_ids[{index}]"), wrong("a text", id)))?;
            if index == 0 {
                order.clear();
            }
            order.push(id.to_owned());
        }
        graph.paths_by_containment();
        Ok(ReadJson {
            graph,
            order,
            format,
        })
    }

    /// CodeFuse's nodes do not say what file they are in: what contains them does.
    fn paths_by_containment(&mut self) {
        if self
            .nodes
            .values()
            .all(|node| !node.path.is_empty() || !is_definition(&node.kind))
        {
            return;
        }
        let contains = self.edges.iter().filter(|(_, _, kind)| kind == "contains");
        let parents: BTreeMap<String, String> = contains
            .map(|(source, target, _)| (target.clone(), source.clone()))
            .collect();
        let without: Vec<String> = self
            .nodes
            .values()
            .filter(|node| node.path.is_empty() && is_definition(&node.kind))
            .map(|node| node.id.clone())
            .collect();
        for id in without {
            let mut at = id.as_str();
            // A cycle of containers ends as well.
            for _ in 0..64 {
                let Some(parent) = parents.get(at) else { break };
                at = parent;
                let path = self.nodes.get(at).map_or("", |node| node.path.as_str());
                if !path.is_empty() {
                    let path = path.to_owned();
                    if let Some(node) = self.nodes.get_mut(&id) {
                        node.path = path;
                    }
                    break;
                }
            }
        }
    }

    /// Adds a node; its id. One that says the same again is passed over.
    fn add_node(&mut self, mut data: Map<String, Value>) -> Result<String, Fault> {
        let mut fields = Fields(&mut data);
        let id = fields
            .text(&["id", "nodeId"])?
            .ok_or(("id", "is missing".to_owned()))?;
        let codefuse = fields.text(&["nodeType"])?;
        let kind = match &codefuse {
            Some(kind) => kind.clone(),
            None => fields.text(&["kind"])?.unwrap_or_default(),
        };
        let mut kind = known_kind(&kind);
        let is_package = codefuse.is_some() && kind == "pkg";
        let mut path = fields.text(&["path", "filePath"])?.unwrap_or_default();
        let name = fields.text(&["name", "className", "fileName", "repoName"])?;
        if is_package && let Some(name) = &name {
            path = name.replace('.', "/");
        }
        if kind == "file" && is_test_path(&path) {
            "t-file".clone_into(&mut kind);
        }
        let last = path.rsplit('/').next().unwrap_or_default();
        let name = match name {
            Some(name) if !is_package => name,
            _ => last.to_owned(),
        };
        let node = ListedNode {
            span: fields.span(codefuse.is_some())?,
            signature: fields.text(&["sig", "header"])?.unwrap_or_default(),
            documentation: fields.text(&["doc", "comment"])?.unwrap_or_default(),
            degree: fields.number("degree")?,
            score: fields.score()?,
            summary: fields.text(&["summary"])?.unwrap_or_default(),
            snippet_lines: fields.texts("snippet_lines")?,
            memorized: fields.flag("memorized")?,
            memorized_at_step: fields.number("memorized_at_step")?.map(u64::from),
            added_step: fields.number("gp_added_step")?.map(u64::from),
            last_touched_step: fields.number("gp_last_touched_step")?.map(u64::from),
            status: fields.text(&["status"])?.unwrap_or_default(),
            tags: fields.texts("tags")?,
            id: id.clone(),
            kind,
            path,
            name,
            rest: data,
        };
        if self.nodes.get(&id).is_some_and(|known| *known != node) {
            return Err(("id", format!("{id:?} is the id of another node before it")));
        }
        self.nodes.insert(id.clone(), node);
        Ok(id)
    }

    fn add_edge(&mut self, data: &Map<String, Value>) -> Result<(), Fault> {
        let end = |field: &'static str, names: &[&'static str]| {
            let name = names.iter().find(|name| data.contains_key(**name));
            let Some(name) = name else {
                return Err((field, "is missing".to_owned()));
            };
            text(&data[*name]).ok_or_else(|| (*name, wrong("a text", &data[*name])))
        };
        let source = end("src", &["src", "source", "u", "from"])?;
        let target = end("dst", &["dst", "target", "v", "to"])?;
        let kinds = ["etype", "kind", "edgeType", "type"];
        let kind = match kinds.iter().any(|name| data.contains_key(*name)) {
            true => end("etype", &kinds)?.to_lowercase(),
            false => String::new(),
        };
        self.edges.insert((source, target, kind));
        Ok(())
    }
}

/// The fields of a node, taken one by one.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    /// The first of these that is there and not null.
    fn take(&mut self, names: &[&'static str]) -> Option<(&'static str, Value)> {
        let name = names
            .iter()
            .find(|name| self.0.get(**name).is_some_and(|value| !value.is_null()))?;
        Some((name, self.0.remove(*name)?))
    }

    fn text(&mut self, names: &[&'static str]) -> Result<Option<String>, Fault> {
        let Some((name, value)) = self.take(names) else {
            return Ok(None);
        };
        match text(&value) {
            Some(text) => Ok(Some(text)),
            None => Err((name, wrong("a text", &value))),
        }
    }

    fn texts(&mut self, name: &'static str) -> Result<Vec<String>, Fault> {
        let Some((_, value)) = self.take(&[name]) else {
            return Ok(Vec::new());
        };
        let list = value.as_array().map(|list| list.iter().map(text));
        list.and_then(Iterator::collect)
            .ok_or_else(|| (name, wrong("a list of texts", &value)))
    }

    fn number(&mut self, name: &'static str) -> Result<Option<u32>, Fault> {
        let Some((_, value)) = self.take(&[name]) else {
            return Ok(None);
        };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let fault = || (name, wrong("a number that is not negative", &value));
        number.map(Some).ok_or_else(fault)
    }

    fn score(&mut self) -> Result<Option<f64>, Fault> {
        let Some((name, value)) = self.take(&["score"]) else {
            return Ok(None);
        };
        let fault = || (name, wrong("a number", &value));
        value.as_f64().map(Some).ok_or_else(fault)
    }

    fn flag(&mut self, name: &'static str) -> Result<bool, Fault> {
        match self.take(&[name]) {
            None => Ok(false),
            Some((_, Value::Bool(flag))) => Ok(flag),
            Some((_, value)) => Err((name, wrong("true or false", &value))),
        }
    }

    fn span(&mut self, is_codefuse: bool) -> Result<Option<Span>, Fault> {
        if let Some((name, value)) = self.take(&["span"]) {
            let fault = || (name, wrong("an object with `start` and `end`", &value));
            let span: Span = serde_json::from_value(value.clone()).map_err(|_| fault())?;
            if span.start > span.end {
                return Err((name, "`start` lies after `end`".to_owned()));
            }
            return Ok(Some(span));
        }
        if !is_codefuse {
            return Ok(None);
        }
        let start = match self.number("startLoc")? {
            Some(start) => Some(start),
            None => self.number("loc")?,
        };
        let end = self.number("endLoc")?;
        let lines = self.0.get("text").and_then(Value::as_str);
        let lines = lines.map_or(1, |text| text.lines().count().max(1)) as u32;
        Ok(start.filter(|start| *start > 0).map(|start| Span {
            start,
            end: end.unwrap_or(start.saturating_add(lines - 1)).max(start),
        }))
    }
}

impl From<super::Node> for ListedNode {
    fn from(node: super::Node) -> Self {
        Self {
            id: node.id,
            kind: node.kind.name().to_owned(),
            path: node.path,
            name: node.name,
            span: node.span,
            signature: node.signature,
            documentation: node.documentation,
            ..Self::default()
        }
    }
}

fn is_definition(kind: &str) -> bool {
    matches!(kind, "class" | "function" | "attribute")
}

fn wrong(wanted: &str, found: &Value) -> String {
    let found = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("is {found}, not {wanted}")
}

/// An element of a list, or of an object that is read as one.
#[derive(Clone, Copy)]
enum Element<'a> {
    Index(usize),
    Key(&'a str),
}

/// The line that an element of a top-level list or object begins in. `text` is JSON.
fn line_of(text: &str, list: &str, wanted: Element) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut index) = (0, 0usize, 0usize);
    let mut key = "";
    let mut begins = false;
    while at < bytes.len() {
        let mut word = None;
        match bytes[at] {
            b'"' => {
                let start = at + 1;
                at = start;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                word = text.get(start..at);
                if depth == 1 {
                    key = word.unwrap_or_default();
                }
            }
            b'[' | b'{' => {
                depth += 1;
                if depth == 2 {
                    (index, begins) = (0, true);
                    at += 1;
                    continue;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 2 => {
                (index, begins) = (index + 1, true);
                at += 1;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            _ => {}
        }
        let is_wanted = match wanted {
            Element::Index(wanted) => index == wanted,
            Element::Key(wanted) => word == Some(wanted),
        };
        if begins && key == list && is_wanted {
            break;
        }
        begins = false;
        at += 1;
    }
    let before = &bytes[..at.min(bytes.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
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

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
