//! One vocabulary: text to ids and back.

use std::{cmp::Reverse, fs, ops::Range, path::Path};

use record::TokenId;
use tokenizers::{
    Model, Normalizer, OffsetType, PreTokenizedString, PreTokenizer, Token,
    tokenizer::normalizer::{NormalizedString, Range as Within},
};

use crate::{ChatError, files::read, marked::MarkedText};

/// A tokenizer in the Hugging Face format.
///
/// [`Tokenizer::encode`] takes any text and never makes special tokens of it; they enter through
/// [`crate::Chat::render`] alone.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// Longest first: where several match, the longest wins.
    literals: Vec<Literal>,
    vocabulary: usize,
    /// Bytes that a literal begins with.
    first: [bool; 256],
}

/// A token that is matched as a whole, before text is cut into words.
#[derive(Clone, Debug)]
struct Literal {
    id: TokenId,
    content: String,
    special: bool,
    lstrip: bool,
    rstrip: bool,
    single_word: bool,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// [`ChatError::Read`] or [`ChatError::Malformed`], naming the file.
    pub fn load(path: &Path) -> Result<Self, ChatError> {
        let bytes = read(path).map_err(|source| ChatError::Read {
            path: path.to_owned(),
            source,
        })?;
        // The library expects that it is given JSON at all, and panics over some of what is not.
        serde_json::from_slice::<serde_json::Value>(&bytes)
            .map_err(|error| ChatError::malformed(path, error))?;
        let inner = tokenizers::Tokenizer::from_bytes(bytes)
            .map_err(|error| ChatError::malformed(path, error))?;
        Ok(Self::from_inner(inner))
    }

    /// Writes a `tokenizer.json`, over an old one if there is one.
    ///
    /// # Errors
    /// [`ChatError::Write`], naming the file.
    pub fn save(&self, path: &Path) -> Result<(), ChatError> {
        fs::write(path, self.to_json()?).map_err(|source| ChatError::Write {
            path: path.to_owned(),
            source,
        })
    }

