//! Training a byte-level BPE tokenizer on a corpus.

use std::collections::BTreeSet;

use tokenizers::{
    AddedToken, SplitDelimiterBehavior,
    models::{
        TrainerWrapper,
        bpe::{BPE, BpeTrainer},
    },
    pre_tokenizers::{
        PreTokenizerWrapper,
        byte_level::ByteLevel,
        sequence::Sequence,
        split::{Split, SplitPattern},
    },
};

use crate::{ChatError, Tokenizer};

/// What a trained vocabulary looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BpeOptions {
    /// Entries in all: special tokens, the 256 bytes, and merges while the corpus offers pairs.
    pub vocabulary: usize,
    /// Taken as they are, in this order, as ids 0, 1, …; repeated ones count once.
    pub special_tokens: Vec<String>,
}

/// Where a text is cut before merging, like the pattern of Qwen2 except for one thing: a space joins
/// the digit after it, so that `x > 3` needs no token for the bare space.
const WORDS: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", // English contractions
    r"|[^\r\n\p{L}\p{N}]?\p{L}+",    // a word, with one sign or space before it
    r"| ?\p{N}",                     // a digit, with the space before it
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*",   // signs, with the line ends after them
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",    // line ends; indents, which leave the last space alone
);

impl Tokenizer {
    /// Trains byte-level BPE on `corpus`. The same corpus, in whatever order, gives the same bytes.
    ///
    /// Every text can be encoded and decoded without loss: all 256 bytes are entries and nothing is
    /// normalised. The vocabulary ends up smaller than asked when the corpus runs out of pairs.
    ///
    /// # Errors
    /// [`ChatError::VocabularyTooSmall`] when bytes and special tokens alone exceed the vocabulary.
    pub fn train<'a>(
        corpus: impl IntoIterator<Item = &'a str>,
        options: &BpeOptions,
    ) -> Result<Self, ChatError> {
        let mut special_tokens = options.special_tokens.clone();
        let mut seen = BTreeSet::new();
        special_tokens.retain(|token| seen.insert(token.clone()));
        let specials = special_tokens.len();
        if options.vocabulary < 256 + specials {
            return Err(ChatError::VocabularyTooSmall {
                wanted: options.vocabulary,
                specials,
            });
        }

        let trainer = BpeTrainer::builder()
            .vocab_size(options.vocabulary)
            .min_frequency(2)
            .show_progress(false)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .special_tokens(
                special_tokens
                    .into_iter()
                    .map(|token| AddedToken::from(token, true))
                    .collect(),
            )
            .build();
        let mut trainer = TrainerWrapper::from(trainer);
        let mut tokenizer = tokenizers::Tokenizer::new(BPE::default());
        tokenizer.with_pre_tokenizer(Some(pre_tokenizer()?));
        tokenizer.with_decoder(Some(ByteLevel::new(false, false, false)));
        tokenizer
            .train(&mut trainer, sorted_texts(corpus).into_iter())
            .map_err(ChatError::tokenizer)?;
        Ok(Self::from_inner(tokenizer))
    }
}

/// Sorting the texts makes the order in which a caller found them irrelevant.
fn sorted_texts<'a>(corpus: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut texts: Vec<&str> = corpus.into_iter().collect();
    texts.sort_unstable();
    texts
}

fn pre_tokenizer() -> Result<PreTokenizerWrapper, ChatError> {
    let words = Split::new(
        SplitPattern::Regex(WORDS.to_owned()),
        SplitDelimiterBehavior::Isolated,
        false,
    )
    .map_err(ChatError::tokenizer)?;
    Ok(Sequence::new(vec![
        words.into(),
        ByteLevel::new(false, false, false).into(),
    ])
    .into())
}
