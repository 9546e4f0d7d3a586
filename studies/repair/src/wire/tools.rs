//! Wire format B: a call of one of the tools, apart from the text or in it between `<tool_call>` and
//! `</tool_call>`.
//!
//! Spec of the repair study, section 1.4. The actions of the text protocol are tools too, so that every
//! action can be called.

use record::{FunctionCall, ToolCall, ToolKind};
use serde_json::{Value, json};

use super::{Reading, text};
use crate::action::{
    ACTIONS, Action, ActionFault, ActionKind, FaultCode, Meta, Named, Signature, TOOLS, as_tool,
    read_action, read_tool,
};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// Reads a reply that must have exactly one call; text may stand around it.
pub(super) fn read(reply: &str, meta: &mut Meta) -> Result<Action, ActionFault> {
    let (calls, is_whole) = calls_in(reply);
    match calls.as_slice() {
        [] => {
            let detail = "there is no <tool_call> in the reply";
            Err(ActionFault::new(FaultCode::MissingFunctionTag, detail))
        }
        [_] if !is_whole => {
            let detail = "the call does not end with </tool_call>";
            Err(ActionFault::new(FaultCode::MissingFunctionTag, detail))
        }
        [one] => read_json(one, Reading::Strict, meta),
        more => Err(several(more.len())),
    }
}

/// Reads the calls of a message. Tolerantly, the first is used, and a tool that is none does nothing.
pub(super) fn read_calls(
    calls: &[ToolCall],
    reading: Reading,
    meta: &mut Meta,
) -> Result<Action, ActionFault> {
    match (calls, reading) {
        ([], Reading::Strict) => {
            let detail = "the reply has no `tool_calls`; make exactly one call of a tool";
            Err(ActionFault::new(FaultCode::MissingFunctionTag, detail))
        }
        ([], Reading::Tolerant) => {
            meta.warn("missing-function-tag");
            Ok(Action::new(ActionKind::Noop))
        }
        ([_, _, ..], Reading::Strict) => Err(several(calls.len())),
        ([first, rest @ ..], _) => {
            if !rest.is_empty() {
                meta.warn("extra-calls");
            }
            let function = &first.function;
            read_call(&function.name, function.arguments.clone(), reading, meta)
        }
    }
}

/// The action as a call.
pub(super) fn call(action: &Action) -> ToolCall {
    let (name, arguments) = as_tool(action);
    ToolCall {
        id: None,
        kind: ToolKind::Function,
        function: FunctionCall {
            name: name.to_owned(),
            arguments: Value::Object(arguments),
        },
    }
}

/// The action as text.
pub(super) fn write(action: &Action) -> String {
    written(&call(action))
}

/// The call as text.
pub(super) fn written(call: &ToolCall) -> String {
    let function = &call.function;
    let call = json!({"name": function.name, "arguments": function.arguments});
    // A text of the call could hold the tag that ends it.
    let call = call.to_string().replace('<', "\\u003c");
    format!("{OPEN}\n{call}\n{CLOSE}")
}

/// The texts of the calls in a reply; whether the last of them is closed.
pub(super) fn calls_in(reply: &str) -> (Vec<&str>, bool) {
    let mut calls = Vec::new();
    let mut rest = reply;
    while let Some((_, after)) = rest.split_once(OPEN) {
        let Some((call, beyond)) = after.split_once(CLOSE) else {
            calls.push(after.trim());
            return (calls, false);
        };
        calls.push(call.trim());
        rest = beyond;
    }
    (calls, true)
}

/// A call as JSON: `{"name", "arguments"}`, or as messages have it, in `function`.
pub(super) fn read_json(
    call: &str,
    reading: Reading,
    meta: &mut Meta,
) -> Result<Action, ActionFault> {
    let value: Value = serde_json::from_str(call).map_err(|error| {
        let detail = format!("the call is no JSON object: {error}");
        ActionFault::new(FaultCode::InvalidJsonParam, detail)
    })?;
    read_value(value, reading, meta)
}

