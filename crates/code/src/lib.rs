//! Python extraction from model text and a sound normal form of programs. Pure.

mod extract;
mod normal_form;

pub use extract::{Extracted, Fence, extract_python};
pub use normal_form::{NormalForm, normal_form};
