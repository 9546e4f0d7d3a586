//! Adapters as files of `peft`: `adapter_config.json` and `adapter_model.safetensors`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{
    LoraConfig, LoraTarget,
    layout::{AdapterLayout, a_name},
};
use crate::{Adapter, Model, ModelError, checkpoint};

const CONFIG: &str = "adapter_config.json";
const WEIGHTS: &str = "adapter_model.safetensors";
/// Key of the base's digest in the metadata of the weights.
const DIGEST: &str = "base_digest";

/// Keys that change nothing about what a saved adapter computes, whatever they say.
const WITHOUT_EFFECT: [&str; 13] = [
    "auto_mapping",
    "base_model_name_or_path",
    "ensure_weight_tying",
    "exclude_modules",
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "task_type",
];

impl Adapter {
    /// Reads what `peft`'s `save_pretrained` or [`Self::save`] wrote: weights in F32, BF16 or F16.
    ///
    /// # Errors
    /// Files that are missing, damaged or of a kind of adapter that this engine has not;
    /// [`ModelError::AdapterOfAnotherBase`] when it was not made for `base`.
    pub fn load(directory: &Path, base: &Model) -> Result<Self, ModelError> {
        let path = directory.join(CONFIG);
        let json = checkpoint::read_json(&path)?;
        let fields = Fields {
            path: &path,
            json: &json,
        };
        let mut config = fields.config()?;
        let weights = directory.join(WEIGHTS);
        let names = checkpoint::tensor_names(&weights)?;
        let has = |layer, target| names.contains(&a_name(layer, target));
        let layout = AdapterLayout::new(base.config(), config.rank, has);
        let adapted: BTreeSet<LoraTarget> = layout
            .adapted()
            .into_iter()
            .map(|(_, target)| target)
            .collect();
        config.targets = adapted.into_iter().collect();
        let read = checkpoint::read_tensors(&weights, &layout.tensors, &[""], None);
        let (mut buffers, metadata) = read.map_err(|error| match error {
            ModelError::WrongShape { .. }
            | ModelError::UnknownTensor { .. }
            | ModelError::MissingTensor { .. } => ModelError::AdapterOfAnotherBase {
                reason: error.to_string(),
            },
            error => error,
        })?;
        fields.check_targets(&config.targets)?;
        let base_name = json.get("base_model_name_or_path").and_then(Value::as_str);
        let adapter = Self::from_parts(
            config,
            layout,
            buffers.swap_remove(0),
            base_name.map(str::to_owned),
            metadata.get(DIGEST).cloned(),
        );
        adapter.check_base(base).map_err(|error| match error {
            ModelError::AdapterOfAnotherBase { reason } => ModelError::AdapterOfAnotherBase {
                reason: format!("{}: {reason}", weights.display()),
            },
            error => error,
        })?;
        Ok(adapter)
    }

    /// Writes `adapter_config.json` and `adapter_model.safetensors` into `directory`, made if missing,
    /// so that `peft.PeftModel.from_pretrained` loads them over the same base.
    pub fn save(&self, directory: &Path) -> Result<(), ModelError> {
        checkpoint::make_directory(directory)?;
        let digest = self
            .base_digest
            .iter()
            .map(|digest| (DIGEST, digest.clone()));
        let metadata: Vec<(&str, String)> = digest.collect();
        let path = directory.join(WEIGHTS);
        let buffers: [(&str, &[f32]); 1] = [("", &self.weights)];
        checkpoint::write_tensors(&path, &self.layout.tensors, &buffers, &metadata)?;
        checkpoint::write_json(&directory.join(CONFIG), &self.to_json())
    }

    fn to_json(&self) -> Value {
        let layers = self.layout.layers.len();
        let adapted = self.layout.adapted();
        let everywhere = adapted.len() == layers * self.config.targets.len();
        let targets: Vec<String> = if everywhere {
            let targets = self.config.targets.iter();
            targets.map(|target| target.name().to_owned()).collect()
        } else {
            let adapted = adapted.iter();
            adapted.map(|(layer, target)| target.path(*layer)).collect()
        };
        json!({
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": self.base_name,
            "r": self.config.rank,
            "lora_alpha": whole_or_real(self.config.alpha),
            "lora_dropout": self.config.dropout,
            "use_rslora": self.config.rslora,
            "target_modules": targets,
            "bias": "none",
            "fan_in_fan_out": false,
            "inference_mode": true,
            "init_lora_weights": true,
            "modules_to_save": null,
            "use_dora": false,
        })
    }
}

/// The base that the adapter in `directory` names, with the adapter over it.
pub(crate) fn load_with_base(directory: &Path) -> Result<Model, ModelError> {
    let base = Model::load_dense(&base_of(directory)?)?;
    let adapter = Adapter::load(directory, &base)?;
    base.with_adapter(adapter.into())
}

