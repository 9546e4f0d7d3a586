//! From what each file says to what it means by it: edges between files.
//!
//! Names are looked up as Python does, as far as that can be told without running anything: through
//! scopes, imports (stars included), classes and what they extend, annotations, and the values that
//! variables were given. A member of something unknown means the only definition of that name in the
//! repository, if there is one.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    facts::{
        ChainIndex, ChainPart, Definition, DefinitionIndex, DefinitionKind, FileFacts, Import,
    },
    language::Language,
    modules::Modules,
    names::{Members, Name, Names, Scope},
    node::{EdgeKind, FileIndex, Place, is_test_path},
};

/// Chains lead to chains; cycles among them end here.
const MAX_STEPS: u32 = 24;

/// BLAKE3.
pub(super) type Digest = [u8; blake3::OUT_LEN];

/// A file with what it says.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    pub(super) path: String,
    /// Of its content.
    pub(super) digest: Digest,
    pub(super) facts: Arc<FileFacts>,
    pub(super) names: Arc<Names>,
}

impl SourceFile {
    pub(super) fn new(path: String, digest: Digest, facts: Arc<FileFacts>) -> Self {
        let names = Arc::new(Names::new(&facts));
        Self {
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

/// What a name or a chain stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entity {
    Module(FileIndex),
    /// A package without a file of its own, or the beginning of a dotted name: by the import.
    Prefix(FileIndex, u32, usize),
    Definition(Place),
    /// An object of this class.
    Instance(Place),
}

/// The links of `file`.
pub(super) fn links(
    files: &[SourceFile],
    modules: &Modules,
    members: &Members,
    file: FileIndex,
) -> Links {
    let linker = Linker {
        files,
        modules,
        members,
        looked: RefCell::new(Looked::new(files.len())),
        asked: RefCell::default(),
        used: RefCell::default(),
        values: RefCell::default(),
        bindings: RefCell::default(),
        ancestors: RefCell::default(),
        edges: RefCell::default(),
    };
    match files[file as usize].facts.language {
        Language::Python => {
            linker.imports(file);
            linker.classes(file);
            linker.uses(file);
        }
        Language::Other => {}
        _ => linker.symbols(file),
    }
    linker.tests(file);
    let mut edges = linker.edges.into_inner();
    edges.sort_unstable();
    edges.dedup();
    let mut others = linker.looked.into_inner().order;
    others.retain(|other| *other != file);
    others.sort_unstable();
    let mut names: Vec<u64> = linker.asked.into_inner().into_iter().collect();
    names.sort_unstable();
    Links {
        edges,
        files: others,
        names,
    }
}

pub(super) type Edges = Vec<(Scope, EdgeKind, Place)>;

/// The files that were looked into.
struct Looked {
    known: Vec<bool>,
    order: Vec<FileIndex>,
}

impl Looked {
    fn new(files: usize) -> Self {
        Self {
            known: vec![false; files],
            order: Vec::new(),
        }
    }

    fn add(&mut self, file: FileIndex) {
        let known = &mut self.known[file as usize];
        if !*known {
            *known = true;
            self.order.push(file);
        }
    }
}

struct Linker<'a> {
    files: &'a [SourceFile],
    modules: &'a Modules,
    members: &'a Members,
    looked: RefCell<Looked>,
    asked: RefCell<FxHashSet<u64>>,
    /// What was evaluated before; what is being evaluated means nothing yet: `x = x.next`.
    used: RefCell<FxHashMap<(Scope, ChainIndex), Option<Entity>>>,
    values: RefCell<FxHashMap<Place, Option<Entity>>>,
    bindings: RefCell<FxHashMap<(FileIndex, u32), Option<Entity>>>,
    ancestors: RefCell<FxHashMap<Place, Rc<[Place]>>>,
    edges: RefCell<Edges>,
}

impl<'a> Linker<'a> {
    fn file(&self, file: FileIndex) -> &'a SourceFile {
        self.looked.borrow_mut().add(file);
        &self.files[file as usize]
    }

