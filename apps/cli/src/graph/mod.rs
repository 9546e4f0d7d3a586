//! `etude graph`: the code graph of a repository, for people and for other programs.

mod gaps;
mod repository;
mod show;

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
use code::graph::{EdgeKind, Graph, Hit, Index, ListedGraph, ListedNode, NodeKind, Query};
use gaps::tell_gaps;
pub(crate) use repository::jsonl;
use repository::{Known, built, known, read};
use serde_json::{Value, json};
use show::{Form, Neighbours, described, dot, show};

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
        /// A folder, or a graph in the binary form
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
        /// A folder, or a graph in a file: the binary form, lines of nodes and edges (repo_graph.jsonl), an object
        /// of nodes and edges, CodeFuse's JSON; told by the content
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
        /// A folder, or a graph in a file: the binary form, lines of nodes and edges (repo_graph.jsonl), an object
        /// of nodes and edges, CodeFuse's JSON; told by the content
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
                let graph = built(path, cache.as_deref())?.0;
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
            no_options_among(query)?;
            let known = known(path, cache.as_deref())?;
            find(
                &known,
                path,
                (&query.join(" "), *limit as usize),
                *json,
                screen,
            )
        }
        GraphCommand::Show {
            path,
            node,
            depth,
            cache,
            json,
            dot,
        } => {
            let known = known(path, cache.as_deref())?;
            let form = match (json, dot) {
                (true, _) => Form::Json,
                (_, true) => Form::Dot,
                _ => Form::Text,
            };
            match &known {
                Known::Built(graph, _) => show(graph, path, node.as_deref(), *depth, form),
                Known::Listed(graph, format) => {
                    tell_gaps(path, graph, *format, screen);
                    let graph = Neighbours::new(graph);
                    show(&graph, path, node.as_deref(), *depth, form)
                }
            }
        }
    }
}

fn build(
    path: &Path,
    out: Option<(&Path, Format)>,
    cache: Option<&Path>,
    json: bool,
    screen: Screen,
) -> Outcome<()> {
    let started = Instant::now();
    let (graph, from_cache) = built(path, cache)?;
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
    let mut edges = EdgeKind::ALL.map(|kind| (kind, 0));
    for edge in graph.edges() {
        if let Some((_, count)) = edges.iter_mut().find(|(kind, _)| *kind == edge.kind) {
            *count += 1;
        }
    }
    let edges = edges.map(|(kind, count)| (kind.name(), count));
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
        Format::Codefuse if root.is_file() => {
            return Err(Failure::Asked(anyhow!(
                "CodeFuse's graphs hold sources, and {} has none: build from the folder",
                root.display()
            )));
        }
        Format::Codefuse => {
            let mut sources: BTreeMap<&str, String> = BTreeMap::new();
            for (path, _) in graph.files() {
                // What is no text has no nodes but its file.
                let source = String::from_utf8(read(root, path).failed()?);
                sources.insert(path, source.unwrap_or_default());
            }
            let listed = listed();
            let codefuse = listed.to_codefuse(|path| sources.get(path).map(String::as_str));
            (codefuse.failed()? + "\n").into_bytes()
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

/// Refuses options that stand after the words of a query, where they would say what must not be found.
fn no_options_among(words: &[String]) -> Outcome<()> {
    const OPTIONS: [&str; 6] = ["-n", "--limit", "--cache", "--json", "-h", "--help"];
    let late = words.iter().find(|word| {
        let name = word.split('=').next().unwrap_or(word);
        OPTIONS.contains(&name)
    });
    match late {
        Some(option) => Err(Failure::Asked(anyhow!(
            "{option} stands after the words, where `-` says what must not be found; put options before the words"
        ))),
        None => Ok(()),
    }
}

/// Prints what a query finds: `limit` nodes.
fn find(
    known: &Known,
    path: &Path,
    (text, limit): (&str, usize),
    json: bool,
    screen: Screen,
) -> Outcome<()> {
    let query = Query::parse(text);
    if query.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "`{text}` says nothing to look for: stop words alone, or nothing at all"
        )));
    }
    match known {
        Known::Built(graph, _) => {
            let (hits, relaxed) = Index::new(graph).search(&query, limit);
            print_hits(text, &hits, relaxed, json, |node| graph.node(*node).into())
        }
        Known::Listed(graph, format) => {
            tell_gaps(path, graph, *format, screen);
            let (hits, relaxed) = Index::of_listed(graph).search(&query, limit);
            print_hits(text, &hits, relaxed, json, |id| graph.nodes[*id].clone())
        }
    }
}

fn print_hits<N>(
    text: &str,
    hits: &[Hit<N>],
    relaxed: bool,
    json: bool,
    node: impl Fn(&N) -> ListedNode,
) -> Outcome<()> {
    if json {
        let hits: Vec<Value> = hits
            .iter()
            .map(|hit| json!({"node": node(&hit.node), "score": hit.score, "reasons": hit.reasons}))
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
        let _ = writeln!(out, "{:>6.2}  {}", hit.score, described(&node(&hit.node)));
    }
    print_text(&out)
}
