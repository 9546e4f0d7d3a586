//! What one file of a repository says by itself: what it defines, imports and mentions.

use serde::{Deserialize, Serialize};

use super::language::Language;

/// The facts of one file. A function of its name's ending and its content alone, so they can be kept by
/// its digest.
///
/// Names and texts lie in one string, and chains share what they begin with: a repository has millions
/// of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    pub language: Language,
    /// Lines of the file.
    pub lines: u32,
    /// The first lines of the module's docstring.
    pub documentation: Text,
    /// Why there is nothing, or not everything, of the file here.
    pub fault: Option<String>,
    /// In the order of the source; what holds others comes before them.
    pub definitions: Vec<Definition>,
    pub imports: Vec<Import>,
    pub bindings: Vec<Binding>,
    /// Each once, in the order of the source.
    pub uses: Vec<Use>,
    pub(super) bases: Vec<ChainIndex>,
    pub(super) chains: Vec<ChainPart>,
    pub(super) symbols: Vec<Text>,
    pub(super) text: String,
}

/// A part of the text of a file's facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pub(super) start: u32,
    pub(super) length: u32,
}

/// A name, as a place among the names of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(pub(super) u32);

/// A place in [`FileFacts::definitions`].
pub type DefinitionIndex = u32;

/// A class, a function or an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub kind: DefinitionKind,
    pub name: Symbol,
    /// The class or function that it stands in.
    pub parent: Option<DefinitionIndex>,
    /// With decorators.
    pub span: Span,
    /// The line of its name.
    pub line: u32,
    /// How it begins, such as `def f(x: int) -> str`; of an attribute, nothing.
    pub signature: Text,
    /// The first lines of its docstring.
    pub documentation: Text,
    /// A class: what it extends, as places among the file's bases.
    pub(super) bases: (u32, u32),
    /// A function: what it returns, by its annotation. An attribute: its value.
    pub(super) value: Option<ChainIndex>,
    /// Where names of `value` are looked up, of an attribute that a method assigns.
    pub(super) value_scope: Option<DefinitionIndex>,
    /// A function that is read like an attribute.
    pub is_property: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefinitionKind {
    Class,
    Function,
    Attribute,
}

/// Lines, the first being 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

/// `import a.b as c`, or one name of `from a import b as c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The function or class that it stands in.
    pub scope: Option<DefinitionIndex>,
    /// Dotted; empty in `from . import b`. In other languages than Python, as it is written.
    pub module: Symbol,
    /// Dots before the module.
    pub level: u32,
    /// Of `from` imports: the name, or `*`.
    pub name: Option<Symbol>,
    /// The name that it is bound to here. Of `import a.b` without `as`, `a`.
    pub bound: Symbol,
}

/// A local variable or a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    pub scope: DefinitionIndex,
    pub name: Symbol,
    /// Its value; `None` where it cannot be told.
    pub(super) value: Option<ChainIndex>,
}

/// A chain that is evaluated somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Use {
    /// The innermost function or class around it.
    pub scope: Option<DefinitionIndex>,
    pub(super) chain: ChainIndex,
}

/// A place in [`FileFacts::chains`]. A chain is an expression of names, attributes and calls, such as
/// `self.tree.find()`, by its last part. The arguments of calls are left out, and what it begins with is
/// `?` where that is no name.
pub(super) type ChainIndex = u32;

/// The last part of a chain, and the chain before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ChainPart {
    pub(super) before: Option<ChainIndex>,
    pub(super) name: Symbol,
    /// How often what it names is called.
    pub(super) calls: u32,
}

impl FileFacts {
    /// The words of a part of the text.
    pub fn text(&self, text: Text) -> &str {
        let start = text.start as usize;
        self.text
            .get(start..start + text.length as usize)
            .unwrap_or_default()
    }

    pub fn name(&self, symbol: Symbol) -> &str {
        self.symbols
            .get(symbol.0 as usize)
            .map_or("", |text| self.text(*text))
    }

    pub(super) fn chain(&self, index: ChainIndex) -> ChainPart {
        self.chains[index as usize]
    }

    pub(super) fn bases_of(&self, class: &Definition) -> &[ChainIndex] {
        let (start, end) = class.bases;
        &self.bases[start as usize..end as usize]
    }

    /// Whether all that other files can see of this one is alike in `other`, in the order in which they
    /// refer to it.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        let name = |one: Symbol, two: Symbol| self.name(one) == other.name(two);
        let chain = |one: Option<ChainIndex>, two: Option<ChainIndex>| match (one, two) {
            (Some(one), Some(two)) => self.same_chain(one, other, two),
            (one, two) => one.is_none() && two.is_none(),
        };
        let bases = |one: &Definition, two: &Definition| {
            let (one, two) = (self.bases_of(one), other.bases_of(two));
            one.len() == two.len()
                && one
                    .iter()
                    .zip(two)
                    .all(|(one, two)| chain(Some(*one), Some(*two)))
        };
        let definition = |(one, two): (&Definition, &Definition)| {
            one.kind == two.kind
                && one.parent == two.parent
                && one.value_scope == two.value_scope
                && one.is_property == two.is_property
                && name(one.name, two.name)
                && chain(one.value, two.value)
                && bases(one, two)
        };
        let import = |(one, two): (&Import, &Import)| {
            one.scope == two.scope
                && one.level == two.level
                && one.name.is_some() == two.name.is_some()
                && name(one.module, two.module)
                && name(one.bound, two.bound)
                && one
                    .name
                    .zip(two.name)
                    .is_none_or(|(one, two)| name(one, two))
        };
        let binding = |(one, two): (&Binding, &Binding)| {
            one.scope == two.scope && name(one.name, two.name) && chain(one.value, two.value)
        };
        self.language == other.language
            && self.definitions.len() == other.definitions.len()
            && self.imports.len() == other.imports.len()
            && self.bindings.len() == other.bindings.len()
            && self
                .definitions
                .iter()
                .zip(&other.definitions)
                .all(definition)
            && self.imports.iter().zip(&other.imports).all(import)
            && self.bindings.iter().zip(&other.bindings).all(binding)
    }

    fn same_chain(&self, one: ChainIndex, other: &Self, two: ChainIndex) -> bool {
        let (mut one, mut two) = (Some(one), Some(two));
        while let (Some(mine), Some(theirs)) = (one, two) {
            let (mine, theirs) = (self.chain(mine), other.chain(theirs));
            if mine.calls != theirs.calls || self.name(mine.name) != other.name(theirs.name) {
                return false;
            }
            (one, two) = (mine.before, theirs.before);
        }
        one.is_none() && two.is_none()
    }
}
