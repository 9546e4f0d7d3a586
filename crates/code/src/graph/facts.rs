//! What one file of a repository says by itself: what it defines, imports and mentions.

use serde::{Deserialize, Serialize};

/// The facts of one file. A function of its content alone, so they can be kept by its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// Lines of the file.
    pub lines: u32,
    /// The first lines of the module's docstring.
    pub documentation: Option<String>,
    /// In the order of the source; what holds others comes before them.
    pub definitions: Vec<Definition>,
    pub imports: Vec<Import>,
    pub bindings: Vec<Binding>,
    /// Each once, in the order of scopes and chains.
    pub uses: Vec<Use>,
    /// Why there is nothing, or not everything, of the file here.
    pub fault: Option<String>,
}

/// A place in [`FileFacts::definitions`].
pub type DefinitionIndex = u32;

/// A class, a function or an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    pub kind: DefinitionKind,
    pub name: String,
    /// The class or function that it stands in.
    pub parent: Option<DefinitionIndex>,
    /// With decorators.
    pub span: Span,
    /// The line of its name.
    pub line: u32,
    /// How it begins, such as `def f(x: int) -> str`; of an attribute, nothing.
    pub signature: String,
    /// The first lines of its docstring.
    pub documentation: Option<String>,
    /// A class: what it extends.
    pub bases: Vec<Chain>,
    /// A function: what it returns, by its annotation. An attribute: its value.
    pub value: Option<Chain>,
    /// Where names of `value` are looked up, of an attribute that a method assigns.
    pub value_scope: Option<DefinitionIndex>,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The function or class that it stands in.
    pub scope: Option<DefinitionIndex>,
    /// Dotted; empty in `from . import b`.
    pub module: String,
    /// Dots before the module.
    pub level: u32,
    /// Of `from` imports: the name, or `*`.
    pub name: Option<String>,
    /// The name that it is bound to here. Of `import a.b` without `as`, `a`.
    pub bound: String,
}

/// A local variable or a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub scope: DefinitionIndex,
    pub name: String,
    /// Its value; `None` where it cannot be told.
    pub value: Option<Chain>,
}

/// An expression of names, attributes and calls, such as `self.tree.find()`. The arguments of calls are
/// left out, and what it begins with is `?` where that is no name.
pub type Chain = String;

/// A chain that is evaluated somewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Use {
    /// The innermost function or class around it.
    pub scope: Option<DefinitionIndex>,
    pub chain: Chain,
}
