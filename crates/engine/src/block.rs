//! One decoder layer over a pack: attention and MLP, each with its norm and residual.

use std::ops::Range;

use crate::{
    Dtype, Model,
    batch::{Pack, PackedRow},
    buffer::Buffer,
    kernels::{
        attention::{self, Heads, Kept, Sequence, SequenceGradient},
        gemm::Start,
        linear::{self, GradientScratch, Packed},
        qk_norm, rmsnorm,
        rope::Rope,
        swiglu,
    },
    lora::{Dropout, Product, ProductAdapter, ProductGradient},
    workspace::{LayerState, Scratch},
};

/// Which layer of which model runs on which pack.
#[derive(Clone, Copy)]
pub(crate) struct Layer<'a> {
    pub(crate) model: &'a Model,
    pub(crate) index: usize,
    pub(crate) pack: &'a Pack,
    pub(crate) rope: &'a Rope,
    /// Of the inputs of adapters, in training.
    pub(crate) dropout: Option<&'a Dropout>,
}

/// Where a backward pass adds its gradients.
pub(crate) enum Gradients<'a> {
    /// Flat, all weights of the model.
    Weights(&'a mut [f32]),
    /// Flat, the weights of the model's adapter; its own are frozen and get no gradient.
    Adapter(&'a mut [f32]),
}

impl Gradients<'_> {
    /// Those of some weights of the model, unless it is frozen.
    pub(crate) fn of(&mut self, range: &Range<usize>) -> Option<&mut [f32]> {
        match self {
            Self::Weights(gradients) => Some(&mut gradients[range.clone()]),
            Self::Adapter(_) => None,
        }
    }

    /// The first layer in which anything is trained.
    pub(crate) fn first_layer(&self, model: &Model) -> usize {
        match (self, model.adapter()) {
            (Self::Adapter(_), Some(adapter)) => adapter.first_layer(),
            _ => 0,
        }
    }

    /// Whether anything before this layer is trained: the embedding, or another layer.
    fn reach_before(&self, layer: Layer) -> bool {
        matches!(self, Self::Weights(_)) || layer.index > self.first_layer(layer.model)
    }
}

/// The matrices of one layer packed for `dy W`.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackwardLayer {
    pub(crate) qkv: Packed,
    pub(crate) output: Packed,
    pub(crate) gate_up: Packed,
    pub(crate) down: Packed,
}

impl BackwardLayer {
    pub(crate) fn of(dtype: Dtype) -> Self {
        let packed = || Packed::of(dtype);
        Self {
            qkv: packed(),
            output: packed(),
            gate_up: packed(),
            down: packed(),
        }
    }
}

