//! Python extraction from model text, a sound normal form of programs, patches, and paths that stay below a root. Pure.

mod assertions;
mod extract;
mod normal_form;
mod observe;
pub mod patch;
mod path;

pub use assertions::{Assertion, Assertions, Expectation, Literal, assertions};
pub use extract::{Extracted, Fence, extract_python};
pub use normal_form::{NormalForm, normal_form};
pub use observe::could_read_layout;
pub use patch::Patch;
pub use path::{PathError, RelativePath};
