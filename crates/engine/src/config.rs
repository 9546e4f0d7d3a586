//! The architecture of a model, read from and written to Hugging Face `config.json`.

use std::path::Path;

use record::TokenId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{ModelError, RopeScaling, checkpoint, layout::Layout, lora, positions::RopeSettings};

/// Which published architecture the weights follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `Qwen2ForCausalLM`: biases on the query, key and value projections.
    Qwen2,
    /// `Qwen3ForCausalLM`: no biases, and a norm of each query and key head.
    Qwen3,
    /// `LlamaForCausalLM`: no biases.
    Llama,
    /// `MistralForCausalLM`: as Llama; all layers may have a sliding window.
    Mistral,
}

/// What weights are stored as and products take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dtype {
    #[default]
    F32,
    /// Weights are bf16 numbers, and so are both operands of their products; sums, norms, attention and
    /// the residual stream are f32. A learner keeps the f32 weights that it trains beside them.
    Bf16,
}

/// A decoder-only transformer: RMSNorm, rotary positions, grouped-query attention, SwiGLU.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    pub family: Family,
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub n_layers: usize,
    pub n_heads: usize,
    /// Divides `n_heads`; consecutive query heads share one key-value head.
    pub n_kv_heads: usize,
    /// Even.
    pub head_dim: usize,
    /// Most tokens in one sequence, prompt and response together.
    pub context: usize,
    pub rope_theta: f64,
    pub rope_scaling: RopeScaling,
    /// Layers that see the most recent tokens alone, and how many.
    pub sliding_window: Option<SlidingWindow>,
    pub norm_epsilon: f32,
    /// The output projection is the transposed embedding.
    pub tied_embeddings: bool,
    /// Standard deviation of random matrices.
    pub initializer_range: f64,
    pub bos_token: Option<TokenId>,
    pub eos_tokens: Vec<TokenId>,
    pub pad_token: Option<TokenId>,
    pub dtype: Dtype,
}

/// Attention to the most recent tokens alone (Beltagy et al., 2020, arXiv 2004.05150).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Tokens that a query sees, its own among them; at least 1.
    pub tokens: usize,
    /// Of each layer, whether it has the window; the others see everything.
    pub layers: Vec<bool>,
}

impl ModelConfig {
    /// A Qwen2-style model of the given size with the usual constants: head dimension
    /// `hidden_size / n_heads`, rotary base 10 000, tied embeddings.
    pub fn qwen2(vocab_size: usize, hidden_size: usize, n_layers: usize, n_heads: usize) -> Self {
        Self {
            family: Family::Qwen2,
            vocab_size,
            hidden_size,
            intermediate_size: 3 * hidden_size,
            n_layers,
            n_heads,
            n_kv_heads: n_heads,
            head_dim: hidden_size.checked_div(n_heads).unwrap_or(0),
            context: 2048,
            rope_theta: 10_000.0,
            rope_scaling: RopeScaling::None,
            sliding_window: None,
            norm_epsilon: 1e-6,
            tied_embeddings: true,
            initializer_range: 0.02,
            bos_token: None,
            eos_tokens: Vec::new(),
            pad_token: None,
            dtype: Dtype::F32,
        }
    }

    /// Reads `config.json` of a directory in the Hugging Face layout; of an adapter, its base's.
    ///
    /// # Errors
    /// As [`Self::from_json`], with the file.
    pub fn load(directory: &Path) -> Result<Self, ModelError> {
        let path = if lora::is_adapter(directory) {
            lora::base_of(directory)?.join("config.json")
        } else {
            directory.join("config.json")
        };
        let json = checkpoint::read_json(&path)?;
        Self::from_json(&json).map_err(|error| ModelError::Config {
            path,
            source: Box::new(error),
        })
    }

