//! Damages of what stands beside the weights: configurations, tokenizers, templates, adapters.

use std::fs;

use engine::ModelConfig;
use serde_json::{Value, json};

use super::damage::{ADAPTER, Case, FILE, LORA, TEMPLATE, config, cut, json, model};

pub(super) const CONFIGS: &[Case] = &[
    (
        "no config",
        |at| fs::remove_file(at.join("config.json")).unwrap(),
        &["config.json", "No such file"],
    ),
    (
        "a config that is no JSON",
        |at| fs::write(at.join("config.json"), "model").unwrap(),
        &["config.json", "not valid JSON"],
    ),
    (
        "another architecture",
        |at| {
            json(at, "config.json", |config| {
                config["model_type"] = json!("mamba")
            })
        },
        &["config.json", "model_type `mamba` is not supported"],
    ),
    (
        "a feature that changes the computation",
        |at| json(at, "config.json", |config| config["num_experts"] = json!(8)),
        &["config.json", "`num_experts` = 8", "not supported"],
    ),
    (
        "quantised weights",
        |at| {
            json(at, "config.json", |config| {
                config["quantization_config"] = json!({"bits": 4})
            })
        },
        &["config.json", "quantization_config"],
    ),
    (
        "more layers than any machine has",
        |at| {
            json(at, "config.json", |config| {
                config["num_hidden_layers"] = json!(1_u64 << 60)
            })
        },
        &["config.json", "num_hidden_layers", "1152921504606846976"],
    ),
    (
        "a width that no machine has",
        |at| {
            json(at, "config.json", |config| {
                config["hidden_size"] = json!(1_u64 << 40)
            })
        },
        &["config.json", "hidden_size"],
    ),
    (
        "a large width that the weights have not",
        |at| {
            json(at, "config.json", |config| {
                config["hidden_size"] = json!(1 << 18)
            })
        },
        &[FILE, "has shape", "262144"],
    ),
    (
        "heads that do not divide",
        |at| {
            json(at, "config.json", |config| {
                config["num_key_value_heads"] = json!(3)
            })
        },
        &["config.json", "num_key_value_heads", "divisor"],
    ),
];

pub(super) const TOKENIZERS: &[Case] = &[
    (
        "no tokenizer",
        |at| fs::remove_file(at.join("tokenizer.json")).unwrap(),
        &["tokenizer.json", "No such file"],
    ),
    (
        "a tokenizer that is no JSON",
        |at| fs::write(at.join("tokenizer.json"), "{\"model\": ").unwrap(),
        &["tokenizer.json"],
    ),
    (
        "a tokenizer of an unknown kind",
        |at| {
            json(at, "tokenizer.json", |json| {
                json["model"] = json!({"type": "Letters"})
            })
        },
        &["tokenizer.json"],
    ),
    (
        "more tokens than the model has rows",
        |at| {
            json(at, "tokenizer.json", |json| {
                json["model"]["vocab"]["late"] = json!(64)
            })
        },
        &[
            "tokenizer.json has 65 tokens",
            "vocabulary is 64",
            "do not belong together",
        ],
    ),
];

/// What keeps a chat from being rendered. A text can still be gone on from.
pub(super) const CHATS: &[Case] = &[
    (
        "an end of turn that is no token",
        |at| {
            json(at, "tokenizer_config.json", |json| {
                json["eos_token"] = json!("</s>")
            })
        },
        &["tokenizer_config.json", "`</s>`"],
    ),
    (
        "a tokenizer's config that is no object",
        |at| fs::write(at.join("tokenizer_config.json"), "[]").unwrap(),
        &["tokenizer_config.json"],
    ),
    (
        "a stop that is no token",
        |at| {
            json(at, "generation_config.json", |json| {
                json["eos_token_id"] = json!([0, 999])
            })
        },
        &["generation_config.json", "999"],
    ),
    (
        "a stop that is no number",
        |at| {
            json(at, "generation_config.json", |json| {
                json["eos_token_id"] = json!("end")
            })
        },
        &["generation_config.json", "\"end\""],
    ),
    (
        "a template that does not parse",
        |at| fs::write(at.join(TEMPLATE), "{% for m in messages %}").unwrap(),
        &[TEMPLATE, "chat template"],
    ),
    (
        "a template in the config that does not parse",
        |at| {
            fs::remove_file(at.join(TEMPLATE)).unwrap();
            json(at, "tokenizer_config.json", |json| {
                json["chat_template"] = json!("{{ 1 +")
            });
        },
        &["tokenizer_config.json", "chat template"],
    ),
    (
        "a template that raises",
        |at| fs::write(at.join(TEMPLATE), "{{ raise_exception('no users here') }}").unwrap(),
        &["no users here"],
    ),
    (
        "a template that calls what there is not",
        |at| fs::write(at.join(TEMPLATE), "{{ ask_the_oracle(messages) }}").unwrap(),
        &["ask_the_oracle"],
    ),
    (
        "a template with the characters that mark a text",
        |at| fs::write(at.join(TEMPLATE), "\u{E001}").unwrap(),
        &[TEMPLATE, "reserved"],
    ),
];

pub(super) const ADAPTERS: &[Case] = &[
    (
        "a base that is not there",
        |at| {
            json(at, ADAPTER, |json| {
                json["base_model_name_or_path"] = json!("org/base")
            })
        },
        &[ADAPTER, "no model at `org/base`"],
    ),
    (
        "no base named",
        |at| {
            json(at, ADAPTER, |json| {
                json["base_model_name_or_path"] = Value::Null
            })
        },
        &[ADAPTER],
    ),
    (
        "a base with other weights",
        |at| model(config(), 2).save(&at.join("base")).unwrap(),
        &[LORA, "another base", "digest"],
    ),
    (
        "a base of another width",
        |at| {
            let wider = ModelConfig {
                intermediate_size: 64,
                ..config()
            };
            model(wider, 1).save(&at.join("base")).unwrap();
        },
        &[LORA, "another base", "lora_"],
    ),
    (
        "a base of fewer layers",
        |at| {
            let shorter = ModelConfig {
                n_layers: 1,
                ..config()
            };
            model(shorter, 1).save(&at.join("base")).unwrap();
        },
        &[LORA, "another base", "layers.1."],
    ),
    (
        "a damaged base",
        |at| cut(&at.join("base"), 1000),
        &["base/model.safetensors", "truncated"],
    ),
    (
        "no weights",
        |at| fs::remove_file(at.join(LORA)).unwrap(),
        &[LORA, "No such file"],
    ),
    (
        "weights cut short",
        |at| {
            let bytes = fs::read(at.join(LORA)).unwrap();
            fs::write(at.join(LORA), &bytes[..bytes.len() - 9]).unwrap();
        },
        &[LORA, "truncated"],
    ),
    (
        "a NaN",
        |at| {
            let mut bytes = fs::read(at.join(LORA)).unwrap();
            let end = bytes.len();
            bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
            fs::write(at.join(LORA), bytes).unwrap();
        },
        &[LORA, "lora_", "NaN"],
    ),
    (
        "another rank",
        |at| json(at, ADAPTER, |json| json["r"] = json!(3)),
        &[LORA, "another base", "lora_A", "[3, "],
    ),
    (
        "another kind of adapter",
        |at| json(at, ADAPTER, |json| json["use_dora"] = json!(true)),
        &[ADAPTER, "`use_dora` = true"],
    ),
];
