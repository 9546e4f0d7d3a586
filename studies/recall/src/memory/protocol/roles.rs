//! What the four roles and extracting models write (spec, sections 0 and 6).

use serde_json::{Map, Value, json};

use super::{
    OpFormat, Piece, json, read_about,
    tools::{first, number_of, text_of},
    without_thoughts,
};
use crate::memory::{dates, fact::FactKind, op::MemoryOp};

/// What the role `fact_split` makes of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitFacts {
    /// For the long-term memory.
    pub important: Vec<String>,
    /// For the short-term memory.
    pub unimportant: Vec<String>,
    /// Parts that cannot be read, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Reads a response of `fact_split`: lines `important: TEXT` and `unimportant: TEXT`, or a JSON object of two
/// lists of texts by these names. `none` says that there is nothing.
pub fn read_split(text: &str, format: OpFormat) -> SplitFacts {
    let mut split = SplitFacts::default();
    let mut thoughts = Vec::new();
    let Some(start) = without_thoughts(text, &mut thoughts) else {
        let unreadable = thoughts.into_iter().filter_map(|piece| match piece {
            Piece::Malformed { text, why, .. } => Some((text, why)),
            Piece::Op { .. } | Piece::Ignored { .. } => None,
        });
        split.unreadable.extend(unreadable);
        return split;
    };
    match format {
        OpFormat::Lines => split_lines(&text[start..], &mut split),
        OpFormat::Tools => split_json(&text[start..], &mut split),
    }
    split
}

/// Facts as [`read_split`] reads them.
pub fn write_split(split: &SplitFacts, format: OpFormat) -> String {
    if format == OpFormat::Tools {
        return json!({"important": split.important, "unimportant": split.unimportant}).to_string();
    }
    let line = |name: &str, text: &String| format!("{name}: {}", text.replace('\n', " "));
    let important = split.important.iter().map(|text| line("important", text));
    let unimportant = split
        .unimportant
        .iter()
        .map(|text| line("unimportant", text));
    let lines: Vec<String> = important.chain(unimportant).collect();
    if lines.is_empty() {
        return "none".to_owned();
    }
    lines.join("\n")
}

/// Reads a response of `long_mem` about `fact`: operations in which an addition or an update without a text of
/// its own means the fact, as in `add` or `update f000003`.
pub fn read_decisions(text: &str, fact: &str, format: OpFormat) -> Vec<Piece> {
    read_about(text, format, Some(fact))
}

/// Reads a response of `short_mem`: the new short-term memory, all of it. `noop` leaves it as it is; an empty
/// response is malformed.
pub fn read_short_memory(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let Some(start) = without_thoughts(text, &mut pieces) else {
        return pieces;
    };
    let span = start..text.len();
    let said = text[start..].trim();
    let said = said.strip_prefix("summary:").unwrap_or(said).trim();
    pieces.push(if said.is_empty() {
        Piece::malformed(text, span, "there is no new short-term memory")
    } else if said.eq_ignore_ascii_case("noop") {
        Piece::Op {
            op: MemoryOp::Noop,
            span,
        }
    } else {
        let text = said.to_owned();
        Piece::Op {
            op: MemoryOp::SetSummary { text },
            span,
        }
    });
    pieces
}

/// Reads what a model extracted: a JSON list of `{text, importance, timestamp}`, also of plain texts, also under
/// a name like `facts`. Each becomes an insertion; what says when is episodic unless the entry has a `kind`.
pub fn read_extraction(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let Some(start) = without_thoughts(text, &mut pieces) else {
        return pieces;
    };
    let body = &text[start..];
    let found = body.match_indices(['[', '{']).find_map(|(at, _)| {
        let (value, length) = json::read(&body[at..])?;
        Some((start + at, start + at + length, entries(value)?))
    });
    let Some((from, to, entries)) = found else {
        let why = "there is no JSON list of facts: write [{\"text\": …, \"importance\": …}]";
        pieces.push(Piece::malformed(text, start..text.len(), why));
        return pieces;
    };
    pieces.push(Piece::Ignored { span: start..from });
    let mut taken = from;
    for entry in entries {
        let span = taken..to;
        taken = to;
        pieces.push(match insertion(&entry) {
            Ok(op) => Piece::Op { op, span },
            Err(why) => Piece::Malformed {
                text: entry.to_string(),
                why,
                span,
            },
        });
    }
    let span = taken..text.len();
    pieces.push(Piece::Ignored { span });
    pieces.retain(|piece| !piece.span().is_empty() || !matches!(piece, Piece::Ignored { .. }));
    pieces
}

