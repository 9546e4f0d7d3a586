//! JSON Schemas: of the actions' records, and of the tools.

use serde_json::{Map, Value, json};

use super::{ACTIONS, PROPOSALS, Param, ParamKind, Signature, TOOLS};

/// The schema of [`Action::record`](super::Action::record): one of the actions.
pub fn action_schema() -> Value {
    let actions: Vec<Value> = ACTIONS.iter().chain(PROPOSALS).map(record_schema).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Planner action",
        "oneOf": actions,
    })
}

/// The tools of wire format B as OpenAI's `tools` has them.
pub fn tool_schemas() -> Vec<Value> {
    let tool = |signature: &Signature| {
        json!({
            "type": "function",
            "function": {
                "name": signature.name,
                "description": signature.about,
                "parameters": object(signature, Map::new(), Vec::new()),
            },
        })
    };
    TOOLS.iter().map(tool).collect()
}

fn record_schema(signature: &Signature) -> Value {
    let own = [
        ("schema_version".to_owned(), json!({"const": 1})),
        ("type".to_owned(), json!({"const": signature.name})),
    ];
    let required = vec!["schema_version", "type"];
    let mut schema = object(signature, own.into_iter().collect(), required);
    schema["title"] = signature.name.into();
    schema["description"] = signature.about.into();
    schema
}

fn object(
    signature: &Signature,
    mut properties: Map<String, Value>,
    mut required: Vec<&'static str>,
) -> Value {
    for param in signature.params {
        properties.insert(param.name.to_owned(), schema_of(param));
        if param.required {
            required.push(param.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn schema_of(param: &Param) -> Value {
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    let mut schema = match param.kind {
        ParamKind::Text => json!({"type": "string"}),
        ParamKind::Integer { min, max, default } => {
            let mut schema = json!({"type": "integer", "minimum": min, "maximum": max});
            if let Some(default) = default {
                schema["default"] = default.into();
            }
            schema
        }
        ParamKind::Flag { default } => json!({"type": "boolean", "default": default}),
        ParamKind::Choice { words, default } => {
            let mut schema = json!({"type": "string", "enum": words});
            if let Some(default) = default {
                schema["default"] = default.into();
            }
            schema
        }
        ParamKind::View => json!({
            "type": "string",
            "pattern": "^(body|header|around_line:[0-9]+|file_window:[0-9]+-[0-9]+)$",
            "default": "body",
        }),
        ParamKind::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
        ParamKind::Anchors => json!({
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "kind": {
                        "type": "string",
                        "enum": ["function", "symbol", "file", "class", "module", "t-file"],
                    },
                    "text": {"type": "string"},
                    "id": {"type": "string"},
                },
                "additionalProperties": false,
            },
        }),
        ParamKind::Ids | ParamKind::Lines => {
            json!({"anyOf": [{"type": "string"}, texts()]})
        }
        ParamKind::Selector => json!({"anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "select_ids": texts(),
                    "keep_ids": texts(),
                    "note": {"type": "string"},
                    "tag": {"type": "string"},
                    "top_k": {"type": "integer", "minimum": 1, "maximum": 50},
                },
                "additionalProperties": false,
            },
        ]}),
        ParamKind::Evidence => json!({
            "type": "array",
            "minItems": 2,
            "maxItems": 5,
            "items": {
                "type": "object",
                "properties": {
                    "node_id": {"type": "string"},
                    "role": {"type": "string"},
                    "evidence": {"type": "string"},
                },
                "required": ["node_id"],
                "additionalProperties": false,
            },
        }),
    };
    schema["description"] = param.about.into();
    schema
}
