//! Text of tokens as they come, and where it says that a response is over.

use record::{Completion, TokenId};

use crate::{Chat, ChatError, Tokenizer};

/// Turns tokens into text one by one: what is given out never changes, so a character whose bytes are
/// spread over tokens comes with the last of them.
///
/// Bytes that are no UTF-8 are U+FFFD, one for each longest part of a character: only the last of a text
/// can still become something else.
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    /// The last tokens, from the end of a character on.
    ids: Vec<TokenId>,
    /// Leading ones whose text ends with a whole character. They are kept for the others to follow: some
    /// tokens read otherwise at the start of a text.
    whole: usize,
    /// Bytes of the text of `ids` that were given out.
    given: usize,
}

impl TextStream {
    /// Tokens without the end of any character after which the text is cut: no text, so there is
    /// nothing to be kept whole.
    const LONGEST: usize = 256;

    /// The text that is certain with this token; empty while a character is unfinished.
    ///
    /// # Errors
    /// [`ChatError::Tokenizer`], which byte-level tokenizers never give.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: TokenId) -> Result<String, ChatError> {
        self.ids.push(id);
        let text = tokenizer.decode(&self.ids)?;
        let unfinished = text.ends_with(char::REPLACEMENT_CHARACTER);
        let certain = match text.strip_suffix(char::REPLACEMENT_CHARACTER) {
            Some(certain) if self.ids.len() < Self::LONGEST => certain,
            _ => &text,
        };
        let new = certain.get(self.given..).unwrap_or_default().to_owned();
        self.given = self.given.max(certain.len());
        if !unfinished {
            self.ids.drain(..self.whole);
            self.whole = self.ids.len();
            self.given = tokenizer.decode(&self.ids)?.len();
        } else if certain.len() == text.len() {
            *self = Self::default();
        }
        Ok(new)
    }

    /// What was not given out: nothing, or the beginning of a character, as U+FFFD.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn rest(&self, tokenizer: &Tokenizer) -> Result<String, ChatError> {
        let text = tokenizer.decode(&self.ids)?;
        Ok(text.get(self.given..).unwrap_or_default().to_owned())
    }
}

/// The text of a response while it is sampled, up to the stop string that ends it. What may be the
/// beginning of a stop string is held back until it is none.
#[derive(Clone, Debug)]
pub struct ResponseText {
    strings: Vec<String>,
    stream: TextStream,
    held: String,
    stopped: bool,
}

impl ResponseText {
    /// Empty strings stop nothing.
    pub fn new(stop_strings: &[String]) -> Self {
        let strings = stop_strings.iter().filter(|string| !string.is_empty());
        Self {
            strings: strings.cloned().collect(),
            stream: TextStream::default(),
            held: String::new(),
            stopped: false,
        }
    }

    /// The text that is certain with this token. Nothing comes after a stop string.
    ///
    /// # Errors
    /// As [`TextStream::push`].
    pub fn push(&mut self, tokenizer: &Tokenizer, id: TokenId) -> Result<String, ChatError> {
        if self.stopped {
            return Ok(String::new());
        }
        self.held.push_str(&self.stream.push(tokenizer, id)?);
        let kept = before_stop(&self.held, &self.strings).len();
        if kept < self.held.len() {
            self.stopped = true;
            self.held.truncate(kept);
            return Ok(std::mem::take(&mut self.held));
        }
        let mut ends = self.held.char_indices().map(|(at, _)| at);
        let begins = |end: &str| self.strings.iter().any(|string| string.starts_with(end));
        let certain = ends.find(|&at| begins(&self.held[at..]));
        let certain = certain.unwrap_or(self.held.len());
        let held = self.held.split_off(certain);
        Ok(std::mem::replace(&mut self.held, held))
    }

    /// Whether one of the strings has come.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// What is left of a response that ended otherwise: the beginning of a stop string, or of a
    /// character, as U+FFFD.
    ///
    /// # Errors
    /// As [`TextStream::push`].
    pub fn rest(&self, tokenizer: &Tokenizer) -> Result<String, ChatError> {
        match self.stopped {
            true => Ok(String::new()),
            false => Ok(format!("{}{}", self.held, self.stream.rest(tokenizer)?)),
        }
    }
}

