//! From what each file says to what it means by it: edges between files.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{
    facts::{ChainIndex, ChainPart, DefinitionIndex, DefinitionKind, FileFacts},
    language::Language,
    modules::Modules,
    names::{Members, Names, Scope},
    node::{EdgeKind, FileIndex, Place, is_test_path, rank},
    resolve::{Entity, MAX_STEPS, Resolver, Target},
};

/// BLAKE3.
pub(super) type Digest = [u8; blake3::OUT_LEN];

/// A file with what it says.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    pub(super) path: String,
    /// By its path.
    pub(super) is_test: bool,
    /// Of its content.
    pub(super) digest: Digest,
    pub(super) facts: Arc<FileFacts>,
    pub(super) names: Arc<Names>,
}

impl SourceFile {
    pub(super) fn new(path: String, digest: Digest, facts: Arc<FileFacts>) -> Self {
        let names = Arc::new(Names::new(&facts));
        Self {
            is_test: is_test_path(&path),
            path,
            digest,
            facts,
            names,
        }
    }
}

/// What the names of one file mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Links {
    /// From definitions of the file, or from the file itself; in order.
    pub(super) edges: Edges,
    /// Other files that were looked into, and names that were looked up over the whole repository, by
    /// their hashes: when none of these change, neither do the links. In order.
    pub(super) files: Vec<FileIndex>,
    pub(super) names: Vec<u64>,
}

pub(super) type Edges = Vec<(Scope, EdgeKind, Place)>;

/// The links of `file`.
pub(super) fn links(
    files: &[SourceFile],
    modules: &Modules,
    members: &Members,
    file: FileIndex,
) -> Links {
    let facts = &files[file as usize].facts;
    let mut linker = Linker {
        file,
        resolver: Resolver::new(files, modules, members, file),
        used: vec![None; facts.chains.len()],
        edges: Vec::with_capacity(facts.uses.len()),
    };
    match facts.language {
        Language::Python => {
            linker.imports();
            linker.classes();
            linker.uses();
        }
        Language::Other => {}
        _ => linker.symbols(),
    }
    linker.tests();
    let mut edges = linker.edges;
    edges.sort_unstable_by_key(|(source, kind, target)| {
        target.rank() | u128::from(*kind as u8) << 65 | u128::from(rank(*source)) << 68
    });
    edges.dedup();
    let (mut others, names) = linker.resolver.dependencies();
    others.retain(|other| *other != file);
    others.sort_unstable();
    let mut names: Vec<u64> = names.into_iter().collect();
    names.sort_unstable();
    Links {
        edges,
        files: others,
        names,
    }
}

/// Finds the edges of one file.
struct Linker<'a> {
    file: FileIndex,
    resolver: Resolver<'a>,
    /// By chain, what it stands for in the scope that used it last: the parts of a scope's chains are
    /// asked for one after the other.
    used: Vec<Option<(Scope, Option<Entity>)>>,
    edges: Edges,
}

