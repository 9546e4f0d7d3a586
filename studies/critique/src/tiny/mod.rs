//! The tiny world: small Python functions with planted bugs, drawn from a seed.
pub mod arguments;
pub mod draft;
pub mod families;
pub mod function;

pub use arguments::{Arguments, Call, Value};
pub use draft::{Draft, Drafts, N_CALLS, Planted, Split, draft, drafts};
pub use families::Family;
pub use function::{Bug, Choices, Function, Slot, Wrong};