    /// Reads the contents of a `config.json`. Anything that would change the computation and that
    /// this engine does not implement is refused by name.
    pub fn from_json(json: &Value) -> Result<Self, ModelError> {
        let Some(object) = json.as_object() else {
            return Err(bad("config.json", "an object", json));
        };
        let family = match text(object, "model_type")? {
            "qwen2" => Family::Qwen2,
            "qwen3" => Family::Qwen3,
            "llama" => Family::Llama,
            "mistral" => Family::Mistral,
            other => return Err(unsupported(format!("model_type `{other}`"))),
        };
        refuse_unknown_features(object)?;
        let hidden_size = size(object, "hidden_size")?;
        let n_heads = size(object, "num_attention_heads")?;
        let context = size(object, "max_position_embeddings")?;
        let (rope_theta, rope_scaling) = rope(object, context)?;
        let n_layers = size(object, "num_hidden_layers")?;
        let config = Self {
            family,
            vocab_size: size(object, "vocab_size")?,
            hidden_size,
            intermediate_size: size(object, "intermediate_size")?,
            n_layers,
            n_heads,
            n_kv_heads: optional(object, "num_key_value_heads", size)?.unwrap_or(n_heads),
            head_dim: match optional(object, "head_dim", size)? {
                Some(head_dim) => head_dim,
                None if family == Family::Qwen3 => 128,
                None => hidden_size.checked_div(n_heads).unwrap_or(0),
            },
            context,
            rope_theta,
            rope_scaling,
            sliding_window: sliding_window(object, family, (n_layers, context))?,
            norm_epsilon: number(object, "rms_norm_eps")? as f32,
            tied_embeddings: flag(object, "tie_word_embeddings")?,
            initializer_range: optional(object, "initializer_range", number)?.unwrap_or(0.02),
            bos_token: token_ids(object, "bos_token_id")?.first().copied(),
            eos_tokens: token_ids(object, "eos_token_id")?,
            pad_token: token_ids(object, "pad_token_id")?.first().copied(),
            dtype: compute_dtype(object)?,
        };
        config.check()?;
        Ok(config)
    }

    /// The `config.json` that `transformers` reads this model with.
    pub fn to_json(&self) -> Value {
        let (model_type, architecture) = match self.family {
            Family::Qwen2 => ("qwen2", "Qwen2ForCausalLM"),
            Family::Qwen3 => ("qwen3", "Qwen3ForCausalLM"),
            Family::Llama => ("llama", "LlamaForCausalLM"),
            Family::Mistral => ("mistral", "MistralForCausalLM"),
        };
        let eos = match self.eos_tokens.as_slice() {
            [] => Value::Null,
            [one] => json!(one),
            several => json!(several),
        };
        let mut json = json!({
            "architectures": [architecture],
            "model_type": model_type,
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.n_layers,
            "num_attention_heads": self.n_heads,
            "num_key_value_heads": self.n_kv_heads,
            "head_dim": self.head_dim,
            "max_position_embeddings": self.context,
            "hidden_act": "silu",
            "rms_norm_eps": shortest(self.norm_epsilon),
            "rope_theta": self.rope_theta,
            "tie_word_embeddings": self.tied_embeddings,
            "initializer_range": self.initializer_range,
            "attention_dropout": 0.0,
            "use_cache": true,
            "torch_dtype": "float32",
            "bos_token_id": self.bos_token,
            "eos_token_id": eos,
            "pad_token_id": self.pad_token,
        });
        if self.dtype == Dtype::Bf16 {
            for key in ["torch_dtype", "compute_dtype"] {
                json[key] = json!("bfloat16");
            }
        }
        if self.rope_scaling != RopeScaling::None {
            json["rope_scaling"] = self.rope_scaling.to_json();
        }
        if self.family == Family::Mistral {
            // Absent, it would be 4096.
            json["sliding_window"] = Value::Null;
        }
        if let Some(window) = &self.sliding_window {
            json["sliding_window"] = json!(window.tokens);
            if self.family != Family::Mistral {
                let kind = |&sliding: &bool| if sliding { SLIDING } else { FULL };
                let kinds: Vec<&str> = window.layers.iter().map(kind).collect();
                let full = window.layers.iter().take_while(|sliding| !**sliding);
                json["use_sliding_window"] = json!(true);
                json["max_window_layers"] = json!(full.count());
                json["layer_types"] = json!(kinds);
            }
        }
        json
    }