    /// The content of `tokenizer.json`; the same tokenizer gives the same bytes.
    ///
    /// # Errors
    /// [`ChatError::Tokenizer`] when a part of a loaded tokenizer cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, ChatError> {
        self.inner.to_string(true).map_err(ChatError::tokenizer)
    }

    /// Ids of `text`, all of it taken as ordinary: `<|end|>` in a program is seven characters, never
    /// the end of a turn. Added tokens that are not special (`<think>` of some models) do match.
    ///
    /// # Errors
    /// [`ChatError::Tokenizer`], which byte-level tokenizers never give.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, ChatError> {
        let everywhere: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let marked = MarkedText {
            text: text.to_owned(),
            guarded: everywhere,
            assistant: Vec::new(),
        };
        Ok(self
            .encode_marked(&marked)?
            .into_iter()
            .map(|(id, _)| id)
            .collect())
    }

    /// The tokens that stand before a text that is no chat, as the post-processor of `tokenizer.json` says:
    /// `bos` for Llama, nothing for Qwen.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn opening(&self) -> Result<Vec<TokenId>, ChatError> {
        let any = self.inner.encode("a", true).map_err(ChatError::tokenizer)?;
        let added = any.get_ids().iter().zip(any.get_special_tokens_mask());
        let opening = added.take_while(|(_, special)| **special == 1);
        Ok(opening.map(|(id, _)| *id).collect())
    }

    /// Text of `ids`, special tokens written out; bytes that are no UTF-8 become U+FFFD, and ids
    /// that are no entries become nothing.
    ///
    /// # Errors
    /// [`ChatError::Tokenizer`], which byte-level tokenizers never give.
    pub fn decode(&self, ids: &[TokenId]) -> Result<String, ChatError> {
        self.inner.decode(ids, false).map_err(ChatError::tokenizer)
    }

    /// How the vocabulary writes the entry `id` (byte-level: one character per byte).
    pub fn id_to_token(&self, id: TokenId) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// The id of an entry, special or not, as the vocabulary writes it.
    pub fn token_to_id(&self, token: &str) -> Option<TokenId> {
        self.inner.token_to_id(token)
    }

    /// One more than the largest id, special tokens included: the rows that an embedding needs.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Special tokens with their ids, longest first.
    pub fn special_tokens(&self) -> impl Iterator<Item = (&str, TokenId)> + Clone {
        self.literals
            .iter()
            .filter(|literal| literal.special)
            .map(|literal| (literal.content.as_str(), literal.id))
    }

    pub fn is_special(&self, id: TokenId) -> bool {
        self.special_tokens().any(|(_, special)| special == id)
    }

    pub(crate) fn from_inner(inner: tokenizers::Tokenizer) -> Self {
        let mut literals: Vec<Literal> = inner
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, token)| !token.content.is_empty())
            .map(|(id, token)| Literal {
                id,
                content: token.content,
                special: token.special,
                lstrip: token.lstrip,
                rstrip: token.rstrip,
                single_word: token.single_word,
            })
            .collect();
        literals.sort_unstable_by_key(|literal| (Reverse(literal.content.len()), literal.id));
        let ids = inner.get_vocab(true).into_values();
        let vocabulary = ids.max().map_or(0, |largest| largest as usize + 1);
        let mut first = [false; 256];
        for literal in &literals {
            first[usize::from(literal.content.as_bytes()[0])] = true;
        }
        Self {
            inner,
            literals,
            vocabulary,
            first,
        }
    }

    /// Ids with the byte ranges of `marked.text` that they stand for. No special token covers a
    /// guarded offset; otherwise the ids are those that Hugging Face's `encode` gives without its
    /// post-processor.
    pub(crate) fn encode_marked(
        &self,
        marked: &MarkedText,
    ) -> Result<Vec<(TokenId, Range<usize>)>, ChatError> {
        self.encode_inner(marked).map_err(ChatError::tokenizer)
    }

    fn encode_inner(
        &self,
        marked: &MarkedText,
    ) -> Result<Vec<(TokenId, Range<usize>)>, tokenizers::Error> {
        let cuts = self.literal_matches(marked);
        let mut text = PreTokenizedString::from(marked.text.as_str());
        text.split(|_, whole| Ok(cut(&whole, &cuts)))?;
        if let Some(normalizer) = self.inner.get_normalizer() {
            text.normalize(|part| normalizer.normalize(part))?;
        }
        if let Some(pre_tokenizer) = self.inner.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut text)?;
        }
        text.tokenize(|part| self.inner.get_model().tokenize(part.get()))?;
        let encoding = text.into_encoding(None, 0, OffsetType::Byte)?;
        let ranges = encoding
            .get_offsets()
            .iter()
            .map(|&(start, end)| start..end);
        Ok(encoding.get_ids().iter().copied().zip(ranges).collect())
    }

    /// Literals in the text from left to right, the longest at each place, with their byte ranges.
    fn literal_matches(&self, marked: &MarkedText) -> Vec<(&Literal, Range<usize>)> {
        let text = &marked.text;
        let mut matches = Vec::new();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let next = marked.guarded.partition_point(|guard| *guard < at);
            let free = marked
                .guarded
                .get(next)
                .map_or(text.len(), |guard| guard - at);
            let suspect = self.first[usize::from(text.as_bytes()[at])];
            let mut candidates = self.literals.iter().filter(|_| suspect);
            let hit = candidates.find(|literal| {
                !(literal.special && free < literal.content.len())
                    && text[at..].starts_with(&literal.content)
                    && !(literal.single_word && inside_word(text, at, literal.content.len()))
            });
            let Some(literal) = hit else {
                at += c.len_utf8();
                continue;
            };
            let mut range = at..at + literal.content.len();
            if literal.lstrip {
                let taken = matches
                    .last()
                    .map_or(0, |(_, last): &(_, Range<usize>)| last.end);
                range.start = taken + text[taken..at].trim_end().len();
            }
            if literal.rstrip {
                let rest = &text[range.end..];
                range.end += rest.len() - rest.trim_start().len();
            }
            at = range.end;
            matches.push((literal, range));
        }
        matches
    }
}

fn inside_word(text: &str, at: usize, len: usize) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    text[..at].chars().next_back().is_some_and(word)
        || text[at + len..].chars().next().is_some_and(word)
}

