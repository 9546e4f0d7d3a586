//! Wire format A: one block, `<function=NAME>`, parameters, `</function>`.
//!
//! Spec of the repair study, section 1.1. CDATA sections are found before anything else, so tags inside
//! them are text; parameters that are declared as text are never decoded as JSON.

use std::ops::Range;

use serde_json::Value;

use crate::action::{
    ACTIONS, Action, ActionFault, FaultCode, Meta, Named, PROPOSALS, ParamKind, Signature,
    as_fields, read_action,
};

const OPEN: &str = "<![CDATA[";
const CLOSE: &str = "]]>";

/// Reads a reply that must be exactly one block.
///
/// The order of the checks: number of blocks, text before, terminator, text after, name, each parameter
/// (text before it, known, once, value), text after the last, what is required, types.
pub(super) fn read(reply: &str, meta: &mut Meta) -> Result<Action, ActionFault> {
    let page = Page::new(reply)?;
    let block = page.block()?;
    let signature = signature(&block.name)?;
    let mut given = Named::new();
    let mut at = block.body.start;
    while let Some(param) = page.param(at..block.body.end) {
        page.blank(at..param.whole.start, "between parameters")?;
        let Some(known) = signature.param(&param.name) else {
            return Err(unknown_param(signature, &param.name));
        };
        if given.contains_key(&param.name) {
            let detail = format!("`{}` is there twice", param.name);
            return Err(ActionFault::new(FaultCode::DuplicateParam, detail));
        }
        let value = decoded(&reply[param.value.clone()], known.kind)
            .map_err(|fault| named(&param.name, fault))?;
        given.insert(param.name, value);
        at = param.whole.end;
    }
    page.blank(at..block.body.end, "after the last parameter")?;
    read_action(signature, given, meta)
}

/// The block as strict reading takes it.
pub(super) fn write(action: &Action) -> String {
    let mut text = format!("<function={}>\n", action.name());
    let kinds = signature(action.name()).ok();
    for (name, value) in as_fields(action) {
        let kind = kinds.and_then(|signature| signature.param(&name));
        let kind = kind.map_or(ParamKind::Text, |param| param.kind);
        text += &format!(
            "  <param name=\"{name}\">{}</param>\n",
            encoded(&value, kind)
        );
    }
    text + "</function>"
}

pub(super) fn signature(name: &str) -> Result<&'static Signature, ActionFault> {
    let known = Signature::of(ACTIONS, name).or_else(|| Signature::of(PROPOSALS, name));
    known.ok_or_else(|| {
        let names: Vec<&str> = ACTIONS.iter().map(|signature| signature.name).collect();
        let detail = format!("there is no action `{name}`; give {}", names.join(", "));
        ActionFault::new(FaultCode::UnknownAction, detail)
    })
}

pub(super) fn unknown_param(signature: &Signature, name: &str) -> ActionFault {
    let names: Vec<&str> = signature.params.iter().map(|param| param.name).collect();
    let detail = format!(
        "`{}` has no parameter `{name}`; it has {}",
        signature.name,
        names.join(", ")
    );
    ActionFault::new(FaultCode::UnknownParam, detail)
}

fn named(name: &str, fault: ActionFault) -> ActionFault {
    ActionFault::new(fault.code, format!("`{name}`: {}", fault.detail))
}

fn extra(place: &str, text: &str) -> ActionFault {
    let shown: String = text.trim().chars().take(60).collect();
    let detail = format!("there is text {place}: {shown:?}; write the block alone");
    ActionFault::new(FaultCode::ExtraText, detail)
}

/// A reply, and the same with all that lies in CDATA blotted out; both have the same bytes' places.
struct Page<'a> {
    text: &'a str,
    blotted: String,
}

struct Block {
    /// Lowercase.
    name: String,
    body: Range<usize>,
}

struct Param {
    name: String,
    whole: Range<usize>,
    value: Range<usize>,
}

impl<'a> Page<'a> {
    fn new(text: &'a str) -> Result<Self, ActionFault> {
        let mut blotted = text.to_ascii_lowercase().into_bytes();
        let mut at = 0;
        while let Some(start) = text[at..].find(OPEN).map(|found| at + found) {
            let Some(end) = text[start..].find(CLOSE) else {
                let detail = "a CDATA section is not closed with ]]>";
                return Err(ActionFault::new(FaultCode::MissingFunctionTag, detail));
            };
            at = start + end + CLOSE.len();
            blotted[start..at].fill(b'x');
        }
        // Sections are whole runs of text, and one byte each is put in place of theirs.
        let blotted = String::from_utf8_lossy(&blotted).into_owned();
        Ok(Self { text, blotted })
    }

