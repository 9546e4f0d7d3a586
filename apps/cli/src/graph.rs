//! `etude graph`: the code graph of a repository, for people and for other programs.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use code::graph::{
    Edge, EdgeKind, Graph, Index, Language, ListedGraph, NodeKind, NodeRef, Query,
    files::GraphCache,
};
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
        /// What is written: lines of nodes and edges, one JSON object, CodeFuse's JSON with sources, DOT, or
        /// the compact binary form, which the other commands read as fast as files load
        /// [default: jsonl]. Without --out it goes to stdout, in place of the counts
        #[arg(long, value_enum)]
        format: Option<Format>,
        /// Keep built graphs in this folder, by repository and commit, and look into changed files only
        #[arg(long, value_name = "FOLDER")]
        cache: Option<PathBuf>,
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Find classes, functions, attributes and files by words
    Query {
        /// A folder, or a graph in the binary form
        path: PathBuf,
        /// Words, and any of symbol:NAME path:PART +MUST -NOT "a phrase"
        #[arg(required = true, allow_hyphen_values = true)]
        query: Vec<String>,
        /// Nodes to print
        #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// Keep built graphs in this folder, by repository and commit, and look into changed files only
        #[arg(long, value_name = "FOLDER")]
        cache: Option<PathBuf>,
        /// Print one JSON object on stdout
        #[arg(long)]
        json: bool,
    },
    /// Show a node with what it contains, uses and is used by; the whole repository without one
    Show {
        /// A folder, or a graph in the binary form
        path: PathBuf,
        /// The id of a node, such as func:package/module.py:Class.method:12, where the line may be left
        /// out; or a file's path
        node: Option<String>,
        /// Levels of what is contained
        #[arg(long, value_name = "N", default_value_t = 2)]
        depth: usize,
        /// Keep built graphs in this folder, by repository and commit, and look into changed files only
        #[arg(long, value_name = "FOLDER")]
        cache: Option<PathBuf>,
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
    Binary,
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
            cache,
            json,
        } => match (out, format) {
            (None, Some(_)) if *json => Err(Failure::Asked(anyhow!(
                "--format without --out writes the graph to stdout, where --json puts its counts: give --out FILE"
            ))),
            (None, Some(format)) => {
                let graph = known(path, cache.as_deref())?.0;
                print_bytes(&written(&graph, path, *format)?)
            }
            (Some(out), format) => {
                let out = (out.as_path(), format.unwrap_or(Format::Jsonl));
                build(path, Some(out), cache.as_deref(), *json, screen)
            }
            (None, None) => build(path, None, cache.as_deref(), *json, screen),
        },
        GraphCommand::Query {
            path,
            query,
            limit,
            cache,
            json,
        } => {
            let graph = known(path, cache.as_deref())?.0;
            find(&graph, &query.join(" "), *limit as usize, *json)
        }
        GraphCommand::Show {
            path,
            node,
            depth,
            cache,
            json,
            dot,
        } => {
            let graph = known(path, cache.as_deref())?.0;
            show((&graph, path), node.as_deref(), *depth, *json, *dot)
        }
    }
}

/// What `build` makes of the paths of a repository's sources: what git would look at, without what tools
/// have put there. They are found while it works.
fn with_paths<T>(
    root: &Path,
    build: impl FnOnce(&mut (dyn Iterator<Item = String> + Send)) -> Outcome<T>,
) -> Outcome<T> {
    if !root.is_dir() {
        return Err(Failure::Asked(anyhow!("{} is no folder", root.display())));
    }
    let (mut failed, mut is_empty) = (None, true);
    let walk = WalkBuilder::new(root)
        .hidden(true)
        .filter_entry(|entry| {
            let name = entry.file_name().to_str().unwrap_or_default();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0 || !(is_folder && SKIPPED.contains(&name))
        })
        .build();
    let entries = walk.map_while(|entry| entry.map_err(|error| failed = Some(error)).ok());
    let mut paths = entries.filter_map(|entry| {
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let name = entry.path().strip_prefix(root).ok()?.to_str()?;
        let is_source = is_file && Language::of(name) != Language::Other;
        is_empty &= !is_source;
        is_source.then(|| name.to_owned())
    });
    let built = build(&mut paths);
    drop(paths);
    if let Some(error) = failed {
        return Err(error).asked();
    }
    if is_empty {
        return Err(Failure::Asked(anyhow!(
            "{} holds no sources in a known language that git would look at",
            root.display()
        )));
    }
    built
}

