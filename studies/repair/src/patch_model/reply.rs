//! Reading what patch models write: edits as JSON, unified diffs, SEARCH blocks, with talk around them.
//!
//! Spec of the repair study, sections 4.2 and 4.4. What cannot be read has a code and words, and is never
//! an error of the run.

use code::{Patch, patch::LineEdit};
use serde_json::{Map, Value};

use super::{Proposal, Proposed};

/// Characters of a reply that are worth showing to whoever wrote it.
const SHOWN: usize = 2_000;

/// The patches of a reply, or why there are none.
pub fn read_reply(reply: &str) -> Proposed {
    let text = without_thoughts(reply);
    if text.trim().is_empty() {
        return none("cgm-empty", "the reply is empty");
    }
    let found = match json(text) {
        Json::Whole(value) => from_value(&value),
        Json::Broken(detail) => Err(Unread("invalid-patch-schema", detail)),
        Json::None => from_text(text).map(|patch| {
            vec![Proposal {
                patch,
                text: shown(text),
                summary: String::new(),
                confidence: 0.0,
                counted: false,
            }]
        }),
    };
    match found {
        Ok(proposals) if proposals.is_empty() => none("cgm-empty", "the reply proposes no patch"),
        Ok(proposals) => Proposed::Patches(proposals),
        Err(Unread(code, detail)) => Proposed::None { code, detail },
    }
}

/// Reads what a service answers that was asked for JSON.
pub(super) fn read_value(value: &Value) -> Proposed {
    match from_value(value) {
        Ok(proposals) if proposals.is_empty() => none("cgm-empty", "no patch is proposed"),
        Ok(proposals) => Proposed::Patches(proposals),
        Err(Unread(code, detail)) => Proposed::None { code, detail },
    }
}

