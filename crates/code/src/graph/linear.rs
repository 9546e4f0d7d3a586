//! Parts of a graph as text, within a budget of tokens.
//!
//! Spec of the repair study, sections 1.8, 3.7 and 4.4. Tokens are counted by a function of the caller:
//! the policy's own tokenizer.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ListedNode, Span, is_test_path};

/// Tokens of a text, by the tokenizer of whoever will read it.
pub type CountTokens<'a> = dyn Fn(&str) -> usize + 'a;

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chunk {
    pub path: String,
    /// The first line is 1; both ends are included.
    pub start: u32,
    pub end: u32,
    pub text: String,
}

impl Chunk {
    /// `path:start-end`, and below it the lines with their numbers.
    pub fn numbered(&self) -> String {
        let lines = (self.start..).zip(self.text.lines());
        let lines: String = lines
            .map(|(number, line)| format!("{number:04}: {line}\n"))
            .collect();
        format!("{}:{}-{}\n{lines}", self.path, self.start, self.end)
    }
}

/// Which lines stand for nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excerpt {
    /// The lines of the nodes and as many around them, what overlaps in one; of a node without lines the
    /// first 100 of its file, 200 of a test file.
    Windows { around: u32 },
    /// The first lines of each file.
    Files { lines: u32 },
    /// Each node by itself, up to so many lines of so many nodes.
    Nodes { lines: u32, nodes: usize },
}

impl Excerpt {
    /// `wsd`.
    pub const WINDOWS: Self = Self::Windows { around: 2 };
    /// `full`.
    pub const FILES: Self = Self::Files { lines: 800 };
    pub const NODES: Self = Self::Nodes {
        lines: 200,
        nodes: 80,
    };

    /// Lines without a node's own span.
    const UNKNOWN: u32 = 100;
    const UNKNOWN_OF_TEST: u32 = 200;

    /// The chunks that stand for `nodes`, where `source` has their files: in the order of paths and
    /// lines, or of the nodes.
    pub fn chunks<'a, 's>(
        self,
        nodes: impl IntoIterator<Item = &'a ListedNode>,
        source: impl Fn(&str) -> Option<&'s str>,
    ) -> Vec<Chunk> {
        let nodes = nodes.into_iter().filter(|node| !node.path.is_empty());
        if let Self::Nodes { lines, nodes: most } = self {
            let mut chunks: Vec<Chunk> = Vec::new();
            for node in nodes.take(most) {
                let own = span_of(node);
                let end = own.end.min(own.start.saturating_add(lines.max(1) - 1));
                let span = Span { end, ..own };
                let chunk = match source(&node.path) {
                    Some(text) => cut(&node.path, text, span),
                    None => kept(node, lines),
                };
                let is_known = |chunk: &Chunk| {
                    let same = |known: &Chunk| {
                        (&known.path, known.start, known.end)
                            == (&chunk.path, chunk.start, chunk.end)
                    };
                    chunks.iter().any(same)
                };
                chunks.extend(chunk.filter(|chunk| !is_known(chunk)));
            }
            return chunks;
        }
        let mut windows: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for node in nodes {
            let span = match self {
                Self::Windows { around } => {
                    let own = span_of(node);
                    Span {
                        start: own.start.saturating_sub(around).max(1),
                        end: own.end.saturating_add(around),
                    }
                }
                Self::Files { lines: end } | Self::Nodes { lines: end, .. } => {
                    Span { start: 1, end }
                }
            };
            windows.entry(&node.path).or_default().push(span);
        }
        let mut chunks = Vec::new();
        for (path, mut spans) in windows {
            let Some(text) = source(path) else { continue };
            spans.sort();
            let mut merged: Vec<Span> = Vec::new();
            for span in spans {
                match merged.last_mut() {
                    Some(last) if span.start <= last.end.saturating_add(1) => {
                        last.end = last.end.max(span.end);
                    }
                    _ => merged.push(span),
                }
            }
            let cut = merged.into_iter().filter_map(|span| cut(path, text, span));
            chunks.extend(cut);
        }
        chunks
    }
}

/// A node's own lines. A file stands for its beginning.
fn span_of(node: &ListedNode) -> Span {
    let is_file = matches!(node.kind.as_str(), "file" | "t-file");
    let first = match is_test_path(&node.path) {
        true => Excerpt::UNKNOWN_OF_TEST,
        false => Excerpt::UNKNOWN,
    };
    node.span.filter(|_| !is_file).unwrap_or(Span {
        start: 1,
        end: first,
    })
}

