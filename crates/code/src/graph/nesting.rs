//! How deep a source text may nest, bounded without parsing it: the parser recurses.

/// Bytes of stack that the parser needs for what [`is_parsable`].
pub(crate) const STACK: usize = 64 << 20;
/// Expressions that are bounded by this need no more.
pub(crate) const DEEPEST: usize = 10_000;
/// In smaller files nothing can nest so deep that the parser runs out of stack.
const SMALL: usize = 64 << 10;

/// Whether the parser can read `source` on [`STACK`] bytes of stack.
pub(crate) fn is_parsable(source: &[u8]) -> bool {
    source.len() <= SMALL || bound(source) <= DEEPEST
}

/// An upper bound of the depth of any expression in `source`, by operators, words, brackets and braces
/// since the last comma of each open bracket. Of strings only the values in them count.
pub(crate) fn bound(source: &[u8]) -> usize {
    let mut depth = Depth {
        open: vec![Open::default()],
        total: 0,
        most: 0,
    };
    let mut at = 0;
    while at < source.len() {
        let byte = source[at];
        at += 1;
        match byte {
            b' ' | b'\t' | b'\r' => {}
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                // Words such as `not` and `lambda` nest as well, also right after a digit.
                let begin = at - 1;
                while source.get(at).is_some_and(|byte| is_word(*byte)) {
                    at += 1;
                }
                depth.add();
                if matches!(source.get(at), Some(b'\'' | b'"')) && has_values(&source[begin..at]) {
                    let (text, first) = Text::begin(source, at);
                    at = depth.text(source, first, text);
                }
            }
            b'#' => at += memchr::memchr(b'\n', &source[at..]).unwrap_or(source.len() - at),
            b'\'' | b'"' => {
                let (text, first) = Text::begin(source, at - 1);
                at = text.end(source, first);
            }
            b'(' | b'[' | b'{' => {
                depth.add();
                depth.open.push(Open::default());
            }
            b')' | b']' | b'}' if depth.open.len() > 1 => {
                if let Some(text) = depth.close() {
                    at = depth.text(source, at, text);
                }
            }
            b':' => match depth.value() {
                // What follows is text again: how the value is written.
                Some(text) => {
                    let format = Text {
                        is_format: true,
                        ..text
                    };
                    at = depth.text(source, at, format);
                }
                None => depth.add(),
            },
            b',' | b';' => depth.comma(),
            // The line goes on.
            b'\\' => at += 1,
            b'\n' if depth.open.len() == 1 => depth.comma(),
            b'\n' => {}
            _ => depth.add(),
        }
    }
    depth.most
}

/// Counts of the brackets that are open.
struct Depth {
    open: Vec<Open>,
    total: usize,
    most: usize,
}

#[derive(Clone, Copy, Default)]
struct Open {
    count: usize,
    /// The string that goes on behind the closing brace, of a value in it.
    value: Option<Text>,
}

/// A string with values in it.
#[derive(Clone, Copy)]
struct Text {
    quote: u8,
    triple: bool,
    /// Between a value's colon and its closing brace.
    is_format: bool,
}

impl Depth {
    fn add(&mut self) {
        if let Some(last) = self.open.last_mut() {
            last.count += 1;
            self.total += 1;
            self.most = self.most.max(self.total);
        }
    }

    fn comma(&mut self) {
        if let Some(last) = self.open.last_mut() {
            self.total -= last.count;
            last.count = 0;
        }
    }

    fn close(&mut self) -> Option<Text> {
        let open = self.open.pop()?;
        self.total -= open.count;
        open.value
    }

    /// The string of which a value is open, and nothing in that.
    fn value(&self) -> Option<Text> {
        self.open.last().and_then(|open| open.value)
    }

    /// Reads `text` from `at` to its next value or its end; where to go on.
    fn text(&mut self, source: &[u8], mut at: usize, mut text: Text) -> usize {
        while at < source.len() {
            if text.ends(source, at) {
                if text.is_format {
                    self.close();
                }
                return at + text.quotes();
            }
            match source[at] {
                b'\\' if matches!(source.get(at + 1), Some(b'\\' | b'\'' | b'"')) => at += 1,
                b'{' if !text.is_format && source.get(at + 1) == Some(&b'{') => at += 1,
                b'{' => {
                    self.add();
                    self.open.push(Open {
                        count: 0,
                        value: Some(text),
                    });
                    return at + 1;
                }
                b'}' if text.is_format => match self.close() {
                    Some(around) => text = around,
                    None => return at + 1,
                },
                b'\n' if !text.triple => return at,
                _ => {}
            }
            at += 1;
        }
        at
    }
}