impl Layer<'_> {
    fn adapter(&self, product: Product) -> Option<ProductAdapter<'_>> {
        self.model.adapter()?.product(self.index, product)
    }

    /// Whether the rows of a product are the queries of the pack and not its tokens.
    fn at_queries(&self, product: Product) -> bool {
        is_last(*self) && product != Product::Qkv
    }

    /// Adds to `y` what the adapter of a product makes of `x`. For the gradient the same must be done
    /// with [`Self::adapter_input_gradient`] and [`Self::adapter_weight_gradients`].
    fn adapt(
        &self,
        product: Product,
        x: &[f32],
        y: &mut [f32],
        kept: &mut [Buffer; Product::COUNT],
        dropped: &mut Buffer,
    ) {
        let Some(adapter) = self.adapter(product) else {
            return;
        };
        let x = match self.dropout {
            Some(dropout) => dropout.apply(adapter.layout, self.at_queries(product), x, dropped),
            None => x,
        };
        adapter.forward(x, y, &mut kept[product as usize]);
    }

    /// From `dy`, the gradient of a product's output, to that between `A` and `B` in `d_adapted`,
    /// adding to `dx` if it is wanted.
    fn adapter_input_gradient(
        &self,
        product: Product,
        dy: &[f32],
        dx: Option<&mut [f32]>,
        d_adapted: &mut Buffer,
        dropped: &mut Buffer,
    ) {
        let Some(adapter) = self.adapter(product) else {
            return;
        };
        adapter.d_inner(dy, d_adapted);
        let Some(dx) = dx else { return };
        match self.dropout {
            None => adapter.input_gradient(d_adapted, Start::Output, dx),
            Some(dropout) => {
                let masked = dropped.sized(dx.len());
                adapter.input_gradient(d_adapted, Start::Zero, masked);
                dropout.mask(adapter.layout, self.at_queries(product), masked);
                dx.iter_mut().zip(masked).for_each(|(dx, add)| *dx += *add);
            }
        }
    }

    /// Adds to the gradients of `A` and `B` of a product with the input `x`.
    fn adapter_weight_gradients(
        &self,
        product: Product,
        (x, dy): (&[f32], &[f32]),
        (inner, d_inner): (&[f32], &[f32]),
        gradients: &mut Gradients,
        (dropped, scratch): (&mut Buffer, &mut GradientScratch),
    ) {
        let (Some(adapter), Gradients::Adapter(gradients)) = (self.adapter(product), gradients)
        else {
            return;
        };
        let x = match self.dropout {
            Some(dropout) => dropout.apply(adapter.layout, self.at_queries(product), x, dropped),
            None => x,
        };
        let from = ProductGradient {
            x,
            inner,
            dy,
            d_inner,
        };
        adapter.weight_gradients(&from, gradients, scratch);
    }
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
    let (hidden, heads) = (config.hidden_size, Heads::of(config, layer.index));
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
    let qkv = state.qkv.sized(tokens * heads.qkv_width());
    packed.qkv.multiply(normed, start, qkv);
    let (kept, dropped) = (&mut state.adapted, &mut scratch.dropped);
    layer.adapt(Product::Qkv, normed, qkv, kept, dropped);
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
    let (attended, middle) = (&state.attended, &mut state.middle);
    layer.adapt(Product::Output, attended, middle, kept, dropped);
    let adapt = |product, x: &[f32], y: &mut [f32]| layer.adapt(product, x, y, kept, dropped);
    let parts = MlpParts {
        scales: &mut state.mlp_scales,
        normed: &mut scratch.normed,
        gate_up: &mut state.gate_up,
        inner: &mut scratch.inner,
    };
    mlp(
        layer.model,
        layer.index,
        &state.middle,
        parts,
        adapt,
        output,
    );
}

/// Where the MLP leaves what the backward pass needs, and its working memory.
pub(crate) struct MlpParts<'a> {
    pub(crate) scales: &'a mut Buffer,
    pub(crate) normed: &'a mut Buffer,
    pub(crate) gate_up: &'a mut Buffer,
    pub(crate) inner: &'a mut Buffer,
}

/// `output = middle + down(swiglu(gate_up(norm(middle))))` for rows of the residual stream. `adapt`
/// adds to the output of a product what adapters make of its input.
pub(crate) fn mlp(
    model: &Model,
    index: usize,
    middle: &[f32],
    parts: MlpParts,
    mut adapt: impl FnMut(Product, &[f32], &mut [f32]),
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
    adapt(Product::GateUp, normed, gate_up);
    let inner = parts.inner.sized(rows * intermediate);
    swiglu::forward(gate_up, intermediate, inner);
    output.sized(middle.len()).copy_from_slice(middle);
    packed.down.multiply(inner, Start::Output, output);
    adapt(Product::Down, inner, output);
}