/// Insertions as [`read_extraction`] reads them; other operations have no place in it.
pub fn write_extraction(ops: &[MemoryOp]) -> String {
    let entries = ops.iter().filter_map(|op| match op {
        MemoryOp::Insert {
            kind,
            text,
            importance,
            timestamp,
        } => {
            let mut entry = Map::new();
            entry.insert("text".to_owned(), json!(text.trim()));
            entry.insert("kind".to_owned(), json!(kind.name()));
            if let Some(importance) = importance {
                entry.insert("importance".to_owned(), json!(importance));
            }
            if let Some(timestamp) = timestamp {
                entry.insert("timestamp".to_owned(), json!(timestamp));
            }
            Some(Value::Object(entry))
        }
        _ => None,
    });
    Value::Array(entries.collect()).to_string()
}

fn split_lines(text: &str, split: &mut SplitFacts) {
    for line in text.lines() {
        let line = line.trim().trim_start_matches(['-', '*', '•']).trim();
        if line.is_empty() || line.starts_with("```") || line.eq_ignore_ascii_case("none") {
            continue;
        }
        let (name, text) = line.split_once([':', '：']).unwrap_or((line, ""));
        let list = match name.trim().to_ascii_lowercase().as_str() {
            "important" => &mut split.important,
            "unimportant" => &mut split.unimportant,
            _ => {
                let why = "a line begins with `important:` or `unimportant:`".to_owned();
                split.unreadable.push((line.to_owned(), why));
                continue;
            }
        };
        let text = text.trim();
        if !text.is_empty() && !text.eq_ignore_ascii_case("none") {
            list.push(text.to_owned());
        }
    }
}

fn split_json(text: &str, split: &mut SplitFacts) {
    let found = text
        .match_indices('{')
        .find_map(|(at, _)| match json::read(&text[at..])?.0 {
            Value::Object(object)
                if object.contains_key("important") || object.contains_key("unimportant") =>
            {
                Some(object)
            }
            _ => None,
        });
    let Some(object) = found else {
        if !text.trim().is_empty() {
            let why = "there is no JSON object {\"important\": […], \"unimportant\": […]}";
            split
                .unreadable
                .push((text.trim().to_owned(), why.to_owned()));
        }
        return;
    };
    for (name, list) in [
        ("important", &mut split.important),
        ("unimportant", &mut split.unimportant),
    ] {
        let values = match object.get(name) {
            Some(Value::Array(values)) => values.as_slice(),
            Some(Value::Null) | None => &[],
            Some(value) => std::slice::from_ref(value),
        };
        for value in values {
            let text = match value {
                Value::Object(entry) => {
                    first(entry, &["text", "fact", "content"]).and_then(text_of)
                }
                value => text_of(value),
            };
            match text.map(|text| text.trim().to_owned()) {
                Some(text) if !text.is_empty() => list.push(text),
                _ => split
                    .unreadable
                    .push((value.to_string(), "a fact is a text".to_owned())),
            }
        }
    }
}

/// The entries of a list, or of the list that an object holds; an object with a text is an entry itself.
fn entries(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(entries) => Some(entries),
        Value::Object(object) => {
            let list = first(&object, &["facts", "memories", "memory", "items"]);
            match list {
                Some(Value::Array(entries)) => Some(entries.clone()),
                _ => entry_text(&object)
                    .is_some()
                    .then(|| vec![Value::Object(object)]),
            }
        }
        _ => None,
    }
}

fn entry_text(entry: &Map<String, Value>) -> Option<String> {
    first(entry, &["text", "fact", "content", "memory"]).and_then(text_of)
}

fn insertion(entry: &Value) -> Result<MemoryOp, String> {
    let none = Map::new();
    let (text, fields) = match entry {
        Value::String(text) => (Some(text.clone()), &none),
        Value::Object(fields) => (entry_text(fields), fields),
        _ => (None, &none),
    };
    let text = text.ok_or("an entry needs a `text`")?;
    let timestamp = first(fields, &["timestamp", "date", "time"])
        .and_then(text_of)
        .filter(|timestamp| !timestamp.trim().is_empty());
    let kind = match first(fields, &["kind", "memory_type", "type"]).and_then(Value::as_str) {
        Some("semantic") => FactKind::Semantic,
        Some("episodic") => FactKind::Episodic,
        _ if dates::says_when(&text) => FactKind::Episodic,
        _ => FactKind::Semantic,
    };
    Ok(MemoryOp::Insert {
        kind,
        text,
        importance: first(fields, &["importance"]).and_then(number_of),
        timestamp,
    })
}