pub(super) fn read_value(
    value: Value,
    reading: Reading,
    meta: &mut Meta,
) -> Result<Action, ActionFault> {
    let mut value = value;
    if let Some(function) = value.get_mut("function").filter(|inner| inner.is_object()) {
        value = function.take();
    }
    let Value::Object(mut object) = value else {
        let detail = "the call is no JSON object with `name` and `arguments`";
        return Err(ActionFault::new(FaultCode::InvalidJsonParam, detail));
    };
    let name = match reading {
        Reading::Strict => object.remove("name"),
        Reading::Tolerant => ["name", "type", "action"]
            .iter()
            .find_map(|key| object.remove(*key)),
    };
    let Some(Value::String(name)) = name else {
        let detail = "the call has no `name`";
        return Err(ActionFault::new(FaultCode::UnknownAction, detail));
    };
    let arguments = ["arguments", "params", "parameters"]
        .iter()
        .find_map(|key| object.remove(*key));
    let arguments = match (arguments, reading) {
        (Some(arguments), _) => arguments,
        // A bare object has its arguments beside its name.
        (None, Reading::Tolerant) => {
            object.remove("schema_version");
            Value::Object(object)
        }
        (None, Reading::Strict) => json!({}),
    };
    read_call(&name, arguments, reading, meta)
}

fn read_call(
    name: &str,
    arguments: Value,
    reading: Reading,
    meta: &mut Meta,
) -> Result<Action, ActionFault> {
    let name = name.trim().to_lowercase();
    let tool = Signature::of(TOOLS, &name);
    let action = Signature::of(ACTIONS, &name);
    let Some(signature) = tool.or(action) else {
        if reading == Reading::Tolerant {
            meta.warn(format!("unknown-tool:{name}"));
            return Ok(Action::new(ActionKind::Noop));
        }
        let names: Vec<&str> = TOOLS.iter().map(|signature| signature.name).collect();
        let detail = format!(
            "there is no tool `{name}`; call one of {}",
            names.join(", ")
        );
        return Err(ActionFault::new(FaultCode::UnknownAction, detail));
    };
    let given = arguments_of(arguments)?;
    // `repair` is both a tool and an action, and the plan tells which is meant.
    let signature = match action {
        Some(action) if signature.name == "repair" && given.contains_key("subplan") => action,
        _ => signature,
    };
    let is_tool = tool.is_some_and(|tool| std::ptr::eq(tool, signature));
    let given = known(signature, given, reading, meta)?;
    match is_tool {
        true => read_tool(signature, given, meta),
        false => read_action(signature, given, meta),
    }
}

/// An object, or a text that holds one.
fn arguments_of(arguments: Value) -> Result<Named, ActionFault> {
    let wrong = |detail: String| ActionFault::new(FaultCode::InvalidJsonParam, detail);
    match arguments {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Named::new()),
        Value::String(text) if text.trim().is_empty() => Ok(Named::new()),
        Value::String(text) => serde_json::from_str(&text)
            .map_err(|error| wrong(format!("`arguments` holds no JSON object: {error}"))),
        _ => Err(wrong("`arguments` must be a JSON object".to_owned())),
    }
}

fn known(
    signature: &'static Signature,
    given: Named,
    reading: Reading,
    meta: &mut Meta,
) -> Result<Named, ActionFault> {
    let mut kept = Named::new();
    for (name, value) in given {
        if signature.param(&name).is_some() {
            kept.insert(name, value);
        } else if reading == Reading::Tolerant {
            meta.warn(format!("unknown-param:{name}"));
        } else {
            return Err(text::unknown_param(signature, &name));
        }
    }
    Ok(kept)
}

fn several(count: usize) -> ActionFault {
    let detail = format!("{count} calls are there; make exactly one");
    ActionFault::new(FaultCode::InvalidMultiBlock, detail)
}
