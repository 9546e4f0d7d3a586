//! Graphs on disk: the cache of built graphs, subgraph files of issues, prebuilt repository graphs. The
//! only module of this crate that touches files.
//!
//! Spec of the repair study, sections 3.1 and 3.2.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::{BUILDER_VERSION, Graph, ListedError, ListedGraph, Subgraph, subgraph_file_name};

/// Built graphs by repository, commit and builder.
#[derive(Clone, Debug)]
pub struct GraphCache {
    folder: PathBuf,
}

impl GraphCache {
    /// In this folder, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Where the graph of this commit is kept. `repository` is whatever tells repositories apart: a URL,
    /// or a path. Another builder keeps its graphs elsewhere.
    pub fn path(&self, repository: &str, commit: &str) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        for part in [repository, commit] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.update(&BUILDER_VERSION.to_le_bytes());
        let key = hasher.finalize().to_hex();
        self.folder.join(format!("{}.graph", &key[..32]))
    }

    /// The graph of this commit, if it is here and whole.
    pub fn load(&self, repository: &str, commit: &str, threads: usize) -> Option<Graph> {
        let bytes = fs::read(self.path(repository, commit)).ok()?;
        Graph::from_bytes(&bytes, threads).ok()
    }

    /// Keeps a graph; whoever reads meanwhile sees the old one or the new one, whole.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn store(&self, repository: &str, commit: &str, graph: &Graph) -> io::Result<()> {
        write_atomically(&self.path(repository, commit), &graph.to_bytes())
    }

    /// The graph of the files at `paths`, whose contents `read` tells, as of this commit: what the cache
    /// has of it is brought up to date, file by file, and kept for the next time. Whether the cache had it.
    ///
    /// # Errors
    /// The first error of `read`, or the cache cannot be written.
    pub fn graph<P: AsRef<str> + Send, C: AsRef<[u8]>>(
        &self,
        (repository, commit): (&str, &str),
        paths: impl IntoIterator<Item = P, IntoIter: Send>,
        threads: usize,
        read: impl Fn(&str) -> io::Result<C> + Sync,
    ) -> io::Result<(Graph, bool)> {
        let (graph, had_it, is_as_kept) = match self.load(repository, commit, threads) {
            Some(mut graph) => {
                let changed = graph.refresh(paths, threads, read)?;
                (graph, true, changed.is_empty())
            }
            None => (Graph::read(paths, threads, read)?, false, false),
        };
        if !is_as_kept {
            self.store(repository, commit, &graph)?;
        }
        Ok((graph, had_it))
    }
}

/// Where an issue's subgraph is kept below `root`: `.aci/subgraphs/<issue>.json`.
pub fn subgraph_path(root: &Path, issue: &str) -> PathBuf {
    root.join(".aci/subgraphs").join(subgraph_file_name(issue))
}

/// An issue's subgraph. Without a file it is empty; so it is with one that cannot be read, and then the
/// reason comes with it.
pub fn load_subgraph(root: &Path, issue: &str) -> (Subgraph, Option<String>) {
    let path = subgraph_path(root, issue);
    let read = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Default::default(),
        Err(error) => Err(error.to_string()),
        Ok(text) => Subgraph::from_file(&text).map_err(|error| error.to_string()),
    };
    match read {
        Ok(subgraph) => (subgraph, None),
        Err(reason) => {
            let reason = format!("{}: {reason}", path.display());
            (Subgraph::default(), Some(reason))
        }
    }
}

/// Keeps an issue's subgraph, whole or not at all.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn save_subgraph(root: &Path, issue: &str, subgraph: &Subgraph) -> io::Result<()> {
    write_atomically(&subgraph_path(root, issue), subgraph.to_file().as_bytes())
}

/// Keeps what a graph of an episode (`name`: `working` or `memory`) was after a step, as
/// `<issue>.step_NNNN.<name>.json` in `folder`.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn save_trace(
    folder: &Path,
    issue: &str,
    step: u32,
    name: &str,
    graph: &Subgraph,
) -> io::Result<()> {
    let file = subgraph_file_name(issue);
    let stem = file.trim_end_matches(".json");
    let path = folder.join(format!("{stem}.step_{step:04}.{name}.json"));
    write_atomically(&path, graph.to_file().as_bytes())
}

/// A prebuilt repository graph that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryGraphError {
    #[error("{}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Malformed { path: PathBuf, error: ListedError },
}

/// The prebuilt graph in a folder: the first there is of `repo_graph.jsonl`, `graph.jsonl` and
/// `code_graph.jsonl`; `None` if there is none.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn load_repository_graph(folder: &Path) -> Result<Option<ListedGraph>, RepositoryGraphError> {
    for name in ["repo_graph.jsonl", "graph.jsonl", "code_graph.jsonl"] {
        let path = folder.join(name);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(RepositoryGraphError::Read { path, error }),
            Ok(text) => {
                let read = ListedGraph::from_jsonl(&text);
                let read = read.map_err(|error| RepositoryGraphError::Malformed { path, error });
                return read.map(Some);
            }
        }
    }
    Ok(None)
}

/// Writes a file so that it is there whole or, when this fails or is interrupted, as it was before.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let draft = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{draft}.draft", std::process::id()));
    let draft = folder.join(name);
    let written = fs::File::create(&draft).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    });
    if written.is_err() {
        // What is left of the draft is of no use; that it cannot be removed adds nothing.
        let _ = fs::remove_file(&draft);
    }
    written
}
