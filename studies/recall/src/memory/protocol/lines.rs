//! One operation a line.

use super::{Piece, id_of};
use crate::memory::{fact::FactKind, op::MemoryOp};

pub(super) fn write(op: &MemoryOp) -> String {
    let (head, text) = match op {
        MemoryOp::Insert {
            kind,
            text,
            importance,
            timestamp,
        } => {
            let mut head = match kind {
                FactKind::Semantic => "add".to_owned(),
                FactKind::Episodic => "add episodic".to_owned(),
            };
            if let Some(importance) = importance {
                head += &format!(" importance={importance}");
            }
            if let Some(timestamp) = timestamp {
                head += &format!(" time={}", serde_json::Value::from(timestamp.as_str()));
            }
            (head, text)
        }
        MemoryOp::Update { id, text, kind } => (named("update", *kind, &id.to_string()), text),
        MemoryOp::Delete { id, kind } => return named("delete", *kind, &id.to_string()),
        MemoryOp::SetCore { text } => ("core".to_owned(), text),
        MemoryOp::SetSummary { text } => ("summary".to_owned(), text),
        MemoryOp::Noop => return "noop".to_owned(),
    };
    let text = text.trim().replace('\n', "\n  ");
    format!("{head}: {text}").trim_end().to_owned()
}

pub(super) fn read(whole: &str, start: usize, fact: Option<&str>, pieces: &mut Vec<Piece>) {
    // How far the line of the last operation was indented; absent where nothing can continue it.
    let mut open: Option<usize> = None;
    let mut at = start;
    for line in whole[start..].split_inclusive('\n') {
        let span = at..at + line.len();
        at = span.end;
        let content = line.trim_start().trim_end_matches(['\n', '\r']);
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        if let Some(first) = open
            && indent > first
            && let Some(Piece::Op { op, span: before }) = pieces.last_mut()
            && let Some(text) = text_of(op)
        {
            let line = line.trim_end_matches(['\n', '\r']);
            text.push('\n');
            text.push_str(&line[indent.min(first + 2)..]);
            before.end = span.end;
            continue;
        }
        if content.is_empty() || content.starts_with("```") {
            pieces.push(Piece::Ignored { span });
            open = None;
            continue;
        }
        match operation(content, fact) {
            Ok(op) => {
                pieces.push(Piece::Op { op, span });
                open = Some(indent);
            }
            Err(why) => {
                pieces.push(Piece::malformed(whole, span, why));
                open = None;
            }
        }
    }
    for piece in pieces {
        if let Piece::Op { op, .. } = piece
            && let Some(text) = text_of(op)
        {
            text.truncate(text.trim_end().len());
        }
    }
}

fn named(name: &str, kind: Option<FactKind>, id: &str) -> String {
    match kind {
        Some(kind) => format!("{name} {} {id}", kind.name()),
        None => format!("{name} {id}"),
    }
}

/// The text that further lines would continue.
fn text_of(op: &mut MemoryOp) -> Option<&mut String> {
    match op {
        MemoryOp::Insert { text, .. }
        | MemoryOp::Update { text, .. }
        | MemoryOp::SetCore { text }
        | MemoryOp::SetSummary { text } => Some(text),
        MemoryOp::Delete { .. } | MemoryOp::Noop => None,
    }
}

/// What stands before the colon of a line, word by word, and the text behind it.
#[derive(Default)]
struct Head<'a> {
    kind: Option<FactKind>,
    id: Option<&'a str>,
    importance: Option<f32>,
    timestamp: Option<String>,
    /// Absent where there is no colon.
    text: Option<&'a str>,
}

