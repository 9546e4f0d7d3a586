//! Trains a small tokenizer and saves it with the built-in chat template in the Hugging Face layout:
//! `cargo run -p chat --example train_tokenizer -- DIRECTORY VOCABULARY TEXT_FILE...`

use std::{error::Error, fs, path::PathBuf};

use chat::{BpeOptions, Chat, Tokenizer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(vocabulary)) = (arguments.next(), arguments.next()) else {
        return Err("usage: train_tokenizer DIRECTORY VOCABULARY TEXT_FILE...".into());
    };
    let corpus = arguments
        .map(fs::read_to_string)
        .collect::<Result<Vec<_>, _>>()?;
    let options = BpeOptions {
        vocabulary: vocabulary.parse()?,
        special_tokens: Chat::builtin_special_tokens(),
    };
    let directory = PathBuf::from(directory);
    fs::create_dir_all(&directory)?;
    let tokenizer = Tokenizer::train(corpus.iter().map(String::as_str), &options)?;
    Chat::builtin(tokenizer)?.save(&directory)?;
    Ok(())
}
