//! JSON as models write it: repaired where it is plain what was meant.

use serde_json::{Map, Number, Value};

/// Deeper nesting is not read.
const DEPTH: usize = 32;

/// The value that `text` begins with, white space aside, and where it ends. JSON is read as such; else single
/// or typographic quotes, bare keys and words, quotes and line breaks inside strings, Python's constants,
/// trailing commas and commas missing before quotes, and missing ends are put up with.
pub(super) fn read(text: &str) -> Option<(Value, usize)> {
    let mut strict = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(value)) = strict.next() {
        return Some((value, strict.byte_offset()));
    }
    // A fence that closes behind it is no part of it.
    let text =
        text.trim_end_matches(|character: char| character.is_whitespace() || character == '`');
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(DEPTH, Place::Alone)?;
    Some((value, reader.at))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// Where a string stands, which says what may follow it.
#[derive(Clone, Copy)]
enum Place {
    Alone,
    Key,
    Field,
    Entry,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn value(&mut self, depth: usize, place: Place) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        self.skip_space();
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            quote if closing(quote).is_some() => self.string(place).map(Value::String),
            ',' | ':' | '}' | ']' => None,
            _ => Some(self.bare()),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.next();
        let mut object = Map::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => break,
                Some('}') => {
                    self.next();
                    break;
                }
                Some(',') => {
                    self.next();
                    continue;
                }
                Some(']') => break,
                Some(_) => {}
            }
            let key = self.key()?;
            self.skip_space();
            if matches!(self.peek(), Some(':' | '=' | '：')) {
                self.next();
            } else {
                // A key that the text breaks off behind says nothing.
                break;
            }
            self.skip_space();
            let value = match self.peek() {
                None | Some(',' | '}' | ']') => Value::Null,
                Some(_) => self.value(depth, Place::Field)?,
            };
            object.insert(key, value);
        }
        Some(Value::Object(object))
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        self.next();
        let mut array = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => break,
                Some(']') => {
                    self.next();
                    break;
                }
                Some(',') => {
                    self.next();
                }
                Some('}') => break,
                Some(_) => array.push(self.value(depth, Place::Entry)?),
            }
        }
        Some(Value::Array(array))
    }

    fn key(&mut self) -> Option<String> {
        let quote = self.peek()?;
        if closing(quote).is_some() {
            return self.string(Place::Key);
        }
        let rest = self.rest();
        let end = rest
            .find(|character: char| !character.is_alphanumeric() && !"_-.".contains(character))
            .unwrap_or(rest.len());
        if end == 0 {
            return None;
        }
        self.at += end;
        Some(rest[..end].to_owned())
    }

    /// A string from its quote. A quote ends it only before what may follow a string; the text's end does too.
    fn string(&mut self, place: Place) -> Option<String> {
        let end = closing(self.next()?)?;
        let mut string = String::new();
        while let Some(character) = self.next() {
            if character == '\\' {
                self.escape(&mut string);
            } else if character == end && self.may_end(place) {
                break;
            } else {
                string.push(character);
            }
        }
        Some(string)
    }

    fn may_end(&self, place: Place) -> bool {
        let rest = self.rest().trim_start();
        let behind_comma = rest.strip_prefix(',').map(str::trim_start);
        let ends = rest.is_empty() || behind_comma == Some("");
        ends || match place {
            Place::Alone => false,
            Place::Key => rest.starts_with([':', '=', '：']),
            Place::Field => {
                rest.starts_with('}')
                    || behind_comma.is_some_and(|rest| rest.starts_with('}') || begins_key(rest))
                    || (rest.starts_with(['"', '\'']) && begins_key(rest))
            }
            Place::Entry => {
                rest.starts_with(']')
                    || behind_comma.is_some_and(|rest| {
                        let next = rest.chars().next().unwrap_or(']');
                        closing(next).is_some() || "{[]-0123456789".contains(next)
                    })
            }
        }
    }

    fn escape(&mut self, string: &mut String) {
        let Some(escaped) = self.next() else {
            return;
        };
        string.push(match escaped {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let unit = self.unit();
                let character = match unit {
                    Some(high @ 0xD800..=0xDBFF) if self.rest().starts_with("\\u") => {
                        let start = self.at;
                        self.at += 2;
                        match self.unit() {
                            Some(low @ 0xDC00..=0xDFFF) => {
                                char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
                            }
                            _ => {
                                self.at = start;
                                None
                            }
                        }
                    }
                    Some(unit) => char::from_u32(unit),
                    None => Some('u'),
                };
                character.unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => other,
        });
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        let unit = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(unit)
    }

    fn bare(&mut self) -> Value {
        let rest = self.rest();
        let end = rest.find([',', '}', ']', '\n']).unwrap_or(rest.len());
        self.at += end;
        let word = rest[..end].trim();
        match word {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            _ => word
                .parse::<Number>()
                .map_or_else(|_| Value::from(word), Value::Number),
        }
    }
}

/// Whether a name and a colon follow.
fn begins_key(text: &str) -> bool {
    let quote = text.chars().next().and_then(closing);
    let bare = text.trim_start_matches(['"', '\'', '“', '‘']);
    let end = bare
        .find(|character: char| !character.is_alphanumeric() && character != '_')
        .unwrap_or(bare.len());
    let rest = &bare[end..];
    let rest = match quote {
        Some(quote) => rest.strip_prefix(quote),
        None => Some(rest),
    };
    end > 0 && rest.is_some_and(|rest| rest.trim_start().starts_with([':', '=', '：']))
}

fn closing(quote: char) -> Option<char> {
    Some(match quote {
        '"' | '\'' => quote,
        '“' => '”',
        '‘' => '’',
        _ => return None,
    })
}
