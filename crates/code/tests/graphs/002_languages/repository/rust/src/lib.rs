//! What grows.

mod tree;

use tree::Tree;

/// Anything that grows.
pub trait Grows {
    fn grow(&mut self);
}

impl Grows for Tree {
    fn grow(&mut self) {
        self.branch();
    }
}
