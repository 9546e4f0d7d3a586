//! A model over one pack on one thread: scores, and gradients when a loss is given.

use std::ops::Range;

use record::Seed;

use crate::{
    Dtype, Model, RowScores, TokenLoss,
    batch::{Pack, PackedRow},
    block::{self, BackwardLayer, Gradients, Layer},
    kernels::{
        gemm::Start,
        head,
        linear::{self, Packed},
        rmsnorm,
    },
    lora::Dropout,
    pool::for_each,
    workspace::Workspace,
};

/// The matrices of a model packed for `dy W`.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackwardWeights {
    layers: Vec<BackwardLayer>,
    head: Packed,
}

/// What the rows of one pack came to.
#[derive(Debug, Default)]
pub(crate) struct PackResult {
    /// Scores and, under a loss, the row's share of it, each with the row's index in the batch.
    pub(crate) rows: Vec<(usize, RowScores, f64)>,
}

/// What makes a pass a training pass under a loss over log-probs ([`TokenLoss`]) or over values
/// ([`crate::ValueLoss`]).
pub(crate) struct Training<'a, L: ?Sized + 'a> {
    pub(crate) loss: &'a L,
    pub(crate) packed: &'a BackwardWeights,
    /// Added to.
    pub(crate) gradients: Gradients<'a>,
    /// Of the masks of adapters, when they are trained.
    pub(crate) seed: Seed,
    /// See [`crate::LearnerOptions::gradient_checkpointing`].
    pub(crate) checkpointing: bool,
}

/// What the layers leave behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Nothing,
    /// From which the rest can be computed again.
    Inputs,
    Everything,
}

impl Keep {
    pub(crate) fn for_training<L: ?Sized>(training: Option<&Training<L>>) -> Self {
        match training {
            None => Self::Nothing,
            Some(training) if training.checkpointing => Self::Inputs,
            Some(_) => Self::Everything,
        }
    }
}

impl<L: ?Sized> Training<'_, L> {
    /// The masks for a pack, if any input is to be dropped.
    pub(crate) fn dropout(&self, model: &Model, pack: &Pack) -> Option<Dropout> {
        let probability = model.adapter()?.config().dropout;
        let trained = matches!(self.gradients, Gradients::Adapter(_));
        (trained && probability > 0.0).then(|| Dropout::new(pack, probability, self.seed))
    }
}

/// Floats of logits held at once. Rows that fit together share one product; a row that does not fit
/// is cut, and its logits are computed a second time for the gradient.
const LOGITS: usize = 1 << 17;

impl BackwardWeights {
    /// Packs the weights as they are now.
    pub(crate) fn repack(&mut self, model: &Model) {
        let (config, weights, layout) = (model.config(), model.weights(), model.layout());
        let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
        let dtype = config.dtype;
        self.layers
            .resize_with(config.n_layers, || BackwardLayer::of(dtype));
        if self.head.dtype() != dtype {
            self.head = Packed::of(dtype);
        }
        let mut matrices = vec![(&mut self.head, &layout.head, config.vocab_size, hidden)];
        for (packed, layer) in self.layers.iter_mut().zip(&layout.layers) {
            let heads = config.heads_width();
            matrices.extend([
                (&mut packed.qkv, &layer.qkv, config.qkv_width(), hidden),
                (&mut packed.output, &layer.output, hidden, heads),
                (
                    &mut packed.gate_up,
                    &layer.gate_up,
                    2 * intermediate,
                    hidden,
                ),
                (&mut packed.down, &layer.down, hidden, intermediate),
            ]);
        }
        for_each(matrices, |(packed, range, outputs, inputs)| {
            packed.backward(&weights[range.clone()], outputs, inputs);
        });
    }
}

/// Runs the pack in `workspace` and returns what its rows came to.
pub(crate) fn run(
    model: &Model,
    workspace: &mut Workspace,
    training: Option<Training<dyn TokenLoss>>,
) -> PackResult {
    if workspace.pack.queries.is_empty() {
        let rows = workspace.pack.rows.iter();
        let empty = |row: &PackedRow| Some((row.index?, RowScores::default(), 0.0));
        return PackResult {
            rows: rows.filter_map(empty).collect(),
        };
    }
    let dropout = training
        .as_ref()
        .and_then(|training| training.dropout(model, &workspace.pack));
    let dropout = dropout.as_ref();
    let keep = Keep::for_training(training.as_ref());
    trunk(model, workspace, keep, dropout, |_, _| {});
    match training {
        None => score_rows(model, workspace, None),
        Some(mut training) => {
            let result = score_rows(model, workspace, Some(&mut training));
            backward(model, workspace, dropout, training);
            result
        }
    }
}

