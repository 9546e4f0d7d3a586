//! Fenced blocks of texts that people write: told apart from what stands around them, and written so that nothing in
//! them ends them.

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Whole lines.
    Prose(String),
    Block(Block),
}

/// What stands between two fences, without the indentation and the quote marks that both have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// What the first fence says after its marks, such as a language.
    pub(crate) info: String,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn fenced(&self) -> String {
        fenced(&self.info, &self.text)
    }
}

/// The parts of a text, in order. A fence that nothing ends reaches to the end of the text, as it does where
/// such texts are shown.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut prose = String::new();
    let mut open: Option<(Fence, Block)> = None;
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        match &mut open {
            Some((fence, _)) if fence.is_ended_by(line) => {
                parts.extend(open.take().map(|(_, block)| Part::Block(block)));
            }
            Some((fence, block)) => {
                block.text += fence.inner(line);
                block.text.push('\n');
            }
            None => match Fence::begun_by(line) {
                Some((fence, info)) => {
                    // A list's mark before a fence belongs to what stands around it.
                    prose += &line[..fence.lead];
                    if fence.lead > 0 {
                        prose.push('\n');
                    }
                    if !prose.is_empty() {
                        parts.push(Part::Prose(std::mem::take(&mut prose)));
                    }
                    let (info, text) = (info.to_owned(), String::new());
                    open = Some((fence, Block { info, text }));
                }
                None => {
                    prose += line;
                    prose.push('\n');
                }
            },
        }
    }
    parts.extend(open.map(|(_, block)| Part::Block(block)));
    if !prose.is_empty() {
        parts.push(Part::Prose(prose));
    }
    parts
}

/// The same text with blocks that end, at the beginning of lines, and with plain ends of lines.
pub(crate) fn normal(text: &str) -> String {
    let parts = parts(text).into_iter().map(|part| match part {
        Part::Prose(text) => text,
        Part::Block(block) => block.fenced() + "\n",
    });
    parts.collect()
}

/// A block with fences that are longer than any in it.
pub(crate) fn fenced(info: &str, text: &str) -> String {
    let longest = text.lines().map(|line| run(line.trim_start(), '`')).max();
    let marks = "`".repeat(longest.map_or(3, |longest| (longest + 1).max(3)));
    format!("{marks}{info}\n{}\n{marks}", text.trim_end_matches('\n'))
}

/// A text within a line as code, whatever marks it has.
pub(crate) fn code_span(text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max();
    let marks = "`".repeat(longest.unwrap_or_default() + 1);
    let pad = match text.starts_with('`') || text.ends_with('`') {
        true => " ",
        false => "",
    };
    format!("{marks}{pad}{text}{pad}{marks}")
}

/// Where the block begins that `text` leaves open, and the line that would end it.
pub(crate) fn left_open(text: &str) -> Option<(usize, String)> {
    let mut open: Option<(usize, Fence)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        match &open {
            Some((_, fence)) if fence.is_ended_by(line) => open = None,
            Some(_) => {}
            None => open = Fence::begun_by(line).map(|(fence, _)| (at, fence)),
        }
        at += line.len();
    }
    let (start, fence) = open?;
    Some((start, fence.mark.to_string().repeat(fence.length) + "\n"))
}

/// The line that begins a block.
struct Fence {
    mark: char,
    length: usize,
    /// Bytes of a list's mark before the fence, with the blanks around it.
    lead: usize,
    /// Columns before the fence, without quote marks.
    indent: usize,
    quotes: usize,
}

impl Fence {
    /// A fence, and what it says after its marks.
    fn begun_by(line: &str) -> Option<(Self, &str)> {
        let (quotes, rest) = unquoted(line, usize::MAX);
        let bare = rest.trim_start_matches([' ', '\t']);
        let item = list_mark(bare);
        let fence = bare[item..].trim_start_matches([' ', '\t']);
        let mark = fence
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let length = run(fence, mark);
        let info = fence[length..].trim();
        // With marks after it, it is a word of the line.
        if length < 3 || (mark == '`' && info.contains('`')) {
            return None;
        }
        let found = Self {
            mark,
            length,
            lead: if item > 0 {
                line.len() - fence.len()
            } else {
                0
            },
            indent: rest.len() - fence.len(),
            quotes,
        };
        Some((found, info))
    }

    fn is_ended_by(&self, line: &str) -> bool {
        let (_, rest) = unquoted(line, self.quotes);
        let rest = rest.trim();
        let length = run(rest, self.mark);
        length >= self.length && length == rest.len()
    }

