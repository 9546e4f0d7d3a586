//! Looking names up: in the scopes of one file, and among the definitions of all of them.

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use super::{
    facts::{Definition, DefinitionIndex, DefinitionKind, FileFacts, Symbol},
    language::Language,
    node::{FileIndex, Place},
};

/// `None` is the module's.
pub(super) type Scope = Option<DefinitionIndex>;

/// A name to look up, in whatever file it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'a> {
    pub(super) text: &'a str,
    pub(super) hash: u64,
}

impl<'a> Name<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(text.as_bytes());
        Self {
            text,
            hash: hasher.finish(),
        }
    }
}

/// What a name stands for in one scope.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meaning {
    pub(super) binding: Option<u32>,
    pub(super) definition: Option<DefinitionIndex>,
    pub(super) import: Option<u32>,
}

#[derive(Clone, Debug)]
struct Entry {
    scope: Scope,
    name: Symbol,
    meaning: Meaning,
}

/// Where an entry may be: most of the time its hash alone tells that it is another.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Of the scope and the name.
    hash: u32,
    /// A place among the entries, and one; 0 is free.
    entry: u32,
}

/// Definitions, imports and bindings of a file by what they stand in and their name. Of equal ones the
/// one that counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Of the file's symbols.
    hashes: Vec<u64>,
    entries: Vec<Entry>,
    /// By hash; twice as many as entries, or more.
    slots: Vec<Slot>,
    /// Imports of everything, at the level of the module.
    pub(super) stars: Vec<u32>,
}

impl Names {
    pub(super) fn new(facts: &FileFacts) -> Self {
        let symbols = facts.symbols.iter();
        let most = facts.definitions.len() + facts.imports.len() + facts.bindings.len();
        let mut names = Self {
            hashes: symbols
                .map(|text| Name::new(facts.text(*text)).hash)
                .collect(),
            entries: Vec::with_capacity(most),
            slots: vec![Slot::default(); (most * 2).next_power_of_two()],
            stars: Vec::new(),
        };
        for (index, definition) in facts.definitions.iter().enumerate() {
            let meaning = names.entry(definition.parent, definition.name);
            // The last one counts, but a setter does not hide its property, nor an attribute what
            // has its name.
            let hides = meaning.definition.is_none_or(|known| {
                !facts.definitions[known as usize].is_property
                    && definition.kind != DefinitionKind::Attribute
            });
            if hides {
                meaning.definition = Some(index as u32);
            }
        }
        for (index, import) in facts.imports.iter().enumerate() {
            let index = index as u32;
            let is_star = import.name.is_some_and(|name| facts.name(name) == "*");
            match (is_star, import.scope) {
                (true, None) => names.stars.push(index),
                (true, Some(_)) => {}
                (false, scope) => {
                    let meaning = names.entry(scope, import.bound);
                    meaning.import = meaning.import.or(Some(index));
                }
            }
        }
        for (index, binding) in facts.bindings.iter().enumerate() {
            let meaning = names.entry(Some(binding.scope), binding.name);
            meaning.binding = Some(index as u32);
        }
        names
    }

    /// A name of this file.
    pub(super) fn name<'a>(&self, facts: &'a FileFacts, symbol: Symbol) -> Name<'a> {
        Name {
            text: facts.name(symbol),
            hash: self.hashes[symbol.0 as usize],
        }
    }

    fn entry(&mut self, scope: Scope, name: Symbol) -> &mut Meaning {
        let mask = self.slots.len() - 1;
        let hash = slot_hash(scope, self.hashes[name.0 as usize]);
        let mut at = hash as usize & mask;
        let known = loop {
            let Some(known) = (self.slots[at].entry as usize).checked_sub(1) else {
                let entry = self.entries.len() as u32 + 1;
                self.slots[at] = Slot { hash, entry };
                self.entries.push(Entry {
                    scope,
                    name,
                    meaning: Meaning::default(),
                });
                break entry as usize - 1;
            };
            // A file has each name once among its symbols.
            if self.entries[known].scope == scope && self.entries[known].name == name {
                break known;
            }
            at = (at + 1) & mask;
        };
        &mut self.entries[known].meaning
    }

    /// What `name` stands for in `scope` itself.
    pub(super) fn find(&self, facts: &FileFacts, scope: Scope, name: Name) -> Meaning {
        if self.slots.is_empty() {
            return Meaning::default();
        }
        let mask = self.slots.len() - 1;
        let hash = slot_hash(scope, name.hash);
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let Some(known) = (slot.entry as usize).checked_sub(1) else {
                return Meaning::default();
            };
            if slot.hash == hash {
                let entry = &self.entries[known];
                if entry.scope == scope && facts.name(entry.name) == name.text {
                    return entry.meaning;
                }
            }
            at = (at + 1) & mask;
        }
    }
}

fn slot_hash(scope: Scope, hash: u64) -> u32 {
    let scope = scope.map_or(0, |scope| u64::from(scope) + 1);
    let mixed =
        (hash ^ scope.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed >> 32) as u32
}

/// Methods of Python and definitions of the other languages, by name, over the whole repository.
#[derive(Clone, Debug, Default)]
pub(super) struct Members(FxHashMap<u64, Vec<Place>>);

impl Members {
    pub(super) fn add(&mut self, file: FileIndex, facts: &FileFacts, names: &Names) {
        for (definition, name) in members(facts) {
            let place = Place {
                file,
                definition: Some(definition),
            };
            let hash = names.name(facts, name).hash;
            self.0.entry(hash).or_default().push(place);
        }
    }

    pub(super) fn remove(&mut self, file: FileIndex, facts: &FileFacts, names: &Names) {
        for (_, name) in members(facts) {
            let hash = names.name(facts, name).hash;
            if let Some(places) = self.0.get_mut(&hash) {
                places.retain(|place| place.file != file);
            }
        }
    }

    /// The only place that is called so, in a language of this family.
    pub(super) fn only<'a>(
        &self,
        name: Name,
        family: Language,
        facts: impl Fn(FileIndex) -> &'a FileFacts,
    ) -> Option<Place> {
        let mut found = self.0.get(&name.hash)?.iter().filter(|place| {
            let facts = facts(place.file);
            let definition = place
                .definition
                .and_then(|index| facts.definitions.get(index as usize));
            facts.language.family() == family
                && definition.is_some_and(|found| facts.name(found.name) == name.text)
        });
        let only = found.next()?;
        found.next().is_none().then_some(*only)
    }
}

/// Of Python, methods of classes: what a member of something unknown may be. Of the other languages,
/// all that they define.
pub(super) fn members(facts: &FileFacts) -> impl Iterator<Item = (DefinitionIndex, Symbol)> {
    let is_member = |definition: &Definition| {
        if facts.language != Language::Python {
            return true;
        }
        let parent = definition.parent;
        parent.is_some_and(|parent| {
            facts.definitions[parent as usize].kind == DefinitionKind::Class
                && definition.kind == DefinitionKind::Function
                && !facts.name(definition.name).starts_with("__")
        })
    };
    let all = facts.definitions.iter().enumerate();
    all.filter(move |(_, definition)| is_member(definition))
        .map(|(index, definition)| (index as u32, definition.name))
}