/// `text` up to the first of the strings in it.
pub fn before_stop<'a>(text: &'a str, strings: &[String]) -> &'a str {
    let strings = strings.iter().filter(|string| !string.is_empty());
    let end = strings.filter_map(|string| text.find(string)).min();
    &text[..end.unwrap_or(text.len())]
}

impl Chat {
    /// What a completion says: its text without the stop token or the stop string that ended it.
    ///
    /// # Errors
    /// As [`Chat::response_text`].
    pub fn completion_text(&self, completion: &Completion) -> Result<String, ChatError> {
        let text = self.response_text(&completion.response)?;
        Ok(before_stop(&text, &completion.sampling.stop_strings).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::BpeOptions;

    fn tokenizer() -> Tokenizer {
        let options = BpeOptions {
            vocabulary: 300,
            special_tokens: vec!["<|end|>".to_owned()],
        };
        Tokenizer::train(["le café est là, 日本語 and stop"; 3], &options).unwrap()
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole_text(ids in prop::collection::vec(0_u32..300, 0..60)) {
            let tokenizer = tokenizer();
            let mut stream = TextStream::default();
            let mut text = String::new();
            for &id in &ids {
                text += &stream.push(&tokenizer, id).unwrap();
            }
            text += &stream.rest(&tokenizer).unwrap();
            prop_assert_eq!(text, tokenizer.decode(&ids).unwrap());
        }

        #[test]
        fn text_comes_piece_by_piece_unchanged(text in "[a-zé日本語 <|>🙂]{0,40}") {
            let tokenizer = tokenizer();
            let mut stream = TextStream::default();
            let mut pieces = String::new();
            for id in tokenizer.encode(&text).unwrap() {
                pieces += &stream.push(&tokenizer, id).unwrap();
                prop_assert!(text.starts_with(&pieces));
            }
            prop_assert_eq!(pieces, text);
        }

        #[test]
        fn the_token_that_completes_a_string_is_found(
            before in "[a-zé日 ]{0,20}", stop in "[xyzé語]{1,5}", after in "[a-z日🙂]{0,10}",
        ) {
            let tokenizer = tokenizer();
            let text = format!("{before}{stop}{after}");
            let end = text.find(&stop).unwrap() + stop.len();
            let ids = tokenizer.encode(&text).unwrap();
            let strings = [stop.clone(), "never said".to_owned()];
            let mut response = ResponseText::new(&strings);
            let mut pieces = String::new();
            let found = ids.iter().position(|&id| {
                pieces += &response.push(&tokenizer, id).unwrap();
                response.is_stopped()
            });
            let found = found.unwrap();
            let bytes = |count: usize| -> usize {
                let entries = ids[..count].iter().map(|&id| tokenizer.id_to_token(id).unwrap());
                entries.map(|entry| entry.chars().count()).sum()
            };
            prop_assert!(bytes(found) < end && end <= bytes(found + 1));
            let said = tokenizer.decode(&ids[..=found]).unwrap();
            prop_assert_eq!(before_stop(&said, &strings), &text[..end - stop.len()]);
            prop_assert_eq!(&pieces, &text[..end - stop.len()]);
            prop_assert_eq!(response.rest(&tokenizer).unwrap(), "");
        }
    }

    #[test]
    fn only_what_may_begin_a_stop_string_is_held_back() {
        let tokenizer = tokenizer();
        let mut response = ResponseText::new(&["###".to_owned()]);
        let mut pieces = Vec::new();
        for id in tokenizer.encode("a#b##").unwrap() {
            pieces.push(response.push(&tokenizer, id).unwrap());
        }
        assert_eq!(pieces, ["a", "", "#b", "", ""]);
        assert_eq!(response.rest(&tokenizer).unwrap(), "##");
        assert!(!response.is_stopped());
    }

    #[test]
    fn what_comes_first_ends_the_text() {
        let strings = ["b".to_owned(), "ab".to_owned(), String::new()];
        assert_eq!(before_stop("xxab b", &strings), "xx");
        assert_eq!(before_stop("xxa", &strings), "xxa");
    }
}
