//! From what each file says to what it means by it: edges between files.
//!
//! Names are looked up as Python does, as far as that can be told without running anything: through
//! scopes, imports (stars included), classes and what they extend, annotations, and the values that
//! variables were given. A member of something unknown means the only definition of that name in the
//! repository, if there is one.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    facts::{Chain, Definition, DefinitionIndex, DefinitionKind, FileFacts, Import},
    modules::Modules,
    node::{EdgeKind, FileIndex, Place, is_test_path},
};

/// Chains lead to chains; cycles among them end here.
const MAX_STEPS: u32 = 24;

/// A file with what it says.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) facts: Arc<FileFacts>,
    pub(super) names: Arc<Names>,
}

/// Definitions, imports and bindings of a file, in the order of what they stand in and their name. Of
/// equal ones the one that counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    definitions: Vec<DefinitionIndex>,
    imports: Vec<u32>,
    bindings: Vec<u32>,
    /// Imports of everything, at the level of the module.
    stars: Vec<u32>,
}

impl Names {
    pub(super) fn new(facts: &FileFacts) -> Self {
        let definition = |index: &u32| {
            let it = &facts.definitions[*index as usize];
            (it.parent, it.name.as_str())
        };
        let import = |index: &u32| {
            let it = &facts.imports[*index as usize];
            (it.scope, it.bound.as_str())
        };
        let binding = |index: &u32| {
            let it = &facts.bindings[*index as usize];
            (it.scope, it.name.as_str())
        };
        let (stars, mut imports): (Vec<u32>, Vec<u32>) = (0..facts.imports.len() as u32)
            .partition(|index| facts.imports[*index as usize].name.as_deref() == Some("*"));
        imports.sort_by(|one, two| import(one).cmp(&import(two)));
        imports.dedup_by(|later, first| import(later) == import(first));
        let mut bindings: Vec<u32> = (0..facts.bindings.len() as u32).collect();
        bindings.sort_by(|one, two| binding(one).cmp(&binding(two)));
        let mut definitions: Vec<u32> = (0..facts.definitions.len() as u32).collect();
        definitions.sort_by(|one, two| definition(one).cmp(&definition(two)));
        definitions.dedup_by(|later, known| {
            let same = definition(later) == definition(known);
            // The last one counts, but a setter does not hide its property, nor an attribute what
            // has its name.
            let hidden = facts.definitions[*known as usize].is_property
                || facts.definitions[*later as usize].kind == DefinitionKind::Attribute;
            if same && !hidden {
                *known = *later;
            }
            same
        });
        Self {
            definitions,
            imports,
            bindings,
            stars: stars
                .into_iter()
                .filter(|index| facts.imports[*index as usize].scope.is_none())
                .collect(),
        }
    }

    fn definition(&self, facts: &FileFacts, scope: Scope, name: &str) -> Option<DefinitionIndex> {
        search(&self.definitions, |index| {
            let it = &facts.definitions[index as usize];
            (it.parent, it.name.as_str()).cmp(&(scope, name))
        })
    }

    fn import(&self, facts: &FileFacts, scope: Scope, name: &str) -> Option<u32> {
        search(&self.imports, |index| {
            let it = &facts.imports[index as usize];
            (it.scope, it.bound.as_str()).cmp(&(scope, name))
        })
    }

    fn binding(&self, facts: &FileFacts, scope: DefinitionIndex, name: &str) -> Option<u32> {
        search(&self.bindings, |index| {
            let it = &facts.bindings[index as usize];
            (it.scope, it.name.as_str()).cmp(&(scope, name))
        })
    }
}

fn search(sorted: &[u32], compare: impl Fn(u32) -> std::cmp::Ordering) -> Option<u32> {
    let found = sorted.binary_search_by(|index| compare(*index));
    found.ok().map(|at| sorted[at])
}

/// Methods by name, over the whole repository.
#[derive(Clone, Debug, Default)]
pub(super) struct Members(FxHashMap<String, Vec<Place>>);

impl Members {
    pub(super) fn add(&mut self, file: FileIndex, facts: &FileFacts) {
        for (definition, name) in members(facts) {
            let place = Place {
                file,
                definition: Some(definition),
            };
            match self.0.get_mut(name) {
                Some(places) => places.push(place),
                None => drop(self.0.insert(name.to_owned(), vec![place])),
            }
        }
    }

