//! The angles of rotary positions, and how published models stretch them over longer contexts.

use std::f64::consts::TAU;

use serde_json::{Map, Value, json};

use crate::ModelError;

/// What the rotation of a head depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RopeSettings {
    pub(crate) head_dim: usize,
    pub(crate) theta: f64,
    pub(crate) scaling: RopeScaling,
}

/// How angles differ from `position · theta^(-2i / head_dim)`. Names and formulas as in
/// `transformers`' `rope_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    #[default]
    None,
    /// Divided by `factor` (arXiv 2306.15595).
    Linear { factor: f64 },
    /// Slow angles are divided by `factor`, fast ones kept, those between blended (Llama 3.1).
    Llama3 {
        factor: f64,
        low_frequency: f64,
        high_frequency: f64,
        /// Positions that the model was first trained on.
        original_context: usize,
    },
    /// As `Llama3` with bounds in rotations over the original context; and attention is sharpened by
    /// `attention` on cosines and sines (arXiv 2309.00071).
    Yarn {
        factor: f64,
        beta_fast: f64,
        beta_slow: f64,
        attention: f64,
        original_context: usize,
        /// Bounds are rounded outwards to whole dimensions.
        truncate: bool,
    },
}

impl RopeSettings {
    /// Radians by which each of the `head_dim / 2` pairs turns from one position to the next.
    /// Rounded to single precision on the way, as `transformers` does.
    pub(crate) fn frequencies(&self) -> Vec<f32> {
        let half = self.head_dim / 2;
        let plain = (0..half).map(|i| {
            let exponent = (2 * i) as f32 / self.head_dim as f32;
            1.0 / (self.theta as f32).powf(exponent)
        });
        match self.scaling {
            RopeScaling::None => plain.collect(),
            RopeScaling::Linear { factor } => {
                plain.map(|frequency| frequency / factor as f32).collect()
            }
            RopeScaling::Llama3 {
                factor,
                low_frequency,
                high_frequency,
                original_context,
            } => {
                let stretch = |frequency: f32| {
                    let rotations = original_context as f64 * f64::from(frequency) / TAU;
                    let kept = (rotations - low_frequency) / (high_frequency - low_frequency);
                    let kept = kept.clamp(0.0, 1.0);
                    let frequency = f64::from(frequency);
                    ((1.0 - kept) * frequency / factor + kept * frequency) as f32
                };
                plain.map(stretch).collect()
            }
            RopeScaling::Yarn {
                factor,
                beta_fast,
                beta_slow,
                original_context,
                truncate,
                ..
            } => {
                let dimension = |rotations: f64| {
                    let turns = original_context as f64 / (rotations * TAU);
                    self.head_dim as f64 * turns.ln() / (2.0 * self.theta.ln())
                };
                let (mut low, mut high) = (dimension(beta_fast), dimension(beta_slow));
                if truncate {
                    (low, high) = (low.floor(), high.ceil());
                }
                low = low.max(0.0);
                high = high.min(self.head_dim as f64 - 1.0);
                let width = if low == high { 0.001 } else { high - low };
                let stretch = |(i, frequency): (usize, f32)| {
                    let stretched = ((i as f64 - low) / width).clamp(0.0, 1.0);
                    let frequency = f64::from(frequency);
                    (stretched * frequency / factor + (1.0 - stretched) * frequency) as f32
                };
                plain.enumerate().map(stretch).collect()
            }
        }
    }

    /// Factor on cosines and sines.
    pub(crate) fn amplitude(&self) -> f32 {
        match self.scaling {
            RopeScaling::Yarn { attention, .. } => attention as f32,
            _ => 1.0,
        }
    }
}

impl RopeScaling {
    /// Reads the object under `rope_scaling`, or since `transformers` 5 under `rope_parameters`.
    /// `context` is `max_position_embeddings`.
    ///
    /// # Errors
    /// Unknown types and keys, numbers out of range.
    pub(crate) fn from_json(
        object: &Map<String, Value>,
        context: usize,
    ) -> Result<Self, ModelError> {
        let kind = object.get("rope_type").or_else(|| object.get("type"));
        let Some(kind) = kind.and_then(Value::as_str) else {
            return Err(ModelError::MissingKey {
                key: "rope_scaling.rope_type",
            });
        };
        let known: &[&str] = match kind {
            "default" => &[],
            "linear" => &["factor"],
            "llama3" => &[
                "factor",
                "low_freq_factor",
                "high_freq_factor",
                "original_max_position_embeddings",
            ],
            "yarn" => &[
                "factor",
                "attention_factor",
                "beta_fast",
                "beta_slow",
                "original_max_position_embeddings",
                "truncate",
            ],
            other => {
                let feature = format!("the rope type `{other}`");
                return Err(ModelError::Unsupported { feature });
            }
        };
        for (key, value) in object {
            let read = ["rope_type", "type", "rope_theta"].contains(&key.as_str());
            if !read && !known.contains(&key.as_str()) && !value.is_null() {
                let feature = format!("`rope_scaling.{key}` = {value} with the rope type `{kind}`");
                return Err(ModelError::Unsupported { feature });
            }
        }
        let factor = || number(object, "factor", None);
        let original_context = || {
            let found = number(
                object,
                "original_max_position_embeddings",
                Some(context as f64),
            )?;
            Ok::<usize, ModelError>(found as usize)
        };
        Ok(match kind {
            "linear" => Self::Linear { factor: factor()? },
            "llama3" => Self::Llama3 {
                factor: factor()?,
                low_frequency: number(object, "low_freq_factor", None)?,
                high_frequency: number(object, "high_freq_factor", None)?,
                original_context: original_context()?,
            },
            "yarn" => {
                let factor = factor()?;
                Self::Yarn {
                    factor,
                    beta_fast: number(object, "beta_fast", Some(32.0))?,
                    beta_slow: number(object, "beta_slow", Some(1.0))?,
                    attention: number(
                        object,
                        "attention_factor",
                        Some(0.1 * factor.max(1.0).ln() + 1.0),
                    )?,
                    original_context: original_context()?,
                    truncate: object.get("truncate") != Some(&Value::Bool(false)),
                }
            }
            _ => Self::None,
        })
    }

    /// What `transformers` reads under `rope_scaling`; null without scaling.
    pub(crate) fn to_json(self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Linear { factor } => json!({"rope_type": "linear", "factor": factor}),
            Self::Llama3 {
                factor,
                low_frequency,
                high_frequency,
                original_context,
            } => json!({
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": low_frequency,
                "high_freq_factor": high_frequency,
                "original_max_position_embeddings": original_context,
            }),
            Self::Yarn {
                factor,
                beta_fast,
                beta_slow,
                attention,
                original_context,
                truncate,
            } => json!({
                "rope_type": "yarn",
                "factor": factor,
                "beta_fast": beta_fast,
                "beta_slow": beta_slow,
                "attention_factor": attention,
                "original_max_position_embeddings": original_context,
                "truncate": truncate,
            }),
        }
    }
}

/// A positive number, or `default` where absent.
fn number(
    object: &Map<String, Value>,
    key: &'static str,
    default: Option<f64>,
) -> Result<f64, ModelError> {
    match (object.get(key), default) {
        (None | Some(Value::Null), Some(default)) => Ok(default),
        (None | Some(Value::Null), None) => Err(ModelError::MissingKey { key }),
        (Some(found), _) => found
            .as_f64()
            .filter(|number| *number > 0.0)
            .ok_or_else(|| ModelError::BadValue {
                key: format!("rope_scaling.{key}"),
                expected: "a positive number".to_owned(),
                found: found.to_string(),
            }),
    }
}
