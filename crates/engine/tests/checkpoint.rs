//! Damaged or foreign checkpoints are refused with the facts: file, tensor, expected and found.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::path::Path;

use engine::{Family, Model, ModelConfig, Survey};
use proptest::prelude::*;
use record::Seed;
use safetensors::{Dtype, tensor::TensorView};
use serde_json::{Value, json};

fn config() -> ModelConfig {
    ModelConfig {
        n_kv_heads: 1,
        ..ModelConfig::qwen2(11, 8, 1, 2)
    }
}

fn saved() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    Model::random(config(), Seed(1))
        .unwrap()
        .save(directory.path())
        .unwrap();
    directory
}

/// Rewrites the weights with `change` applied to the list of named tensors.
fn rewrite(directory: &Path, change: impl FnOnce(&mut Vec<(String, Vec<usize>, Vec<f32>)>)) {
    let model = Model::load(directory).unwrap();
    let mut tensors: Vec<_> = model
        .tensors()
        .map(|(name, shape, values)| (name.to_owned(), shape.to_vec(), values.to_vec()))
        .collect();
    change(&mut tensors);
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, _, values)| {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        })
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
        (
            name,
            TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
        )
    });
    let file = safetensors::serialize(views, None).unwrap();
    std::fs::write(directory.join("model.safetensors"), file).unwrap();
}

fn refusal(directory: &Path) -> String {
    Model::load(directory).unwrap_err().to_string()
}

fn assert_mentions(message: &str, words: &[&str]) {
    assert!(
        words.iter().all(|word| message.contains(word)),
        "{message} lacks one of {words:?}"
    );
}

#[test]
fn a_truncated_file() {
    let directory = saved();
    let path = directory.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    for len in [0, 5, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert_mentions(
            &refusal(directory.path()),
            &["model.safetensors", "truncated"],
        );
    }
    std::fs::remove_file(&path).unwrap();
    assert_mentions(
        &refusal(directory.path()),
        &["model.safetensors", "No such file"],
    );
}

#[test]
fn a_missing_an_unknown_and_a_misshapen_tensor_and_a_nan() {
    let name = "model.layers.0.mlp.up_proj.weight";
    let at = |tensors: &[(String, Vec<usize>, Vec<f32>)]| {
        tensors
            .iter()
            .position(|(other, _, _)| other == name)
            .unwrap()
    };
    let directory = saved();
    rewrite(directory.path(), |tensors| {
        tensors.remove(at(tensors));
    });
    assert_mentions(
        &refusal(directory.path()),
        &["model.safetensors", name, "missing"],
    );

    let directory = saved();
    rewrite(directory.path(), |tensors| {
        tensors.push(("extra".to_owned(), vec![1], vec![0.0]))
    });
    assert_mentions(&refusal(directory.path()), &["`extra`", "not part"]);

    let directory = saved();
    rewrite(directory.path(), |tensors| {
        let index = at(tensors);
        tensors[index].1 = vec![8, 24];
    });
    assert_mentions(&refusal(directory.path()), &[name, "[8, 24]", "[24, 8]"]);

    let directory = saved();
    rewrite(directory.path(), |tensors| {
        let index = at(tensors);
        tensors[index].2[7] = f32::NAN;
    });
    assert_mentions(&refusal(directory.path()), &[name, "NaN", "element 7"]);
}

#[test]
fn bf16_weights_are_widened() {
    let directory = saved();
    let model = Model::load(directory.path()).unwrap();
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = model
        .tensors()
        .map(|(name, shape, values)| {
            let halves = values
                .iter()
                .flat_map(|value| value.to_le_bytes()[2..].to_vec());
            (name.to_owned(), shape.to_vec(), halves.collect())
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        (
            name,
            TensorView::new(Dtype::BF16, shape.clone(), bytes).unwrap(),
        )
    });
    let file = safetensors::serialize(views, None).unwrap();
    std::fs::write(directory.path().join("model.safetensors"), file).unwrap();
    let widened = Model::load(directory.path()).unwrap();
    for ((_, _, wide), (_, _, full)) in widened.tensors().zip(model.tensors()) {
        for (wide, full) in wide.iter().zip(full) {
            assert_eq!(wide.to_bits(), full.to_bits() & 0xffff_0000);
        }
    }
}

#[test]
fn configurations_survive_a_round_trip() {
    let llama = ModelConfig {
        family: Family::Llama,
        tied_embeddings: false,
        eos_tokens: vec![2, 5],
        bos_token: Some(1),
        norm_epsilon: 1e-5,
        ..config()
    };
    for config in [config(), llama] {
        assert_eq!(ModelConfig::from_json(&config.to_json()).unwrap(), config);
    }
}