/// The parts of `whole`: literals with their token, what lies between them without.
fn cut(
    whole: &NormalizedString,
    literals: &[(&Literal, Range<usize>)],
) -> Vec<(NormalizedString, Option<Vec<Token>>)> {
    let part = |range: Range<usize>| whole.slice(Within::Original(range));
    let mut parts = Vec::with_capacity(2 * literals.len() + 1);
    let mut done = 0;
    for (literal, range) in literals {
        parts.extend(part(done..range.start).map(|between| (between, None)));
        let token = Token::new(literal.id, literal.content.clone(), (0, range.len()));
        parts.extend(part(range.clone()).map(|text| (text, Some(vec![token]))));
        done = range.end;
    }
    parts.extend(part(done..whole.len_original()).map(|rest| (rest, None)));
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::{
        AddedToken, normalizers::unicode::NFC, processors::template::TemplateProcessing,
    };

    use super::*;
    use crate::BpeOptions;

    fn with_literals() -> Tokenizer {
        let options = BpeOptions {
            vocabulary: 280,
            special_tokens: vec!["<|end|>".to_owned()],
        };
        let mut inner = Tokenizer::train(["le café, la fin"; 3], &options)
            .unwrap()
            .inner;
        inner.with_normalizer(Some(NFC)).unwrap();
        let special = [
            AddedToken::from("<l>", true).lstrip(true),
            AddedToken::from("<r>", true).rstrip(true),
            AddedToken::from("<w>", true).single_word(true),
            AddedToken::from("<|end|>x", true),
        ];
        inner.add_special_tokens(special).unwrap();
        inner
            .add_tokens([AddedToken::from("<think>", false).normalized(false)])
            .unwrap();
        Tokenizer::from_inner(inner)
    }

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "<|end|>", "<|end|>x", "<l>", "<r>", "<w>", "<think>", "<", " ", "\n", "a", "é",
            "e\u{301}", "日", "12", "_",
        ]);
        prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        /// The reference implementation is the judge of what unguarded text means.
        #[test]
        fn unguarded_text_encodes_as_in_the_tokenizers_crate(text in pieces()) {
            // What counts as a letter beside `single_word` tokens is not the same for bare accents.
            prop_assume!(!text.contains("\u{301}<w>") && !text.contains("<w>\u{301}"));
            let tokenizer = with_literals();
            let marked = MarkedText { text: text.clone(), ..MarkedText::default() };
            let found = tokenizer.encode_marked(&marked).unwrap();
            let expected = tokenizer.inner.encode(text, false).unwrap();
            let ids: Vec<TokenId> = found.iter().map(|(id, _)| *id).collect();
            prop_assert_eq!(ids, expected.get_ids());
            let ranges: Vec<(usize, usize)> =
                found.into_iter().map(|(_, range)| (range.start, range.end)).collect();
            prop_assert_eq!(ranges, expected.get_offsets());
        }

        #[test]
        fn text_behind_its_opening_is_what_the_tokenizers_crate_makes_of_it(text in "[a-zé日 ]{1,30}") {
            let plain = with_literals();
            prop_assert_eq!(plain.opening().unwrap(), Vec::<TokenId>::new());
            let mut inner = plain.inner;
            let opening = TemplateProcessing::builder()
                .try_single("<w> <l> $A")
                .unwrap()
                .special_tokens(["<w>", "<l>"].map(|token| (token, inner.token_to_id(token).unwrap())).to_vec())
                .build()
                .unwrap();
            inner.with_post_processor(Some(opening));
            let expected = inner.encode(text.as_str(), true).unwrap();
            let tokenizer = Tokenizer::from_inner(inner);
            let found = [tokenizer.opening().unwrap(), tokenizer.encode(&text).unwrap()].concat();
            prop_assert_eq!(found, expected.get_ids());
        }

        #[test]
        fn ordinary_text_has_no_special_tokens(text in pieces()) {
            let tokenizer = with_literals();
            let ids = tokenizer.encode(&text).unwrap();
            prop_assert!(ids.iter().all(|&id| !tokenizer.is_special(id)));
            let think = tokenizer.token_to_id("<think>").unwrap();
            let thoughts = ids.iter().filter(|&&id| id == think).count();
            prop_assert_eq!(thoughts, text.matches("<think>").count());
        }
    }
}
