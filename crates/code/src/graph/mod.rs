//! The code graph of a repository: what there is, and what uses what.
//!
//! Built from the contents of files alone ([`Graph::build`]), and kept up file by file
//! ([`Graph::update`]): both ways to the same content give equal graphs. Spec of the repair study,
//! section 3; node and edge types as in CodeFuse's code graphs (section 10.1).

mod anchor;
mod binary;
mod build;
mod candidates;
mod caps;
mod codefuse;
mod facts;
pub mod files;
mod haystack;
mod imports;
mod indexing;
mod language;
mod linear;
mod link;
mod listed;
mod memory;
mod modules;
mod names;
pub(crate) mod nesting;
mod node;
mod parallel;
mod python;
mod query;
mod resolve;
mod search;
mod subgraph;
mod symbols;
mod writer;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

pub use anchor::{Anchor, AnchorKind};
pub use binary::BinaryError;
pub use candidates::{Candidate, CandidateLimits};
pub use caps::{MemoryCaps, MemorySize};
pub use facts::{
    Binding, Definition, DefinitionIndex, DefinitionKind, FileFacts, Import, Span, Symbol, Text,
    Use,
};
pub use language::Language;
pub use linear::{Budgeted, Chunk, CountTokens, Excerpt, described, index_line, within_budget};
use link::{Links, SourceFile};
pub use listed::{ListedError, ListedFormat, ListedGraph, ListedNode};
pub use memory::{
    Applied, Commit, EpisodeMemory, MemoryFault, MemoryIntent, MemoryLimits, MemoryReport,
    MemoryTarget, Note, OverBudget, Selector,
};
use modules::Modules;
use names::Members;
pub use node::{Edge, EdgeKind, FileIndex, Node, NodeKind, NodeRef, is_test_path};
use node::{Place, rank};
pub use query::{Query, words};
pub use search::{Hit, Index};
pub use subgraph::{Subgraph, subgraph_file_name};

/// Larger files are named in the graph and not looked into.
pub const MAX_FILE: usize = 5 << 20;

/// Changes whenever the same content would give other facts or links.
pub const BUILDER_VERSION: u32 = 4;

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
    /// By file, the files with edges into it, in order.
    sources: Vec<Vec<FileIndex>>,
}

/// Edges of a file in both orders.
#[derive(Debug, Default)]
struct Linked {
    links: Links,
    /// The files that edges lead to, each once.
    targets: Vec<FileIndex>,
    /// Made when it is first asked for.
    by_target: OnceLock<Vec<(Place, EdgeKind, Option<DefinitionIndex>)>>,
}

impl Linked {
    fn by_target(&self) -> &[(Place, EdgeKind, Option<DefinitionIndex>)] {
        self.by_target.get_or_init(|| {
            let edges = self.links.edges.iter();
            let mut by_target: Vec<_> = edges
                .map(|(source, kind, target)| (*target, *kind, *source))
                .collect();
            by_target.sort_unstable_by_key(|(target, kind, source)| {
                target.rank() << 36 | u128::from(*kind as u8) << 33 | u128::from(rank(*source))
            });
            by_target
        })
    }
}

impl From<Links> for Linked {
    fn from(links: Links) -> Self {
        let edges = links.edges.iter();
        let mut targets: Vec<FileIndex> = edges.map(|(_, _, target)| target.file).collect();
        targets.sort_unstable();
        targets.dedup();
        Self {
            links,
            targets,
            by_target: OnceLock::new(),
        }
    }
}

impl PartialEq for Linked {
    fn eq(&self, other: &Self) -> bool {
        self.links == other.links
    }
}

/// Contents by path, below the root of the repository and with `/`.
pub type Contents = BTreeMap<String, Vec<u8>>;

impl Graph {
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
                    documentation: facts.text(facts.documentation).to_owned(),
                    ..plain(format!("file:{path}"), last)
                }
            }
            NodeRef::Definition(file, definition) => {
                let facts = self.facts(file);
                let found = &facts.definitions[definition as usize];
                let prefix = prefix_of(found.kind);
                let qualified = self.qualified_name(file, definition);
                let id = format!("{prefix}:{path}:{qualified}:{}", found.line);
                Node {
                    span: Some(found.span),
                    signature: facts.text(found.signature).to_owned(),
                    documentation: facts.text(found.documentation).to_owned(),
                    ..plain(id, facts.name(found.name))
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
            names.push(facts.name(found.name));
            at = found.parent;
        }
        names.reverse();
        names.join(".")
    }

    /// The node with this id. A definition is also found by its path and qualified name when the line
    /// is left out or is another one, if there is only one of that name, or of those the only one of that kind.
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
        let facts = self.facts(file);
        let named: Vec<DefinitionIndex> = (0u32..)
            .zip(&facts.definitions)
            .filter(|(index, found)| {
                facts.name(found.name) == name && self.qualified_name(file, *index) == qualified
            })
            .map(|(index, _)| index)
            .collect();
        let of_kind =
            |index: &DefinitionIndex| prefix_of(facts.definitions[*index as usize].kind) == prefix;
        let named: Vec<DefinitionIndex> = match named.iter().any(of_kind) {
            true => named.into_iter().filter(of_kind).collect(),
            false => named,
        };
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
            let by_target = self.links[*source as usize].by_target();
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
        let same = |(one, two): (&SourceFile, &SourceFile)| {
            one.path == two.path && one.digest == two.digest && one.facts == two.facts
        };
        self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(same)
            && self.links == other.links
            && self.sources == other.sources
    }
}

/// What the ids of definitions of a kind begin with.
fn prefix_of(kind: DefinitionKind) -> &'static str {
    match kind {
        DefinitionKind::Class => "class",
        DefinitionKind::Function => "func",
        DefinitionKind::Attribute => "attr",
    }
}
