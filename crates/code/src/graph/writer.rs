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
        let out = &mut self.facts.text;
        let start = out.len();
        let mut at_word_end = false;
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        'parts: for part in parts {
            if part.starts_with(|c: char| c.is_whitespace()) {
                at_word_end = true;
            }
            for word in part.split_whitespace() {
                if out.len() - start + word.len() + 1 > KEPT {
                    break 'parts;
                }
                if at_word_end && out.len() > start {
                    out.push(' ');
                }
                out.push_str(word);
                at_word_end = true;
            }
            at_word_end = part.ends_with(|c: char| c.is_whitespace());
        }
        self.text_from(start as u32)
    }

    pub(super) fn chain(&mut self, part: ChainPart) -> ChainIndex {
        let next = self.facts.chains.len() as u32;
        let index = *self.chains.entry(part).or_insert(next);
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
