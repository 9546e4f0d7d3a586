//! `etude graph`: the code graph of a repository, for people and for other programs.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use code::graph::{Contents, EdgeKind, Graph, Index, ListedGraph, NodeKind, NodeRef, Query};
use ignore::WalkBuilder;
use serde_json::{Value, json};

use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::Screen,
};

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(subcommand)]
    command: GraphCommand,
}

#[derive(Debug, Subcommand)]
enum GraphCommand {
    /// Build the graph, say what is in it, and write it to a file
    Build {
        /// A folder
        path: PathBuf,
        /// Write the graph here
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// What is written: lines of nodes and edges, one JSON object, CodeFuse's JSON with sources, or DOT
        #[arg(long, value_enum, default_value = "jsonl")]
        format: Format,
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Find classes, functions, attributes and files by words
    Query {
        /// A folder
        path: PathBuf,
        /// Words, and any of symbol:NAME path:PART +MUST -NOT "a phrase"
        #[arg(required = true, allow_hyphen_values = true)]
        query: Vec<String>,
        /// Nodes to print
        #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
        limit: usize,
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Show a node with what it contains, uses and is used by; the whole repository without one
    Show {
        /// A folder
        path: PathBuf,
        /// The id of a node, such as func:package/module.py:Class.method:12, where the line may be left
        /// out; or a file's path
        node: Option<String>,
        /// Levels of what is contained
        #[arg(long, value_name = "N", default_value_t = 2)]
        depth: usize,
        /// Print the node and its neighbours as one JSON object
        #[arg(long, conflicts_with = "dot")]
        json: bool,
        /// Print the node and its neighbours as a graph in DOT
        #[arg(long)]
        dot: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Jsonl,
    Json,
    Codefuse,
    Dot,
}

/// Folders that hold no sources of the repository's own.
const SKIPPED: [&str; 8] = [
    "node_modules",
    "__pycache__",
    "venv",
    ".venv",
    "build",
    "dist",
    ".tox",
    "site-packages",
];

pub(crate) fn run(args: &GraphArgs, screen: Screen) -> Outcome<()> {
    match &args.command {
        GraphCommand::Build {
            path,
            out,
            format,
            json,
        } => build(path, out.as_deref(), *format, *json, screen),
        GraphCommand::Query {
            path,
            query,
            limit,
            json,
        } => find(path, &query.join(" "), *limit, *json),
        GraphCommand::Show {
            path,
            node,
            depth,
            json,
            dot,
        } => show(path, node.as_deref(), *depth, *json, *dot),
    }
}

/// The sources of a repository: what git would look at, without what tools have put there.
fn read(root: &Path) -> Outcome<Contents> {
    if !root.is_dir() {
        return Err(Failure::Asked(anyhow!("{} is no folder", root.display())));
    }
    let mut contents = Contents::new();
    let walk = WalkBuilder::new(root)
        .hidden(true)
        .filter_entry(|entry| {
            let name = entry.file_name().to_str().unwrap_or_default();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0 || !(is_folder && SKIPPED.contains(&name))
        })
        .build();
    for entry in walk {
        let entry = entry.asked()?;
        let is_source = entry.file_type().is_some_and(|kind| kind.is_file())
            && entry
                .path()
                .extension()
                .is_some_and(|it| it == "py" || it == "pyi");
        let Some(name) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) else {
            continue;
        };
        if is_source {
            let content = fs::read(entry.path())
                .with_context(|| format!("{}", entry.path().display()))
                .failed()?;
            contents.insert(name.to_owned(), content);
        }
    }
    if contents.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "{} holds no Python files that git would look at",
            root.display()
        )));
    }
    Ok(contents)
}

/// The graph of a folder as lines of nodes and edges.
pub(crate) fn jsonl(root: &Path) -> Outcome<String> {
    Ok(ListedGraph::of(&graph_of(&read(root)?)).to_jsonl())
}

fn graph_of(contents: &Contents) -> Graph {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Graph::build(contents, threads)
}