fn operation(line: &str, fact: Option<&str>) -> Result<MemoryOp, String> {
    let line = without_bullet(line);
    let line = match line.strip_prefix('`') {
        Some(quoted) => quoted.trim_end().trim_end_matches('`'),
        None => line,
    };
    let end = line
        .find(|character: char| !character.is_ascii_alphabetic())
        .unwrap_or(line.len());
    let (keyword, rest) = (line[..end].to_ascii_lowercase(), &line[end..]);
    let op = match keyword.as_str() {
        "noop" => return Ok(MemoryOp::Noop),
        "add" | "insert" => {
            let head = head(rest, &keyword)?;
            if head.id.is_some() {
                return Err("a new fact gets its id by itself: write `add: TEXT`".to_owned());
            }
            MemoryOp::Insert {
                kind: head.kind.unwrap_or_default(),
                text: said(head.text, fact, "add: TEXT")?,
                importance: head.importance,
                timestamp: head.timestamp,
            }
        }
        "update" => {
            let head = head(rest, &keyword)?;
            MemoryOp::Update {
                id: named_id(head.id, "update f000012: TEXT")?,
                text: said(head.text, fact, "update f000012: TEXT")?,
                kind: head.kind,
            }
        }
        "delete" | "remove" => {
            let head = head(rest, &keyword)?;
            // `delete: f000012` says it too.
            let id = head.id.or(head.text);
            MemoryOp::Delete {
                id: named_id(id, "delete f000012")?,
                kind: head.kind,
            }
        }
        "core" => MemoryOp::SetCore {
            text: said(head(rest, &keyword)?.text, None, "core: TEXT")?,
        },
        "summary" => MemoryOp::SetSummary {
            text: said(head(rest, &keyword)?.text, None, "summary: TEXT")?,
        },
        _ => return Err("this is no operation".to_owned()),
    };
    Ok(op)
}

fn head<'a>(mut rest: &'a str, keyword: &str) -> Result<Head<'a>, String> {
    let mut head = Head::default();
    loop {
        rest = rest.trim_start();
        if let Some(text) = rest.strip_prefix([':', '：']) {
            head.text = Some(text.trim_start());
            return Ok(head);
        }
        if rest.is_empty() {
            return Ok(head);
        }
        if let Some(quoted) = rest.strip_prefix("time=") {
            let mut values =
                serde_json::Deserializer::from_str(quoted).into_iter::<serde_json::Value>();
            let Some(Ok(serde_json::Value::String(timestamp))) = values.next() else {
                return Err("a time is written `time=\"8 May 2023\"`".to_owned());
            };
            head.timestamp = Some(timestamp);
            rest = &quoted[values.byte_offset()..];
            continue;
        }
        let end = rest
            .find(|character: char| character.is_whitespace() || matches!(character, ':' | '：'))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        rest = &rest[end..];
        match word.to_ascii_lowercase().as_str() {
            "semantic" => head.kind = Some(FactKind::Semantic),
            "episodic" => head.kind = Some(FactKind::Episodic),
            lower => {
                if let Some(number) = lower.strip_prefix("importance=") {
                    let number: Option<f32> = number.parse().ok();
                    let Some(number) = number.filter(|number| number.is_finite()) else {
                        return Err("an importance is a number from 0 to 1".to_owned());
                    };
                    head.importance = Some(number);
                } else if id_of(word).is_some() && head.id.is_none() {
                    head.id = Some(word);
                } else {
                    return Err(format!("`{word}` cannot stand behind `{keyword}`"));
                }
            }
        }
    }
}

fn said(text: Option<&str>, fact: Option<&str>, wanted: &str) -> Result<String, String> {
    match (text, fact) {
        (Some(""), Some(fact)) | (None, Some(fact)) => Ok(fact.to_owned()),
        (Some(text), _) => Ok(text.to_owned()),
        (None, None) => Err(format!("there is no colon: write `{wanted}`")),
    }
}

fn named_id(word: Option<&str>, wanted: &str) -> Result<crate::memory::FactId, String> {
    word.and_then(id_of)
        .ok_or_else(|| format!("it names no fact: write `{wanted}`"))
}

/// A line without `-`, `*`, `•`, `1.` or `1)` in front.
fn without_bullet(line: &str) -> &str {
    if let Some(rest) = line.strip_prefix(['-', '*', '•']) {
        return rest.trim_start();
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].strip_prefix(['.', ')']) {
        Some(rest) if digits > 0 => rest.trim_start(),
        _ => line,
    }
}
