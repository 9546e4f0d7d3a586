//! The code graph of a repository: what there is, and what uses what.
//!
//! Built from the contents of files alone ([`Graph::build`]), and kept up file by file
//! ([`Graph::update`]): both ways to the same content give equal graphs. Spec of the repair study,
//! section 3; node and edge types as in CodeFuse's code graphs (section 10.1).

mod facts;
mod link;
mod listed;
mod modules;
mod nesting;
mod node;
mod python;
mod query;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub use facts::{
    Binding, Chain, Definition, DefinitionIndex, DefinitionKind, FileFacts, Import, Span, Use,
};
use link::{Links, Members, Names, SourceFile};
pub use listed::{ListedError, ListedGraph, ListedNode};
use modules::Modules;
use node::Place;
pub use node::{Edge, EdgeKind, FileIndex, Node, NodeKind, NodeRef, is_test_path};
pub use query::{Hit, Index, Query, words};

/// Larger files are named in the graph and not looked into.
pub const MAX_FILE: usize = 5 << 20;

/// Changes whenever the same content would give other facts or links.
pub const BUILDER_VERSION: u32 = 1;

/// A repository's files, what is in them, and how they hang together.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// In the order of their paths.
    files: Vec<SourceFile>,
    links: Vec<Arc<Linked>>,
    /// Folders that are Python packages, in the order of their paths.
    packages: Vec<String>,
    modules: Arc<Modules>,
    members: Members,
    /// By file, the files with edges into it.
    sources: Vec<BTreeSet<FileIndex>>,
}

/// Edges of a file in both orders.
#[derive(Debug, Default, PartialEq, Eq)]
struct Linked {
    links: Links,
    by_target: Vec<(Place, EdgeKind, Option<DefinitionIndex>)>,
}

impl From<Links> for Linked {
    fn from(links: Links) -> Self {
        let edges = links.edges.iter();
        let mut by_target: Vec<_> = edges
            .map(|(source, kind, target)| (*target, *kind, *source))
            .collect();
        by_target.sort_unstable();
        Self { links, by_target }
    }
}

/// Contents by path, below the root of the repository and with `/`.
pub type Contents = BTreeMap<String, Vec<u8>>;

impl Graph {
    /// The graph of these files, by up to `threads` threads; their number changes nothing.
    pub fn build(contents: &Contents, threads: usize) -> Self {
        let contents: Vec<(&String, &Vec<u8>)> = contents.iter().collect();
        let facts = in_parallel(&contents, threads, |(path, content)| {
            facts_of(path, content)
        });
        let paths = contents.iter().map(|(path, _)| (*path).clone());
        Self::of_facts(paths.zip(facts).collect(), threads)
    }

    /// The graph of files whose facts are known already, in the order of their paths.
    pub fn of_facts(files: BTreeMap<String, Arc<FileFacts>>, threads: usize) -> Self {
        let files: Vec<(String, Arc<FileFacts>)> = files.into_iter().collect();
        let names = in_parallel(&files, threads, |(_, facts)| Arc::new(Names::new(facts)));
        let files: Vec<SourceFile> = files
            .into_iter()
            .zip(names)
            .map(|((path, facts), names)| SourceFile { path, facts, names })
            .collect();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let modules = Modules::new(&paths);
        let packages = paths
            .iter()
            .filter_map(|path| Some(path.strip_suffix("__init__.py")?.trim_end_matches('/')))
            .filter(|folder| !folder.is_empty())
            .map(str::to_owned)
            .collect();
        let mut graph = Self {
            files,
            links: Vec::new(),
            packages,
            modules: Arc::new(modules),
            members: Members::default(),
            sources: Vec::new(),
        };
        graph.count_members();
        let all: Vec<FileIndex> = (0..graph.files.len() as u32).collect();
        graph.links = graph.link(&all, threads);
        graph.sources = vec![BTreeSet::new(); graph.files.len()];
        for file in all {
            graph.note_sources(file);
        }
        graph
    }