    fn definition(&self, place: Place) -> Option<&'a Definition> {
        let facts = &self.file(place.file).facts;
        facts.definitions.get(place.definition? as usize)
    }

    fn edge(&self, source: Scope, kind: EdgeKind, target: Place) {
        self.edges.borrow_mut().push((source, kind, target));
    }

    fn imports(&self, file: FileIndex) {
        let facts = &self.file(file).facts;
        for import in &facts.imports {
            let module = self.module(file, import);
            // `from package import module` means the module's file.
            let inner = import.name.and_then(|name| {
                let module = facts.name(import.module);
                let absolute = self.modules.absolute(file, import.level, module)?;
                self.modules.find(&dotted(&absolute, facts.name(name)))
            });
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

    fn module(&self, file: FileIndex, import: &Import) -> Option<FileIndex> {
        let SourceFile { path, facts, .. } = &self.files[file as usize];
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.modules
            .resolve(file, folder, import.level, facts.name(import.module))
    }

    fn classes(&self, file: FileIndex) {
        let SourceFile { facts, names, .. } = self.file(file);
        for (index, class) in facts.definitions.iter().enumerate() {
            if class.kind != DefinitionKind::Class {
                continue;
            }
            let index = index as u32;
            let place = Place {
                file,
                definition: Some(index),
            };
            for base in self.bases(place) {
                self.edge(Some(index), EdgeKind::Extends, base);
            }
            let ancestors = self.ancestors(place);
            if ancestors.is_empty() {
                continue;
            }
            for (method, definition) in members_of(facts, index) {
                let name = names.name(facts, definition.name);
                let overridden = ancestors
                    .iter()
                    .find_map(|ancestor| self.own(*ancestor, name));
                if let Some(overridden) = overridden
                    && overridden
                        != (Place {
                            file,
                            definition: Some(method),
                        })
                {
                    self.edge(Some(method), EdgeKind::Overrides, overridden);
                }
            }
        }
    }

    /// The classes that `class` names as its bases, where they are of this repository.
    fn bases(&self, class: Place) -> Vec<Place> {
        let Some(definition) = self.definition(class) else {
            return Vec::new();
        };
        let bases = self.files[class.file as usize].facts.bases_of(definition);
        let found = bases.iter().filter_map(|base| {
            match self.evaluate(class.file, definition.parent, *base, MAX_STEPS)? {
                Entity::Definition(place) if place != class => {
                    let kind = self.definition(place)?.kind;
                    (kind == DefinitionKind::Class).then_some(place)
                }
                _ => None,
            }
        });
        found.collect()
    }

    /// All of them, nearest first.
    fn ancestors(&self, class: Place) -> Rc<[Place]> {
        /// Bases of bases that are looked at.
        const MOST: usize = 256;
        if let Some(known) = self.ancestors.borrow().get(&class) {
            return known.clone();
        }
        // While they are looked for there are none.
        let none: Rc<[Place]> = Rc::new([]);
        self.ancestors.borrow_mut().insert(class, none);
        let mut found: Vec<Place> = Vec::new();
        let mut next = self.bases(class);
        while !next.is_empty() && found.len() < MOST {
            let mut after = Vec::new();
            for place in next {
                if place != class && !found.contains(&place) {
                    found.push(place);
                    after.extend(self.bases(place));
                }
            }
            next = after;
        }
        let found: Rc<[Place]> = found.into();
        self.ancestors.borrow_mut().insert(class, found.clone());
        found
    }

    fn own(&self, owner: Place, name: Name) -> Option<Place> {
        let file = self.file(owner.file);
        let definition = file
            .names
            .find(&file.facts, owner.definition, name)
            .definition?;
        Some(Place {
            file: owner.file,
            definition: Some(definition),
        })
    }

    fn uses(&self, file: FileIndex) {
        for used in &self.file(file).facts.uses {
            self.used(file, used.scope, used.chain);
        }
    }

    /// What a chain that `scope` uses stands for; with edges to the definitions on the way.
    fn used(&self, file: FileIndex, scope: Scope, chain: ChainIndex) -> Option<Entity> {
        if let Some(known) = self.used.borrow().get(&(scope, chain)) {
            return *known;
        }
        let part = self.files[file as usize].facts.chain(chain);
        let entity = match part.before {
            None => self.beginning(file, scope, part, MAX_STEPS),
            Some(before) => {
                let before = self.used(file, scope, before);
                self.part(file, before, part, MAX_STEPS)
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
        let entity = self.call(file, entity, part, MAX_STEPS);
        self.used.borrow_mut().insert((scope, chain), entity);
        entity
    }

    /// Code under test, by what tests call and import.
    fn tests(&self, file: FileIndex) {
        let path = &self.files[file as usize].path;
        if !is_test_path(path) {
            return;
        }
        let mut edges = self.edges.borrow_mut();
        let tested: Vec<_> = edges
            .iter()
            .filter(|(_, kind, target)| {
                matches!(kind, EdgeKind::Calls | EdgeKind::Imports)
                    && !is_test_path(&self.files[target.file as usize].path)
            })
            .map(|(source, _, target)| (*source, EdgeKind::Tests, *target))
            .collect();
        edges.extend(tested);
    }

    /// What a chain stands for in `scope`.
    fn evaluate(
        &self,
        file: FileIndex,
        scope: Scope,
        chain: ChainIndex,
        steps: u32,
    ) -> Option<Entity> {
        let steps = steps.checked_sub(1)?;
        let part = self.files[file as usize].facts.chain(chain);
        let entity = match part.before {
            None => self.beginning(file, scope, part, steps),
            Some(before) => {
                let before = self.evaluate(file, scope, before, steps);
                self.part(file, before, part, steps)
            }
        };
        self.call(file, entity, part, steps)
    }

    fn beginning(
        &self,
        file: FileIndex,
        scope: Scope,
        part: ChainPart,
        steps: u32,
    ) -> Option<Entity> {
        let name = self.name_of(file, part);
        match name.text {
            "?" => None,
            "super" => self.super_of(file, scope),
            _ => self.name(file, scope, name, steps),
        }
    }

    fn part(
        &self,
        file: FileIndex,
        before: Option<Entity>,
        part: ChainPart,
        steps: u32,
    ) -> Option<Entity> {
        let name = self.name_of(file, part);
        match before {
            Some(entity) => self.member(entity, name, steps),
            None => self.only_named(file, name),
        }
    }

    fn name_of(&self, file: FileIndex, part: ChainPart) -> Name<'a> {
        let SourceFile { facts, names, .. } = &self.files[file as usize];
        names.name(facts, part.name)
    }

    /// What comes of calling `entity` as often as `part` does.
    fn call(
        &self,
        file: FileIndex,
        mut entity: Option<Entity>,
        part: ChainPart,
        steps: u32,
    ) -> Option<Entity> {
        let is_super = part.before.is_none() && self.name_of(file, part).text == "super";
        for _ in u32::from(is_super)..part.calls {
            entity = self.result(entity?, steps);
        }
        entity
    }

    fn result(&self, entity: Entity, steps: u32) -> Option<Entity> {
        let Entity::Definition(place) = entity else {
            return None;
        };
        let definition = self.definition(place)?;
        match definition.kind {
            DefinitionKind::Class => Some(Entity::Instance(place)),
            DefinitionKind::Function => {
                let facts = &self.files[place.file as usize].facts;
                let part = facts.chain(definition.value?);
                if part.before.is_none() && part.calls == 1 && facts.name(part.name) == "Self" {
                    return Some(Entity::Instance(Place {
                        file: place.file,
                        definition: Some(definition.parent?),
                    }));
                }
                self.value(place, steps)
            }
            DefinitionKind::Attribute => {
                let value = self.value(place, steps)?;
                self.result(value, steps.checked_sub(1)?)
            }
        }
    }

    /// The value of an attribute, or of a property.
    fn value(&self, place: Place, steps: u32) -> Option<Entity> {
        if let Some(known) = self.values.borrow().get(&place) {
            return *known;
        }
        self.values.borrow_mut().insert(place, None);
        let definition = self.definition(place)?;
        let value = definition.value?;
        let scope = match definition.kind {
            DefinitionKind::Attribute => definition.value_scope,
            _ => definition.parent,
        };
        let found = self.evaluate(place.file, scope, value, steps);
        self.values.borrow_mut().insert(place, found);
        found
    }

    fn member(&self, entity: Entity, name: Name, steps: u32) -> Option<Entity> {
        match entity {
            Entity::Module(file) => self.of_module(file, name, steps),
            Entity::Prefix(file, import, length) => {
                let facts = &self.files[file as usize].facts;
                let module = facts.name(facts.imports[import as usize].module);
                if module.split('.').nth(length) == Some(name.text) {
                    return self.prefix(file, import, length + 1);
                }
                let module = self.modules.find(first_parts(module, length))?;
                self.of_module(module, name, steps)
            }
            Entity::Definition(place) => match self.definition(place)?.kind {
                DefinitionKind::Class => self.of_class(place, name),
                DefinitionKind::Function => {
                    // Read like an attribute, a property is its value.
                    let is_property = self.definition(place)?.is_property;
                    let value = is_property.then(|| self.value(place, steps))??;
                    self.member(value, name, steps.checked_sub(1)?)
                }
                DefinitionKind::Attribute => {
                    let value = self.value(place, steps)?;
                    self.member(value, name, steps.checked_sub(1)?)
                }
            },
            Entity::Instance(class) => self.of_class(class, name),
        }
    }

    fn of_class(&self, class: Place, name: Name) -> Option<Entity> {
        let own = self.own(class, name);
        let found = own.or_else(|| {
            let ancestors = self.ancestors(class);
            ancestors
                .iter()
                .find_map(|ancestor| self.own(*ancestor, name))
        });
        found.map(Entity::Definition)
    }

    /// What alone has this name in the repository.
    fn only_named(&self, file: FileIndex, name: Name) -> Option<Entity> {
        self.asked.borrow_mut().insert(name.hash);
        let family = self.files[file as usize].facts.language.family();
        let facts = |file: FileIndex| self.files[file as usize].facts.as_ref();
        let found = self.members.only(name, family, facts);
        found.map(Entity::Definition)
    }

    /// A name at the level of a module: its own, then the package's modules.
    fn of_module(&self, file: FileIndex, name: Name, steps: u32) -> Option<Entity> {
        let own = self.in_module(file, name, steps.checked_sub(1)?);
        own.or_else(|| {
            let module = self.modules.package(file)?;
            let inner = self.modules.find(&dotted(module, name.text));
            inner.map(Entity::Module)
        })
    }

    /// What extends the class around `scope`, as `super()` has it.
    fn super_of(&self, file: FileIndex, scope: Scope) -> Option<Entity> {
        let class = self.class_around(file, scope)?;
        self.bases(class).first().copied().map(Entity::Instance)
    }

    fn class_around(&self, file: FileIndex, scope: Scope) -> Option<Place> {
        let facts = &self.file(file).facts;
        let mut at = scope;
        while let Some(index) = at {
            let definition = &facts.definitions[index as usize];
            if definition.kind == DefinitionKind::Class {
                return Some(Place {
                    file,
                    definition: at,
                });
            }
            at = definition.parent;
        }
        None
    }

    fn name(&self, file: FileIndex, scope: Scope, name: Name, steps: u32) -> Option<Entity> {
        let SourceFile { facts, names, .. } = self.file(file);
        let mut at = scope;
        while let Some(index) = at {
            let definition = &facts.definitions[index as usize];
            let is_function = definition.kind == DefinitionKind::Function;
            // Names of a class are seen in its own body, not in its methods.
            if is_function || at == scope {
                let meaning = names.find(facts, at, name);
                if let Some(binding) = meaning.binding {
                    return self.bound(file, binding, steps);
                }
                if meaning.definition.is_some() {
                    return Some(Entity::Definition(Place {
                        file,
                        definition: meaning.definition,
                    }));
                }
                if let Some(import) = meaning.import {
                    return self.imported(file, import, steps);
                }
            }
            at = definition.parent;
        }
        self.in_module(file, name, steps)
    }

    fn bound(&self, file: FileIndex, index: u32, steps: u32) -> Option<Entity> {
        let facts = &self.file(file).facts;
        let binding = &facts.bindings[index as usize];
        let method = &facts.definitions[binding.scope as usize];
        let Some(value) = binding.value else {
            let class = || self.class_around(file, method.parent);
            return match facts.name(binding.name) {
                "self" => class().map(Entity::Instance),
                "cls" => class().map(Entity::Definition),
                _ => None,
            };
        };
        if let Some(known) = self.bindings.borrow().get(&(file, index)) {
            return *known;
        }
        self.bindings.borrow_mut().insert((file, index), None);
        let found = self.evaluate(file, Some(binding.scope), value, steps);
        self.bindings.borrow_mut().insert((file, index), found);
        found
    }

    fn in_module(&self, file: FileIndex, name: Name, steps: u32) -> Option<Entity> {
        let steps = steps.checked_sub(1)?;
        let SourceFile { facts, names, .. } = self.file(file);
        let meaning = names.find(facts, None, name);
        if meaning.definition.is_some() {
            return Some(Entity::Definition(Place {
                file,
                definition: meaning.definition,
            }));
        }
        if let Some(import) = meaning.import {
            return self.imported(file, import, steps);
        }
        names.stars.iter().rev().find_map(|star| {
            let import = &facts.imports[*star as usize];
            let module = self.module(file, import).filter(|module| *module != file)?;
            self.in_module(module, name, steps)
        })
    }

    fn imported(&self, file: FileIndex, index: u32, steps: u32) -> Option<Entity> {
        let SourceFile { facts, names, .. } = &self.files[file as usize];
        let import = &facts.imports[index as usize];
        let module = facts.name(import.module);
        let Some(name) = import.name else {
            let bound = facts.name(import.bound);
            let is_first = module.len() > bound.len() && module.split('.').next() == Some(bound);
            return match is_first {
                true => self.prefix(file, index, 1),
                false => self.module(file, import).map(Entity::Module),
            };
        };
        let of_module = self
            .module(file, import)
            .filter(|module| *module != file)
            .and_then(|module| self.of_module(module, names.name(facts, name), steps));
        of_module.or_else(|| {
            let absolute = self.modules.absolute(file, import.level, module)?;
            let name = dotted(&absolute, facts.name(name));
            self.modules.find(&name).map(Entity::Module)
        })
    }

    /// The first `length` parts of the dotted name that an import names.
    fn prefix(&self, file: FileIndex, import: u32, length: usize) -> Option<Entity> {
        let facts = &self.files[file as usize].facts;
        let module = facts.name(facts.imports[import as usize].module);
        if first_parts(module, length).len() == module.len() {
            return self.modules.find(module).map(Entity::Module);
        }
        Some(Entity::Prefix(file, import, length))
    }

    /// The names that other languages' grammars tag: each means the only definition of that name in its
    /// own file, or else in the repository.
    fn symbols(&self, file: FileIndex) {
        let SourceFile {
            path, facts, names, ..
        } = self.file(file);
        for import in &facts.imports {
            let module = facts.name(import.module);
            for target in self.modules.places.resolve(facts.language, path, module) {
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
        let resolve = |part: ChainPart| match own.get(&part.name.0) {
            Some(definition) => Some(Place {
                file,
                definition: Some((*definition)?),
            }),
            None => match self.only_named(file, names.name(facts, part.name))? {
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
            if let Some(target) = resolve(part)
                && (target.file, target.definition) != (file, used.scope)
            {
                self.edge(used.scope, kind, target);
            }
        }
        for (index, class) in facts.definitions.iter().enumerate() {
            for base in facts.bases_of(class) {
                let index = Some(index as u32);
                if let Some(target) = resolve(facts.chain(*base))
                    && (target.file, target.definition) != (file, index)
                {
                    self.edge(index, EdgeKind::Extends, target);
                }
            }
        }
    }
}

/// Methods and attributes of a class.
fn members_of(
    facts: &FileFacts,
    class: DefinitionIndex,
) -> impl Iterator<Item = (u32, &Definition)> {
    let all = facts.definitions.iter().enumerate();
    all.filter(move |(_, definition)| {
        definition.parent == Some(class) && definition.kind == DefinitionKind::Function
    })
    .map(|(index, definition)| (index as u32, definition))
}

fn dotted(module: &str, name: &str) -> String {
    match module.is_empty() {
        true => name.to_owned(),
        false => format!("{module}.{name}"),
    }
}

/// As many parts of a dotted name.
fn first_parts(module: &str, length: usize) -> &str {
    let mut dots = module.match_indices('.');
    let end = length.checked_sub(1).and_then(|before| dots.nth(before));
    end.map_or(module, |(at, _)| &module[..at])
}
