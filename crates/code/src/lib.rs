//! Python extraction from model text, a sound normal form of programs, and paths that stay below a root. Pure.

mod extract;
mod normal_form;
mod path;

pub use extract::{Extracted, Fence, extract_python};
pub use normal_form::{NormalForm, normal_form};
pub use path::{PathError, RelativePath};