/// From the gradient of the layer's output in `scratch.d_stream` to that of its input in the same
/// place, adding to `gradients`. Consumes `state.gate_up`. Where nothing before the layer is trained the
/// gradient of its input is left out.
pub(crate) fn backward(
    layer: Layer,
    packed: &BackwardLayer,
    state: &mut LayerState,
    gradients: &mut Gradients,
    scratch: &mut Scratch,
) {
    let (config, layout) = (
        layer.model.config(),
        &layer.model.layout().layers[layer.index],
    );
    let (weights, hidden) = (layer.model.weights(), config.hidden_size);
    let intermediate = config.intermediate_size;
    let heads = Heads::of(config, layer.index);
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
        dropped,
        d_adapted,
        ..
    } = scratch;
    let reach_before = gradients.reach_before(layer);

    packed
        .down
        .multiply(d_stream, Start::Zero, inner.sized(rows * intermediate));
    layer.adapter_input_gradient(Product::Down, d_stream, Some(inner), d_adapted, dropped);
    swiglu::backward(&mut state.gate_up, intermediate, inner);
    let d_gate_up = &state.gate_up;
    if let Some(d_down) = gradients.of(&layout.down) {
        linear::weight_gradient(d_stream, inner, intermediate, d_down, gradient);
    }
    layer.adapter_weight_gradients(
        Product::Down,
        (inner, d_stream),
        (&state.adapted[Product::Down as usize], d_adapted),
        gradients,
        (dropped, gradient),
    );
    let norm = &weights[layout.mlp_norm.clone()];
    rmsnorm::recompute(
        &state.middle,
        norm,
        &state.mlp_scales,
        normed.sized(rows * hidden),
    );
    if let Some(d_weight) = gradients.of(&layout.gate_up) {
        linear::weight_gradient(d_gate_up, normed, hidden, d_weight, gradient);
    }
    packed
        .gate_up
        .multiply(d_gate_up, Start::Zero, d_normed.sized(rows * hidden));
    layer.adapter_input_gradient(
        Product::GateUp,
        d_gate_up,
        Some(d_normed),
        d_adapted,
        dropped,
    );
    layer.adapter_weight_gradients(
        Product::GateUp,
        (normed, d_gate_up),
        (&state.adapted[Product::GateUp as usize], d_adapted),
        gradients,
        (dropped, gradient),
    );
    let d_norm = gradients.of(&layout.mlp_norm);
    norm_backward(
        (&state.middle, norm, &state.mlp_scales),
        d_normed,
        d_stream,
        d_norm,
    );

    packed.output.multiply(
        d_stream,
        Start::Zero,
        d_attended.sized(rows * heads.width()),
    );
    if let Some(d_output) = gradients.of(&layout.output) {
        linear::weight_gradient(d_stream, &state.attended, heads.width(), d_output, gradient);
    }
    layer.adapter_input_gradient(
        Product::Output,
        d_stream,
        Some(d_attended),
        d_adapted,
        dropped,
    );
    layer.adapter_weight_gradients(
        Product::Output,
        (&state.attended, d_stream),
        (&state.adapted[Product::Output as usize], d_adapted),
        gradients,
        (dropped, gradient),
    );
    if !reach_before && layer.adapter(Product::Qkv).is_none() {
        return;
    }
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

    if let Some(norm) = layout.qk_norm_of(weights) {
        let d_norm = match gradients {
            Gradients::Weights(gradients) => layout.qk_norm_gradient(gradients),
            Gradients::Adapter(_) => None,
        };
        qk_norm::backward(heads, &norm, &state.qk_norm, d_qkv, d_norm);
    }
    let norm = &weights[layout.attention_norm.clone()];
    rmsnorm::recompute(
        &state.input,
        norm,
        &state.attention_scales,
        normed.sized(tokens * hidden),
    );
    if let Some(d_weight) = gradients.of(&layout.qkv) {
        linear::weight_gradient(d_qkv, normed, hidden, d_weight, gradient);
    }
    if let Some(d_bias) = layout.qkv_bias.as_ref().and_then(|bias| gradients.of(bias)) {
        linear::bias_gradient(d_qkv, d_bias);
    }
    if reach_before {
        let d_normed = d_normed.sized(tokens * hidden);
        packed.qkv.multiply(d_qkv, Start::Zero, d_normed);
    }
    let d_input_normed = reach_before.then_some(&mut **d_normed);
    layer.adapter_input_gradient(Product::Qkv, d_qkv, d_input_normed, d_adapted, dropped);
    layer.adapter_weight_gradients(
        Product::Qkv,
        (normed, d_qkv),
        (&state.adapted[Product::Qkv as usize], d_adapted),
        gradients,
        (dropped, gradient),
    );
    if !reach_before {
        return;
    }
    let d_norm = gradients.of(&layout.attention_norm);
    norm_backward(
        (&state.input, norm, &state.attention_scales),
        d_normed,
        d_input,
        d_norm,
    );
    std::mem::swap(d_input, d_stream);
}

/// Through a norm of `x` with its weight and scales, whose gradient is left out when it is frozen.
pub(crate) fn norm_backward(
    (x, weight, scales): (&[f32], &[f32], &[f32]),
    dy: &[f32],
    dx: &mut [f32],
    d_weight: Option<&mut [f32]>,
) {
    match d_weight {
        Some(d_weight) => rmsnorm::backward(x, weight, scales, dy, dx, d_weight),
        None => rmsnorm::backward_frozen(x, weight, scales, dy, dx),
    }
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
