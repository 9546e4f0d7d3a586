//! Operations as tool calls.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::{Piece, id_of, json};
use crate::memory::{
    fact::{FactId, FactKind},
    op::MemoryOp,
};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

pub(super) fn write(op: &MemoryOp) -> String {
    let (name, arguments) = match op {
        MemoryOp::Insert {
            kind,
            text,
            importance,
            timestamp,
        } => {
            let mut arguments = json!({"memory_type": kind.name(), "content": text.trim()});
            if let Some(importance) = importance {
                arguments["importance"] = json!(importance);
            }
            if let Some(timestamp) = timestamp {
                arguments["timestamp"] = json!(timestamp);
            }
            ("memory_insert", arguments)
        }
        MemoryOp::Update { id, text, kind } => {
            let mut arguments = with_kind(*kind);
            arguments["new_content"] = json!(text.trim());
            arguments["memory_id"] = json!(id);
            ("memory_update", arguments)
        }
        MemoryOp::Delete { id, kind } => {
            let mut arguments = with_kind(*kind);
            arguments["memory_id"] = json!(id);
            ("memory_delete", arguments)
        }
        MemoryOp::SetCore { text } => (
            "memory_update",
            json!({"memory_type": "core", "new_content": text.trim()}),
        ),
        MemoryOp::SetSummary { text } => (
            "memory_update",
            json!({"memory_type": "summary", "new_content": text.trim()}),
        ),
        MemoryOp::Noop => ("memory_noop", json!({})),
    };
    let call = json!({"name": name, "arguments": arguments}).to_string();
    // A text may mention the markers; its call must not end there.
    let call = call
        .replace("tool_call>", "tool_call\\u003e")
        .replace("think>", "think\\u003e");
    format!("{OPEN}\n{call}\n{CLOSE}")
}

fn with_kind(kind: Option<FactKind>) -> Value {
    match kind {
        Some(kind) => json!({"memory_type": kind.name()}),
        None => json!({}),
    }
}

pub(super) fn read(whole: &str, start: usize, fact: Option<&str>, pieces: &mut Vec<Piece>) {
    let mut at = start;
    let mut found = false;
    while let Some(offset) = whole[at..].find(OPEN) {
        let open = at + offset;
        ignore(at..open, pieces);
        let body = open + OPEN.len();
        let rest = &whole[body..];
        let close = rest.find(CLOSE);
        let next = rest.find(OPEN);
        let (body_end, end) = match (close, next) {
            (Some(close), next) if next.is_none_or(|next| close < next) => {
                (body + close, body + close + CLOSE.len())
            }
            (_, Some(next)) => (body + next, body + next),
            (_, None) => (whole.len(), whole.len()),
        };
        calls(whole, open..end, body..body_end, fact, pieces);
        found = true;
        at = end;
    }
    let rest = &whole[at..];
    if found || rest.trim().is_empty() {
        ignore(at..whole.len(), pieces);
        return;
    }
    // Without a marker: calls as they are, perhaps behind a few words or in a fence.
    match rest.find(['{', '[']) {
        Some(offset) => {
            ignore(at..at + offset, pieces);
            let span = at + offset..whole.len();
            calls(whole, span.clone(), span, fact, pieces);
        }
        None => {
            let why = format!("there is no call: write them between {OPEN} and {CLOSE}");
            pieces.push(Piece::malformed(whole, at..whole.len(), why));
        }
    }
}

fn ignore(span: Range<usize>, pieces: &mut Vec<Piece>) {
    if !span.is_empty() {
        pieces.push(Piece::Ignored { span });
    }
}

/// The calls of `body`, which together take up `span`.
fn calls(
    whole: &str,
    span: Range<usize>,
    body: Range<usize>,
    fact: Option<&str>,
    pieces: &mut Vec<Piece>,
) {
    let (mut taken, mut at) = (span.start, body.start);
    loop {
        let rest = whole[at..body.end].trim_start_matches(|character: char| {
            character.is_whitespace() || matches!(character, ',' | ';')
        });
        let start = body.end - rest.len();
        let value = rest
            .starts_with(['{', '['])
            .then(|| json::read(rest))
            .flatten();
        let Some((value, length)) = value else {
            let is_first = at == body.start;
            let tail = rest.trim().trim_matches('`');
            if is_first || !tail.is_empty() {
                let why = "this is no JSON object of a call";
                pieces.push(Piece::malformed(whole, taken..span.end, why));
            } else if let Some(last) = pieces.last_mut() {
                extend(last, span.end);
            }
            return;
        };
        at = start + length;
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        if values.is_empty() {
            ignore(taken..at, pieces);
        }
        for value in values {
            let span = taken..at;
            pieces.push(match operation(&value, fact) {
                Ok(op) => Piece::Op { op, span },
                Err(why) => Piece::Malformed {
                    text: value.to_string(),
                    why,
                    span,
                },
            });
            taken = at;
        }
        taken = at;
    }
}