    /// Gives the file at `path` other content, or takes it away. Only what may mean something else now
    /// is looked at again.
    pub fn update(&mut self, path: &str, content: Option<&[u8]>, threads: usize) {
        let known = self.file(path);
        let (Some(file), Some(content)) = (known, content) else {
            if known.is_some() || content.is_some() {
                self.replace_files(path, content, threads);
            }
            return;
        };
        let owned = path.to_owned();
        let facts = in_parallel(&[(&owned, content)], 1, |(path, content)| {
            facts_of(path, content)
        });
        let Some(facts) = facts.into_iter().next() else {
            return;
        };
        let old = std::mem::replace(&mut self.files[file as usize].facts, facts.clone());
        if old == facts {
            return;
        }
        let own = &mut self.files[file as usize];
        own.names = Arc::new(Names::new(&facts));
        let seen_alike = seen_from_outside(&old) == seen_from_outside(&facts);
        let mut changed: BTreeSet<&str> = BTreeSet::new();
        if !seen_alike {
            // A place among definitions may have changed, and so the place of every member.
            changed.extend(link::members(&old).map(|(_, name)| name));
            changed.extend(link::members(&facts).map(|(_, name)| name));
            self.members.remove(file, &old);
            self.members.add(file, &facts);
        }
        let looks_at_it = |links: &Links| {
            let by_name = || {
                links
                    .names
                    .iter()
                    .any(|name| changed.contains(name.as_str()))
            };
            links.files.binary_search(&file).is_ok() || by_name()
        };
        let affected: Vec<FileIndex> = (0..self.files.len() as u32)
            .filter(|other| {
                let links = &self.links[*other as usize].links;
                *other == file || !seen_alike && looks_at_it(links)
            })
            .collect();
        let linked = self.link(&affected, threads);
        for (affected, linked) in affected.into_iter().zip(linked) {
            let old = std::mem::replace(&mut self.links[affected as usize], linked);
            for (_, _, target) in &old.links.edges {
                self.sources[target.file as usize].remove(&affected);
            }
            self.note_sources(affected);
        }
    }

    fn replace_files(&mut self, path: &str, content: Option<&[u8]>, threads: usize) {
        let files = std::mem::take(&mut self.files).into_iter();
        let mut facts: BTreeMap<String, Arc<FileFacts>> =
            files.map(|file| (file.path, file.facts)).collect();
        match content {
            None => drop(facts.remove(path)),
            Some(content) => {
                let owned = path.to_owned();
                let read = in_parallel(&[(&owned, content)], 1, |(path, content)| {
                    facts_of(path, content)
                });
                facts.extend(read.into_iter().map(|read| (owned.clone(), read)));
            }
        }
        *self = Self::of_facts(facts, threads);
    }

    fn count_members(&mut self) {
        self.members = Members::default();
        for (index, file) in self.files.iter().enumerate() {
            self.members.add(index as u32, &file.facts);
        }
    }

    fn link(&self, files: &[FileIndex], threads: usize) -> Vec<Arc<Linked>> {
        in_parallel(files, threads, |file| {
            let links = link::links(&self.files, &self.modules, &self.members, *file);
            Arc::new(Linked::from(links))
        })
    }

    fn note_sources(&mut self, file: FileIndex) {
        let linked = self.links[file as usize].clone();
        for (_, _, target) in &linked.links.edges {
            self.sources[target.file as usize].insert(file);
        }
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<FileIndex> {
        let found = self
            .files
            .binary_search_by(|file| file.path.as_str().cmp(path));
        found.ok().map(|index| index as u32)
    }

    pub fn facts(&self, file: FileIndex) -> &FileFacts {
        &self.files[file as usize].facts
    }

    /// Paths and facts, in the order of the paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Arc<FileFacts>)> {
        self.files
            .iter()
            .map(|file| (file.path.as_str(), &file.facts))
    }

