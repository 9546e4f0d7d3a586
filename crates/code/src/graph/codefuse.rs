//! The code graph JSON of CodeFuse-CGM: spec of the repair study, section 10.1.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ListedGraph, ListedNode, Span};

/// The kinds of edges that there are in these graphs.
const EDGES: [&str; 6] = [
    "contains",
    "imports",
    "extends",
    "implements",
    "calls",
    "references",
];

impl ListedGraph {
    /// As CodeFuse's graphs are written, with the source text of each node where `source` has its file.
    /// They have no edges `overrides` and `tests`: those are left out. [`ListedGraph::from_json`] reads
    /// them.
    pub fn to_codefuse<'a>(&self, source: impl Fn(&str) -> Option<&'a str>) -> Value {
        let mut within: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for (parent, child, kind) in &self.edges {
            let child = self.nodes.get(child);
            let child = child.filter(|it| matches!(it.kind.as_str(), "class" | "function"));
            if kind == "contains"
                && let Some(span) = child.and_then(|child| child.span)
            {
                within.entry(parent).or_default().push(span);
            }
        }
        let nodes = self.nodes.values().map(|node| {
            let kept = || Some(node.rest.get("text")?.as_str()?.to_owned());
            let first = node.span.map_or(1, |span| span.start);
            let text = match source(&node.path) {
                Some(text) => match (node.kind.as_str(), node.span) {
                    ("file" | "t-file", _) | (_, None) => Some(text.to_owned()),
                    (_, Some(span)) => Some(lines_of(text, span)),
                },
                None => kept(),
            };
            let text = text.unwrap_or_default();
            let children = within.get(node.id.as_str()).map_or(&[][..], Vec::as_slice);
            let first = if is_file(node) { 1 } else { first };
            let clean_text = match node.rest.get("clean_text").and_then(Value::as_str) {
                Some(kept) if source(&node.path).is_none() => kept.to_owned(),
                _ => without(&text, first, children),
            };
            written(node, &text, &clean_text)
        });
        let edges = self.edges.iter();
        let edges = edges.filter(|(_, _, kind)| EDGES.contains(&kind.as_str()));
        let edges = edges.map(
            |(source, target, kind)| json!({"edgeType": kind, "source": source, "target": target}),
        );
        json!({"nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>()})
    }
}

fn is_file(node: &ListedNode) -> bool {
    matches!(node.kind.as_str(), "file" | "t-file")
}

fn written(node: &ListedNode, text: &str, clean_text: &str) -> Value {
    let id = &node.id;
    let (start, end) = node.span.map_or((0, 0), |span| (span.start, span.end));
    let (name, comment) = (&node.name, &node.documentation);
    match node.kind.as_str() {
        "repo" => json!({"id": id, "nodeType": "Repo", "repoName": name, "groupName": ""}),
        "pkg" => json!({"id": id, "nodeType": "Package", "name": node.path.replace('/', ".")}),
        "file" | "t-file" => json!({"id": id, "nodeType": "File", "fileName": name,
            "filePath": node.path, "text": text, "clean_text": clean_text}),
        "class" => json!({"id": id, "nodeType": "Class", "className": name, "classType": "",
            "comment": comment, "text": text, "startLoc": start, "endLoc": end, "col": 0,
            "clean_text": clean_text}),
        "function" => json!({"id": id, "nodeType": "Function", "name": name,
            "header": node.signature, "comment": comment, "text": text, "loc": start}),
        _ => json!({"id": id, "nodeType": "Attribute", "name": name, "attributeType": "",
            "comment": comment, "text": text, "loc": start}),
    }
}

fn lines_of(text: &str, span: Span) -> String {
    let first = span.start.max(1) as usize - 1;
    let count = (span.end as usize).saturating_sub(first);
    text.split_inclusive('\n').skip(first).take(count).collect()
}

/// The lines of `text`, whose first line has the number `first`, that lie in none of the spans.
fn without(text: &str, first: u32, spans: &[Span]) -> String {
    let lines = (first..).zip(text.split_inclusive('\n'));
    let is_within = |line: u32| {
        spans
            .iter()
            .any(|span| (span.start..=span.end).contains(&line))
    };
    lines
        .filter(|(line, _)| !is_within(*line))
        .map(|(_, text)| text)
        .collect()
}
