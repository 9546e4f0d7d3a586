//! Where the model of a policy comes from: `model = { … }` or `model = "hf:DIRECTORY"` of a recipe.

use std::{
    fmt,
    path::{Path, PathBuf, absolute},
};

use chat::Chat;
use engine::{Dtype, Initializer, ModelConfig, ModelError};
use record::Seed;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::settings::is_default;

/// What a policy's model is before its first step of training.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ModelSource {
    /// New, of these sizes.
    Random(RandomModel),
    /// A directory in the Hugging Face layout, with its own tokenizer and template.
    Checkpoint(PathBuf),
}

/// A Qwen2-style decoder from random weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RandomModel {
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    /// Most tokens of prompt and response together.
    pub(crate) context: usize,
    #[serde(default = "rope_theta")]
    pub(crate) rope_theta: f64,
    #[serde(default)]
    pub(crate) initializer: Initializer,
    /// Standard deviation of random matrices under `initializer = "normal"`.
    #[serde(default = "initializer_range")]
    pub(crate) initializer_range: f64,
    /// What products are computed in; a checkpoint is stored in it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) dtype: Dtype,
}

/// What stands before the directory of a checkpoint.
const PREFIX: &str = "hf:";

impl ModelSource {
    /// Takes a relative directory from `place`, so that the working directory no longer matters.
    pub(crate) fn resolve(&mut self, place: &Path) {
        if let Self::Checkpoint(directory) = self {
            let joined = place.join(&*directory);
            *directory = absolute(&joined).unwrap_or(joined);
        }
    }

    pub(crate) fn random(&self) -> Option<&RandomModel> {
        match self {
            Self::Random(model) => Some(model),
            Self::Checkpoint(_) => None,
        }
    }

    /// The engine's configuration. Of a new model it is for `vocabulary` and the ids `stop` that end a
    /// turn; a checkpoint says both itself.
    pub(crate) fn config(
        &self,
        vocabulary: usize,
        stop: &[u32],
    ) -> Result<ModelConfig, ModelError> {
        match self {
            Self::Random(model) => Ok(model.config(vocabulary, stop)),
            Self::Checkpoint(directory) => ModelConfig::load(directory),
        }
    }

    /// The weights that a policy begins with.
    pub(crate) fn open(&self, chat: &Chat, seed: Seed) -> Result<engine::Model, ModelError> {
        match self {
            Self::Random(model) => {
                let config = model.config(chat.tokenizer().vocabulary(), chat.stop_tokens());
                engine::Model::new(config, model.initializer, seed)
            }
            // Adapters become part of the weights: what the run trains is its own.
            Self::Checkpoint(directory) => Ok(engine::Model::load(directory)?.merged()),
        }
    }

    /// Where the weights come from, for people.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::Random(model) => match model.initializer {
                Initializer::Normal => "from random weights".to_owned(),
                Initializer::Induction => {
                    "from random weights with an induction head laid out in them".to_owned()
                }
            },
            Self::Checkpoint(directory) => format!("from {}", directory.display()),
        }
    }
}

impl RandomModel {
    fn config(&self, vocabulary: usize, stop: &[u32]) -> ModelConfig {
        let mut config = ModelConfig::qwen2(vocabulary, self.hidden_size, self.layers, self.heads);
        config.intermediate_size = self.intermediate_size;
        config.n_kv_heads = self.kv_heads;
        config.context = self.context;
        config.rope_theta = self.rope_theta;
        config.initializer_range = self.initializer_range;
        config.eos_tokens = stop.to_vec();
        config.dtype = self.dtype;
        config
    }

    /// Roughly, and without overflow for sizes that make no sense.
    pub(crate) fn n_parameters(&self, vocabulary: usize) -> f64 {
        let hidden = self.hidden_size as f64;
        let layer = hidden * (4.0 * hidden + 3.0 * self.intermediate_size as f64);
        self.layers as f64 * layer + vocabulary as f64 * hidden
    }
}

impl Serialize for ModelSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Random(model) => model.serialize(serializer),
            Self::Checkpoint(directory) => {
                serializer.collect_str(&format_args!("{PREFIX}{}", directory.display()))
            }
        }
    }
}

impl<'de> Deserialize<'de> for ModelSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = ModelSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sizes of a new model, or \"hf:DIRECTORY\" of a checkpoint")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ModelSource, E> {
        match text.strip_prefix(PREFIX) {
            Some(directory) if !directory.is_empty() => {
                Ok(ModelSource::Checkpoint(PathBuf::from(directory)))
            }
            _ => Err(E::custom(format!(
                "`{text}` names no model; write \"hf:DIRECTORY\" of a checkpoint in the Hugging Face layout"
            ))),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelSource, A::Error> {
        RandomModel::deserialize(MapAccessDeserializer::new(map)).map(ModelSource::Random)
    }
}

fn rope_theta() -> f64 {
    10_000.0
}
fn initializer_range() -> f64 {
    0.02
}
