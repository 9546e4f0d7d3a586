//! Text to tokens and back: tokenizers, chat templates, assistant masks. The only crate that tokenises.
//!
//! A [`Tokenizer`] turns text into ids, a [`Template`] turns messages into text, and a [`Chat`] is
//! both together with the tokens that end a turn. Text that came from outside (a program, a
//! critique, a file) never becomes a special token: special tokens come from templates alone.

mod bpe;
mod chat;
mod error;
mod files;
mod marked;
mod python;
mod template;
mod text_stream;
mod tokenizer;

pub use bpe::BpeOptions;
pub use chat::{Chat, RenderedChat};
pub use error::ChatError;
pub use files::{SpecialTokens, TokenizerFiles};
pub use template::{Template, TemplateInput};
pub use text_stream::{ResponseText, TextStream, before_stop};
pub use tokenizer::Tokenizer;
