//! Training a tokenizer: the same corpus gives the same bytes, here and in every other process.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{fs, path::Path};

use chat::{BpeOptions, Chat, ChatError, Tokenizer};

const CORPUS: &str = include_str!("fixtures/corpus.txt");

fn options(vocabulary: usize) -> BpeOptions {
    BpeOptions {
        vocabulary,
        special_tokens: Chat::builtin_special_tokens(),
    }
}

/// The fixture was written by another process, whose hash maps were seeded otherwise.
#[test]
fn training_is_deterministic_across_processes() {
    let saved = fs::read_to_string("tests/fixtures/chat/tokenizer.json").unwrap();
    for _ in 0..10 {
        let tokenizer = Tokenizer::train([CORPUS], &options(384)).unwrap();
        assert!(
            tokenizer.to_json().unwrap() == saved,
            "another tokenizer came out"
        );
    }
}

/// A two-letter corpus makes many ties and reaches the same entry by several merges: the worst case
/// for a trainer that walks hash maps.
#[test]
fn ties_do_not_make_training_random() {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    let words: Vec<String> = (0..2000)
        .map(|_| {
            (0..rng.random_range(1..14))
                .map(|_| rng.random_range('a'..='b'))
                .collect()
        })
        .collect();
    let corpus = words.join(" ");
    let train = || {
        Tokenizer::train([corpus.as_str()], &options(900))
            .unwrap()
            .to_json()
            .unwrap()
    };
    let first = train();
    for _ in 0..10 {
        assert!(train() == first, "another tokenizer came out");
    }
}

#[test]
fn the_order_of_the_corpus_is_irrelevant() {
    let lines: Vec<&str> = CORPUS.lines().collect();
    let forward = Tokenizer::train(lines.iter().copied(), &options(320)).unwrap();
    let backward = Tokenizer::train(lines.iter().rev().copied(), &options(320)).unwrap();
    assert_eq!(forward.to_json().unwrap(), backward.to_json().unwrap());
}

#[test]
fn vocabularies_are_as_large_as_asked() {
    let tokenizer = Tokenizer::train([CORPUS], &options(300)).unwrap();
    assert_eq!(tokenizer.vocabulary(), 300);
    for (i, token) in Chat::builtin_special_tokens().iter().enumerate() {
        assert_eq!(tokenizer.token_to_id(token), Some(i as u32));
        assert_eq!(
            tokenizer.id_to_token(i as u32).as_deref(),
            Some(token.as_str())
        );
    }
    assert_eq!(tokenizer.id_to_token(300), None);
    // Nothing to merge: bytes and special tokens alone.
    assert_eq!(
        Tokenizer::train([], &options(300)).unwrap().vocabulary(),
        261
    );
    assert!(matches!(
        Tokenizer::train([CORPUS], &options(260)),
        Err(ChatError::VocabularyTooSmall {
            wanted: 260,
            specials: 5
        })
    ));
}

#[test]
fn a_space_joins_the_digit_after_it() {
    let tokenizer = Chat::load(Path::new("tests/fixtures/chat"))
        .unwrap()
        .tokenizer()
        .clone();
    let pieces = |text: &str| -> Vec<String> {
        let ids = tokenizer.encode(text).unwrap();
        ids.iter()
            .map(|&id| tokenizer.decode(&[id]).unwrap())
            .collect()
    };
    assert_eq!(pieces(" x >= 4"), [" x", " >=", " 4"]);
    assert_eq!(pieces(" 45"), [" 4", "5"]);
}

#[test]
fn the_builtin_chat_refuses_a_foreign_vocabulary() {
    let plain = BpeOptions {
        vocabulary: 300,
        special_tokens: vec!["<|user|>".to_owned(), "x".to_owned()],
    };
    let tokenizer = Tokenizer::train([CORPUS], &plain).unwrap();
    let error = Chat::builtin(tokenizer).unwrap_err();
    assert!(error.to_string().contains("<|system|>"), "{error}");
}
