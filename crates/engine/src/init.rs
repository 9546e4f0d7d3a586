//! The weights that a model begins with.

use std::f64::consts::TAU;

use rand_chacha::{ChaCha8Rng, rand_core::Rng};
use record::Seed;
use serde::{Deserialize, Serialize};

use crate::{
    ModelConfig, ModelError,
    buffer::Buffer,
    layout::{Layout, Tensor, TensorKind},
};

/// How the weights of a new model are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initializer {
    /// Every matrix normal with standard deviation `initializer_range`, as `transformers` does.
    #[default]
    Normal,
    /// Random weights among which an induction head (Olsson et al. 2022, arXiv 2209.11895) is laid
    /// out, so that a small model can copy from its context before it has learnt anything else.
    ///
    /// Matrices are normal with variance 1 / fan-in, those that write into the residual stream a
    /// tenth of that, the embedding with standard deviation 0.08. In layer 0, head `h` attends
    /// `h + 1` tokens back by its query and key biases, head 0 strongly: it writes what stood there
    /// (seen through a random projection) into a subspace of its own. In layer 1, heads 0 and 1 look
    /// for the token whose predecessor is the current one, and write it out. Everything is trained
    /// like any other weight.
    ///
    /// Needs a family with query and key biases, two layers, two heads, and a hidden size of at
    /// least twice the head dimension.
    Induction,
}

/// Query times key bias of layer 0, each of them: head 0 and the others. The larger, the sharper.
const PREVIOUS_TOKEN_BIAS: f64 = 6.0;
const POSITION_BIAS: f64 = 2.0;
/// What the query and key matrices of layer 0 are scaled by, so that the biases show through.
const POSITION_MATRIX: f64 = 0.3;
const PREVIOUS_TOKEN_MATRIX: f64 = 0.1;
/// How strongly layer 0 writes the previous token, and layer 1 the copied one.
const PREVIOUS_TOKEN_OUTPUT: f64 = 0.3;
const COPY_OUTPUT: f64 = 0.2;
/// Query and key of the induction heads, and the random part that is left beside them.
const MATCH_QUERY: f64 = 1.0;
const MATCH_KEY: f64 = 2.0;
const MATCH_NOISE: f64 = 0.1;
/// Only rotary frequencies below this take part in matching: faster ones tell positions apart, which
/// a match must not.
const MATCH_FREQUENCY: f64 = 0.02;
const INDUCTION_HEADS: usize = 2;
const RESIDUAL: f64 = 0.1;
const EMBEDDING_RANGE: f64 = 0.08;

/// Draws all weights, each tensor from its own stream.
///
/// # Errors
/// A shape that the initializer does not fit.
pub(crate) fn draw(
    config: &ModelConfig,
    layout: &Layout,
    initializer: Initializer,
    seed: Seed,
) -> Result<Buffer, ModelError> {
    let mut weights = Buffer::zeroed(layout.len);
    for (index, tensor) in layout.tensors.iter().enumerate() {
        let weights = &mut weights[tensor.range.clone()];
        match tensor.kind {
            TensorKind::Norm => weights.fill(1.0),
            TensorKind::Bias => {}
            TensorKind::Matrix => {
                let range = match initializer {
                    Initializer::Normal => config.initializer_range,
                    Initializer::Induction => scaled_range(tensor),
                };
                fill_normal(
                    weights,
                    range,
                    &mut seed.stream("weights", index as u64).rng(),
                );
            }
        }
    }
    if initializer == Initializer::Induction {
        Circuit {
            config,
            layout,
            weights: &mut weights,
        }
        .lay_out(seed)?;
    }
    Ok(weights)
}

fn scaled_range(tensor: &Tensor) -> f64 {
    if tensor.name.contains("embed_tokens") {
        return EMBEDDING_RANGE;
    }
    let fan_in = tensor.shape.last().copied().unwrap_or(1).max(1) as f64;
    let writes = tensor.name.contains("o_proj") || tensor.name.contains("down_proj");
    (if writes { RESIDUAL } else { 1.0 }) / fan_in.sqrt()
}