/// Embeds the pack and runs all layers, leaving the normed output at the queries in `normed_last`.
/// `after_projection` is given each layer's index and fused projections.
pub(crate) fn trunk(
    model: &Model,
    workspace: &mut Workspace,
    keep: Keep,
    dropout: Option<&Dropout>,
    mut after_projection: impl FnMut(usize, &Workspace),
) {
    let config = model.config();
    let hidden = config.hidden_size;
    // Adapters are f32 whatever they lie over.
    workspace.scratch.gradient.dtype = match model.adapter() {
        None => config.dtype,
        Some(_) => Dtype::F32,
    };
    let longest = workspace.pack.longest();
    model.prepare_rope(&mut workspace.rope, longest);
    let known = workspace.scratch.all_positions.len();
    workspace
        .scratch
        .all_positions
        .extend(known as u32..longest as u32);
    let every = keep == Keep::Everything;
    let states = if every { config.n_layers } else { 1 };
    if workspace.layers.len() < states {
        workspace.layers.resize_with(states, Default::default);
    }
    if keep == Keep::Inputs && workspace.inputs.len() < config.n_layers {
        let inputs = &mut workspace.inputs;
        inputs.resize_with(config.n_layers, Default::default);
    }
    let embedding = &model.weights()[model.layout().embedding.clone()];
    let input = workspace.layers[0]
        .input
        .sized(workspace.pack.tokens.len() * hidden);
    for (to, &token) in input.chunks_exact_mut(hidden).zip(&workspace.pack.tokens) {
        to.copy_from_slice(&embedding[token as usize * hidden..][..hidden]);
    }
    for index in 0..config.n_layers {
        let at = if every { index } else { 0 };
        let layer = Layer {
            model,
            index,
            pack: &workspace.pack,
            rope: &workspace.rope,
            dropout,
        };
        let (state, scratch) = (&mut workspace.layers[at], &mut workspace.scratch);
        let mut next = std::mem::take(&mut scratch.next);
        block::forward(layer, state, &mut next, scratch);
        after_projection(index, workspace);
        if keep == Keep::Inputs {
            std::mem::swap(&mut workspace.inputs[index], &mut workspace.layers[0].input);
        }
        let place = if index + 1 == config.n_layers {
            &mut workspace.last
        } else {
            &mut workspace.layers[if every { index + 1 } else { 0 }].input
        };
        std::mem::swap(place, &mut next);
        workspace.scratch.next = next;
    }
    rmsnorm::forward(
        &workspace.last,
        &model.weights()[model.layout().final_norm.clone()],
        config.norm_epsilon,
        workspace.last_scales.sized(workspace.pack.queries.len()),
        workspace
            .normed_last
            .sized(workspace.pack.queries.len() * hidden),
    );
}

/// Scores every query of the pack. In training also asks the loss for its coefficients, adds the
/// gradient of the output projection and leaves that of `normed_last` in `d_normed`.
fn score_rows(
    model: &Model,
    workspace: &mut Workspace,
    mut training: Option<&mut Training<dyn TokenLoss>>,
) -> PackResult {
    let config = model.config();
    let chunk = (LOGITS / config.vocab_size).max(1);
    let hidden = config.hidden_size;
    let queries = workspace.pack.queries.len();
    workspace.scratch.d_normed.set_len(queries * hidden);
    workspace.scratch.scores.clear();
    workspace.scratch.scores.resize(queries, Default::default());
    workspace.scratch.d_logprobs.clear();
    workspace.scratch.d_logprobs.resize(queries, 0.0);
    workspace.scratch.d_entropies.clear();
    workspace.scratch.d_entropies.resize(queries, 0.0);
    let rows = std::mem::take(&mut workspace.pack.rows);
    let mut result = PackResult::default();
    let mut rest = rows.as_slice();
    while let Some(first) = rest.first() {
        let start = first.queries.start;
        let fits = rest
            .iter()
            .take_while(|row| row.queries.end - start <= chunk)
            .count();
        let (together, later) = rest.split_at(fits.max(1));
        let end = together.last().map_or(start, |row| row.queries.end);
        for at in (start..end).step_by(chunk) {
            let part = at..end.min(at + chunk);
            logits(model, workspace, part.clone());
            let scratch = &mut workspace.scratch;
            for (query, logits) in part.zip(scratch.logits.chunks_exact(config.vocab_size)) {
                let target = workspace.pack.targets[query] as usize;
                scratch.scores[query] = head::score(logits, target);
            }
        }
        for row in together {
            if let Some(index) = row.index {
                result
                    .rows
                    .push(finish_row(index, row, workspace, training.as_deref_mut()));
            }
        }
        if let Some(training) = training.as_deref_mut() {
            for at in (start..end).step_by(chunk) {
                let part = at..end.min(at + chunk);
                if end - start > chunk {
                    logits(model, workspace, part.clone());
                }
                head_backward(model, workspace, part, training);
            }
        }
        rest = later;
    }
    workspace.pack.rows = rows;
    result
}