    /// All of them: the repository, packages, and each file with what it defines.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRef> + '_ {
        let packages = (0..self.packages.len() as u32).map(NodeRef::Package);
        let files = self.files.iter().enumerate().flat_map(|(file, source)| {
            let file = file as u32;
            let definitions = 0..source.facts.definitions.len() as u32;
            std::iter::once(NodeRef::File(file))
                .chain(definitions.map(move |definition| NodeRef::Definition(file, definition)))
        });
        std::iter::once(NodeRef::Repository)
            .chain(packages)
            .chain(files)
    }

    /// All of them, by source.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.nodes().flat_map(|node| self.outgoing(node))
    }

    /// Of a node of this graph.
    pub fn node(&self, node: NodeRef) -> Node {
        let (kind, path) = (self.kind(node), self.path(node).to_owned());
        let plain = |id: String, name: &str| Node {
            id,
            kind,
            path: path.clone(),
            name: name.to_owned(),
            span: None,
            signature: String::new(),
            documentation: String::new(),
        };
        let last = path.rsplit('/').next().unwrap_or_default();
        match node {
            NodeRef::Repository => plain("repo:".to_owned(), ""),
            NodeRef::Package(_) => plain(format!("pkg:{path}"), last),
            NodeRef::File(file) => {
                let facts = self.facts(file);
                Node {
                    span: Some(Span {
                        start: 1,
                        end: facts.lines,
                    }),
                    documentation: facts.documentation.clone().unwrap_or_default(),
                    ..plain(format!("file:{path}"), last)
                }
            }
            NodeRef::Definition(file, definition) => {
                let found = &self.facts(file).definitions[definition as usize];
                let prefix = match found.kind {
                    DefinitionKind::Class => "class",
                    DefinitionKind::Function => "func",
                    DefinitionKind::Attribute => "attr",
                };
                let qualified = self.qualified_name(file, definition);
                let id = format!("{prefix}:{path}:{qualified}:{}", found.line);
                Node {
                    span: Some(found.span),
                    signature: found.signature.clone(),
                    documentation: found.documentation.clone().unwrap_or_default(),
                    ..plain(id, &found.name)
                }
            }
        }
    }

    pub fn kind(&self, node: NodeRef) -> NodeKind {
        match node {
            NodeRef::Repository => NodeKind::Repository,
            NodeRef::Package(_) => NodeKind::Package,
            NodeRef::File(_) if is_test_path(self.path(node)) => NodeKind::TestFile,
            NodeRef::File(_) => NodeKind::File,
            NodeRef::Definition(file, definition) => self.facts(file).definitions
                [definition as usize]
                .kind
                .into(),
        }
    }

    /// Of the file that the node is in, or of the package; empty for the repository.
    pub fn path(&self, node: NodeRef) -> &str {
        match node {
            NodeRef::Repository => "",
            NodeRef::Package(package) => &self.packages[package as usize],
            NodeRef::File(file) | NodeRef::Definition(file, _) => &self.files[file as usize].path,
        }
    }

    /// With the names of what a definition stands in, such as `Outer.method`.
    pub fn qualified_name(&self, file: FileIndex, definition: DefinitionIndex) -> String {
        let facts = self.facts(file);
        let mut names = Vec::new();
        let mut at = Some(definition);
        while let Some(index) = at {
            let found = &facts.definitions[index as usize];
            names.push(found.name.as_str());
            at = found.parent;
        }
        names.reverse();
        names.join(".")
    }

    /// The node with this id. A definition is also found by its path and qualified name when the line
    /// is left out or is another one, if there is only one of that name.
    pub fn find(&self, id: &str) -> Option<NodeRef> {
        let (prefix, rest) = id.split_once(':')?;
        match prefix {
            "repo" => return rest.is_empty().then_some(NodeRef::Repository),
            "pkg" => {
                let found = self
                    .packages
                    .binary_search_by(|path| path.as_str().cmp(rest));
                return found.ok().map(|index| NodeRef::Package(index as u32));
            }
            "file" | "t-file" => return self.file(rest).map(NodeRef::File),
            _ => {}
        }
        let mut parts = rest.split(':');
        let file = self.file(parts.next()?)?;
        let qualified = parts.next()?;
        let line: Option<u32> = parts.next().and_then(|line| line.parse().ok());
        let name = qualified.rsplit('.').next()?;
        let named: Vec<DefinitionIndex> = (0u32..)
            .zip(&self.facts(file).definitions)
            .filter(|(index, found)| {
                found.name == name && self.qualified_name(file, *index) == qualified
            })
            .map(|(index, _)| index)
            .collect();
        let facts = self.facts(file);
        let at_line = named
            .iter()
            .find(|index| Some(facts.definitions[**index as usize].line) == line);
        match (at_line, named.as_slice()) {
            (Some(index), _) | (None, [index]) => Some(NodeRef::Definition(file, *index)),
            _ => None,
        }
    }

    /// What the node contains, uses, extends, overrides and tests.
    pub fn outgoing(&self, node: NodeRef) -> Vec<Edge> {
        let edge = |kind, target| Edge {
            source: node,
            kind,
            target,
        };
        let mut edges: Vec<Edge> = self
            .children(node)
            .into_iter()
            .map(|child| edge(EdgeKind::Contains, child))
            .collect();
        let (file, definition) = match node {
            NodeRef::File(file) => (file, None),
            NodeRef::Definition(file, definition) => (file, Some(definition)),
            _ => return edges,
        };
        let links = &self.links[file as usize].links.edges;
        let start = links.partition_point(|(source, _, _)| *source < definition);
        let own = links[start..].iter();
        edges.extend(
            own.take_while(|(source, _, _)| *source == definition)
                .map(|(_, kind, target)| edge(*kind, (*target).into())),
        );
        edges
    }

    /// What contains the node, uses, extends, overrides and tests it.
    pub fn incoming(&self, node: NodeRef) -> Vec<Edge> {
        let edge = |source, kind| Edge {
            source,
            kind,
            target: node,
        };
        let parent = self.parent(node);
        let mut edges: Vec<Edge> = parent
            .map(|parent| edge(parent, EdgeKind::Contains))
            .into_iter()
            .collect();
        let target = match node {
            NodeRef::File(file) => Place {
                file,
                definition: None,
            },
            NodeRef::Definition(file, definition) => Place {
                file,
                definition: Some(definition),
            },
            _ => return edges,
        };
        for source in &self.sources[target.file as usize] {
            let by_target = &self.links[*source as usize].by_target;
            let start = by_target.partition_point(|(other, _, _)| *other < target);
            let found = by_target[start..].iter();
            edges.extend(found.take_while(|(other, _, _)| *other == target).map(
                |(_, kind, definition)| {
                    let place = Place {
                        file: *source,
                        definition: *definition,
                    };
                    edge(place.into(), *kind)
                },
            ));
        }
        edges
    }

    /// What the node is contained in.
    pub fn parent(&self, node: NodeRef) -> Option<NodeRef> {
        match node {
            NodeRef::Repository => None,
            NodeRef::Definition(file, definition) => {
                let parent = self.facts(file).definitions[definition as usize].parent;
                Some(match parent {
                    Some(parent) => NodeRef::Definition(file, parent),
                    None => NodeRef::File(file),
                })
            }
            NodeRef::Package(_) | NodeRef::File(_) => {
                let mut folder = self.path(node);
                while let Some((above, _)) = folder.rsplit_once('/') {
                    if let Ok(index) = self
                        .packages
                        .binary_search_by(|path| path.as_str().cmp(above))
                    {
                        return Some(NodeRef::Package(index as u32));
                    }
                    folder = above;
                }
                Some(NodeRef::Repository)
            }
        }
    }

    /// What the node contains.
    pub fn children(&self, node: NodeRef) -> Vec<NodeRef> {
        let in_file = |file: FileIndex, parent: Option<DefinitionIndex>| {
            let all = (0u32..).zip(&self.facts(file).definitions);
            all.filter(|(_, found)| found.parent == parent)
                .map(|(index, _)| NodeRef::Definition(file, index))
                .collect()
        };
        match node {
            NodeRef::File(file) => in_file(file, None),
            NodeRef::Definition(file, definition) => in_file(file, Some(definition)),
            NodeRef::Repository | NodeRef::Package(_) => {
                let packages = (0..self.packages.len() as u32).map(NodeRef::Package);
                let files = (0..self.files.len() as u32).map(NodeRef::File);
                let below = self.path(node);
                packages
                    .chain(files)
                    .filter(|child| self.path(*child).starts_with(below))
                    .filter(|child| self.parent(*child) == Some(node))
                    .collect()
            }
        }
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        let same =
            |(one, two): (&SourceFile, &SourceFile)| one.path == two.path && one.facts == two.facts;
        self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(same)
            && self.links == other.links
            && self.sources == other.sources
    }
}