/// Lays the two halves of the induction circuit into freshly drawn weights.
struct Circuit<'a> {
    config: &'a ModelConfig,
    layout: &'a Layout,
    weights: &'a mut Buffer,
}

impl Circuit<'_> {
    fn lay_out(mut self, seed: Seed) -> Result<(), ModelError> {
        let ModelConfig {
            head_dim,
            hidden_size,
            n_heads,
            n_layers,
            ..
        } = *self.config;
        if n_layers < 2 || n_heads < INDUCTION_HEADS || hidden_size < 2 * head_dim {
            return Err(ModelError::Unsupported {
                feature: format!(
                    "initializer `induction` with {n_layers} layers, {n_heads} heads of dimension \
                     {head_dim} and hidden size {hidden_size} (it needs two layers, two heads and \
                     twice the head dimension)"
                ),
            });
        }
        let mut rng = seed.stream("induction", 0).rng();
        let basis = orthonormal(2 * head_dim, hidden_size, &mut rng);
        let (seen, kept) = basis.split_at(head_dim * hidden_size);
        self.previous_token(seen, kept)?;
        for head in 0..INDUCTION_HEADS {
            let copied = orthonormal(head_dim, hidden_size, &mut rng);
            self.induction_head(head, seen, kept, &copied)?;
        }
        Ok(())
    }

    /// Layer 0: the projection `seen` of the token before goes to the subspace `kept`.
    ///
    /// The rotation of rotary positions turns a key `(1, 0)` of each frequency by the key's position
    /// and the query by the query's less `h + 1`: their product is largest where the two meet.
    fn previous_token(&mut self, seen: &[f64], kept: &[f64]) -> Result<(), ModelError> {
        let ModelConfig {
            head_dim,
            n_heads,
            n_kv_heads,
            rope_theta,
            ..
        } = *self.config;
        let half = head_dim / 2;
        for head in 0..n_heads {
            // The key bias is the same everywhere, as several heads may share it.
            let sharp = PREVIOUS_TOKEN_BIAS * PREVIOUS_TOKEN_BIAS / POSITION_BIAS;
            let strength = if head == 0 { sharp } else { POSITION_BIAS };
            let bias = self.tensor(0, "q_proj.bias")?;
            for i in 0..half {
                let angle = (head + 1) as f64 * rope_theta.powf(-(i as f64) / half as f64);
                bias[head * head_dim + i] = (strength * angle.cos()) as f32;
                bias[head * head_dim + half + i] = (-strength * angle.sin()) as f32;
            }
        }
        for head in 0..n_kv_heads {
            let bias = self.tensor(0, "k_proj.bias")?;
            bias[head * head_dim..][..half].fill(POSITION_BIAS as f32);
        }
        let rows = head_dim * self.config.hidden_size;
        for name in ["q_proj.weight", "k_proj.weight"] {
            for (index, weight) in self.tensor(0, name)?.iter_mut().enumerate() {
                let first = index < rows;
                *weight *= (if first {
                    PREVIOUS_TOKEN_MATRIX
                } else {
                    POSITION_MATRIX
                }) as f32;
            }
        }
        self.write_rows(0, "v_proj.weight", 0, seen)?;
        self.write_columns(0, 0, kept, PREVIOUS_TOKEN_OUTPUT)
    }

    /// Layer 1: the query is what the token is, the key is what stands before the key's token.
    fn induction_head(
        &mut self,
        head: usize,
        seen: &[f64],
        kept: &[f64],
        copied: &[f64],
    ) -> Result<(), ModelError> {
        let ModelConfig {
            head_dim,
            hidden_size,
            n_heads,
            n_kv_heads,
            rope_theta,
            ..
        } = *self.config;
        let kv_head = head * n_kv_heads / n_heads;
        let half = head_dim / 2;
        let slow =
            |row: usize| rope_theta.powf(-((row % half) as f64) / half as f64) < MATCH_FREQUENCY;
        let mut matching = |name, head: usize, matrix: &[f64], strength: f64| {
            let weights = &mut self.tensor(1, name)?[head * head_dim * hidden_size..];
            for (row, (weights, wanted)) in weights
                .chunks_exact_mut(hidden_size)
                .zip(matrix.chunks_exact(hidden_size))
                .enumerate()
            {
                let strength = if slow(row) { strength } else { 0.0 };
                for (weight, wanted) in weights.iter_mut().zip(wanted) {
                    *weight = (f64::from(*weight) * MATCH_NOISE + strength * wanted) as f32;
                }
            }
            Ok::<(), ModelError>(())
        };
        matching("q_proj.weight", head, seen, MATCH_QUERY)?;
        if head == 0 || kv_head != (head - 1) * n_kv_heads / n_heads {
            matching("k_proj.weight", kv_head, kept, MATCH_KEY)?;
            self.write_rows(1, "v_proj.weight", kv_head, copied)?;
            return self.write_columns(1, head, copied, COPY_OUTPUT);
        }
        // A shared key-value head carries what the first of its heads copies.
        let shared: Vec<f64> = self.tensor(1, "v_proj.weight")?[kv_head * head_dim * hidden_size..]
            [..head_dim * hidden_size]
            .iter()
            .map(|&weight| f64::from(weight))
            .collect();
        self.write_columns(1, head, &shared, COPY_OUTPUT)
    }

    /// Rows of a value projection: `matrix` as it is, `[head_dim, hidden]`.
    fn write_rows(
        &mut self,
        layer: usize,
        name: &str,
        head: usize,
        matrix: &[f64],
    ) -> Result<(), ModelError> {
        let start = head * self.config.head_dim * self.config.hidden_size;
        let weights = &mut self.tensor(layer, name)?[start..];
        for (weight, wanted) in weights.iter_mut().zip(matrix) {
            *weight = *wanted as f32;
        }
        Ok(())
    }

    /// Columns of the output projection of a head: `strength` times `matrix` transposed.
    fn write_columns(
        &mut self,
        layer: usize,
        head: usize,
        matrix: &[f64],
        strength: f64,
    ) -> Result<(), ModelError> {
        let ModelConfig {
            head_dim,
            hidden_size,
            n_heads,
            ..
        } = *self.config;
        let weights = self.tensor(layer, "o_proj.weight")?;
        for row in 0..head_dim {
            for column in 0..hidden_size {
                weights[column * n_heads * head_dim + head * head_dim + row] =
                    (strength * matrix[row * hidden_size + column]) as f32;
            }
        }
        Ok(())
    }

    fn tensor(&mut self, layer: usize, name: &str) -> Result<&mut [f32], ModelError> {
        let full = format!("model.layers.{layer}.self_attn.{name}");
        let found = self
            .layout
            .tensors
            .iter()
            .find(|tensor| tensor.name == full);
        let tensor = found.ok_or_else(|| ModelError::Unsupported {
            feature: format!("initializer `induction` for a model without `{full}`"),
        })?;
        Ok(&mut self.weights[tensor.range.clone()])
    }
}

/// `rows` orthonormal vectors of dimension `columns`, row-major, by Gram and Schmidt; `rows` must
/// not exceed `columns`.
fn orthonormal(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut matrix: Vec<f64> = Vec::with_capacity(rows * columns);
    while matrix.len() < rows * columns {
        let mut drawn = vec![0.0_f32; columns];
        fill_normal(&mut drawn, 1.0, rng);
        let mut row: Vec<f64> = drawn.into_iter().map(f64::from).collect();
        for other in matrix.chunks_exact(columns) {
            let along = dot(&row, other);
            row.iter_mut()
                .zip(other)
                .for_each(|(value, other)| *value -= along * other);
        }
        let length = dot(&row, &row).sqrt();
        matrix.extend(row.iter().map(|value| value / length));
    }
    matrix
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Normal variates by the method of Box and Muller.
fn fill_normal(values: &mut [f32], deviation: f64, rng: &mut ChaCha8Rng) {
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    for pair in values.chunks_mut(2) {
        let radius = (-2.0 * uniform().ln()).sqrt() * deviation;
        let angle = TAU * uniform();
        for (value, part) in pair.iter_mut().zip([angle.cos(), angle.sin()]) {
            *value = (radius * part) as f32;
        }
    }
}