fn build(
    path: &Path,
    out: Option<&Path>,
    format: Format,
    json: bool,
    screen: Screen,
) -> Outcome<()> {
    let started = Instant::now();
    let contents = read(path)?;
    let graph = graph_of(&contents);
    let seconds = started.elapsed().as_secs_f64();
    let count = |kind: NodeKind| {
        graph
            .nodes()
            .filter(|node| graph.kind(*node) == kind)
            .count()
    };
    let kinds = [
        NodeKind::Package,
        NodeKind::File,
        NodeKind::TestFile,
        NodeKind::Class,
        NodeKind::Function,
        NodeKind::Attribute,
    ];
    let nodes = kinds.map(|kind| (kind.name(), count(kind)));
    let edges = EdgeKind::ALL.map(|kind| {
        let count = graph.edges().filter(|edge| edge.kind == kind).count();
        (kind.name(), count)
    });
    let faults: Vec<(&str, &str)> = graph
        .files()
        .filter_map(|(path, facts)| Some((path, facts.fault.as_deref()?)))
        .collect();
    for (path, fault) in &faults {
        screen.say(format!("{path}: {fault}"));
    }
    if let Some(out) = out {
        fs::write(out, written(&graph, &contents, format))
            .with_context(|| format!("{}", out.display()))
            .failed()?;
    }
    if json {
        let listed = |counts: &[(&str, usize)]| -> Value {
            counts
                .iter()
                .map(|(name, count)| ((*name).to_owned(), json!(count)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        return print_json(&json!({
            "path": path, "files": contents.len(), "nodes": listed(&nodes), "edges": listed(&edges),
            "faults": faults, "out": out, "seconds": seconds,
        }));
    }
    let mut text = String::new();
    for (name, count) in nodes.iter().chain(&edges) {
        let _ = writeln!(text, "{name:<12} {count:>8}");
    }
    let _ = writeln!(text, "{} files in {seconds:.2} s", contents.len());
    print_text(&text)
}

fn written(graph: &Graph, contents: &Contents, format: Format) -> String {
    let listed = ListedGraph::of(graph);
    let source = |path: &str| std::str::from_utf8(contents.get(path)?).ok();
    match format {
        Format::Jsonl => listed.to_jsonl(),
        Format::Json => listed.to_json().to_string() + "\n",
        Format::Codefuse => listed.to_codefuse(source).to_string() + "\n",
        Format::Dot => {
            let edges = listed.edges.iter();
            dot(edges
                .map(|(source, target, kind)| (source.as_str(), target.as_str(), kind.as_str())))
        }
    }
}

fn find(path: &Path, text: &str, limit: usize, json: bool) -> Outcome<()> {
    let graph = graph_of(&read(path)?);
    let query = Query::parse(text);
    if query.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "`{text}` says nothing to look for: stop words alone, or nothing at all"
        )));
    }
    let (hits, relaxed) = Index::new(&graph).search(&query, limit);
    if json {
        let hits: Vec<Value> = hits
            .iter()
            .map(|hit| {
                let node = graph.node(hit.node);
                json!({"node": node, "score": hit.score, "reasons": hit.reasons})
            })
            .collect();
        return print_json(&json!({"query": text, "relaxed": relaxed, "hits": hits}));
    }
    let mut out = String::new();
    if hits.is_empty() {
        out += "nothing found\n";
    } else if relaxed {
        out += "nothing is all of that; what comes nearest:\n";
    }
    for hit in hits {
        let _ = writeln!(out, "{:>6.2}  {}", hit.score, described(&graph, hit.node));
    }
    print_text(&out)
}

/// A node in one line.
fn described(graph: &Graph, node: NodeRef) -> String {
    let found = graph.node(node);
    let lines = match (found.kind, found.span) {
        (kind, Some(span)) if !kind.is_file() => format!("  [{}-{}]", span.start, span.end),
        _ => String::new(),
    };
    let documentation = match found.documentation.as_str() {
        "" => String::new(),
        text => format!("  {}", text.chars().take(80).collect::<String>()),
    };
    format!("{}{lines}{documentation}", found.id)
}

fn show(path: &Path, node: Option<&str>, depth: usize, json: bool, as_dot: bool) -> Outcome<()> {
    let graph = graph_of(&read(path)?);
    let found = match node {
        None => NodeRef::Repository,
        Some(id) => {
            let by_path = || graph.file(id).map(NodeRef::File);
            let unknown = || {
                anyhow!(
                    "no node has the id `{id}`; find ids with: etude graph query {} WORDS",
                    path.display()
                )
            };
            graph
                .find(id)
                .or_else(by_path)
                .with_context(unknown)
                .asked()?
        }
    };
    let (outgoing, incoming) = (graph.outgoing(found), graph.incoming(found));
    if json {
        let id = |node| graph.node(node).id;
        let edges = outgoing.iter().chain(&incoming).map(|edge| {
            json!({"src": id(edge.source), "dst": id(edge.target), "etype": edge.kind.name()})
        });
        let edges: Vec<Value> = edges.collect();
        return print_json(&json!({"node": graph.node(found), "edges": edges}));
    }
    if as_dot {
        let edges: Vec<(String, String, EdgeKind)> = outgoing
            .iter()
            .chain(&incoming)
            .map(|edge| {
                (
                    graph.node(edge.source).id,
                    graph.node(edge.target).id,
                    edge.kind,
                )
            })
            .collect();
        let edges = edges.iter();
        return print_text(&dot(edges.map(|(source, target, kind)| {
            (source.as_str(), target.as_str(), kind.name())
        })));
    }
    let mut text = String::new();
    tree(&graph, found, 0, depth, &mut text);
    for kind in EdgeKind::ALL {
        if kind == EdgeKind::Contains {
            continue;
        }
        for edge in outgoing.iter().filter(|edge| edge.kind == kind) {
            let _ = writeln!(text, "{:<14} {}", kind.name(), graph.node(edge.target).id);
        }
        for edge in incoming.iter().filter(|edge| edge.kind == kind) {
            let _ = writeln!(text, "{:<14} {}", passive(kind), graph.node(edge.source).id);
        }
    }
    print_text(&text)
}

fn tree(graph: &Graph, node: NodeRef, level: usize, depth: usize, text: &mut String) {
    let indent = "  ".repeat(level);
    let _ = writeln!(text, "{indent}{}", described(graph, node));
    if level < depth {
        for child in graph.children(node) {
            tree(graph, child, level + 1, depth, text);
        }
    }
}

fn passive(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Contains => "contained in",
        EdgeKind::Imports => "imported by",
        EdgeKind::Extends => "extended by",
        EdgeKind::Calls => "called by",
        EdgeKind::References => "referenced by",
        EdgeKind::Overrides => "overridden by",
        EdgeKind::Tests => "tested by",
    }
}

fn dot<'a>(edges: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = "digraph code {\n  rankdir = LR;\n  node [shape = box];\n".to_owned();
    for (source, target, kind) in edges {
        let _ = writeln!(
            text,
            "  {} -> {} [label = {kind}];",
            quoted(source),
            quoted(target)
        );
    }
    text + "}\n"
}
