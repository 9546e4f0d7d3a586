//! From a path to a graph: a folder is looked into, a file is read in the form that it has.

use std::{fs, io, path::Path};

use anyhow::{Context, anyhow};
use code::graph::{Graph, Language, ListedFormat, ListedGraph, files::GraphCache};
use ignore::WalkBuilder;

use crate::failure::{Classify, Failure, Outcome};

/// A graph, as much of it as there is.
pub(super) enum Known {
    /// With everything, and whether a cache had it.
    Built(Graph, bool),
    Listed(ListedGraph, ListedFormat),
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

pub(super) fn read(root: &Path, path: &str) -> io::Result<Vec<u8>> {
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
    Ok(ListedGraph::of(&of_folder(root)?).to_jsonl())
}

/// The graph of a folder or of a file in the binary form; whether a cache had one.
pub(super) fn built(path: &Path, cache: Option<&Path>) -> Outcome<(Graph, bool)> {
    match known(path, cache)? {
        Known::Built(graph, had_it) => Ok((graph, had_it)),
        Known::Listed(_, format) => Err(Failure::Asked(anyhow!(
            "{} is a graph already, {}: it can be queried and shown; build reads a folder, or a graph in the \
             binary form",
            path.display(),
            format.name()
        ))),
    }
}

/// The graph of a folder, or the one that a file holds, in whatever form.
pub(super) fn known(path: &Path, cache: Option<&Path>) -> Outcome<Known> {
    if path.is_file() {
        if cache.is_some() {
            return Err(Failure::Asked(anyhow!(
                "--cache keeps the graphs of folders; {} is a file, which is read as it is",
                path.display()
            )));
        }
        return of_file(path);
    }
    let (graph, had_it) = match cache {
        Some(cache) => cached(path, cache)?,
        None => (of_folder(path)?, false),
    };
    Ok(Known::Built(graph, had_it))
}

fn of_folder(root: &Path) -> Outcome<Graph> {
    with_paths(root, |paths| {
        Graph::read(paths, threads(), |name| read(root, name)).failed()
    })
}

/// The form is told by the content.
fn of_file(path: &Path) -> Outcome<Known> {
    let shown = || format!("{}", path.display());
    let bytes = fs::read(path).with_context(shown).asked()?;
    if Graph::is_binary(&bytes) {
        let graph = Graph::from_bytes(&bytes, threads())
            .with_context(shown)
            .asked()?;
        return Ok(Known::Built(graph, false));
    }
    let no_graph = |what: &str| {
        Failure::Asked(anyhow!(
            "{} is no graph but {what}; read are folders, lines and objects of nodes and edges as JSON, and the \
             binary form of `etude graph build`",
            path.display()
        ))
    };
    let text = String::from_utf8(bytes).map_err(|_| no_graph("a file that is not text"))?;
    match text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .chars()
        .next()
    {
        Some('{') => {}
        None => return Err(no_graph("an empty file")),
        Some(_) if text.trim_start().starts_with("digraph") => {
            return Err(no_graph("DOT, which is drawn and not read"));
        }
        Some(_) => return Err(no_graph("text that does not begin with `{`")),
    }
    let (graph, format) = ListedGraph::from_text(&text).with_context(shown).asked()?;
    if graph.nodes.is_empty() {
        return Err(Failure::Asked(anyhow!("{} has no nodes", path.display())));
    }
    Ok(Known::Listed(graph, format))
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
