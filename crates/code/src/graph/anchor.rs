//! From what a planner names to nodes of the graph.
//!
//! Spec of the repair study, section 3.3.

use serde::{Deserialize, Serialize};

use super::{Graph, NodeKind, NodeRef};

/// Most nodes that one anchor may mean.
const MOST: usize = 50;

/// A node, named loosely: by its id, or by a kind and a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Anchor {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<AnchorKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnchorKind {
    #[serde(rename = "function")]
    Function,
    #[serde(rename = "symbol")]
    Symbol,
    #[serde(rename = "file")]
    File,
    #[serde(rename = "class")]
    Class,
    #[serde(rename = "module")]
    Module,
    #[serde(rename = "t-file")]
    TestFile,
}

impl Anchor {
    pub fn id(id: &str) -> Self {
        Self {
            id: Some(id.to_owned()),
            ..Self::default()
        }
    }

    pub fn new(kind: AnchorKind, text: &str) -> Self {
        Self {
            kind: Some(kind),
            text: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// The nodes that are meant, the likeliest first: the one with the id; files by a part of their path,
    /// the shortest path first; definitions by their exact name, else by a part of it. What names nothing
    /// of its kind may still be the name of a file.
    pub fn resolve(&self, graph: &Graph) -> Vec<NodeRef> {
        if let Some(id) = &self.id {
            let found = graph.find(id).or_else(|| graph.file(id).map(NodeRef::File));
            if let Some(found) = found {
                return vec![found];
            }
        }
        let text = self.text.as_deref().or(self.id.as_deref());
        let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
            return Vec::new();
        };
        let kind = self.kind.unwrap_or(AnchorKind::Symbol);
        let mut found = match kind {
            AnchorKind::File => graph.files_with(text, |_| true),
            AnchorKind::TestFile => graph.files_with(text, |kind| kind == NodeKind::TestFile),
            AnchorKind::Module => graph.modules_with(text),
            AnchorKind::Function => graph.named(text, |kind| kind == NodeKind::Function),
            AnchorKind::Class => graph.named(text, |kind| kind == NodeKind::Class),
            AnchorKind::Symbol => graph.named(text, |_| true),
        };
        if found.is_empty() {
            found = graph.files_called(text);
        }
        found.truncate(MOST);
        found
    }
}

impl Graph {
    fn files_with(&self, part: &str, keeps: impl Fn(NodeKind) -> bool) -> Vec<NodeRef> {
        let files = (0..self.files.len() as u32).map(NodeRef::File);
        let mut found: Vec<NodeRef> = files
            .filter(|file| self.path(*file).contains(part) && keeps(self.kind(*file)))
            .collect();
        found.sort_by_key(|file| self.path(*file).len());
        found
    }

    fn modules_with(&self, text: &str) -> Vec<NodeRef> {
        if let Some(file) = self.modules.find(text) {
            return vec![NodeRef::File(file)];
        }
        let path = text.replace('.', "/");
        let packages = (0..self.packages.len() as u32).map(NodeRef::Package);
        let package = packages
            .filter(|package| self.path(*package).ends_with(&path))
            .min_by_key(|package| self.path(*package).len());
        let mut found: Vec<NodeRef> = package.into_iter().collect();
        found.extend(self.files_with(&path, |_| true));
        found
    }

    /// Definitions of this name, which may be qualified; if there are none, those with it in their name.
    fn named(&self, text: &str, keeps: impl Fn(NodeKind) -> bool) -> Vec<NodeRef> {
        let last = text.rsplit(['.', ':']).next().unwrap_or(text);
        let all = |matches: &dyn Fn(&str) -> bool| -> Vec<NodeRef> {
            let files = (0u32..).zip(&self.files);
            let found = files.flat_map(|(file, source)| {
                let facts = &source.facts;
                (0u32..)
                    .zip(&facts.definitions)
                    .filter(|(_, definition)| {
                        matches(facts.name(definition.name)) && keeps(definition.kind.into())
                    })
                    .map(move |(index, _)| NodeRef::Definition(file, index))
                    .collect::<Vec<_>>()
            });
            found.collect()
        };
        let exact = all(&|name| name == last);
        let qualified: Vec<NodeRef> = exact
            .iter()
            .copied()
            .filter(|node| match node {
                NodeRef::Definition(file, index) => self
                    .qualified_name(*file, *index)
                    .ends_with(&text.replace(':', ".")),
                _ => false,
            })
            .collect();
        match (qualified.is_empty(), exact.is_empty()) {
            (false, _) => qualified,
            (true, false) => exact,
            (true, true) => all(&|name| name.contains(last)),
        }
    }

    fn files_called(&self, text: &str) -> Vec<NodeRef> {
        let wanted = text.rsplit('/').next().unwrap_or(text);
        let files = (0..self.files.len() as u32).map(NodeRef::File);
        let mut found: Vec<NodeRef> = files
            .filter(|file| {
                let name = self.path(*file).rsplit('/').next().unwrap_or_default();
                let stem = name.split('.').next().unwrap_or(name);
                name == wanted || stem == wanted
            })
            .collect();
        found.sort_by_key(|file| self.path(*file).len());
        found
    }
}