impl Linker<'_> {
    fn edge(&mut self, source: Scope, kind: EdgeKind, target: Place) {
        self.edges.push((source, kind, target));
    }

    fn imports(&mut self) {
        let file = self.file;
        for import in 0..self.resolver.file(file).facts.imports.len() as u32 {
            let Target { module, inner } = self.resolver.target(file, import);
            for target in module.into_iter().chain(inner) {
                if target != file {
                    let target = Place {
                        file: target,
                        definition: None,
                    };
                    self.edge(None, EdgeKind::Imports, target);
                }
            }
        }
    }

    fn classes(&mut self) {
        let file = self.file;
        let SourceFile { facts, names, .. } = self.resolver.file(file);
        let place = |definition| Place {
            file,
            definition: Some(definition),
        };
        for (index, definition) in (0u32..).zip(&facts.definitions) {
            match (definition.kind, definition.parent) {
                (DefinitionKind::Class, _) => {
                    for base in self.resolver.bases(place(index)) {
                        self.edge(Some(index), EdgeKind::Extends, base);
                    }
                }
                (DefinitionKind::Function, Some(parent)) => {
                    // A function has no ancestors.
                    let ancestors = self.resolver.ancestors(place(parent));
                    let name = names.name(facts, definition.name);
                    let mut ancestors = ancestors.iter();
                    let overridden =
                        ancestors.find_map(|ancestor| self.resolver.own(*ancestor, name));
                    if let Some(overridden) = overridden.filter(|it| *it != place(index)) {
                        self.edge(Some(index), EdgeKind::Overrides, overridden);
                    }
                }
                _ => {}
            }
        }
    }

    fn uses(&mut self) {
        for used in &self.resolver.file(self.file).facts.uses {
            self.used(used.scope, used.chain);
        }
    }

    /// What a chain that `scope` uses stands for; with edges to the definitions on the way.
    fn used(&mut self, scope: Scope, chain: ChainIndex) -> Option<Entity> {
        let file = self.file;
        match self.used[chain as usize] {
            Some((known, entity)) if known == scope => return entity,
            _ => {}
        }
        let part = self.resolver.files[file as usize].facts.chain(chain);
        let entity = match part.before {
            None => self.resolver.beginning(file, scope, part, MAX_STEPS),
            Some(before) => {
                let before = self.used(scope, before);
                self.resolver.part(file, before, part, MAX_STEPS)
            }
        };
        if let Some(Entity::Definition(place)) = entity {
            let kind = match part.calls {
                0 => EdgeKind::References,
                _ => EdgeKind::Calls,
            };
            let source = Place {
                file,
                definition: scope,
            };
            if place != source && place.definition.is_some() {
                self.edge(scope, kind, place);
            }
        }
        let entity = self.resolver.call(file, entity, part, MAX_STEPS);
        self.used[chain as usize] = Some((scope, entity));
        entity
    }

    /// Code under test, by what tests call and import.
    fn tests(&mut self) {
        let files = self.resolver.files;
        if !files[self.file as usize].is_test {
            return;
        }
        let tested: Vec<_> = self
            .edges
            .iter()
            .filter(|(_, kind, target)| {
                matches!(kind, EdgeKind::Calls | EdgeKind::Imports)
                    && !files[target.file as usize].is_test
            })
            .map(|(source, _, target)| (*source, EdgeKind::Tests, *target))
            .collect();
        self.edges.extend(tested);
    }

    /// The names that other languages' grammars tag: each means the only definition of that name in its
    /// own file, or else in the repository.
    fn symbols(&mut self) {
        let (file, modules) = (self.file, self.resolver.modules);
        let SourceFile { path, facts, .. } = self.resolver.file(file);
        for import in &facts.imports {
            let module = facts.name(import.module);
            for target in modules.places.resolve(facts.language, path, module) {
                if target != file {
                    let target = Place {
                        file: target,
                        definition: None,
                    };
                    self.edge(None, EdgeKind::Imports, target);
                }
            }
        }
        let mut own: FxHashMap<u32, Option<DefinitionIndex>> = FxHashMap::default();
        for (index, definition) in facts.definitions.iter().enumerate() {
            own.entry(definition.name.0)
                .and_modify(|known| *known = None)
                .or_insert(Some(index as u32));
        }
        let resolve = |resolver: &Resolver, part: ChainPart| match own.get(&part.name.0) {
            Some(definition) => Some(Place {
                file,
                definition: Some((*definition)?),
            }),
            None => match resolver.only_named(file, part.name)? {
                Entity::Definition(place) => Some(place),
                _ => None,
            },
        };
        for used in &facts.uses {
            let part = facts.chain(used.chain);
            let kind = match part.calls {
                0 => EdgeKind::References,
                _ => EdgeKind::Calls,
            };
            if let Some(target) = resolve(&self.resolver, part)
                && (target.file, target.definition) != (file, used.scope)
            {
                self.edge(used.scope, kind, target);
            }
        }
        for (index, class) in facts.definitions.iter().enumerate() {
            for base in facts.bases_of(class) {
                let index = Some(index as u32);
                if let Some(target) = resolve(&self.resolver, facts.chain(*base))
                    && (target.file, target.definition) != (file, index)
                {
                    self.edge(index, EdgeKind::Extends, target);
                }
            }
        }
    }
}