    /// A line of the block, without what stands before the fence.
    fn inner<'a>(&self, line: &'a str) -> &'a str {
        let (_, rest) = unquoted(line, self.quotes);
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        &rest[blanks.min(self.indent)..]
    }
}

/// A line without so many quote marks, and how many it had.
fn unquoted(line: &str, most: usize) -> (usize, &str) {
    let (mut rest, mut quotes) = (line, 0);
    while quotes < most
        && let Some(inner) = rest.trim_start_matches(' ').strip_prefix('>')
    {
        rest = inner.strip_prefix(' ').unwrap_or(inner);
        quotes += 1;
    }
    (quotes, rest)
}

/// Bytes of a list's mark at the beginning of a line: `- `, `* `, `12. `.
fn list_mark(line: &str) -> usize {
    let digits = line.len()
        - line
            .trim_start_matches(|it: char| it.is_ascii_digit())
            .len();
    let mark = match &line[digits..] {
        rest if digits > 0 => rest.starts_with(['.', ')']),
        rest => rest.starts_with(['-', '*', '+']),
    };
    let end = digits + 1;
    match mark && line[end..].starts_with([' ', '\t']) {
        true => end,
        false => 0,
    }
}

/// How many `mark`s a line begins with.
fn run(line: &str, mark: char) -> usize {
    line.len() - line.trim_start_matches(mark).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(info: &str, text: &str) -> Part {
        Part::Block(Block {
            info: info.to_owned(),
            text: text.to_owned(),
        })
    }

    fn prose(text: &str) -> Part {
        Part::Prose(text.to_owned())
    }

    #[test]
    fn blocks_are_told_apart_as_they_are_shown() {
        for (name, text, expected) in [
            (
                "a language, ends of lines of another system",
                "See\r\n```python\r\nif a:\r\n    b\r\n```\r\nend",
                vec![
                    prose("See\n"),
                    block("python", "if a:\n    b\n"),
                    prose("end\n"),
                ],
            ),
            (
                "in a list, with its indentation",
                "1. Run\n\n   ```sh\n   make\n     -j\n\n   ```\n2. See",
                vec![
                    prose("1. Run\n\n"),
                    block("sh", "make\n  -j\n\n"),
                    prose("2. See\n"),
                ],
            ),
            (
                "right after a list's mark",
                "- ```py\n  f()\n  ```\n- b",
                vec![prose("- \n"), block("py", "f()\n"), prose("- b\n")],
            ),
            (
                "quoted",
                "> I did\n> ```\n> f(\n>   1)\n> ```\n> and",
                vec![
                    prose("> I did\n"),
                    block("", "f(\n  1)\n"),
                    prose("> and\n"),
                ],
            ),
            (
                "a longer fence with a shorter one in it",
                "````md\n```\ninner\n```\n````\n",
                vec![block("md", "```\ninner\n```\n")],
            ),
            (
                "other marks",
                "~~~ python\n```\n~~~\n",
                vec![block("python", "```\n")],
            ),
            (
                "marks within a line are no fence",
                "```f()``` fails\nand ``` too\n",
                vec![prose("```f()``` fails\nand ``` too\n")],
            ),
            (
                "what ends a fence says nothing more",
                "```\na\n``` b\nc\n```\nd",
                vec![block("", "a\n``` b\nc\n"), prose("d\n")],
            ),
            (
                "nothing ends it",
                "a\n```py\nb\n  c",
                vec![prose("a\n"), block("py", "b\n  c\n")],
            ),
            (
                "less indented than its fence",
                "  ```\na\n   b\n  ```",
                vec![block("", "a\n b\n")],
            ),
            ("nothing", "", vec![]),
        ] {
            assert_eq!(parts(text), expected, "{name}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["a\n", "```\na\n```\n", "  `````\n~~~\n", "", "x\n\n  y\n"] {
            let written = fenced("py", text);
            let text = text.trim_end_matches('\n').to_owned() + "\n";
            assert_eq!(parts(&written), [block("py", &text)]);
            assert_eq!(left_open(&written), None);
            let cut = written.rsplit_once('\n').unwrap().0;
            let closed = format!("{cut}\n{}", left_open(cut).unwrap().1);
            assert_eq!(parts(&closed), [block("py", &text)]);
        }
        assert_eq!(code_span("a"), "`a`");
        assert_eq!(code_span("a `b` ``c``"), "``` a `b` ``c`` ```");
        let text = "a\r\n> ```py\r\n> b";
        assert_eq!(normal(text), "a\n```py\nb\n```\n");
        assert_eq!(normal(&normal(text)), normal(text));
    }
}
