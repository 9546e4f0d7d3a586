//! Packed rows as a pair of files that a peer reads: tensors, and a sidecar in JSON.

use std::collections::BTreeMap;

use safetensors::{Dtype, SafeTensorError, tensor::TensorView};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{AlignmentError, Layout, Matrix, Packed, RowInfo, Sidecar};

/// Why rows cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the batch has no rows; export a step with a graded episode")]
    NoRows,
    #[error(transparent)]
    Alignment(#[from] AlignmentError),
    #[error("the tensors cannot be written: {0}")]
    Tensors(#[from] SafeTensorError),
}

/// Name, type, shape and little-endian bytes of a tensor.
type Tensor = (&'static str, Dtype, Vec<usize>, Vec<u8>);

impl Packed {
    /// The tensors under the names that verl has for them, `[N, …]` each: `input_ids`, `attention_mask`,
    /// `position_ids`, `response_mask` (int64), `rollout_log_probs`, `token_level_scores`, `advantages`
    /// (float32); in [`Layout::VerlSplit`] `prompts` and `responses`; a number a row, `rewards`,
    /// `group_ids`, `prompt_lengths` and `is_pad`.
    ///
    /// # Errors
    /// No rows; a name or size that the format refuses.
    pub fn to_safetensors(&self) -> Result<Vec<u8>, ExportError> {
        if self.rows.is_empty() {
            return Err(ExportError::NoRows);
        }
        let tensors = self.tensors();
        let views = tensors
            .iter()
            .map(|(name, dtype, shape, bytes)| {
                Ok((*name, TensorView::new(*dtype, shape.clone(), bytes)?))
            })
            .collect::<Result<Vec<_>, SafeTensorError>>()?;
        Ok(safetensors::serialize(views, None)?)
    }

    fn tensors(&self) -> Vec<Tensor> {
        let count = self.rows.len();
        let mut tensors = vec![
            whole("input_ids", &self.input_ids),
            whole("attention_mask", &self.attention_mask),
            whole("position_ids", &self.position_ids),
            whole("response_mask", &self.response_mask),
            real("rollout_log_probs", &self.rollout_log_probs),
            real("token_level_scores", &self.token_level_scores),
            real("advantages", &self.advantages),
        ];
        if self.options.layout == Layout::VerlSplit {
            let [_, width] = self.input_ids.shape();
            let split = self.prompt_width;
            tensors.push(whole("prompts", &self.input_ids.columns(0..split)));
            tensors.push(whole("responses", &self.input_ids.columns(split..width)));
        }
        let rewards = self.rows.iter().flat_map(|row| row.reward.to_le_bytes());
        tensors.push(("rewards", Dtype::F32, vec![count], rewards.collect()));
        for (name, of) in [
            ("group_ids", (|row| row.group_id) as fn(&RowInfo) -> i64),
            ("prompt_lengths", |row| row.prompt_length as i64),
        ] {
            let bytes = self.rows.iter().flat_map(|row| of(row).to_le_bytes());
            tensors.push((name, Dtype::I64, vec![count], bytes.collect()));
        }
        let pads = self.rows.iter().map(|row| u8::from(row.is_pad()));
        tensors.push(("is_pad", Dtype::BOOL, vec![count], pads.collect()));
        tensors
    }

    /// What the tensors cannot say: `non_tensors`, one entry a row (`row_key`, `episode_id` and `step_id`,
    /// null on padding; `uid`, `agent_role`, `turn`, `data_source`), and `meta_info` of the whole batch
    /// (`step_meta` and `step_rewards_ext`, by key; `pad_token_id`, `layout`).
    ///
    /// # Errors
    /// Rows and events that do not speak of the same steps.
    pub fn to_json(&self, sidecar: &Sidecar) -> Result<Value, ExportError> {
        sidecar.check_alignment(self)?;
        let mut columns: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for row in &self.rows {
            let entries = [
                ("row_key", row.key.map(|key| key.to_string()).into()),
                (
                    "episode_id",
                    row.key.map(|key| key.episode.to_string()).into(),
                ),
                ("step_id", row.key.map(|key| key.step).into()),
                ("uid", row.uid.clone().into()),
                ("agent_role", row.agent_role.clone().into()),
                ("turn", row.turn.into()),
                ("data_source", row.data_source.clone().into()),
            ];
            for (name, entry) in entries {
                columns.entry(name).or_default().push(entry);
            }
        }
        let columns = columns.into_iter();
        let non_tensors: Map<String, Value> = columns
            .map(|(name, column)| (name.to_owned(), column.into()))
            .collect();
        Ok(json!({
            "non_tensors": non_tensors,
            "meta_info": {
                "layout": plain(&self.options.layout),
                "pad_token_id": self.options.pad_id,
                "step_meta": plain(&sidecar.step_meta),
                "step_rewards_ext": plain(&sidecar.step_rewards_ext()),
            },
        }))
    }
}

/// Of types that are always JSON.
fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn whole(name: &'static str, matrix: &Matrix<i64>) -> Tensor {
    let bytes = matrix.data().iter().flat_map(|value| value.to_le_bytes());
    (name, Dtype::I64, matrix.shape().into(), bytes.collect())
}

fn real(name: &'static str, matrix: &Matrix<f32>) -> Tensor {
    let bytes = matrix.data().iter().flat_map(|value| value.to_le_bytes());
    (name, Dtype::F32, matrix.shape().into(), bytes.collect())
}