/// What other files can see of a file, in the order in which they refer to it.
fn seen_from_outside(facts: &FileFacts) -> impl PartialEq {
    let definitions = facts.definitions.iter().map(|definition| Definition {
        span: Span { start: 0, end: 0 },
        line: 0,
        signature: String::new(),
        documentation: None,
        ..definition.clone()
    });
    (
        definitions.collect::<Vec<_>>(),
        facts.imports.clone(),
        facts.bindings.clone(),
    )
}

/// The facts of one file, by the language that its name tells.
fn facts_of(path: &str, content: &[u8]) -> Arc<FileFacts> {
    let fault = |text: &str| FileFacts {
        lines: memchr::memchr_iter(b'\n', content).count() as u32 + 1,
        fault: Some(text.to_owned()),
        ..FileFacts::default()
    };
    Arc::new(match std::str::from_utf8(content) {
        _ if content.len() > MAX_FILE => fault("larger than 5 MiB"),
        Err(_) => fault("not UTF-8"),
        Ok(text) if path.ends_with(".py") || path.ends_with(".pyi") => python::facts(text),
        Ok(_) => FileFacts {
            fault: None,
            ..fault("")
        },
    })
}

/// `each` of the items, in their order, on threads with the stack that parsing needs.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    each: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    /// Neighbours that a thread takes together.
    const GRAIN: usize = 8;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(GRAIN, Ordering::Relaxed);
            if start >= items.len() {
                return done;
            }
            let end = (start + GRAIN).min(items.len());
            done.extend((start..end).map(|index| (index, each(&items[index]))));
        }
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads = threads.clamp(1, items.len().div_ceil(GRAIN).max(1));
        let started: Vec<_> = (0..threads)
            .map(|_| {
                std::thread::Builder::new()
                    .stack_size(python::STACK)
                    .spawn_scoped(scope, work)
            })
            .collect();
        let mut done = Vec::with_capacity(items.len());
        for thread in started {
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(part)) => done.extend(part),
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // Another thread, or this one, does its part.
                Err(_) => done.extend(work()),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
