//! Text to tokens and back: tokenizers, chat templates, assistant masks. The only crate that tokenises.
