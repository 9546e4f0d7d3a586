//! Sound checkpoints, and the tools to damage them with.

use std::{fs, path::Path, sync::Arc};

use engine::{Adapter, LoraConfig, LoraTarget, Model, ModelConfig, WeightFiles};
use record::Seed;
use serde_json::{Value, json};

use crate::models::with_tokenizer;

/// What is done to a sound checkpoint.
pub(super) type Damage = fn(&Path);

/// A name, a damage, and what the refusal must say.
pub(super) type Case = (&'static str, Damage, &'static [&'static str]);

pub(super) const UP: &str = "model.layers.1.mlp.up_proj.weight";

pub(super) const FILE: &str = "model.safetensors";
pub(super) const INDEX: &str = "model.safetensors.index.json";
pub(super) const SHARD: &str = "model-00002-of-00003.safetensors";
pub(super) const TEMPLATE: &str = "chat_template.jinja";
pub(super) const ADAPTER: &str = "adapter_config.json";
pub(super) const LORA: &str = "adapter_model.safetensors";

pub(super) fn edit(at: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let path = at.join(FILE);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

pub(super) fn length(at: &Path) -> usize {
    fs::read(at.join(FILE)).unwrap().len()
}

pub(super) fn cut(at: &Path, length: usize) {
    edit(at, |bytes| bytes.truncate(length));
}

/// Writes another header over the same data.
pub(super) fn header(at: &Path, change: impl FnOnce(&mut Value)) {
    edit(at, |bytes| {
        let end = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        let mut header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
        change(&mut header);
        let header = header.to_string();
        let mut whole = (header.len() as u64).to_le_bytes().to_vec();
        whole.extend(header.into_bytes());
        whole.extend(&bytes[end..]);
        *bytes = whole;
    });
}

pub(super) fn shift(header: &mut Value, tensor: &str, by: i64) {
    for place in header[tensor]["data_offsets"].as_array_mut().unwrap() {
        *place = json!(place.as_i64().unwrap() + by);
    }
}

/// Another value for element 5 of a tensor in the middle.
pub(super) fn number(at: &Path, value: f32) {
    edit(at, |bytes| {
        let end = 8 + usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
        let header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
        let begin = header[UP]["data_offsets"][0].as_u64().unwrap();
        let place = end + usize::try_from(begin).unwrap() + 5 * 4;
        bytes[place..place + 4].copy_from_slice(&value.to_le_bytes());
    });
}

pub(super) fn json(at: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let path = at.join(file);
    let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut json);
    fs::write(path, json.to_string()).unwrap();
}

pub(super) fn config() -> ModelConfig {
    ModelConfig {
        eos_tokens: vec![0],
        context: 512,
        ..ModelConfig::qwen2(64, 16, 2, 2)
    }
}

pub(super) fn model(config: ModelConfig, seed: u64) -> Model {
    Model::random(config, Seed(seed)).unwrap()
}

/// A sound checkpoint.
pub(super) fn whole(at: &Path) {
    model(config(), 1).save(at).unwrap();
    with_tokenizer(at);
}

pub(super) fn sharded(at: &Path) {
    let files = WeightFiles {
        shard_bytes: 12_000,
        ..WeightFiles::default()
    };
    let written = model(config(), 1).save_as(at, files).unwrap();
    assert_eq!(written.len(), 4, "three shards and an index");
    with_tokenizer(at);
}

/// An adapter, and its base in `base`.
pub(super) fn adapter(at: &Path) {
    let base = model(config(), 1);
    base.save(&at.join("base")).unwrap();
    let lora = LoraConfig {
        rank: 2,
        alpha: 4.0,
        dropout: 0.0,
        targets: LoraTarget::all(),
        rslora: false,
    };
    let adapter = Adapter::new(&base, lora, Seed(3))
        .unwrap()
        .named_base("base");
    base.with_adapter(Arc::new(adapter))
        .unwrap()
        .save(at)
        .unwrap();
    with_tokenizer(at);
}
