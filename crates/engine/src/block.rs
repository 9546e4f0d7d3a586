//! One decoder layer over a pack: attention and MLP, each with its norm and residual.

use std::ops::Range;

use crate::{
    Model,
    batch::{Pack, PackedRow},
    buffer::Buffer,
    kernels::{
        attention::{self, Heads, Kept, Sequence, SequenceGradient},
        gemm::Start,
        linear::{self, Packed},
        qk_norm, rmsnorm,
        rope::Rope,
        swiglu,
    },
    workspace::{LayerState, Scratch},
};

/// Which layer of which model runs on which pack.
#[derive(Clone, Copy)]
pub(crate) struct Layer<'a> {
    pub(crate) model: &'a Model,
    pub(crate) index: usize,
    pub(crate) pack: &'a Pack,
    pub(crate) rope: &'a Rope,
}

/// The matrices of one layer packed for `dy W`.
#[derive(Debug, Default)]
pub(crate) struct BackwardLayer {
    pub(crate) qkv: Packed,
    pub(crate) output: Packed,
    pub(crate) gate_up: Packed,
    pub(crate) down: Packed,
}

/// The last layer is computed at the queries of the pack alone, the others at every token.
fn is_last(layer: Layer) -> bool {
    layer.index + 1 == layer.model.config().n_layers
}

/// For one row of the pack: its rows after attention, and their positions.
fn queried<'a>(
    layer: Layer<'a>,
    row: &PackedRow,
    all_positions: &'a [u32],
) -> (Range<usize>, &'a [u32]) {
    if is_last(layer) {
        (
            row.queries.clone(),
            &layer.pack.queries[row.queries.clone()],
        )
    } else {
        let first = row.prefix.len();
        (
            row.tokens.clone(),
            &all_positions[first..first + row.tokens.len()],
        )
    }
}

/// From `state.input` to `output`, filling the rest of `state`.
pub(crate) fn forward(
    layer: Layer,
    state: &mut LayerState,
    output: &mut Buffer,
    scratch: &mut Scratch,
) {
    let (config, layout) = (
        layer.model.config(),
        &layer.model.layout().layers[layer.index],
    );
    let (weights, packed) = (layer.model.weights(), layer.model.layer(layer.index));
    let (hidden, heads) = (config.hidden_size, Heads::of(config));
    let tokens = layer.pack.tokens.len();
    let rows = if is_last(layer) {
        layer.pack.queries.len()
    } else {
        tokens
    };

    let normed = scratch.normed.sized(tokens * hidden);
    let scales = state.attention_scales.sized(tokens);
    let norm = &weights[layout.attention_norm.clone()];
    rmsnorm::forward(&state.input, norm, config.norm_epsilon, scales, normed);
    let start = match &layout.qkv_bias {
        Some(bias) => Start::Row(&weights[bias.clone()]),
        None => Start::Zero,
    };
    packed
        .qkv
        .multiply(normed, start, state.qkv.sized(tokens * heads.qkv_width()));
    if let Some(norm) = layout.qk_norm_of(weights) {
        let epsilon = config.norm_epsilon;
        qk_norm::forward(heads, &norm, epsilon, &mut state.qkv, &mut state.qk_norm);
    }

    state.attended.set_len(rows * heads.width());
    state.log_sums.set_len(rows * heads.queries);
    state.middle.set_len(rows * hidden);
    for row in &layer.pack.rows {
        let (range, positions) = queried(layer, row, &scratch.all_positions);
        attention::forward(
            heads,
            layer.rope,
            sequence(heads, &state.qkv, row),
            positions,
            &mut state.attended[of(&range, heads.width())],
            &mut state.log_sums[of(&range, heads.queries)],
            &mut scratch.attention,
        );
        for (to, &position) in range.zip(positions) {
            let from = row.tokens.start + position as usize - row.prefix.len();
            state.middle[to * hidden..][..hidden]
                .copy_from_slice(&state.input[from * hidden..][..hidden]);
        }
    }
    packed
        .output
        .multiply(&state.attended, Start::Output, &mut state.middle);
    let parts = MlpParts {
        scales: &mut state.mlp_scales,
        normed: &mut scratch.normed,
        gate_up: &mut state.gate_up,
        inner: &mut scratch.inner,
    };
    mlp(layer.model, layer.index, &state.middle, parts, output);
}

/// Where the MLP leaves what the backward pass needs, and its working memory.
pub(crate) struct MlpParts<'a> {
    pub(crate) scales: &'a mut Buffer,
    pub(crate) normed: &'a mut Buffer,
    pub(crate) gate_up: &'a mut Buffer,
    pub(crate) inner: &'a mut Buffer,
}

/// `output = middle + down(swiglu(gate_up(norm(middle))))` for rows of the residual stream.
pub(crate) fn mlp(
    model: &Model,
    index: usize,
    middle: &[f32],
    parts: MlpParts,
    output: &mut Buffer,
) {
    let (config, layout, packed) = (
        model.config(),
        &model.layout().layers[index],
        model.layer(index),
    );
    let (rows, intermediate) = (middle.len() / config.hidden_size, config.intermediate_size);
    let norm = &model.weights()[layout.mlp_norm.clone()];
    let normed = parts.normed.sized(middle.len());
    rmsnorm::forward(
        middle,
        norm,
        config.norm_epsilon,
        parts.scales.sized(rows),
        normed,
    );
    let gate_up = parts.gate_up.sized(rows * 2 * intermediate);
    packed.gate_up.multiply(normed, Start::Zero, gate_up);
    let inner = parts.inner.sized(rows * intermediate);
    swiglu::forward(gate_up, intermediate, inner);
    output.sized(middle.len()).copy_from_slice(middle);
    packed.down.multiply(inner, Start::Output, output);
}