#[test]
fn unknown_features_are_refused_by_name() {
    let cases = [
        ("model_type", json!("mamba"), "mamba"),
        (
            "rope_scaling",
            json!({"rope_type": "longrope", "factor": 4.0}),
            "longrope",
        ),
        (
            "rope_scaling",
            json!({"rope_type": "linear", "factor": 4.0, "beta_fast": 3.0}),
            "beta_fast",
        ),
        (
            "rope_scaling",
            json!({"rope_type": "linear", "factor": -4.0}),
            "rope_scaling.factor",
        ),
        (
            "rope_parameters",
            json!({"rope_theta": 1e4, "rope_type": "llama3"}),
            "factor",
        ),
        ("use_sliding_window", json!("yes"), "use_sliding_window"),
        (
            "layer_types",
            json!(["full_attention", "sliding_attention"]),
            "sliding_attention",
        ),
        ("hidden_act", json!("gelu"), "gelu"),
        (
            "quantization_config",
            json!({"bits": 4}),
            "quantization_config",
        ),
        ("attention_bias", json!(true), "attention_bias"),
        ("num_experts", json!(8), "num_experts"),
        ("num_key_value_heads", json!(3), "divisor"),
        ("head_dim", json!(5), "even"),
        ("hidden_size", json!("big"), "hidden_size"),
        ("rms_norm_eps", json!(-1.0), "rms_norm_eps"),
    ];
    for (key, value, word) in cases {
        let mut json = config().to_json();
        json[key] = value;
        let message = ModelConfig::from_json(&json).unwrap_err().to_string();
        assert_mentions(&message, &[word]);
    }
    let mut json = config().to_json();
    json.as_object_mut().unwrap().remove("vocab_size");
    assert_mentions(
        &ModelConfig::from_json(&json).unwrap_err().to_string(),
        &["vocab_size"],
    );
    json["unknown_but_unset"] = Value::Null;
    json["vocab_size"] = json!(11);
    assert!(ModelConfig::from_json(&json).is_ok());
}

#[test]
fn what_published_checkpoints_say_without_meaning_anything_is_taken() {
    let mut json = config().to_json();
    for (key, value) in [
        ("is_llama_config", json!(true)),
        ("rope_interleaved", json!(false)),
        (
            "transformers.js_config",
            json!({"kv_cache_dtype": {"fp16": "float16"}}),
        ),
        ("pad_token_id", json!(-1)),
        ("_name_or_path", json!("org/name")),
    ] {
        json[key] = value;
    }
    assert_eq!(ModelConfig::from_json(&json).unwrap(), config());
    json["rope_interleaved"] = json!(true);
    let refused = ModelConfig::from_json(&json).unwrap_err().to_string();
    assert_mentions(&refused, &["rope_interleaved"]);

    // Rotary frequencies, and the output projection of a tied model.
    let directory = saved();
    let before = Model::load(directory.path()).unwrap();
    rewrite(directory.path(), |tensors| {
        let name = "model.layers.0.self_attn.rotary_emb.inv_freq";
        tensors.push((name.to_owned(), vec![2], vec![1.0, 0.1]));
        let head = tensors[0].2.clone();
        tensors.push(("lm_head.weight".to_owned(), vec![11, 8], head));
    });
    let after = Model::load(directory.path()).unwrap();
    assert_eq!(before.digest(), after.digest());
    assert!(Survey::of(directory.path()).problems.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever stands in a file of weights, it is refused or read, never a crash; and the survey, which
    /// reads without making a model, comes to the same verdict.
    #[test]
    fn noise_in_a_file_is_refused_or_read(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_header in any::<bool>(),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let directory = saved();
        let path = directory.path().join("model.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for (place, value) in edits {
            let end = if in_header { header } else { bytes.len() };
            bytes[place.index(end)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        std::fs::write(&path, bytes).unwrap();
        agree(directory.path())?;
    }

    #[test]
    fn noise_in_a_configuration_is_refused_or_read(
        key in any::<prop::sample::Index>(),
        value in prop_oneof![
            any::<i64>().prop_map(|number| json!(number)),
            any::<f64>().prop_map(|number| json!(number)),
            (0_u64..70).prop_map(|number| json!(number)),
            any::<bool>().prop_map(|flag| json!(flag)),
            Just(json!(null)),
            Just(json!([])),
            Just(json!({})),
            Just(json!("llama")),
            Just(json!("full_attention")),
        ],
    ) {
        let directory = saved();
        let path = directory.path().join("config.json");
        let mut json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let object = json.as_object_mut().unwrap();
        let keys: Vec<String> = object.keys().cloned().collect();
        object.insert(key.get(&keys).clone(), value);
        std::fs::write(&path, json.to_string()).unwrap();
        agree(directory.path())?;
    }
}

fn agree(directory: &Path) -> Result<(), TestCaseError> {
    let loaded = Model::load(directory).map(drop);
    let problems = Survey::of(directory).problems;
    prop_assert_eq!(
        loaded.is_ok(),
        problems.is_empty(),
        "{:?} but {:?}",
        loaded,
        problems
    );
    Ok(())
}