/// `None` if the file ends before.
fn cut(path: &str, text: &str, span: Span) -> Option<Chunk> {
    let first = span.start.max(1) as usize - 1;
    let count = (span.end as usize).saturating_sub(first);
    let lines: Vec<&str> = text.split_inclusive('\n').skip(first).take(count).collect();
    (!lines.is_empty()).then(|| Chunk {
        path: path.to_owned(),
        start: first as u32 + 1,
        end: (first + lines.len()) as u32,
        text: lines.concat(),
    })
}

/// What a node has of its source itself.
fn kept(node: &ListedNode, most: u32) -> Option<Chunk> {
    let lines: Vec<&String> = node.snippet_lines.iter().take(most as usize).collect();
    let start = node.span.map_or(1, |span| span.start);
    (!lines.is_empty()).then(|| Chunk {
        path: node.path.clone(),
        start,
        end: start + lines.len() as u32 - 1,
        text: lines.into_iter().map(|line| format!("{line}\n")).collect(),
    })
}

/// Texts in a row that together stay within a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Budgeted {
    pub text: String,
    /// Of `text`; never more than the budget.
    pub tokens: usize,
    /// Parts that are in it whole.
    pub whole: usize,
    /// Parts of which some lines are.
    pub cut: usize,
    pub left_out: usize,
}

/// Bytes a token that a text has at most to be counted as a whole before it is cut.
const LONGEST: usize = 16;

/// As many of `parts`, in their order, as `budget` tokens hold. The first that does not fit is cut after
/// a line; what comes later is left out.
///
/// The text is counted as a whole, since a tokenizer may join what parts end and begin with.
pub fn within_budget<'a>(
    parts: impl IntoIterator<Item = &'a str>,
    budget: usize,
    count: &CountTokens,
) -> Budgeted {
    let parts: Vec<&str> = parts.into_iter().collect();
    let mut out = Budgeted::default();
    // Mostly everything fits, and is counted once.
    let whole = parts.concat();
    if !whole.is_empty() && whole.len() / LONGEST <= budget {
        let tokens = count(&whole);
        if tokens <= budget {
            out.whole = parts.len();
            (out.text, out.tokens) = (whole, tokens);
            return out;
        }
    }
    let mut is_full = false;
    for part in parts {
        if is_full {
            out.left_out += 1;
            continue;
        }
        let lines: Vec<&str> = part.split_inclusive('\n').collect();
        let with = |lines: &[&str]| {
            let text = out.text.clone() + &lines.concat();
            let tokens = count(&text);
            (tokens <= budget).then_some((text, tokens))
        };
        // The most lines that fit; more lines have no fewer tokens.
        let (mut fits, mut too_many) = (0, lines.len() + 1);
        let mut best = None;
        let mut attempt = lines.len();
        while fits + 1 < too_many {
            match with(&lines[..attempt]) {
                Some(found) => (fits, best) = (attempt, Some(found)),
                None => too_many = attempt,
            }
            attempt = fits + (too_many - fits) / 2;
        }
        if let Some((text, tokens)) = best {
            (out.text, out.tokens) = (text, tokens);
        }
        is_full = fits < lines.len();
        match (is_full, fits) {
            (false, _) => out.whole += 1,
            (true, 0) => out.left_out += 1,
            (true, _) => out.cut += 1,
        }
    }
    out
}

/// A node in a line of an observation: `id kind path:start-end score`.
pub fn index_line(node: &ListedNode) -> String {
    let lines = node
        .span
        .map(|span| format!(":{}-{}", span.start, span.end));
    let score = node.score.map(|score| format!(" score={score:.2}"));
    format!(
        "{} {} {}{}{}\n",
        node.id,
        node.kind,
        node.path,
        lines.unwrap_or_default(),
        score.unwrap_or_default()
    )
}

/// Nodes as a language model reads them that knows no graphs: a header `name [kind]`, where it is, what
/// it says of itself and its source; fields cut to 512 characters, at most `most` nodes (32 in the
/// original).
pub fn described<'a>(nodes: impl IntoIterator<Item = &'a ListedNode>, most: usize) -> Vec<String> {
    const FIELD: usize = 512;
    let cut = |text: &str| text.chars().take(FIELD).collect::<String>();
    let nodes = nodes.into_iter().take(most);
    nodes
        .map(|node| {
            let mut text = format!("{} [{}]\n", cut(&node.name), node.kind);
            let summary = match node.summary.is_empty() {
                true => &node.documentation,
                false => &node.summary,
            };
            for field in [&node.signature, summary] {
                if !field.is_empty() {
                    text += &cut(field);
                    text.push('\n');
                }
            }
            if !node.snippet_lines.is_empty() {
                text += &cut(&node.snippet_lines.join("\n"));
                text.push('\n');
            }
            let lines = node
                .span
                .map(|span| format!(":{}-{}", span.start, span.end));
            text + &format!("at {}{}\n", node.path, lines.unwrap_or_default())
        })
        .collect()
}