/// From the gradient of the layer's output in `scratch.d_stream` to that of its input in the same
/// place, adding to `gradients` (flat, all parameters). Consumes `state.gate_up`.
pub(crate) fn backward(
    layer: Layer,
    packed: &BackwardLayer,
    state: &mut LayerState,
    gradients: &mut [f32],
    scratch: &mut Scratch,
) {
    let (config, layout) = (
        layer.model.config(),
        &layer.model.layout().layers[layer.index],
    );
    let (weights, hidden) = (layer.model.weights(), config.hidden_size);
    let intermediate = config.intermediate_size;
    let heads = Heads::of(config);
    let tokens = layer.pack.tokens.len();
    let rows = state.middle.len() / hidden;
    let Scratch {
        normed,
        inner,
        d_stream,
        d_input,
        d_normed,
        d_attended,
        d_qkv,
        gradient,
        ..
    } = scratch;

    packed
        .down
        .multiply(d_stream, Start::Zero, inner.sized(rows * intermediate));
    swiglu::backward(&mut state.gate_up, intermediate, inner);
    let d_gate_up = &state.gate_up;
    linear::weight_gradient(
        d_stream,
        inner,
        intermediate,
        &mut gradients[layout.down.clone()],
        gradient,
    );
    let norm = &weights[layout.mlp_norm.clone()];
    rmsnorm::recompute(
        &state.middle,
        norm,
        &state.mlp_scales,
        normed.sized(rows * hidden),
    );
    linear::weight_gradient(
        d_gate_up,
        normed,
        hidden,
        &mut gradients[layout.gate_up.clone()],
        gradient,
    );
    packed
        .gate_up
        .multiply(d_gate_up, Start::Zero, d_normed.sized(rows * hidden));
    let d_norm = &mut gradients[layout.mlp_norm.clone()];
    rmsnorm::backward(
        &state.middle,
        norm,
        &state.mlp_scales,
        d_normed,
        d_stream,
        d_norm,
    );

    packed.output.multiply(
        d_stream,
        Start::Zero,
        d_attended.sized(rows * heads.width()),
    );
    let d_output = &mut gradients[layout.output.clone()];
    linear::weight_gradient(d_stream, &state.attended, heads.width(), d_output, gradient);
    d_qkv.set_len(tokens * heads.qkv_width());
    if is_last(layer) {
        d_input.sized_zeroed(tokens * hidden);
    } else {
        std::mem::swap(d_input, d_stream);
    }
    for row in &layer.pack.rows {
        let (range, positions) = queried(layer, row, &scratch.all_positions);
        // A prefix comes before the rows that share it, so its own gradient is there to add to.
        let (before, own) = d_qkv.split_at_mut(row.tokens.start * heads.qkv_width());
        attention::backward(
            heads,
            layer.rope,
            sequence(heads, &state.qkv, row),
            positions,
            Kept {
                out: &state.attended[of(&range, heads.width())],
                log_sums: &state.log_sums[of(&range, heads.queries)],
                d_out: &d_attended[of(&range, heads.width())],
            },
            SequenceGradient {
                shared: &mut before[of(&row.prefix, heads.qkv_width())],
                own: &mut own[..row.tokens.len() * heads.qkv_width()],
            },
            &mut scratch.attention,
        );
        if is_last(layer) {
            for (from, &position) in range.zip(positions) {
                let to = row.tokens.start + position as usize - row.prefix.len();
                d_input[to * hidden..][..hidden]
                    .copy_from_slice(&d_stream[from * hidden..][..hidden]);
            }
        }
    }

    if let (Some(norm), Some(d_norm)) = (
        layout.qk_norm_of(weights),
        layout.qk_norm_gradient(gradients),
    ) {
        qk_norm::backward(heads, &norm, &state.qk_norm, d_qkv, d_norm);
    }
    let norm = &weights[layout.attention_norm.clone()];
    rmsnorm::recompute(
        &state.input,
        norm,
        &state.attention_scales,
        normed.sized(tokens * hidden),
    );
    linear::weight_gradient(
        d_qkv,
        normed,
        hidden,
        &mut gradients[layout.qkv.clone()],
        gradient,
    );
    if let Some(bias) = &layout.qkv_bias {
        linear::bias_gradient(d_qkv, &mut gradients[bias.clone()]);
    }
    packed
        .qkv
        .multiply(d_qkv, Start::Zero, d_normed.sized(tokens * hidden));
    let d_norm = &mut gradients[layout.attention_norm.clone()];
    rmsnorm::backward(
        &state.input,
        norm,
        &state.attention_scales,
        d_normed,
        d_input,
        d_norm,
    );
    std::mem::swap(d_input, d_stream);
}

fn sequence<'a>(heads: Heads, qkv: &'a [f32], row: &PackedRow) -> Sequence<'a> {
    let width = heads.qkv_width();
    Sequence {
        shared: &qkv[of(&row.prefix, width)],
        own: &qkv[of(&row.tokens, width)],
    }
}

/// The floats of these rows of a matrix of this width.
fn of(rows: &Range<usize>, width: usize) -> Range<usize> {
    rows.start * width..rows.end * width
}
