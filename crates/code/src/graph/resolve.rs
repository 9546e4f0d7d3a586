//! What names and chains stand for.
//!
//! Names are looked up as Python does, as far as that can be told without running anything: through
//! scopes, imports (stars included), classes and what they extend, annotations, and the values that
//! variables were given. A member of something unknown means the only definition of that name in the
//! repository, if there is one.

use std::{cell::RefCell, rc::Rc};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    facts::{ChainIndex, ChainPart, Definition, DefinitionKind, Symbol},
    link::SourceFile,
    modules::Modules,
    names::{Members, Name, Scope},
    node::{FileIndex, Place},
};

/// Chains lead to chains; cycles among them end here.
pub(super) const MAX_STEPS: u32 = 24;

/// What a name or a chain stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Module(FileIndex),
    /// A package without a file of its own, or the beginning of a dotted name: by the import.
    Prefix(FileIndex, u32, u32),
    Definition(Place),
    /// An object of this class.
    Instance(Place),
}

/// The files that an import names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) module: Option<FileIndex>,
    /// Of `from package import module`, the module's.
    pub(super) inner: Option<FileIndex>,
}

/// Looks names up for one file, and notes what the answers depend on.
pub(super) struct Resolver<'a> {
    pub(super) files: &'a [SourceFile],
    pub(super) modules: &'a Modules,
    members: &'a Members,
    own: Own,
    looked: RefCell<Looked>,
    asked: RefCell<FxHashSet<u64>>,
    imports: RefCell<FxHashMap<(FileIndex, u32), Target>>,
    /// What was evaluated before; what is being evaluated means nothing yet: `x = x.next`.
    values: RefCell<FxHashMap<Place, Option<Entity>>>,
    bindings: RefCell<FxHashMap<(FileIndex, u32), Option<Entity>>>,
    ancestors: RefCell<FxHashMap<Place, Rc<[Place]>>>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        files: &'a [SourceFile],
        modules: &'a Modules,
        members: &'a Members,
        file: FileIndex,
    ) -> Self {
        let names = files[file as usize].facts.symbols.len();
        Self {
            files,
            modules,
            members,
            own: Own {
                file,
                of_module: RefCell::new(vec![None; names]),
                only: RefCell::new(vec![None; names]),
            },
            looked: RefCell::new(Looked::new(files.len())),
            asked: RefCell::default(),
            imports: RefCell::default(),
            values: RefCell::default(),
            bindings: RefCell::default(),
            ancestors: RefCell::default(),
        }
    }

    /// The files that were looked into, and the hashes of names that were looked up over the whole
    /// repository.
    pub(super) fn dependencies(self) -> (Vec<FileIndex>, FxHashSet<u64>) {
        (self.looked.into_inner().order, self.asked.into_inner())
    }

    pub(super) fn file(&self, file: FileIndex) -> &'a SourceFile {
        self.looked.borrow_mut().add(file);
        &self.files[file as usize]
    }

    fn definition(&self, place: Place) -> Option<&'a Definition> {
        let facts = &self.file(place.file).facts;
        facts.definitions.get(place.definition? as usize)
    }

    /// The files that an import names.
    pub(super) fn target(&self, file: FileIndex, import: u32) -> Target {
        if let Some(known) = self.imports.borrow().get(&(file, import)) {
            return *known;
        }
        let SourceFile { path, facts, .. } = &self.files[file as usize];
        let found = &facts.imports[import as usize];
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let (modules, level, module) = (self.modules, found.level, facts.name(found.module));
        let target = Target {
            module: modules.resolve(file, folder, level, module),
            inner: found.name.and_then(|name| {
                let absolute = modules.absolute(file, level, module)?;
                modules.find(&dotted(&absolute, facts.name(name)))
            }),
        };
        self.imports.borrow_mut().insert((file, import), target);
        target
    }

    /// The classes that `class` names as its bases, where they are of this repository.
    pub(super) fn bases(&self, class: Place) -> Vec<Place> {
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
    pub(super) fn ancestors(&self, class: Place) -> Rc<[Place]> {
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

    pub(super) fn own(&self, owner: Place, name: Name) -> Option<Place> {
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

    pub(super) fn beginning(
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
            _ => self.name(file, scope, part.name, steps),
        }
    }

    pub(super) fn part(
        &self,
        file: FileIndex,
        before: Option<Entity>,
        part: ChainPart,
        steps: u32,
    ) -> Option<Entity> {
        match before {
            Some(entity) => self.member(entity, self.name_of(file, part), steps),
            None => self.only_named(file, part.name),
        }
    }

    fn name_of(&self, file: FileIndex, part: ChainPart) -> Name<'a> {
        let SourceFile { facts, names, .. } = &self.files[file as usize];
        names.name(facts, part.name)
    }

    /// What comes of calling `entity` as often as `part` does.
    pub(super) fn call(
        &self,
        file: FileIndex,
        mut entity: Option<Entity>,
        part: ChainPart,
        steps: u32,
    ) -> Option<Entity> {
        if part.calls == 0 {
            return entity;
        }
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
                if module.split('.').nth(length as usize) == Some(name.text) {
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
    pub(super) fn only_named(&self, file: FileIndex, symbol: Symbol) -> Option<Entity> {
        let is_own = file == self.own.file;
        if is_own && let Some(known) = self.own.only.borrow()[symbol.0 as usize] {
            return known;
        }
        let SourceFile { facts, names, .. } = &self.files[file as usize];
        let name = names.name(facts, symbol);
        self.asked.borrow_mut().insert(name.hash);
        let facts_of = |file: FileIndex| self.files[file as usize].facts.as_ref();
        let found = self.members.only(name, facts.language.family(), facts_of);
        let found = found.map(Entity::Definition);
        if is_own {
            self.own.only.borrow_mut()[symbol.0 as usize] = Some(found);
        }
        found
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

    fn name(&self, file: FileIndex, scope: Scope, symbol: Symbol, steps: u32) -> Option<Entity> {
        let SourceFile { facts, names, .. } = self.file(file);
        let name = names.name(facts, symbol);
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
        // What fewer steps find may be less.
        if (file, steps) != (self.own.file, MAX_STEPS) {
            return self.in_module(file, name, steps);
        }
        if let Some(known) = self.own.of_module.borrow()[symbol.0 as usize] {
            return known;
        }
        let found = self.in_module(file, name, steps);
        self.own.of_module.borrow_mut()[symbol.0 as usize] = Some(found);
        found
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
            let module = self.target(file, *star).module;
            self.in_module(module.filter(|module| *module != file)?, name, steps)
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
                false => self.target(file, index).module.map(Entity::Module),
            };
        };
        let Target { module, inner } = self.target(file, index);
        let of_module = module
            .filter(|module| *module != file)
            .and_then(|module| self.of_module(module, names.name(facts, name), steps));
        of_module.or(inner.map(Entity::Module))
    }

    /// The first `length` parts of the dotted name that an import names.
    fn prefix(&self, file: FileIndex, import: u32, length: u32) -> Option<Entity> {
        let facts = &self.files[file as usize].facts;
        let module = facts.name(facts.imports[import as usize].module);
        if first_parts(module, length).len() == module.len() {
            return self.modules.find(module).map(Entity::Module);
        }
        Some(Entity::Prefix(file, import, length))
    }
}

/// What names of the file itself stand for, by their symbols: most are used more than once.
struct Own {
    file: FileIndex,
    /// At the level of the module.
    of_module: RefCell<Vec<Option<Option<Entity>>>>,
    /// Over the whole repository.
    only: RefCell<Vec<Option<Option<Entity>>>>,
}

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

fn dotted(module: &str, name: &str) -> String {
    match module.is_empty() {
        true => name.to_owned(),
        false => format!("{module}.{name}"),
    }
}

/// As many parts of a dotted name.
fn first_parts(module: &str, length: u32) -> &str {
    let mut dots = module.match_indices('.');
    let end = length
        .checked_sub(1)
        .and_then(|before| dots.nth(before as usize));
    end.map_or(module, |(at, _)| &module[..at])
}