/// Where the base of the adapter in `directory` is.
pub(crate) fn base_of(directory: &Path) -> Result<PathBuf, ModelError> {
    let path = directory.join(CONFIG);
    let json = checkpoint::read_json(&path)?;
    let key = "base_model_name_or_path";
    let Some(name) = json[key].as_str() else {
        let fields = Fields {
            path: &path,
            json: &json,
        };
        return Err(fields.bad(key, "the directory of the base model"));
    };
    // Beside the adapter's own files; as seen from the adapter, so that a run directory stays whole when
    // it is moved; or as written.
    let places = [
        directory.to_owned(),
        directory.join(name),
        PathBuf::from(name),
    ];
    let base = places
        .into_iter()
        .find(|place| checkpoint::has_weights(place));
    base.ok_or(ModelError::NoBase {
        path,
        base: name.to_owned(),
    })
}

/// Whether a directory holds an adapter, with or without its base.
pub(crate) fn is_adapter(directory: &Path) -> bool {
    directory.join(CONFIG).is_file()
}

/// `lora_alpha` is an integer in the files of `peft`.
fn whole_or_real(alpha: f64) -> Value {
    if alpha.fract() == 0.0 && alpha < 1e15 {
        json!(alpha as u64)
    } else {
        json!(alpha)
    }
}

/// `adapter_config.json`
struct Fields<'a> {
    path: &'a Path,
    json: &'a Value,
}

impl Fields<'_> {
    /// All but the targets.
    fn config(&self) -> Result<LoraConfig, ModelError> {
        let empty = Map::new();
        for (key, value) in self.json.as_object().unwrap_or(&empty) {
            self.check_known(key, value)?;
        }
        let rank = self.json["r"].as_u64().filter(|rank| *rank > 0);
        let config = LoraConfig {
            rank: rank.ok_or_else(|| self.bad("r", "a rank of at least 1"))? as usize,
            alpha: self.number("lora_alpha", None)?,
            dropout: self.number("lora_dropout", Some(0.0))?,
            targets: LoraTarget::all(),
            rslora: self.json["use_rslora"].as_bool().unwrap_or(false),
        };
        match config.check() {
            Err(ModelError::BadLora { key, value, must }) => Err(ModelError::BadAdapterConfig {
                path: self.path.to_owned(),
                key: format!("lora_{key}"),
                expected: must.to_owned(),
                found: value,
            }),
            Err(error) => Err(error),
            Ok(()) => Ok(config),
        }
    }

    /// Refuses what this engine would compute differently.
    fn check_known(&self, key: &str, value: &Value) -> Result<(), ModelError> {
        let fine = match key {
            "r" | "lora_alpha" | "lora_dropout" | "use_rslora" | "target_modules" => true,
            "peft_type" => value == "LORA",
            "bias" => value == "none",
            // Others change the base itself when they are first applied.
            "init_lora_weights" => {
                value.is_boolean()
                    || value.is_null()
                    || value == "gaussian"
                    || value == "orthogonal"
            }
            key if WITHOUT_EFFECT.contains(&key) => true,
            // Whatever else there is, or will be, is off when it says nothing.
            _ => match value {
                Value::Null | Value::Bool(false) => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty(),
                _ => false,
            },
        };
        if fine {
            return Ok(());
        }
        Err(ModelError::UnsupportedAdapter {
            path: self.path.to_owned(),
            key: key.to_owned(),
            found: value.to_string(),
        })
    }

    /// Every module that the configuration lists must have been found.
    fn check_targets(&self, found: &[LoraTarget]) -> Result<(), ModelError> {
        if found.is_empty() {
            return Err(self.bad("target_modules", "at least one matrix of a decoder layer"));
        }
        // Anything but a list is a pattern, of which the weights are what it came to.
        let listed = self.json["target_modules"].as_array();
        for module in listed.into_iter().flatten() {
            let name = module.as_str().and_then(|path| path.rsplit('.').next());
            if !found.iter().any(|target| Some(target.name()) == name) {
                return Err(ModelError::BadAdapterConfig {
                    path: self.path.to_owned(),
                    key: "target_modules".to_owned(),
                    expected: "matrices of decoder layers that the weights have adapters for"
                        .to_owned(),
                    found: module.to_string(),
                });
            }
        }
        Ok(())
    }

    fn number(&self, key: &str, default: Option<f64>) -> Result<f64, ModelError> {
        match (&self.json[key], default) {
            (Value::Null, Some(default)) => Ok(default),
            (value, _) => value.as_f64().ok_or_else(|| self.bad(key, "a number")),
        }
    }

    fn bad(&self, key: &str, expected: &str) -> ModelError {
        ModelError::BadAdapterConfig {
            path: self.path.to_owned(),
            key: key.to_owned(),
            expected: expected.to_owned(),
            found: self.json[key].to_string(),
        }
    }
}