    pub(crate) fn rope(&self) -> RopeSettings {
        RopeSettings {
            head_dim: self.head_dim,
            theta: self.rope_theta,
            scaling: self.rope_scaling,
        }
    }

    /// Trained numbers of a model of this shape; a tied embedding counts once.
    pub fn n_parameters(&self) -> usize {
        Layout::new(self).len
    }

    /// Refuses sizes that make no model.
    pub fn check(&self) -> Result<(), ModelError> {
        for (key, size) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.n_layers),
            ("num_attention_heads", self.n_heads),
            ("num_key_value_heads", self.n_kv_heads),
            ("head_dim", self.head_dim),
            ("max_position_embeddings", self.context),
        ] {
            check_size(key, size as u64)?;
        }
        if !self.n_heads.is_multiple_of(self.n_kv_heads) {
            let expected = format!("a divisor of num_attention_heads = {}", self.n_heads);
            return Err(bad(
                "num_key_value_heads",
                &expected,
                &json!(self.n_kv_heads),
            ));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(bad("head_dim", "an even size", &json!(self.head_dim)));
        }
        if let Some(window) = &self.sliding_window {
            if window.tokens == 0 {
                return Err(bad("sliding_window", "a positive size", &json!(0)));
            }
            if window.layers.len() != self.n_layers {
                let expected = format!("one entry for each of {} layers", self.n_layers);
                return Err(bad("layer_types", &expected, &json!(window.layers.len())));
            }
        }
        for (key, value) in [
            ("rope_theta", self.rope_theta),
            ("rms_norm_eps", f64::from(self.norm_epsilon)),
            ("initializer_range", self.initializer_range),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return Err(bad(key, "a positive number", &json!(value)));
            }
        }
        Ok(())
    }

    /// The tokens that a layer sees, where it does not see all.
    pub(crate) fn window(&self, layer: usize) -> Option<usize> {
        let window = self.sliding_window.as_ref()?;
        window.layers[layer].then_some(window.tokens)
    }

    /// Query, key and value projections have biases.
    pub(crate) fn qkv_bias(&self) -> bool {
        self.family == Family::Qwen2
    }

    /// Query and key heads are normed before they are rotated.
    pub(crate) fn has_qk_norm(&self) -> bool {
        self.family == Family::Qwen3
    }

    /// Width of the attention output: all query heads side by side.
    pub(crate) fn heads_width(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Width of the fused projection: queries, then keys, then values.
    pub(crate) fn qkv_width(&self) -> usize {
        (self.n_heads + 2 * self.n_kv_heads) * self.head_dim
    }
}

/// What the model computes with is a key of its own: the `dtype` of a checkpoint says how it is stored, and
/// is widened.
fn compute_dtype(object: &Map<String, Value>) -> Result<Dtype, ModelError> {
    let value = object.get("compute_dtype").unwrap_or(&Value::Null);
    match value.as_str() {
        None if value.is_null() => Ok(Dtype::F32),
        Some("bfloat16") => Ok(Dtype::Bf16),
        Some("float32") => Ok(Dtype::F32),
        _ => Err(bad("compute_dtype", "`float32` or `bfloat16`", value)),
    }
}

/// Keys that change the computation and the values under which they do not.
const FEATURES: [(&str, &[&str]); 12] = [
    ("hidden_act", &["\"silu\""]),
    ("attention_bias", &["false", "null"]),
    ("mlp_bias", &["false", "null"]),
    ("pretraining_tp", &["1", "null"]),
    ("quantization_config", &["null"]),
    ("partial_rotary_factor", &["1.0", "1", "null"]),
    ("attention_dropout", &["0.0", "0", "null"]),
    ("is_decoder", &["true", "false", "null"]),
    ("add_cross_attention", &["false", "null"]),
    ("pruned_heads", &["{}", "null"]),
    ("rope_interleaved", &["false", "null"]),
    ("tie_encoder_decoder", &["false", "null"]),
];

