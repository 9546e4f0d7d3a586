//! Facts of a file while they are collected: names and chains are kept once.

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::facts::{
    ChainIndex, ChainPart, Definition, DefinitionIndex, DefinitionKind, FileFacts, Span, Symbol,
    Text, Use,
};

/// Characters of documentation and signatures that are kept.
const KEPT: usize = 240;

/// Bytes of source for each name, chain and use of one, about.
const BYTES_EACH: usize = 40;

/// Facts that grow. Names are borrowed from the source.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) facts: FileFacts,
    symbols: FxHashMap<&'a str, Symbol>,
    /// By symbol, the chains of that name alone, and of that name called once: most are such.
    names: Vec<[Option<ChainIndex>; 2]>,
    /// The others.
    chains: FxHashMap<ChainPart, ChainIndex>,
    uses: FxHashSet<Use>,
}

impl<'a> Writer<'a> {
    /// With room for what a source of so many bytes usually says.
    pub(super) fn new(bytes: usize) -> Self {
        let room = bytes / BYTES_EACH;
        Self {
            facts: FileFacts::default(),
            symbols: FxHashMap::with_capacity_and_hasher(room, FxBuildHasher),
            names: Vec::with_capacity(room),
            chains: FxHashMap::with_capacity_and_hasher(room, FxBuildHasher),
            uses: FxHashSet::with_capacity_and_hasher(room, FxBuildHasher),
        }
    }

    pub(super) fn symbol(&mut self, name: &'a str) -> Symbol {
        if let Some(known) = self.symbols.get(name) {
            return *known;
        }
        let text = self.text(name);
        let symbol = Symbol(self.facts.symbols.len() as u32);
        self.facts.symbols.push(text);
        self.names.push([None; 2]);
        self.symbols.insert(name, symbol);
        symbol
    }

    pub(super) fn text(&mut self, text: &str) -> Text {
        let start = self.facts.text.len() as u32;
        self.facts.text.push_str(text);
        self.text_from(start)
    }

    fn text_from(&self, start: u32) -> Text {
        Text {
            start,
            length: self.facts.text.len() as u32 - start,
        }
    }

    /// The beginning of `parts` in a row, white space made single.
    pub(super) fn one_line<'t>(&mut self, parts: impl IntoIterator<Item = &'t str>) -> Text {
        let start = self.facts.text.len();
        let mut at_word_end = false;
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        for part in parts {
            at_word_end |= part.starts_with(char::is_whitespace);
            // Of ASCII both are the same but for one character; the first decodes nothing.
            let has_room = match part.is_ascii() && !part.contains('\x0b') {
                true => self.words(start, at_word_end, part.split_ascii_whitespace()),
                false => self.words(start, at_word_end, part.split_whitespace()),
            };
            if !has_room {
                break;
            }
            at_word_end = part.ends_with(char::is_whitespace);
        }
        self.text_from(start as u32)
    }

    /// Adds words to the line that begins at `start`, a space before each but for the first where the
    /// line goes on in a word. Whether all had room.
    fn words<'t>(
        &mut self,
        start: usize,
        mut at_word_end: bool,
        mut words: impl Iterator<Item = &'t str>,
    ) -> bool {
        let out = &mut self.facts.text;
        words.all(|word| {
            let has_room = out.len() - start + word.len() < KEPT;
            if has_room {
                if at_word_end && out.len() > start {
                    out.push(' ');
                }
                out.push_str(word);
                at_word_end = true;
            }
            has_room
        })
    }

    pub(super) fn chain(&mut self, part: ChainPart) -> ChainIndex {
        let next = self.facts.chains.len() as u32;
        let of_name = self.names[part.name.0 as usize].get_mut(part.calls as usize);
        let index = match (part.before, of_name) {
            (None, Some(known)) => *known.get_or_insert(next),
            _ => *self.chains.entry(part).or_insert(next),
        };
        if index == next {
            self.facts.chains.push(part);
        }
        index
    }

    pub(super) fn use_chain(&mut self, scope: Option<DefinitionIndex>, chain: ChainIndex) {
        let used = Use { scope, chain };
        if self.uses.insert(used) {
            self.facts.uses.push(used);
        }
    }

    pub(super) fn define(&mut self, definition: Definition) -> DefinitionIndex {
        self.facts.definitions.push(definition);
        self.facts.definitions.len() as u32 - 1
    }
}

impl Definition {
    /// One that nothing more is known of.
    pub(super) fn plain(
        kind: DefinitionKind,
        name: Symbol,
        parent: Option<DefinitionIndex>,
        span: Span,
        line: u32,
    ) -> Self {
        Self {
            kind,
            name,
            parent,
            span,
            line,
            signature: Text::default(),
            documentation: Text::default(),
            bases: (0, 0),
            value: None,
            value_scope: None,
            is_property: false,
        }
    }
}