fn read(root: &Path, path: &str) -> io::Result<Vec<u8>> {
    let path = root.join(path);
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    fs::read(&path).map_err(named)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The graph of a folder as lines of nodes and edges.
pub(crate) fn jsonl(root: &Path) -> Outcome<String> {
    Ok(ListedGraph::of(&graph_of(root)?).to_jsonl())
}

/// The graph of a folder, or the one that a file holds.
fn graph_of(path: &Path) -> Outcome<Graph> {
    if path.is_file() {
        let bytes = fs::read(path)
            .with_context(|| format!("{}", path.display()))
            .asked()?;
        if bytes.starts_with(b"{") {
            return Err(Failure::Asked(anyhow!(
                "{} is a graph as JSON, which other programs read; query and show read a folder, or what `etude \
                 graph build --format binary --out FILE` writes",
                path.display()
            )));
        }
        return Graph::from_bytes(&bytes, threads())
            .with_context(|| format!("{}", path.display()))
            .asked();
    }
    with_paths(path, |paths| {
        Graph::read(paths, threads(), |name| read(path, name)).failed()
    })
}

/// The graph of a path; whether a cache had one.
fn known(path: &Path, cache: Option<&Path>) -> Outcome<(Graph, bool)> {
    match cache {
        Some(cache) => cached(path, cache),
        None => Ok((graph_of(path)?, false)),
    }
}

/// The graph of a folder, as the cache has it where that is up to date; whether it had one.
fn cached(root: &Path, cache: &Path) -> Outcome<(Graph, bool)> {
    let repository = root
        .canonicalize()
        .with_context(|| format!("{}", root.display()))
        .asked()?;
    let repository = repository.to_string_lossy();
    let commit = commit(root).unwrap_or_default();
    fs::create_dir_all(cache)
        .with_context(|| format!("--cache {}", cache.display()))
        .asked()?;
    let cache = GraphCache::new(cache);
    // All of them before the graph: what is kept must not be of a part.
    let paths: Vec<String> = with_paths(root, |paths| Ok(paths.collect()))?;
    let found = cache.graph((&repository, &commit), paths, threads(), |name| {
        read(root, name)
    });
    found.failed()
}

/// The commit that is checked out in `root`, if it is a repository of git's.
fn commit(root: &Path) -> Option<String> {
    let mut git = root.join(".git");
    if git.is_file() {
        // A worktree names its own folder.
        let text = fs::read_to_string(&git).ok()?;
        git = root.join(text.strip_prefix("gitdir:")?.trim());
    }
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let Some(name) = head.trim().strip_prefix("ref: ") else {
        return Some(head.trim().to_owned());
    };
    let common = fs::read_to_string(git.join("commondir"));
    let common = common.map_or(git.clone(), |common| git.join(common.trim()));
    if let Ok(commit) = fs::read_to_string(common.join(name)) {
        return Some(commit.trim().to_owned());
    }
    let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
    let line = packed
        .lines()
        .find_map(|line| line.strip_suffix(name)?.split_whitespace().next());
    line.map(str::to_owned)
}

fn build(
    path: &Path,
    out: Option<(&Path, Format)>,
    cache: Option<&Path>,
    json: bool,
    screen: Screen,
) -> Outcome<()> {
    let started = Instant::now();
    let (graph, from_cache) = known(path, cache)?;
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
    if let Some((out, format)) = out {
        fs::write(out, written(&graph, path, format)?)
            .with_context(|| format!("{}", out.display()))
            .failed()?;
    }
    let files = graph.files().count();
    let mut languages: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, facts) in graph.files() {
        *languages.entry(facts.language.name()).or_default() += 1;
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
            "path": path, "files": files, "languages": languages, "nodes": listed(&nodes),
            "edges": listed(&edges), "faults": faults, "out": out.map(|(out, _)| out),
            "from_cache": from_cache, "seconds": seconds,
        }));
    }
    let mut text = String::new();
    for (name, count) in nodes.iter().chain(&edges) {
        let _ = writeln!(text, "{name:<12} {count:>8}");
    }
    let languages: Vec<String> = languages
        .iter()
        .map(|(name, count)| format!("{count} of {name}"))
        .collect();
    let kept = if from_cache {
        ", with what the cache had"
    } else {
        ""
    };
    let languages = languages.join(", ");
    let _ = writeln!(text, "{files} files ({languages}) in {seconds:.2} s{kept}");
    print_text(&text)
}