/// Keys read elsewhere in this file, or without influence on what the model computes.
const HARMLESS: [&str; 81] = [
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "architectures",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "compute_dtype",
    "cross_attention_hidden_size",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "head_dim",
    "hidden_size",
    "id2label",
    "initializer_range",
    "intermediate_size",
    "is_encoder_decoder",
    "is_llama_config",
    "label2id",
    "layer_types",
    "length_penalty",
    "max_length",
    "max_position_embeddings",
    "max_window_layers",
    "min_length",
    "model_type",
    "neftune_noise_alpha",
    "no_repeat_ngram_size",
    "num_attention_heads",
    "num_beam_groups",
    "num_beams",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_return_sequences",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "pad_token_id",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict",
    "return_dict_in_generate",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sep_token_id",
    "sliding_window",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_word_embeddings",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
    "use_mrope",
    "use_sliding_window",
    "vocab_size",
    "unsloth_version",
    "unsloth_fixed",
];

fn refuse_unknown_features(object: &Map<String, Value>) -> Result<(), ModelError> {
    for (key, value) in object {
        let found = value.to_string();
        match FEATURES.iter().find(|(feature, _)| feature == key) {
            Some((_, neutral)) if neutral.contains(&found.as_str()) => {}
            Some(_) => return Err(unsupported(format!("`{key}` = {found}"))),
            None if HARMLESS.contains(&key.as_str()) || value.is_null() => {}
            None => return Err(unsupported(format!("the unknown key `{key}` = {found}"))),
        }
    }
    if let Some(layers) = object.get("layer_types").and_then(Value::as_array)
        && let Some(other) = layers
            .iter()
            .find(|layer| *layer != FULL && *layer != SLIDING)
    {
        return Err(unsupported(format!("the layer type {other}")));
    }
    if object
        .get("use_mrope")
        .is_some_and(|value| value == &Value::Bool(true))
    {
        return Err(unsupported("`use_mrope` = true".to_owned()));
    }
    Ok(())
}

/// The kinds of `layer_types`.
const FULL: &str = "full_attention";
const SLIDING: &str = "sliding_attention";
/// The window of a Mistral whose config does not speak of it.
const MISTRAL_WINDOW: usize = 4096;

/// As `transformers` reads it: Mistral has its window in all layers, Qwen only with
/// `use_sliding_window`, in the layers that `layer_types` names or those from `max_window_layers` on,
/// Llama never.
fn sliding_window(
    object: &Map<String, Value>,
    family: Family,
    (n_layers, context): (usize, usize),
) -> Result<Option<SlidingWindow>, ModelError> {
    let kinds = object.get("layer_types").and_then(Value::as_array);
    let tokens = optional(object, "sliding_window", size)?;
    let tokens = match family {
        Family::Mistral if !object.contains_key("sliding_window") => Some(MISTRAL_WINDOW),
        Family::Mistral => tokens,
        Family::Qwen2 | Family::Qwen3 if flag(object, "use_sliding_window")? => tokens,
        Family::Qwen2 | Family::Qwen3 | Family::Llama => {
            return match kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == SLIDING)) {
                true => Err(unsupported(format!(
                    "the layer type {SLIDING} without a window"
                ))),
                false => Ok(None),
            };
        }
    };
    let layers: Vec<bool> = match kinds {
        _ if family == Family::Mistral => vec![true; n_layers],
        Some(kinds) => kinds.iter().map(|kind| kind == SLIDING).collect(),
        None => {
            let full = optional(object, "max_window_layers", size)?.unwrap_or(28);
            (0..n_layers).map(|layer| layer >= full).collect()
        }
    };
    let sliding = layers.contains(&true);
    let tokens = tokens.filter(|&tokens| sliding && tokens < context);
    Ok(tokens.map(|tokens| SlidingWindow { tokens, layers }))
}