/// A code of the spec's section 1.5, and words.
struct Unread(&'static str, String);

fn none(code: &'static str, detail: &str) -> Proposed {
    Proposed::None {
        code,
        detail: detail.to_owned(),
    }
}

/// What a model thinks before it answers is no answer.
fn without_thoughts(reply: &str) -> &str {
    match reply.rfind("</think>") {
        Some(end) => &reply[end + "</think>".len()..],
        None if reply.trim_start().starts_with("<think>") => "",
        None => reply,
    }
}

enum Json {
    Whole(Value),
    Broken(String),
    None,
}

/// The first JSON object or list of a text that is about patches; broken where one begins and cannot be read.
fn json(text: &str) -> Json {
    let trimmed = text.trim();
    let mut broken = None;
    let mut from = 0;
    while let Some(at) = trimmed[from..].find(['{', '[']) {
        let start = from + at;
        from = start + 1;
        // In the middle of a line of a diff or of prose, a brace begins no answer.
        let line = trimmed[..start].rsplit('\n').next().unwrap_or_default();
        if !line.trim().is_empty() {
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(&trimmed[start..]).into_iter::<Value>();
        match values.next() {
            // Behind what broke, an edit may be a part of it: only a whole answer counts.
            Some(Ok(value)) if broken.is_none() && is_answer(&value) => return Json::Whole(value),
            Some(Ok(value)) if WHOLE.iter().any(|name| value.get(*name).is_some()) => {
                return Json::Whole(value);
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let looks_so = |name: &&str| trimmed[start..].contains(*name);
                if ["\"edits\"", "\"new_text\"", "\"patch\""]
                    .iter()
                    .any(looks_so)
                {
                    broken.get_or_insert_with(|| format!("the JSON cannot be read: {error}"));
                }
            }
            None => {}
        }
    }
    // A whole reply that is JSON of another kind is an answer too, to be refused as what it is.
    match (broken, serde_json::from_str(trimmed)) {
        (_, Ok(value)) => Json::Whole(value),
        (Some(detail), _) => Json::Broken(detail),
        (None, _) => Json::None,
    }
}

/// What an answer has, and what an edit has.
const WHOLE: [&str; 5] = ["patch", "patches", "candidates", "edits", "diff"];
const EDIT: [&str; 2] = ["new_text", "path"];

fn is_answer(value: &Value) -> bool {
    let has_field = |value: &Value| {
        let mut names = WHOLE.iter().chain(&EDIT);
        names.any(|name| value.get(*name).is_some())
    };
    has_field(value)
        || value
            .as_array()
            .is_some_and(|list| list.iter().any(has_field))
}

/// The patches of an answer in JSON: a list of candidates, one candidate, a patch, or bare edits.
fn from_value(value: &Value) -> Result<Vec<Proposal>, Unread> {
    let schema = |detail: &str| Err(Unread("invalid-patch-schema", detail.to_owned()));
    match value {
        Value::Array(items) if items.is_empty() => Ok(Vec::new()),
        Value::Array(items) if items.iter().all(|item| item.get("new_text").is_some()) => {
            Ok(vec![candidate(&Map::new(), value)?])
        }
        Value::Array(items) if items.iter().any(|item| item.get("patch").is_some()) => {
            candidates(items)
        }
        Value::Array(_) => Ok(vec![candidate(&Map::new(), value)?]),
        Value::Object(object) => {
            for name in ["candidates", "patches"] {
                if let Some(list) = object.get(name) {
                    return match list {
                        Value::Array(items) => candidates(items),
                        _ => schema(&format!("`{name}` is not a list")),
                    };
                }
            }
            let patch = ["patch", "diff", "edits"]
                .iter()
                .find_map(|name| object.get(*name));
            match patch {
                Some(Value::Null) => Ok(Vec::new()),
                Some(patch) => Ok(vec![candidate(object, patch)?]),
                None if object.contains_key("new_text") => {
                    let edits = Value::Array(vec![value.clone()]);
                    Ok(vec![candidate(&Map::new(), &edits)?])
                }
                None => schema("there is no `patch` with a list called `edits`"),
            }
        }
        Value::String(text) => Ok(vec![proposal(&Map::new(), from_text(text)?, text.clone())]),
        _ => schema("the reply is neither an object nor a list"),
    }
}

/// One bad candidate does not spoil the others.
fn candidates(items: &[Value]) -> Result<Vec<Proposal>, Unread> {
    let mut found = Vec::new();
    let mut first = None;
    for item in items {
        match from_value(item) {
            Ok(proposals) => found.extend(proposals),
            Err(unread) => first = first.or(Some(unread)),
        }
    }
    match first {
        Some(unread) if found.is_empty() => Err(unread),
        _ => Ok(found),
    }
}

/// `around` is the object that `patch` was found in.
fn candidate(around: &Map<String, Value>, patch: &Value) -> Result<Proposal, Unread> {
    let schema = |detail: String| Unread("invalid-patch-schema", detail);
    let edits = match patch {
        Value::String(text) => {
            return Ok(proposal(around, from_text(text)?, shown(text)));
        }
        Value::Object(inner) => match (inner.get("edits"), inner.get("diff")) {
            (Some(edits), _) => edits,
            (None, Some(Value::String(text))) => {
                return Ok(proposal(around, from_text(text)?, shown(text)));
            }
            _ => return Err(schema("there is no list called `edits`".to_owned())),
        },
        edits => edits,
    };
    let Value::Array(items) = edits else {
        return Err(schema("`edits` is not a list".to_owned()));
    };
    if items.is_empty() {
        return Err(schema("`edits` is empty".to_owned()));
    }
    // A path that all edits share may stand beside them.
    let shared = [around.get("path"), patch.get("path")];
    let shared = shared.into_iter().flatten().find_map(Value::as_str);
    let edits: Vec<LineEdit> = (1..)
        .zip(items)
        .map(|(number, item)| edit(number, item, shared))
        .collect::<Result<_, _>>()?;
    let text = serde_json::to_string(&edits).unwrap_or_default();
    let patch =
        Patch::from_edits(edits).map_err(|error| Unread(error.code(), error.to_string()))?;
    Ok(proposal(around, patch, shown(&text)))
}

fn edit(number: usize, item: &Value, shared: Option<&str>) -> Result<LineEdit, Unread> {
    let schema =
        |detail: String| Unread("invalid-patch-schema", format!("edit {number}: {detail}"));
    let Value::Object(fields) = item else {
        return Err(schema("it is not an object".to_owned()));
    };
    let path = match fields.get("path") {
        Some(Value::String(path)) => path.as_str(),
        Some(_) => return Err(schema("`path` is not a string".to_owned())),
        None => shared.unwrap_or_default(),
    };
    if path.trim().is_empty() {
        let detail = format!("edit {number}: it names no file");
        return Err(Unread("path-missing", detail));
    }
    let line = |name: &str| match fields.get(name) {
        Some(Value::Number(number)) if number.is_u64() => Ok(number.as_u64().unwrap_or(0) as usize),
        Some(other) => Err(Unread(
            "range-invalid",
            format!("edit {number}: `{name}` is {other}; lines are whole numbers from 1"),
        )),
        None => Err(Unread(
            "range-invalid",
            format!("edit {number}: `{name}` is missing"),
        )),
    };
    let (start, end) = (line("start")?, line("end")?);
    let new_text = match fields.get("new_text") {
        Some(Value::String(text)) => text.replace("\r\n", "\n"),
        Some(_) => return Err(schema("`new_text` is not a string".to_owned())),
        None => return Err(schema("`new_text` is missing".to_owned())),
    };
    Ok(LineEdit {
        path: path.to_owned(),
        start,
        end,
        new_text,
    })
}

fn from_text(text: &str) -> Result<Patch, Unread> {
    Patch::parse(text.as_bytes()).map_err(|error| Unread(error.code(), error.to_string()))
}

fn proposal(around: &Map<String, Value>, patch: Patch, text: String) -> Proposal {
    let inner = around.get("patch").and_then(Value::as_object);
    let field = |name: &str| around.get(name).or_else(|| inner?.get(name));
    let confidence = field("confidence").and_then(Value::as_f64);
    Proposal {
        patch,
        text,
        summary: field("summary")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        confidence: confidence.filter(|it| it.is_finite()).unwrap_or(0.0),
        counted: false,
    }
}

fn shown(text: &str) -> String {
    text.trim().chars().take(SHOWN).collect()
}
