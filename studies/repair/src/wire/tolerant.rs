//! Reading replies that are nearly right (spec of the repair study, section 1.6).

use super::{Reading, WireFormat, text, tools};
use crate::action::{Action, ActionFault, ActionKind, FaultCode, Meta};

/// Takes what [`super::Reading::Tolerant`] lists off a reply and reads the rest; what was done is in the
/// warnings. A reply without any action does nothing.
pub(super) fn read(
    reply: &str,
    format: WireFormat,
    meta: &mut Meta,
) -> Result<Action, ActionFault> {
    let unwrapped = unquoted(reply, meta);
    let bare = unfenced(unwrapped.trim(), meta);
    if bare.starts_with('{')
        && let Ok(value) = serde_json::from_str(bare)
    {
        meta.warn("bare-object");
        return tools::read_value(value, Reading::Tolerant, meta);
    }
    let as_block = || is_block(bare);
    let (calls, is_whole) = tools::calls_in(bare);
    if let Some(first) = calls.first()
        && (format == WireFormat::Tools || !as_block())
    {
        if calls.len() > 1 {
            meta.warn("extra-calls");
        }
        if !is_whole && calls.len() == 1 {
            meta.warn("missing-terminator");
        }
        return tools::read_json(first, Reading::Tolerant, meta);
    }
    if as_block() {
        return block(bare, meta);
    }
    meta.warn(FaultCode::MissingFunctionTag.code());
    Ok(Action::new(ActionKind::Noop))
}

fn is_block(text: &str) -> bool {
    text.to_ascii_lowercase().contains("<function=")
}

/// A reply that is a JSON string of the reply.
fn unquoted(reply: &str, meta: &mut Meta) -> String {
    match serde_json::from_str::<String>(reply.trim()) {
        Ok(inner) => {
            meta.warn("json-string");
            inner
        }
        Err(_) => reply.to_owned(),
    }
}

/// The inside of a reply that is one fenced block.
fn unfenced<'a>(reply: &'a str, meta: &mut Meta) -> &'a str {
    let inside = reply
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    match inside.and_then(|inside| inside.split_once('\n')) {
        Some((language, inside)) if !language.contains('<') => {
            meta.warn("fenced");
            inside.trim()
        }
        _ => reply,
    }
}

/// The first block, closed where it is not, and without what stands around it.
fn block(reply: &str, meta: &mut Meta) -> Result<Action, ActionFault> {
    let strict = text::read(reply, &mut meta.clone());
    let fault = match strict {
        // Read once more, since reading may warn.
        Ok(_) => return text::read(reply, meta),
        Err(fault) => fault,
    };
    let lower = reply.to_ascii_lowercase();
    let start = lower.find("<function=").unwrap_or_default();
    let end = "</function>";
    let mut one = match lower[start..].find(end) {
        // Inside of CDATA the terminator is text, and the block goes on.
        Some(found) if fault.code != FaultCode::MissingFunctionTag => {
            reply[start..start + found + end.len()].to_owned()
        }
        _ => closed(&reply[start..]),
    };
    if start > 0 || one.len() < reply.len() - start {
        meta.warn(FaultCode::ExtraText.code());
    }
    if fault.code == FaultCode::MissingFunctionTag {
        meta.warn("missing-terminator");
    }
    // Parameters that nobody knows are passed over, one after the other.
    loop {
        match text::read(&one, &mut meta.clone()) {
            Err(fault) if fault.code == FaultCode::UnknownParam => {
                let Some((name, rest)) = without_param(&one, &fault.detail) else {
                    return Err(fault);
                };
                meta.warn(format!("unknown-param:{name}"));
                one = rest;
            }
            Err(fault) => return Err(fault),
            Ok(_) => return text::read(&one, meta),
        }
    }
}

/// Ends whatever a truncated reply left open.
fn closed(block: &str) -> String {
    let mut text = block.trim_end().to_owned();
    let ends_with = |text: &str, end: &str| text.to_ascii_lowercase().ends_with(end);
    if text.rfind("<![CDATA[") > text.rfind("]]>") {
        // What was to close the section may lie in it already.
        for end in ["</function>", "</param>"] {
            if ends_with(&text, end) {
                text.truncate(text.len() - end.len());
                text.truncate(text.trim_end().len());
            }
        }
        text += "]]>";
    }
    let lower = text.to_ascii_lowercase();
    if lower.rfind("<param ") > lower.rfind("</param>") {
        text += "</param>";
    }
    if !ends_with(&text, "</function>") {
        text += "</function>";
    }
    text
}

/// The block without the parameter that a fault names.
fn without_param(block: &str, detail: &str) -> Option<(String, String)> {
    let name = detail.split_once("parameter `")?.1.split_once('`')?.0;
    let start = block.find(&format!("name=\"{name}\""))?;
    let start = block[..start].to_ascii_lowercase().rfind("<param")?;
    let end = block[start..].to_ascii_lowercase().find("</param>")?;
    let rest = [&block[..start], &block[start + end + "</param>".len()..]].concat();
    Some((name.to_owned(), rest))
}
