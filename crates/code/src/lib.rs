//! Python out of model text, a sound normal form of programs, sites to edit, patches, the code graph of a repository, and paths that stay below a root. Pure.

mod assertions;
pub mod edit_operators;
mod extract;
pub mod graph;
mod normal_form;
mod observe;
pub mod patch;
mod path;
pub mod sites;
mod syntax;

pub use assertions::{Assertion, Assertions, Expectation, Literal, assertions};
pub use extract::{Extracted, Fence, extract_python};
pub use normal_form::{NormalForm, normal_form, normal_text};
pub use observe::{could_reach_tests, could_read_layout};
pub use patch::Patch;
pub use path::{PathError, RelativePath};
pub use syntax::{SyntaxFault, syntax_fault};