fn print_bytes(bytes: &[u8]) -> Outcome<()> {
    match io::stdout().lock().write_all(bytes) {
        // Whoever reads has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).failed(),
        _ => Ok(()),
    }
}

fn written(graph: &Graph, root: &Path, format: Format) -> Outcome<Vec<u8>> {
    let listed = || ListedGraph::of(graph);
    Ok(match format {
        Format::Binary => graph.to_bytes(),
        Format::Jsonl => listed().to_jsonl().into_bytes(),
        Format::Json => (listed().to_json().to_string() + "\n").into_bytes(),
        Format::Codefuse => {
            let mut sources: BTreeMap<&str, String> = BTreeMap::new();
            for (path, _) in graph.files() {
                // What is no text has no nodes but its file.
                let source = String::from_utf8(read(root, path).failed()?);
                sources.insert(path, source.unwrap_or_default());
            }
            let codefuse = listed().to_codefuse(|path| sources.get(path).map(String::as_str));
            (codefuse.to_string() + "\n").into_bytes()
        }
        Format::Dot => {
            let listed = listed();
            let edges = listed.edges.iter();
            let edges = edges
                .map(|(source, target, kind)| (source.as_str(), target.as_str(), kind.as_str()));
            dot(edges).into_bytes()
        }
    })
}

fn find(graph: &Graph, text: &str, limit: usize, json: bool) -> Outcome<()> {
    let query = Query::parse(text);
    if query.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "`{text}` says nothing to look for: stop words alone, or nothing at all"
        )));
    }
    let (hits, relaxed) = Index::new(graph).search(&query, limit);
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
        let _ = writeln!(out, "{:>6.2}  {}", hit.score, described(graph, hit.node));
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

fn show(
    (graph, path): (&Graph, &Path),
    node: Option<&str>,
    depth: usize,
    json: bool,
    as_dot: bool,
) -> Outcome<()> {
    let found = match node {
        None => NodeRef::Repository,
        Some(id) => {
            let by_path = || graph.file(id).map(NodeRef::File);
            let unknown = || {
                let near = near(graph, id);
                let near = match near.is_empty() {
                    true => String::new(),
                    false => format!("; is it {}?", near.join(" or ")),
                };
                anyhow!(
                    "no node has the id `{id}`{near}; find ids with: etude graph query {} WORDS",
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
        let edges = shown_edges(graph, found, depth).into_iter().map(|edge| {
            json!({"src": id(edge.source), "dst": id(edge.target), "etype": edge.kind.name()})
        });
        let edges: Vec<Value> = edges.collect();
        return print_json(&json!({"node": graph.node(found), "edges": edges}));
    }
    if as_dot {
        let edges: Vec<(String, String, EdgeKind)> = shown_edges(graph, found, depth)
            .into_iter()
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
    tree(graph, found, 0, depth, &mut text);
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

/// Edges of a node, and those to what it contains that many levels down.
fn shown_edges(graph: &Graph, node: NodeRef, depth: usize) -> Vec<Edge> {
    let mut edges = graph.outgoing(node);
    edges.extend(graph.incoming(node));
    let mut level = graph.children(node);
    for _ in 1..depth {
        let mut next = Vec::new();
        for node in level {
            let outgoing = graph.outgoing(node).into_iter();
            edges.extend(outgoing.filter(|edge| edge.kind == EdgeKind::Contains));
            next.extend(graph.children(node));
        }
        level = next;
    }
    edges
}

/// Ids of up to three nodes whose names have `wanted` in them, those that are called so first.
fn near(graph: &Graph, wanted: &str) -> Vec<String> {
    let last = wanted.rsplit([':', '/']).find(|part| {
        let is_line = part.chars().all(|character| character.is_ascii_digit());
        !is_line
    });
    let last = last.unwrap_or(wanted).to_lowercase();
    let mut near: Vec<(bool, String)> = graph
        .nodes()
        .map(|node| graph.node(node))
        .filter(|node| node.id.to_lowercase().contains(&last))
        .map(|node| (node.name.to_lowercase() != last, node.id))
        .collect();
    near.sort_unstable();
    near.truncate(3);
    near.into_iter().map(|(_, id)| id).collect()
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