    fn block(&self) -> Result<Block, ActionFault> {
        let openings: Vec<(usize, usize, String)> = openings(&self.blotted);
        let (start, body, name) = match openings.as_slice() {
            [] => {
                let detail = "there is no <function=NAME> in the reply";
                return Err(ActionFault::new(FaultCode::MissingFunctionTag, detail));
            }
            [one] => one.clone(),
            more => {
                let detail = format!("{} blocks are there; write exactly one", more.len());
                return Err(ActionFault::new(FaultCode::InvalidMultiBlock, detail));
            }
        };
        self.blank(0..start, "before the block")?;
        let Some(end) = self.blotted[body..].find("</function>") else {
            let detail = "the block does not end with </function>";
            return Err(ActionFault::new(FaultCode::MissingFunctionTag, detail));
        };
        let end = body + end;
        let after = end + "</function>".len();
        self.blank(after..self.text.len(), "after the block")?;
        Ok(Block {
            name,
            body: body..end,
        })
    }

    /// The first parameter in this range.
    fn param(&self, range: Range<usize>) -> Option<Param> {
        let mut from = range.start;
        loop {
            let start = from + self.blotted[from..range.end].find("<param")?;
            let after = start + "<param".len();
            if let Some((name, value)) = self.attribute(after..range.end) {
                let end = self.blotted[value..range.end].find("</param>");
                if let Some(end) = end.map(|end| value + end) {
                    return Some(Param {
                        name: self.text[name].to_owned(),
                        whole: start..end + "</param>".len(),
                        value: value..end,
                    });
                }
            }
            from = after;
        }
    }

    /// ` name="KEY">`: the key, and what comes after.
    fn attribute(&self, range: Range<usize>) -> Option<(Range<usize>, usize)> {
        let text = &self.blotted[range.clone()];
        let rest = text.trim_start();
        if rest.len() == text.len() {
            return None;
        }
        let rest = rest.strip_prefix("name")?.trim_start();
        let rest = rest.strip_prefix('=')?.trim_start().strip_prefix('"')?;
        let start = range.end - rest.len();
        let length = rest.find('"')?;
        let after = rest[length + 1..].trim_start().strip_prefix('>')?;
        let is_key = !rest[..length].contains(['<', '>', '\n']);
        is_key.then_some((start..start + length, range.end - after.len()))
    }

    fn blank(&self, range: Range<usize>, place: &str) -> Result<(), ActionFault> {
        match self.text[range.clone()].trim() {
            "" => Ok(()),
            text => Err(extra(place, text)),
        }
    }
}

/// Where `<function=NAME>` begins and ends, and the name.
fn openings(blotted: &str) -> Vec<(usize, usize, String)> {
    const TAG: &str = "<function=";
    let found = blotted.match_indices(TAG).filter_map(|(start, _)| {
        let rest = &blotted[start + TAG.len()..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let length = rest.find(|c| !is_name(c))?;
        let is_whole = length > 0 && rest[length..].starts_with('>');
        is_whole.then(|| {
            let end = start + TAG.len() + length + 1;
            (start, end, rest[..length].to_owned())
        })
    });
    found.collect()
}

/// A parameter's value. Only what is not declared as text may be JSON.
pub(super) fn decoded(raw: &str, kind: ParamKind) -> Result<Value, ActionFault> {
    let text = raw.trim();
    if text.starts_with(OPEN) {
        return sections(text).map(Value::String);
    }
    if matches!(kind, ParamKind::Text | ParamKind::Lines | ParamKind::View) {
        return Ok(Value::String(text.to_owned()));
    }
    match looks_like_json(text) {
        true => serde_json::from_str(text).map_err(|error| {
            let detail = format!("this begins like JSON and is none: {error}");
            ActionFault::new(FaultCode::InvalidJsonParam, detail)
        }),
        false => Ok(Value::String(text.to_owned())),
    }
}

/// The insides of the CDATA sections that a value is made of.
fn sections(text: &str) -> Result<String, ActionFault> {
    let mut inside = String::new();
    let mut rest = text;
    while let Some(section) = rest.strip_prefix(OPEN) {
        // Every section that opens is closed: the page would not have been read otherwise.
        let (content, after) = section.split_once(CLOSE).unwrap_or((section, ""));
        inside += content;
        rest = after.trim_start();
    }
    match rest {
        "" => Ok(inside),
        rest => Err(extra("after a CDATA section", rest)),
    }
}

fn looks_like_json(text: &str) -> bool {
    let first = |c: char| matches!(c, '{' | '[' | '"' | '-') || c.is_ascii_digit();
    text.starts_with(first) || matches!(text, "true" | "false" | "null")
}

/// So that [`decoded`] gives the value back.
fn encoded(value: &Value, kind: ParamKind) -> String {
    let Value::String(text) = value else {
        return match value {
            // Tags are no part of JSON's own signs and may be written as escapes.
            Value::Array(_) | Value::Object(_) => value
                .to_string()
                .replace('<', "\\u003c")
                .replace('>', "\\u003e"),
            _ => value.to_string(),
        };
    };
    let is_declared = matches!(kind, ParamKind::Text | ParamKind::Lines | ParamKind::View);
    let is_plain = text.trim() == text
        && !text.contains(['<', '>', '\n', '\r'])
        && (is_declared || !looks_like_json(text));
    match is_plain {
        true => text.clone(),
        false => format!("{OPEN}{}{CLOSE}", text.replace(CLOSE, "]]]]><![CDATA[>")),
    }
}
