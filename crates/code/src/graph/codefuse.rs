//! The code graph JSON of CodeFuse-CGM: spec of the repair study, section 10.1.

use std::{borrow::Cow, collections::BTreeMap};

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::Value;

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
    /// The JSON text of CodeFuse's graphs, with the source text of each node where `source` has its file.
    /// They have no edges `overrides` and `tests`: those are left out. [`ListedGraph::from_json`] reads
    /// them.
    ///
    /// # Errors
    /// Those of writing JSON: there are none.
    pub fn to_codefuse<'a>(
        &'a self,
        source: impl Fn(&str) -> Option<&'a str>,
    ) -> serde_json::Result<String> {
        let mut within: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for (parent, child, kind) in &self.edges {
            if kind != "contains" {
                continue;
            }
            let child = self.nodes.get(child);
            let child = child.filter(|it| matches!(it.kind.as_str(), "class" | "function"));
            if let Some(span) = child.and_then(|child| child.span) {
                within.entry(parent).or_default().push(span);
            }
        }
        let mut sources: FxHashMap<&str, Option<Lines<'a>>> = FxHashMap::default();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for node in self.nodes.values() {
            let lines = sources
                .entry(&node.path)
                .or_insert_with(|| source(&node.path).map(Lines::of));
            let children = within.get(node.id.as_str()).map_or(&[][..], Vec::as_slice);
            nodes.push(written(node, lines.as_ref(), children));
        }
        let edges = self.edges.iter();
        let edges = edges.filter(|(_, _, kind)| EDGES.contains(&kind.as_str()));
        let edges = edges.map(|(source, target, kind)| Edge {
            kind,
            source,
            target,
        });
        serde_json::to_string(&Codefuse {
            nodes,
            edges: edges.collect(),
        })
    }
}

#[derive(Serialize)]
struct Codefuse<'a> {
    nodes: Vec<Node<'a>>,
    edges: Vec<Edge<'a>>,
}

#[derive(Serialize)]
struct Edge<'a> {
    #[serde(rename = "edgeType")]
    kind: &'a str,
    source: &'a str,
    target: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "nodeType")]
enum Node<'a> {
    #[serde(rename_all = "camelCase")]
    Repo {
        id: &'a str,
        repo_name: &'a str,
        group_name: &'a str,
    },
    Package {
        id: &'a str,
        name: String,
    },
    File {
        id: &'a str,
        #[serde(rename = "fileName")]
        name: &'a str,
        #[serde(rename = "filePath")]
        path: &'a str,
        text: &'a str,
        clean_text: Cow<'a, str>,
    },
    Class {
        id: &'a str,
        #[serde(rename = "className")]
        name: &'a str,
        #[serde(rename = "classType")]
        class_type: &'a str,
        comment: &'a str,
        text: &'a str,
        #[serde(rename = "startLoc")]
        start: u32,
        #[serde(rename = "endLoc")]
        end: u32,
        col: u32,
        clean_text: Cow<'a, str>,
    },
    Function {
        id: &'a str,
        name: &'a str,
        header: &'a str,
        comment: &'a str,
        text: &'a str,
        loc: u32,
    },
    Attribute {
        id: &'a str,
        name: &'a str,
        #[serde(rename = "attributeType")]
        attribute_type: &'a str,
        comment: &'a str,
        text: &'a str,
        loc: u32,
    },
}

/// `children` are what a node's text is without in its clean text. Without sources a node has what was read with it.
fn written<'a>(node: &'a ListedNode, lines: Option<&Lines<'a>>, children: &[Span]) -> Node<'a> {
    let kept = |field: &str| node.rest.get(field).and_then(Value::as_str);
    let is_file = matches!(node.kind.as_str(), "file" | "t-file");
    let span = node.span.filter(|_| !is_file);
    let text = match (lines, span) {
        (Some(lines), Some(span)) => lines.within(span),
        (Some(lines), None) => lines.text,
        (None, _) => kept("text").unwrap_or_default(),
    };
    let clean_text = || match kept("clean_text").filter(|_| lines.is_none()) {
        Some(kept) => Cow::Borrowed(kept),
        None => without(text, span.map_or(1, |span| span.start), children),
    };
    let (id, name, comment) = (&*node.id, &*node.name, &*node.documentation);
    let (start, end) = node.span.map_or((0, 0), |span| (span.start, span.end));
    match node.kind.as_str() {
        "repo" => Node::Repo {
            id,
            repo_name: name,
            group_name: "",
        },
        "pkg" => Node::Package {
            id,
            name: node.path.replace('/', "."),
        },
        "file" | "t-file" => Node::File {
            id,
            name,
            path: &node.path,
            text,
            clean_text: clean_text(),
        },
        "class" => Node::Class {
            id,
            name,
            class_type: "",
            comment,
            text,
            start,
            end,
            col: 0,
            clean_text: clean_text(),
        },
        "function" => Node::Function {
            id,
            name,
            header: &node.signature,
            comment,
            text,
            loc: start,
        },
        _ => Node::Attribute {
            id,
            name,
            attribute_type: "",
            comment,
            text,
            loc: start,
        },
    }
}

/// A text and where its lines begin.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes());
        Self {
            text,
            starts: std::iter::once(0).chain(ends.map(|end| end + 1)).collect(),
        }
    }

    /// The lines of a span, whose first has the number 1; those that there are.
    fn within(&self, span: Span) -> &'a str {
        let start = |line: usize| self.starts.get(line).copied().unwrap_or(self.text.len());
        let first = span.start.max(1) as usize - 1;
        let end = (span.end as usize).max(first);
        &self.text[start(first)..start(end)]
    }
}

/// The lines of `text`, whose first line has the number `first`, that lie in none of the spans.
fn without<'a>(text: &'a str, first: u32, spans: &[Span]) -> Cow<'a, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut spans: Vec<Span> = spans.to_vec();
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut spans = spans.into_iter().peekable();
    let mut kept = String::new();
    // No line up to here is kept, whichever span it is in.
    let mut covered = 0;
    for (line, text) in (first..).zip(text.split_inclusive('\n')) {
        while let Some(span) = spans.next_if(|span| span.start <= line) {
            covered = covered.max(span.end);
        }
        if line > covered {
            kept.push_str(text);
        }
    }
    Cow::Owned(kept)
}