    pub(super) fn remove(&mut self, file: FileIndex, facts: &FileFacts) {
        for (_, name) in members(facts) {
            if let Some(places) = self.0.get_mut(name) {
                places.retain(|place| place.file != file);
            }
        }
    }

    /// Where the name has one owner only.
    fn only(&self, name: &str) -> Option<Place> {
        match self.0.get(name)?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }
}

/// Methods of classes: what a member of something unknown may be.
pub(super) fn members(facts: &FileFacts) -> impl Iterator<Item = (DefinitionIndex, &str)> {
    let all = facts.definitions.iter().enumerate();
    all.filter_map(|(index, definition)| {
        let parent = facts.definitions.get(definition.parent? as usize)?;
        let is_method = parent.kind == DefinitionKind::Class
            && definition.kind == DefinitionKind::Function
            && !definition.name.starts_with("__");
        is_method.then_some((index as u32, definition.name.as_str()))
    })
}

/// What the names of one file mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Links {
    /// From definitions of the file, or from the file itself; in order.
    pub(super) edges: Edges,
    /// Other files that were looked into, and names that were looked up over the whole repository:
    /// when none of these change, neither do the links. In order.
    pub(super) files: Vec<FileIndex>,
    pub(super) names: Vec<String>,
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
        looked: RefCell::new(vec![false; files.len()]),
        asked: RefCell::default(),
        values: RefCell::default(),
        bindings: RefCell::default(),
        ancestors: RefCell::default(),
    };
    let mut edges = Edges::new();
    linker.imports(file, &mut edges);
    linker.classes(file, &mut edges);
    linker.uses(file, &mut edges);
    linker.tests(file, &mut edges);
    edges.sort_unstable();
    edges.dedup();
    let looked = linker.looked.into_inner();
    let others = (0..files.len() as u32).filter(|other| looked[*other as usize] && *other != file);
    let mut names: Vec<String> = linker.asked.into_inner().into_iter().collect();
    names.sort_unstable();
    Links {
        edges,
        files: others.collect(),
        names,
    }
}

pub(super) type Edges = Vec<(Scope, EdgeKind, Place)>;
/// `None` is the module's.
pub(super) type Scope = Option<DefinitionIndex>;

struct Linker<'a> {
    files: &'a [SourceFile],
    modules: &'a Modules,
    members: &'a Members,
    looked: RefCell<Vec<bool>>,
    asked: RefCell<FxHashSet<String>>,
    /// What was evaluated before; what is being evaluated means nothing yet: `x = x.next`.
    values: RefCell<FxHashMap<Place, Option<Entity>>>,
    bindings: RefCell<FxHashMap<(FileIndex, u32), Option<Entity>>>,
    ancestors: RefCell<FxHashMap<Place, Rc<[Place]>>>,
}

