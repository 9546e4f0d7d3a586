//! Chat completions as JSON: what is sent, and what is read of the answer.

use record::{Message, Said, StopReason, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Conversation, Reply, ToolChoice};

/// The body of a request. Parameters that OpenAI does not know (`top_k`, `min_p`, `repetition_penalty`)
/// are sent only where they do something; vLLM and SGLang take them.
pub(super) fn body(model: &str, conversation: &Conversation) -> Value {
    let sampling = &conversation.sampling;
    let messages: Vec<Value> = conversation.messages.iter().map(message).collect();
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("messages".to_owned(), messages.into());
    body.insert("max_tokens".to_owned(), sampling.max_tokens.into());
    body.insert("temperature".to_owned(), number(sampling.temperature));
    body.insert("top_p".to_owned(), number(sampling.top_p));
    // Signed 64 bits are what servers read.
    body.insert("seed".to_owned(), (conversation.seed.0 >> 1).into());
    let mut given = |key: &str, given: bool, value: Value| {
        if given {
            body.insert(key.to_owned(), value);
        }
    };
    given("top_k", sampling.top_k > 0, sampling.top_k.into());
    given("min_p", sampling.min_p > 0.0, number(sampling.min_p));
    given(
        "repetition_penalty",
        sampling.repetition_penalty != 1.0,
        number(sampling.repetition_penalty),
    );
    given(
        "presence_penalty",
        sampling.presence_penalty != 0.0,
        number(sampling.presence_penalty),
    );
    given(
        "frequency_penalty",
        sampling.frequency_penalty != 0.0,
        number(sampling.frequency_penalty),
    );
    given(
        "stop",
        !sampling.stop_strings.is_empty(),
        sampling.stop_strings.clone().into(),
    );
    if !conversation.tools.is_empty() {
        let choice = match conversation.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::Required => "required",
        };
        given("tools", true, conversation.tools.clone().into());
        given("tool_choice", true, choice.into());
    }
    Value::Object(body)
}

/// The shortest decimal that is this number, not the binary one in full.
fn number(value: f32) -> Value {
    let shortest: f64 = value.to_string().parse().unwrap_or(f64::from(value));
    json!(shortest)
}

/// The API wants the arguments of calls as text, and content where nothing is called.
fn message(message: &Message) -> Value {
    let mut value = json!({ "role": message.role, "content": message.content });
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            let arguments = match &call.function.arguments {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.function.name, "arguments": arguments },
            })
        });
        value["tool_calls"] = calls.collect::<Vec<_>>().into();
    }
    if let Some(id) = &message.tool_call_id {
        value["tool_call_id"] = id.as_str().into();
    }
    if let Some(name) = &message.name {
        value["name"] = name.as_str().into();
    }
    value
}

#[derive(Deserialize)]
struct ChatCompletion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

/// Reads an answer.
///
/// # Errors
/// What is missing, in words.
pub(super) fn reply(text: &str) -> Result<Reply, String> {
    let answer: ChatCompletion = serde_json::from_str(text)
        .map_err(|error| format!("{error}; it begins {:?}", beginning(text)))?;
    let choice = answer.choices.into_iter().next();
    let choice = choice.ok_or("`choices` is empty")?;
    let usage = answer.usage.unwrap_or_default();
    let stop = match choice.finish_reason.as_deref() {
        Some("length") => StopReason::Length,
        _ => StopReason::Stop,
    };
    let tool_calls: Vec<ToolCall> = choice.message.tool_calls;
    Ok(Reply {
        said: Said {
            text: choice.message.content,
            tool_calls,
            prompt_tokens: usage.prompt_tokens,
            response_tokens: usage.completion_tokens,
        },
        stop,
    })
}

/// The ids of `{"data": [{"id": …}]}`; none of anything else.
pub(super) fn models(text: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let models = value["data"].as_array().into_iter().flatten();
    models
        .filter_map(|model| model["id"].as_str().map(str::to_owned))
        .collect()
}

/// What an error's body says, in whichever of the usual places.
pub(super) fn error_message(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let places = [
        &value["error"]["message"],
        &value["message"],
        &value["detail"],
        &value["error"],
    ];
    let said = places.into_iter().find_map(Value::as_str);
    beginning(said.unwrap_or(text)).to_owned()
}

/// Whether an error says that the prompt, with the answer that was asked for, is longer than the model's context:
/// OpenAI's code, or the words of vLLM, SGLang and llama.cpp.
pub(super) fn is_over_context(text: &str) -> bool {
    let text = text.to_lowercase();
    let said = [
        "context_length_exceeded",
        "context length",
        "context size",
        "too long to fit into the model",
    ];
    said.iter().any(|words| text.contains(words))
}

/// Enough to know what it is.
fn beginning(text: &str) -> &str {
    const BYTES: usize = 500;
    let text = text.trim();
    &text[..text.floor_char_boundary(BYTES)]
}