/// The rotary base and its scaling: at the top level and in `rope_scaling`, or since `transformers` 5
/// both inside `rope_parameters`.
fn rope(object: &Map<String, Value>, context: usize) -> Result<(f64, RopeScaling), ModelError> {
    if let Some(Value::Object(rope)) = object.get("rope_parameters") {
        return Ok((
            number(rope, "rope_theta")?,
            RopeScaling::from_json(rope, context)?,
        ));
    }
    let theta = optional(object, "rope_theta", number)?.unwrap_or(10_000.0);
    let scaling = match object.get("rope_scaling") {
        None | Some(Value::Null) => RopeScaling::None,
        Some(Value::Object(scaling)) => RopeScaling::from_json(scaling, context)?,
        Some(found) => return Err(bad("rope_scaling", "an object", found)),
    };
    Ok((theta, scaling))
}

fn optional<'a, T>(
    object: &'a Map<String, Value>,
    key: &'static str,
    read: impl Fn(&'a Map<String, Value>, &'static str) -> Result<T, ModelError>,
) -> Result<Option<T>, ModelError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => read(object, key).map(Some),
    }
}

fn value<'a>(object: &'a Map<String, Value>, key: &'static str) -> Result<&'a Value, ModelError> {
    object.get(key).ok_or(ModelError::MissingKey { key })
}

fn text<'a>(object: &'a Map<String, Value>, key: &'static str) -> Result<&'a str, ModelError> {
    let found = value(object, key)?;
    found.as_str().ok_or_else(|| bad(key, "a string", found))
}

fn size(object: &Map<String, Value>, key: &'static str) -> Result<usize, ModelError> {
    let found = value(object, key)?;
    let size = found.as_u64().ok_or_else(|| bad(key, "a size", found))?;
    check_size(key, size)
}

/// No machine holds more; sizes within these bounds multiply without overflow.
fn check_size(key: &str, size: u64) -> Result<usize, ModelError> {
    let most = match key {
        "vocab_size" => 1 << 24,
        "hidden_size" => 1 << 18,
        "intermediate_size" => 1 << 20,
        "num_hidden_layers" | "num_attention_heads" | "num_key_value_heads" => 1 << 12,
        "head_dim" => 1 << 16,
        _ => 1 << 31,
    };
    // A window without tokens and no layers before one are said so.
    let least = u64::from(!matches!(key, "sliding_window" | "max_window_layers"));
    match usize::try_from(size) {
        Ok(fits) if (least..=most).contains(&size) => Ok(fits),
        _ => {
            let expected = format!("a size from {least} to {most}");
            Err(bad(key, &expected, &json!(size)))
        }
    }
}

fn number(object: &Map<String, Value>, key: &'static str) -> Result<f64, ModelError> {
    let found = value(object, key)?;
    found.as_f64().ok_or_else(|| bad(key, "a number", found))
}

fn flag(object: &Map<String, Value>, key: &'static str) -> Result<bool, ModelError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(found) => Err(bad(key, "true or false", found)),
    }
}

/// One id, a list of ids, or nothing.
fn token_ids(object: &Map<String, Value>, key: &'static str) -> Result<Vec<TokenId>, ModelError> {
    let one = |found: &Value| {
        let id = found.as_u64().and_then(|id| TokenId::try_from(id).ok());
        id.ok_or_else(|| bad(key, "a token id", found))
    };
    match object.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        // Nothing is padded here, and -1 is how some say that there is no such token.
        Some(Value::Number(id)) if key == "pad_token_id" && id.as_i64() == Some(-1) => {
            Ok(Vec::new())
        }
        Some(Value::Array(several)) => several.iter().map(one).collect(),
        Some(found) => Ok(vec![one(found)?]),
    }
}

/// The double that prints with the fewest digits and still rounds to this float.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

fn bad(key: &str, expected: &str, found: &Value) -> ModelError {
    ModelError::BadValue {
        key: key.to_owned(),
        expected: expected.to_owned(),
        found: found.to_string(),
    }
}

fn unsupported(feature: String) -> ModelError {
    ModelError::Unsupported { feature }
}