impl Linker<'_> {
    fn file(&self, file: FileIndex) -> &SourceFile {
        self.looked.borrow_mut()[file as usize] = true;
        &self.files[file as usize]
    }

    fn definition(&self, place: Place) -> Option<&Definition> {
        let facts = &self.file(place.file).facts;
        facts.definitions.get(place.definition? as usize)
    }

    fn imports(&self, file: FileIndex, edges: &mut Edges) {
        for import in &self.file(file).facts.imports {
            let module = self.module(file, import);
            // `from package import module` means the module's file.
            let inner = import.name.as_deref().and_then(|name| {
                let absolute = self.modules.absolute(file, import.level, &import.module)?;
                self.modules.find(&dotted(&absolute, name))
            });
            for target in module.into_iter().chain(inner) {
                if target != file {
                    let target = Place {
                        file: target,
                        definition: None,
                    };
                    edges.push((None, EdgeKind::Imports, target));
                }
            }
        }
    }

    fn module(&self, file: FileIndex, import: &Import) -> Option<FileIndex> {
        let path = &self.files[file as usize].path;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.modules
            .resolve(file, folder, import.level, &import.module)
    }

    fn classes(&self, file: FileIndex, edges: &mut Edges) {
        let facts = &self.file(file).facts;
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
                edges.push((Some(index), EdgeKind::Extends, base));
            }
            let ancestors = self.ancestors(place);
            for (method, _) in members_of(facts, index) {
                let name = &facts.definitions[method as usize].name;
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
                    edges.push((Some(method), EdgeKind::Overrides, overridden));
                }
            }
        }
    }

    /// The classes that `class` names as its bases, where they are of this repository.
    fn bases(&self, class: Place) -> Vec<Place> {
        let Some(definition) = self.definition(class) else {
            return Vec::new();
        };
        let found = definition.bases.iter().filter_map(|base| {
            match self.evaluate(
                class.file,
                definition.parent,
                base,
                MAX_STEPS,
                &mut |_, _| (),
            )? {
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

    fn own(&self, owner: Place, name: &str) -> Option<Place> {
        let file = self.file(owner.file);
        let definition = file.names.definition(&file.facts, owner.definition, name)?;
        Some(Place {
            file: owner.file,
            definition: Some(definition),
        })
    }

    fn uses(&self, file: FileIndex, edges: &mut Edges) {
        for used in &self.file(file).facts.uses {
            let mut record = |place: Place, kind: EdgeKind| {
                let source = Place {
                    file,
                    definition: used.scope,
                };
                if place != source && place.definition.is_some() {
                    edges.push((used.scope, kind, place));
                }
            };
            self.evaluate(file, used.scope, &used.chain, MAX_STEPS, &mut record);
        }
    }

    /// Code under test, by what tests call, and by the names of files.
    fn tests(&self, file: FileIndex, edges: &mut Edges) {
        let path = &self.files[file as usize].path;
        if !is_test_path(path) {
            return;
        }
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

    /// Follows a chain from `scope`, telling `visit` of each definition on the way and whether it is
    /// called there or only mentioned.
    fn evaluate(
        &self,
        file: FileIndex,
        scope: Scope,
        chain: &Chain,
        steps: u32,
        visit: &mut dyn FnMut(Place, EdgeKind),
    ) -> Option<Entity> {
        let steps = steps.checked_sub(1)?;
        let mut parts = chain.split('.');
        let first = parts.next()?;
        let (name, calls) = called(first);
        let mut entity = match name {
            "?" => None,
            "super" => self.super_of(file, scope),
            _ => self.name(file, scope, name, steps),
        };
        let calls = calls - usize::from(name == "super").min(calls);
        entity = self.call(entity, calls, steps, visit);
        for part in parts {
            let (name, calls) = called(part);
            entity = match entity {
                Some(entity) => self.member(entity, name, steps),
                None => self.only_member(name),
            };
            entity = self.call(entity, calls, steps, visit);
        }
        entity
    }

    /// What comes of calling `entity` so many times.
    fn call(
        &self,
        mut entity: Option<Entity>,
        calls: usize,
        steps: u32,
        visit: &mut dyn FnMut(Place, EdgeKind),
    ) -> Option<Entity> {
        if let Some(Entity::Definition(place)) = entity {
            let kind = match calls {
                0 => EdgeKind::References,
                _ => EdgeKind::Calls,
            };
            visit(place, kind);
        }
        for _ in 0..calls {
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
                let value = definition.value.as_ref()?;
                let scope = definition.parent;
                if value == "Self()" {
                    return Some(Entity::Instance(Place {
                        file: place.file,
                        definition: Some(scope?),
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
        let value = definition.value.as_ref()?;
        let scope = match definition.kind {
            DefinitionKind::Attribute => definition.value_scope,
            _ => definition.parent,
        };
        let found = self.evaluate(place.file, scope, value, steps, &mut |_, _| ());
        self.values.borrow_mut().insert(place, found);
        found
    }

    fn member(&self, entity: Entity, name: &str, steps: u32) -> Option<Entity> {
        match entity {
            Entity::Module(file) => self.of_module(file, name, steps),
            Entity::Prefix(file, import, length) => {
                let import_facts = &self.files[file as usize].facts.imports[import as usize];
                let parts: Vec<&str> = import_facts.module.split('.').collect();
                if parts.get(length) != Some(&name) {
                    let prefix = parts.get(..length)?.join(".");
                    let module = self.modules.find(&prefix)?;
                    return self.of_module(module, name, steps);
                }
                self.prefix(file, import, length + 1)
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

    fn of_class(&self, class: Place, name: &str) -> Option<Entity> {
        let own = self.own(class, name);
        let found = own.or_else(|| {
            let ancestors = self.ancestors(class);
            ancestors
                .iter()
                .find_map(|ancestor| self.own(*ancestor, name))
        });
        found.map(Entity::Definition)
    }

    fn only_member(&self, name: &str) -> Option<Entity> {
        if !self.asked.borrow().contains(name) {
            self.asked.borrow_mut().insert(name.to_owned());
        }
        self.members.only(name).map(Entity::Definition)
    }

    /// A name at the level of a module: its own, then the package's modules.
    fn of_module(&self, file: FileIndex, name: &str, steps: u32) -> Option<Entity> {
        let own = self.in_module(file, name, steps.checked_sub(1)?);
        own.or_else(|| {
            let module = self.modules.name_of(file)?;
            self.modules.find(&dotted(module, name)).map(Entity::Module)
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

    fn name(&self, file: FileIndex, scope: Scope, name: &str, steps: u32) -> Option<Entity> {
        let SourceFile { facts, names, .. } = self.file(file);
        let mut at = scope;
        while let Some(index) = at {
            let definition = &facts.definitions[index as usize];
            let is_function = definition.kind == DefinitionKind::Function;
            // Names of a class are seen in its own body, not in its methods.
            if is_function || at == scope {
                if let Some(binding) = names.binding(facts, index, name) {
                    return self.bound(file, binding, steps);
                }
                if let Some(own) = names.definition(facts, at, name) {
                    return Some(Entity::Definition(Place {
                        file,
                        definition: Some(own),
                    }));
                }
                if let Some(import) = names.import(facts, at, name) {
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
        let Some(value) = &binding.value else {
            let class = || self.class_around(file, method.parent);
            return match binding.name.as_str() {
                "self" => class().map(Entity::Instance),
                "cls" => class().map(Entity::Definition),
                _ => None,
            };
        };
        if let Some(known) = self.bindings.borrow().get(&(file, index)) {
            return *known;
        }
        self.bindings.borrow_mut().insert((file, index), None);
        let found = self.evaluate(file, Some(binding.scope), value, steps, &mut |_, _| ());
        self.bindings.borrow_mut().insert((file, index), found);
        found
    }

    fn in_module(&self, file: FileIndex, name: &str, steps: u32) -> Option<Entity> {
        let steps = steps.checked_sub(1)?;
        let SourceFile { facts, names, .. } = self.file(file);
        if let Some(own) = names.definition(facts, None, name) {
            return Some(Entity::Definition(Place {
                file,
                definition: Some(own),
            }));
        }
        if let Some(import) = names.import(facts, None, name) {
            return self.imported(file, import, steps);
        }
        names.stars.iter().rev().find_map(|star| {
            let import = &self.files[file as usize].facts.imports[*star as usize];
            let module = self.module(file, import).filter(|module| *module != file)?;
            self.in_module(module, name, steps)
        })
    }

    fn imported(&self, file: FileIndex, index: u32, steps: u32) -> Option<Entity> {
        let import = &self.files[file as usize].facts.imports[index as usize];
        match import.name.as_deref() {
            None if import.module.contains('.')
                && import.module.split('.').next() == Some(&import.bound) =>
            {
                self.prefix(file, index, 1)
            }
            None => self.module(file, import).map(Entity::Module),
            Some(name) => {
                let of_module = self
                    .module(file, import)
                    .filter(|module| *module != file)
                    .and_then(|module| self.of_module(module, name, steps));
                of_module.or_else(|| {
                    let absolute = self.modules.absolute(file, import.level, &import.module)?;
                    let name = dotted(&absolute, name);
                    self.modules.find(&name).map(Entity::Module)
                })
            }
        }
    }

    /// The first `length` parts of the dotted name that an import names.
    fn prefix(&self, file: FileIndex, import: u32, length: usize) -> Option<Entity> {
        let module = &self.files[file as usize].facts.imports[import as usize].module;
        let parts: Vec<&str> = module.split('.').collect();
        if length == parts.len() {
            return self.modules.find(module).map(Entity::Module);
        }
        Some(Entity::Prefix(file, import, length))
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

/// A part of a chain: its name, and how often what it names is called.
fn called(part: &str) -> (&str, usize) {
    let name = part.trim_end_matches("()");
    (name, (part.len() - name.len()) / 2)
}
