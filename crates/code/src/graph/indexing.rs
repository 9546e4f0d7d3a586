//! The index of queries, made from a graph that was built or from one that was listed.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{
    FileIndex, Graph, ListedGraph, ListedNode, NodeKind, NodeRef,
    haystack::Haystack,
    query::words,
    search::{Entry, Index},
};

impl Index {
    pub fn new(graph: &Graph) -> Self {
        let mut indexing = Indexing::default();
        for (file, (path, facts)) in (0u32..).zip(graph.files()) {
            indexing.path(path);
            let last = path.rsplit('/').next().unwrap_or(path);
            let node = NodeRef::File(file);
            indexing.add(Named {
                kind: graph.kind(node).name(),
                node,
                file,
                owner: "",
                texts: [last, "", facts.text(facts.documentation), path],
            });
            for (definition, found) in (0u32..).zip(&facts.definitions) {
                let node = NodeRef::Definition(file, definition);
                let owner = found
                    .parent
                    .map(|parent| facts.definitions[parent as usize].name);
                indexing.add(Named {
                    kind: graph.kind(node).name(),
                    node,
                    file,
                    owner: owner.map_or("", |owner| facts.name(owner)),
                    texts: [
                        facts.name(found.name),
                        facts.text(found.signature),
                        facts.text(found.documentation),
                        path,
                    ],
                });
            }
        }
        indexing.index
    }
}

impl<'a> Index<&'a str> {
    /// Of all nodes but the repository and its packages, which are what a built graph's has; nodes are
    /// named by their ids.
    pub fn of_listed(graph: &'a ListedGraph) -> Self {
        let is_found = |node: &&ListedNode| {
            let [repository, package] = [NodeKind::Repository, NodeKind::Package];
            node.kind != repository.name() && node.kind != package.name()
        };
        let mut nodes: Vec<&ListedNode> = graph.nodes.values().filter(is_found).collect();
        let is_file = |node: &ListedNode| node.kind == "file" || node.kind == "t-file";
        let order = |node: &&'a ListedNode| {
            let start = node.span.map_or(0, |span| span.start);
            (node.path.as_str(), !is_file(node), start, node.id.as_str())
        };
        nodes.sort_unstable_by_key(order);
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for (source, target, kind) in &graph.edges {
            let owner = graph.nodes.get(source).filter(|owner| !is_file(owner));
            if kind == "contains"
                && let Some(owner) = owner.filter(is_found)
            {
                owners.insert(target, &owner.name);
            }
        }
        let mut indexing = Indexing::default();
        let mut file = None;
        for node in nodes {
            let path = node.path.as_str();
            let (_, file) = match file {
                Some((known, file)) if known == path => (known, file),
                _ => *file.insert((path, indexing.path(path))),
            };
            indexing.add(Named {
                node: node.id.as_str(),
                kind: &node.kind,
                file,
                owner: owners.get(node.id.as_str()).copied().unwrap_or_default(),
                texts: [&node.name, &node.signature, &node.documentation, path],
            });
        }
        indexing.index
    }
}

/// An index that is being made, and what was found out for it.
struct Indexing<N> {
    index: Index<N>,
    /// Words of identifiers: most are there many times, and their parts are found once.
    parts: FxHashMap<String, Vec<u32>>,
    names: OneOfEach,
    texts: OneOfEach,
}

/// Between a name and what is said of it, so that no phrase reaches from one into the other.
const NAME_END: &str = "\0";

/// Where each text of a haystack stands that has every text once.
#[derive(Default)]
struct OneOfEach(FxHashMap<String, u32>);

impl OneOfEach {
    fn place(&mut self, text: String, all: &mut Haystack) -> u32 {
        *self.0.entry(text).or_insert_with_key(|text| {
            all.push(text);
            all.len() as u32 - 1
        })
    }
}

/// A node with what it is found by.
struct Named<'a, N> {
    node: N,
    kind: &'a str,
    file: FileIndex,
    owner: &'a str,
    /// Name, signature, documentation, path.
    texts: [&'a str; 4],
}

impl<N> Default for Indexing<N> {
    fn default() -> Self {
        let index = Index {
            entries: Vec::new(),
            bonuses: Vec::new(),
            files: Vec::new(),
            called: Vec::new(),
            said: Vec::new(),
            paths: Vec::new(),
            vocabulary: FxHashMap::default(),
            postings: Vec::new(),
            names: Haystack::default(),
            texts: Haystack::default(),
            path_texts: Haystack::default(),
        };
        Self {
            index,
            parts: FxHashMap::default(),
            names: OneOfEach::default(),
            texts: OneOfEach::default(),
        }
    }
}

impl<N> Indexing<N> {
    fn path(&mut self, path: &str) -> FileIndex {
        let lower = path.to_lowercase();
        self.index.path_texts.push(&lower);
        self.index.paths.push(lower);
        self.index.paths.len() as FileIndex - 1
    }

    fn add(&mut self, named: Named<N>) {
        let index = &mut self.index;
        let place = index.entries.len() as u32;
        for text in named.texts {
            for identifier in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
                if identifier.len() < 2 {
                    continue;
                }
                if !self.parts.contains_key(identifier) {
                    let of_it = words(identifier).into_iter().map(|word| {
                        let next = index.postings.len() as u32;
                        *index.vocabulary.entry(word).or_insert_with(|| {
                            index.postings.push(Vec::new());
                            next
                        })
                    });
                    let of_it = of_it.collect();
                    self.parts.insert(identifier.to_owned(), of_it);
                }
                for word in &self.parts[identifier] {
                    let places = &mut index.postings[*word as usize];
                    if places.last() != Some(&place) {
                        places.push(place);
                    }
                }
            }
        }
        let [name, signature, documentation, _] = named.texts;
        let [name, signature, documentation] =
            [name, signature, documentation].map(str::to_lowercase);
        let text = match () {
            () if signature.contains(&name) => [&signature, " ", &documentation].concat(),
            () if signature.is_empty() && documentation.is_empty() => name.clone(),
            () => [&name, NAME_END, &signature, " ", &documentation].concat(),
        };
        index.files.push(named.file);
        index.called.push(self.names.place(name, &mut index.names));
        index.said.push(self.texts.place(text, &mut index.texts));
        index.bonuses.push(bonus(named.kind));
        index.entries.push(Entry {
            node: named.node,
            owner: named.owner.to_lowercase(),
        });
    }
}

fn bonus(kind: &str) -> f64 {
    match kind {
        "function" | "class" => 0.25,
        "file" | "t-file" => 0.05,
        _ => 0.0,
    }
}