impl Text {
    /// The string whose first quote is at `at`, and where its text begins.
    fn begin(source: &[u8], at: usize) -> (Self, usize) {
        let quote = source[at];
        let text = Self {
            quote,
            triple: source[at..].starts_with(&[quote; 3]),
            is_format: false,
        };
        (text, at + text.quotes())
    }

    fn quotes(self) -> usize {
        if self.triple { 3 } else { 1 }
    }

    fn ends(self, source: &[u8], at: usize) -> bool {
        source[at] == self.quote && (!self.triple || source[at..].starts_with(&[self.quote; 3]))
    }

    /// Behind a string without values whose text begins at `at`.
    fn end(self, source: &[u8], mut at: usize) -> usize {
        let line_end = if self.triple { self.quote } else { b'\n' };
        let next = |at: usize| {
            let rest = source.get(at..)?;
            Some(at + memchr::memchr3(self.quote, b'\\', line_end, rest)?)
        };
        while let Some(found) = next(at) {
            match source[found] {
                b'\\' => at = found + 2,
                b'\n' => return found,
                _ if self.ends(source, found) => return found + self.quotes(),
                _ => at = found + 1,
            }
        }
        source.len()
    }
}

/// Whether a word before a quote is that of a string with values.
fn has_values(prefix: &[u8]) -> bool {
    let is_value = |byte: &u8| matches!(byte, b'f' | b'F' | b't' | b'T');
    prefix.len() <= 2 && prefix.iter().any(is_value)
}

fn is_word(byte: u8) -> bool {
    const WORD: [bool; 256] = {
        let mut word = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            word[byte] = byte == b'_' as usize || (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        word
    };
    WORD[byte as usize]
}

#[cfg(test)]
mod tests {
    use super::bound;

    #[test]
    fn depth_is_bounded_and_long_tables_are_shallow() {
        assert!(bound("-".repeat(5000).as_bytes()) >= 5000);
        assert!(bound("(".repeat(5000).as_bytes()) >= 5000);
        assert!(bound("not ".repeat(5000).as_bytes()) >= 5000);
        assert!(bound(format!("x{}", ".a()".repeat(3000)).as_bytes()) >= 6000);
        assert!(bound(b"f\"{f'{1}'}\"") >= 2);
        // A value may have the quotes of the string that it stands in.
        let quotes = format!("f\"{{\"a\" + {}1 + \"b\"}}\"", "-".repeat(5000));
        assert!(bound(quotes.as_bytes()) >= 5000);
        let formats = format!("f'{{a:{{{}b}}}}' + c", "-".repeat(5000));
        assert!(bound(formats.as_bytes()) >= 5000);
        assert!(bound(format!("f'{{a:>3}}' {}1", "-".repeat(5000)).as_bytes()) >= 5000);
        let pattern = r"rf'''{a} (?P<n1>[a-z]+) | {{2,3}} \' {b:{c}>{d}} !:=' '''";
        let pattern = format!("{pattern}\n").repeat(500);
        assert!(
            bound(pattern.as_bytes()) < 12,
            "{}",
            bound(pattern.as_bytes())
        );
        assert!(bound("x = '''{ { {'''\n".repeat(500).as_bytes()) < 8);
        assert!(bound(format!("f\"{{{}x}}\"", "-".repeat(5000)).as_bytes()) >= 5000);
        assert!(bound("1if 1else ".repeat(5000).as_bytes()) >= 5000);
        assert!(bound(format!("x = {}1", "-\\\n".repeat(5000)).as_bytes()) >= 5000);
        let table = format!(
            "T = [{}]",
            "(1.5, -2, 'a, b', {'k': \"{}\"}), ".repeat(10_000)
        );
        assert!(bound(table.as_bytes()) < 20, "{}", bound(table.as_bytes()));
        let lines = "x = -1 # ((((((\n".repeat(10_000);
        assert!(bound(lines.as_bytes()) < 8);
    }
}