/// Fills `scratch.logits` for these queries.
fn logits(model: &Model, workspace: &mut Workspace, queries: Range<usize>) {
    let config = model.config();
    let normed = &workspace.normed_last
        [queries.start * config.hidden_size..queries.end * config.hidden_size];
    let logits = workspace
        .scratch
        .logits
        .sized(queries.len() * config.vocab_size);
    model.head().multiply(normed, Start::Zero, logits);
}

/// Collects a row's scores and, in training, asks the loss for its coefficients.
fn finish_row(
    index: usize,
    row: &PackedRow,
    workspace: &mut Workspace,
    training: Option<&mut Training<dyn TokenLoss>>,
) -> (usize, RowScores, f64) {
    let scratch = &mut workspace.scratch;
    let scores = &scratch.scores[row.queries.clone()];
    let scores = RowScores {
        logprobs: scores.iter().map(|score| score.logprob).collect(),
        entropies: scores.iter().map(|score| score.entropy).collect(),
    };
    let Some(training) = training else {
        return (index, scores, 0.0);
    };
    let d_logprobs = &mut scratch.d_logprobs[row.queries.clone()];
    let d_entropies = &mut scratch.d_entropies[row.queries.clone()];
    let loss = training.loss.row(index, &scores, d_logprobs, d_entropies);
    (index, scores, loss)
}

/// Through the output projection for these queries, whose logits are in `scratch.logits`.
fn head_backward(
    model: &Model,
    workspace: &mut Workspace,
    queries: Range<usize>,
    training: &mut Training<dyn TokenLoss>,
) {
    let (config, scratch) = (model.config(), &mut workspace.scratch);
    let hidden = config.hidden_size;
    for (query, logits) in queries
        .clone()
        .zip(scratch.logits.chunks_exact_mut(config.vocab_size))
    {
        let target = workspace.pack.targets[query] as usize;
        let (d_logprob, d_entropy) = (scratch.d_logprobs[query], scratch.d_entropies[query]);
        head::gradient(logits, target, scratch.scores[query], d_logprob, d_entropy);
    }
    let part = queries.start * hidden..queries.end * hidden;
    let d_normed = &mut scratch.d_normed[part.clone()];
    training
        .packed
        .head
        .multiply(&scratch.logits, Start::Zero, d_normed);
    if let Some(d_head) = training.gradients.of(&model.layout().head) {
        let normed = &workspace.normed_last[part];
        linear::weight_gradient(
            &scratch.logits,
            normed,
            hidden,
            d_head,
            &mut scratch.gradient,
        );
    }
}

