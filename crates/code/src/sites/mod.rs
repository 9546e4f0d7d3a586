//! Python sources as sites: every syntax node with its parent, its statement and its scope, for those who edit code.
//!
//! [`Source`] is a parsed text, [`Sites`] its nodes in the order of the text, and [`Edit`] a change by a
//! byte span. Pure; nothing here says which edits are worth making.

mod edit;
mod scopes;
mod source;
mod tree;

pub use edit::Edit;
/// The nodes of [`Site`]s.
pub use ruff_python_ast as ast;
/// Where nodes stand.
pub use ruff_text_size::Ranged;
pub use scopes::{Bound, BoundBy, Scope, ScopeIndex, ScopeKind};
pub use source::{Source, SourceFault};
pub use tree::{Site, SiteIndex, Sites};
