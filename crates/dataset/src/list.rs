//! The elements of a JSON list one by one, without the whole list in memory.

use std::{
    io::{self, BufRead},
    path::PathBuf,
};

use crate::{
    error::{DatasetError, Place},
    format::Text,
};

/// Tells elements apart by brackets and quotes alone; whether an element is JSON is found when it is
/// parsed, so that one bad element is an error of its row.
pub(crate) struct List {
    path: PathBuf,
    text: Text,
    key: Option<String>,
    position: Position,
    rows: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Start,
    /// Behind `[`.
    First,
    /// Behind an element.
    Between,
    End,
}

impl List {
    /// With a `key`, an object in place of the list holds it under that key.
    pub(crate) fn new(path: PathBuf, text: Text, key: Option<String>) -> Self {
        Self {
            path,
            text,
            key,
            position: Position::Start,
            rows: 0,
        }
    }

    /// The text of the next element and its place.
    pub(crate) fn next(&mut self) -> Option<Result<(Place, Vec<u8>), DatasetError>> {
        if self.position == Position::End {
            return None;
        }
        let place = Place::Row(self.rows + 1);
        let found = self.advance().map_err(|fault| fault.at(&self.path, place));
        match found {
            Ok(Some(element)) => {
                self.rows += 1;
                Some(Ok((place, element)))
            }
            Ok(None) => None,
            Err(error) => {
                self.position = Position::End;
                Some(Err(error))
            }
        }
    }

    fn advance(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        if self.position == Position::Start {
            match self.peek()? {
                None => {
                    self.position = Position::End;
                    return Ok(None);
                }
                Some(b'[') => self.text.consume(1),
                Some(b'{') => {
                    let Some(key) = self.key.clone() else {
                        // One object is one row.
                        let element = self.value()?;
                        self.expect_end()?;
                        return Ok(Some(element));
                    };
                    self.find(&key)?;
                }
                Some(_) => return Err(Fault::says("expected a JSON list or object")),
            }
            self.position = Position::First;
        }
        match (self.peek()?, self.position) {
            (None, _) => return Err(Fault::says("the list does not end")),
            (Some(b']'), _) => {
                self.text.consume(1);
                self.position = Position::End;
                return Ok(None);
            }
            (Some(b','), Position::Between) => self.text.consume(1),
            (Some(_), Position::Between) => {
                return Err(Fault::says("expected `,` or `]` behind the last row"));
            }
            (Some(_), _) => {}
        }
        self.position = Position::Between;
        self.value().map(Some)
    }

    /// Goes on to behind the `[` of the list under `key`, past all that comes before it.
    fn find(&mut self, key: &str) -> Result<(), Fault> {
        self.text.consume(1);
        let mut seen = Vec::new();
        loop {
            if self.peek()? != Some(b'"') {
                let keys = if seen.is_empty() {
                    "none".to_owned()
                } else {
                    seen.join("`, `")
                };
                return Err(Fault::says(format!(
                    "the object has no list `{key}`; its keys: `{keys}`"
                )));
            }
            let found: String = serde_json::from_slice(&self.value()?)
                .map_err(|error| Fault::says(error.to_string()))?;
            if self.peek()? != Some(b':') {
                return Err(Fault::says(format!("expected `:` behind `{found}`")));
            }
            self.text.consume(1);
            let next = self.peek()?;
            if found == key {
                if next != Some(b'[') {
                    return Err(Fault::says(format!("`{key}` is not a list")));
                }
                self.text.consume(1);
                return Ok(());
            }
            self.value()?;
            seen.push(found);
            if self.peek()? == Some(b',') {
                self.text.consume(1);
            }
        }
    }

    fn expect_end(&mut self) -> Result<(), Fault> {
        self.position = Position::End;
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(Fault::says("something stands behind the object")),
        }
    }

    /// The next byte that is no white space, left in place.
    fn peek(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            let buffer = self.text.fill_buf()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            match buffer.iter().position(|byte| !byte.is_ascii_whitespace()) {
                Some(at) => {
                    let byte = buffer[at];
                    self.text.consume(at);
                    return Ok(Some(byte));
                }
                None => {
                    let length = buffer.len();
                    self.text.consume(length);
                }
            }
        }
    }

    /// The text of the value that begins at the next byte.
    fn value(&mut self) -> Result<Vec<u8>, Fault> {
        let mut value = Vec::new();
        let mut scan = Scan::default();
        if matches!(self.peek()?, Some(b',' | b']' | b'}' | b':')) {
            return Err(Fault::says("expected a value"));
        }
        loop {
            let buffer = self.text.fill_buf()?;
            if buffer.is_empty() {
                return if scan.is_bare() {
                    Ok(value)
                } else {
                    Err(Fault::says("the file ends within a value"))
                };
            }
            let end = scan.end(buffer);
            let taken = end.unwrap_or(buffer.len());
            value.extend_from_slice(&buffer[..taken]);
            self.text.consume(taken);
            if end.is_some() {
                return Ok(value);
            }
        }
    }
}

/// Where in a value a scan stands.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Scan {
    /// The length of what of `bytes` belongs to the value; `None` where it goes on behind them.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                if self.escaped {
                    self.escaped = false;
                    at += 1;
                    continue;
                }
                at += memchr::memchr2(b'"', b'\\', &bytes[at..])?;
                if bytes[at] == b'\\' {
                    self.escaped = true;
                } else {
                    self.in_string = false;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                at += 1;
                continue;
            }
            match bytes[at] {
                b'"' if self.depth == 0 && self.begun => return Some(at),
                b'"' => self.in_string = true,
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' if self.depth == 0 => return Some(at),
                b']' | b'}' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                b',' if self.depth == 0 => return Some(at),
                byte if self.depth == 0 && byte.is_ascii_whitespace() => return Some(at),
                _ => {}
            }
            self.begun = true;
            at += 1;
        }
        None
    }

    /// Whether the value so far may be a whole one: a number or a word.
    fn is_bare(&self) -> bool {
        self.depth == 0 && !self.in_string
    }
}

enum Fault {
    Io(io::Error),
    Says(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Fault {
    fn says(message: impl Into<String>) -> Self {
        Self::Says(message.into())
    }

    fn at(self, path: &std::path::Path, place: Place) -> DatasetError {
        match self {
            Self::Io(source) => DatasetError::unreadable(path)(source),
            Self::Says(message) => DatasetError::Broken {
                path: path.to_owned(),
                place,
                message,
            },
        }
    }
}