/// From `d_normed` back through the final norm, all layers and the embedding.
pub(crate) fn backward<L: ?Sized>(
    model: &Model,
    workspace: &mut Workspace,
    dropout: Option<&Dropout>,
    training: Training<L>,
) {
    let Training {
        packed,
        mut gradients,
        checkpointing,
        ..
    } = training;
    let (layout, hidden) = (model.layout(), model.config().hidden_size);
    let scratch = &mut workspace.scratch;
    let norm = &model.weights()[layout.final_norm.clone()];
    block::norm_backward(
        (&workspace.last, norm, &workspace.last_scales),
        &scratch.d_normed,
        scratch.d_stream.sized_zeroed(workspace.last.len()),
        gradients.of(&layout.final_norm),
    );
    let first = gradients.first_layer(model);
    for (index, packed) in packed.layers.iter().enumerate().skip(first).rev() {
        let layer = Layer {
            model,
            index,
            pack: &workspace.pack,
            rope: &workspace.rope,
            dropout,
        };
        let state = if checkpointing {
            let state = &mut workspace.layers[0];
            std::mem::swap(&mut workspace.inputs[index], &mut state.input);
            let mut output = std::mem::take(&mut scratch.next);
            block::forward(layer, state, &mut output, scratch);
            scratch.next = output;
            state
        } else {
            &mut workspace.layers[index]
        };
        block::backward(layer, packed, state, &mut gradients, scratch);
    }
    let Some(d_embedding) = gradients.of(&layout.embedding) else {
        return;
    };
    for (d_input, &token) in scratch
        .d_stream
        .chunks_exact(hidden)
        .zip(&workspace.pack.tokens)
    {
        let d_row = &mut d_embedding[token as usize * hidden..][..hidden];
        d_row
            .iter_mut()
            .zip(d_input)
            .for_each(|(sum, value)| *sum += value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelConfig, TrainRow, testing::noise};
    use record::Seed;

    /// Fixed random coefficients: the loss is linear in log-probabilities and entropies.
    struct Linear;

    impl TokenLoss for Linear {
        fn row(
            &self,
            row: usize,
            scores: &RowScores,
            d_logprobs: &mut [f32],
            d_entropies: &mut [f32],
        ) -> f64 {
            d_logprobs.copy_from_slice(&noise(scores.logprobs.len(), 50 + row as u64));
            d_entropies.copy_from_slice(&noise(scores.logprobs.len(), 70 + row as u64));
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter()
                    .zip(b)
                    .map(|(a, b)| f64::from(*a) * f64::from(*b))
                    .sum()
            };
            dot(d_logprobs, &scores.logprobs) + dot(d_entropies, &scores.entropies)
        }
    }

    fn check_gradient(config: ModelConfig, lengths: &[usize], mask_every: usize) {
        let mut model = Model::random(
            ModelConfig {
                initializer_range: 0.2,
                ..config
            },
            Seed(3),
        )
        .unwrap();
        let vocab_size = model.config().vocab_size;
        let tokens: Vec<Vec<u32>> = lengths
            .iter()
            .map(|&len| {
                let noise = noise(len, len as u64).into_iter();
                noise.map(|x| x.to_bits() % vocab_size as u32).collect()
            })
            .collect();
        let mask: Vec<Vec<bool>> = lengths
            .iter()
            .map(|&len| (0..len).map(|at| at > 0 && at % mask_every == 0).collect())
            .collect();
        let run = |model: &Model, gradients: &mut [f32]| -> f64 {
            let mut workspace = Workspace::default();
            for (row, (tokens, mask)) in tokens.iter().zip(&mask).enumerate() {
                workspace.pack.push(row, TrainRow { tokens, mask }, 0..0);
            }
            let mut packed = BackwardWeights::default();
            packed.repack(model);
            let training = Training {
                loss: &Linear as &dyn TokenLoss,
                packed: &packed,
                gradients: Gradients::Weights(gradients),
                seed: Seed(0),
                checkpointing: false,
            };
            let result = super::run(model, &mut workspace, Some(training));
            result.rows.iter().map(|(_, _, loss)| loss).sum()
        };
        let mut gradients = vec![0.0; model.n_parameters()];
        run(&model, &mut gradients);
        let mut ignored = vec![0.0; model.n_parameters()];
        let tensors: Vec<_> = model
            .layout()
            .tensors
            .iter()
            .map(|t| (t.name.clone(), t.range.clone()))
            .collect();
        for (name, range) in tensors {
            // Along the gradient itself, so that the slope is its length.
            let gradient = &gradients[range.clone()];
            let length = gradient
                .iter()
                .map(|g| f64::from(g * g))
                .sum::<f64>()
                .sqrt();
            assert!(length > 1e-4, "{name} has no gradient");
            let before = model.weights()[range.clone()].to_vec();
            let step = 2e-3;
            let mut shifted = |factor: f64| {
                model.update_weights(|weights| {
                    let pairs = before.iter().zip(gradient);
                    for (weight, (old, g)) in weights[range.clone()].iter_mut().zip(pairs) {
                        *weight = (f64::from(*old) + factor * f64::from(*g) / length) as f32;
                    }
                });
                run(&model, &mut ignored)
            };
            let slope = (shifted(step) - shifted(-step)) / (2.0 * step);
            shifted(0.0);
            let error = (slope / length - 1.0).abs();
            assert!(
                error < 1e-2,
                "{name}: slope {slope}, gradient of length {length}"
            );
        }
    }

    #[test]
    fn gradients_of_the_whole_model_agree_with_finite_differences() {
        let config = ModelConfig {
            n_kv_heads: 2,
            ..ModelConfig::qwen2(37, 24, 3, 4)
        };
        check_gradient(config.clone(), &[5, 1, 33, 14, 2], 1);
        check_gradient(config.clone(), &[5, 40, 14], 3);
        let untied = ModelConfig {
            family: crate::Family::Llama,
            tied_embeddings: false,
            head_dim: 10,
            ..config
        };
        check_gradient(untied.clone(), &[20, 9], 2);
        let normed_heads = ModelConfig {
            family: crate::Family::Qwen3,
            ..untied
        };
        check_gradient(normed_heads, &[20, 1, 9], 2);
    }

    #[test]
    fn rows_larger_than_the_logit_buffer_are_cut() {
        let config = ModelConfig {
            n_kv_heads: 1,
            ..ModelConfig::qwen2(LOGITS / 16, 8, 1, 2)
        };
        check_gradient(config, &[3, 50, 7], 1);
    }
}