fn extend(piece: &mut Piece, end: usize) {
    match piece {
        Piece::Op { span, .. } | Piece::Malformed { span, .. } | Piece::Ignored { span } => {
            span.end = end;
        }
    }
}

/// Where a call wants to write.
enum Place {
    Core,
    Summary,
    Facts(Option<FactKind>),
}

fn operation(call: &Value, fact: Option<&str>) -> Result<MemoryOp, String> {
    let call = call.as_object().ok_or("a call is a JSON object")?;
    let function = call.get("function").and_then(Value::as_object);
    let call = function.unwrap_or(call);
    let name = first(call, &["name", "function", "tool", "op"])
        .and_then(Value::as_str)
        .ok_or("the call has no name")?;
    let given = first(call, &["arguments", "parameters", "args", "input"]);
    let parsed = given
        .and_then(Value::as_str)
        .and_then(json::read)
        .map(|(value, _)| value);
    let arguments = match parsed.as_ref().or(given) {
        Some(Value::Object(arguments)) => arguments,
        Some(Value::Null) | None => call,
        Some(_) => return Err("the arguments of a call are a JSON object".to_owned()),
    };
    let place = place(arguments)?;
    let text = first(arguments, &["new_content", "content", "text"]).and_then(text_of);
    let needs_text = || {
        text.clone()
            .or_else(|| fact.map(str::to_owned))
            .ok_or_else(|| format!("{name} needs a content"))
    };
    let id = || -> Result<FactId, String> {
        first(arguments, &["memory_id", "id"])
            .and_then(text_of)
            .and_then(|id| id_of(&id))
            .ok_or_else(|| format!("{name} needs the memory_id of a fact, like f000012"))
    };
    let bare = name.to_ascii_lowercase();
    let bare = bare.strip_prefix("new_").unwrap_or(&bare);
    match (bare.strip_prefix("memory_").unwrap_or(bare), place) {
        ("noop", _) => Ok(MemoryOp::Noop),
        ("insert" | "add", Place::Facts(kind)) => Ok(MemoryOp::Insert {
            kind: kind.unwrap_or_default(),
            text: needs_text()?,
            importance: first(arguments, &["importance"]).and_then(number_of),
            timestamp: first(arguments, &["timestamp"]).and_then(text_of),
        }),
        ("insert" | "add", Place::Core | Place::Summary) => {
            Err("it is one text: replace it by memory_update".to_owned())
        }
        ("update", Place::Core) => Ok(MemoryOp::SetCore {
            text: needs_text()?,
        }),
        ("update", Place::Summary) => Ok(MemoryOp::SetSummary {
            text: needs_text()?,
        }),
        ("update", Place::Facts(kind)) => Ok(MemoryOp::Update {
            id: id()?,
            text: needs_text()?,
            kind,
        }),
        ("delete", Place::Core) => Ok(MemoryOp::SetCore {
            text: String::new(),
        }),
        ("delete", Place::Summary) => Ok(MemoryOp::SetSummary {
            text: String::new(),
        }),
        ("delete", Place::Facts(kind)) => Ok(MemoryOp::Delete { id: id()?, kind }),
        _ => Err(format!(
            "there is no call {name}: use memory_insert, memory_update or memory_delete"
        )),
    }
}

fn place(arguments: &Map<String, Value>) -> Result<Place, String> {
    let Some(name) = first(arguments, &["memory_type", "type", "store"]).and_then(Value::as_str)
    else {
        return Ok(Place::Facts(None));
    };
    match name.trim().to_ascii_lowercase().as_str() {
        "core" => Ok(Place::Core),
        "summary" => Ok(Place::Summary),
        "semantic" => Ok(Place::Facts(Some(FactKind::Semantic))),
        "episodic" => Ok(Place::Facts(Some(FactKind::Episodic))),
        _ => Err(format!(
            "there is no memory_type {name}: use core, semantic or episodic"
        )),
    }
}

pub(super) fn first<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(*name))
}

pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(super) fn number_of(value: &Value) -> Option<f32> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number
        .map(|number| number as f32)
        .filter(|it| it.is_finite())
}
