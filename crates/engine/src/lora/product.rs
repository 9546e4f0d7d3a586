//! `y += scale · B A x` for the adapters of one product, and its gradients.

use super::layout::{Product, ProductLayout};
use crate::{
    Adapter,
    buffer::Buffer,
    kernels::{
        gemm::Start,
        linear::{self, Columns, GradientScratch, Packed, Place},
    },
};

/// `A` and `B` packed for products in both directions.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedProduct {
    a: Packed,
    a_backward: Packed,
    parts: Vec<PackedPart>,
}

#[derive(Clone, Debug, Default)]
struct PackedPart {
    b: Packed,
    b_backward: Packed,
}

/// The adapters of one product of one layer.
#[derive(Clone, Copy)]
pub(crate) struct ProductAdapter<'a> {
    pub(crate) layout: &'a ProductLayout,
    pub(crate) packed: &'a PackedProduct,
    pub(crate) scale: f32,
}

/// What the gradients of `A` and `B` are made of.
pub(crate) struct ProductGradient<'a> {
    /// Input of `A`, `[rows, inputs]`.
    pub(crate) x: &'a [f32],
    /// `scale · A x`, as [`ProductAdapter::forward`] left it.
    pub(crate) inner: &'a [f32],
    /// Gradient of the product's output, `[rows, outputs]`.
    pub(crate) dy: &'a [f32],
    /// Gradient of `A x`, as [`ProductAdapter::d_inner`] left it.
    pub(crate) d_inner: &'a [f32],
}

/// Neighbouring rows of a batch that use the same adapter, or none.
#[derive(Clone, Copy)]
pub(crate) struct Span<'a> {
    pub(crate) rows: usize,
    pub(crate) adapter: Option<&'a Adapter>,
}

/// Adds to `y[rows, outputs]` what the adapter of each row makes of `x[rows, inputs]`. A row's result
/// does not depend on the others.
pub(crate) fn add_spans(
    spans: &[Span],
    (layer, product): (usize, Product),
    x: &[f32],
    y: &mut [f32],
    inner: &mut Buffer,
) {
    let rows: usize = spans.iter().map(|span| span.rows).sum();
    let (inputs, outputs) = (x.len() / rows.max(1), y.len() / rows.max(1));
    let mut first = 0;
    for span in spans {
        let range = first..first + span.rows;
        first = range.end;
        let adapter = span
            .adapter
            .and_then(|adapter| adapter.product(layer, product));
        if let Some(adapter) = adapter {
            let x = &x[range.start * inputs..range.end * inputs];
            let y = &mut y[range.start * outputs..range.end * outputs];
            adapter.forward(x, y, inner);
        }
    }
}

impl PackedProduct {
    pub(crate) fn repack(&mut self, layout: &ProductLayout, weights: &[f32]) {
        let a = &weights[layout.a.clone()];
        self.a.forward(a, layout.total_rank(), layout.inputs);
        self.a_backward
            .backward(a, layout.total_rank(), layout.inputs);
        self.parts.resize_with(layout.parts.len(), Default::default);
        for (packed, part) in self.parts.iter_mut().zip(&layout.parts) {
            let b = &weights[part.b.clone()];
            packed.b.forward(b, part.outputs.len(), layout.rank);
            packed
                .b_backward
                .backward(b, part.outputs.len(), layout.rank);
        }
    }
}

impl ProductAdapter<'_> {
    /// Adds `scale · B A x` to `y`; leaves `scale · A x`, `[rows, parts × rank]`, in `inner`.
    pub(crate) fn forward(&self, x: &[f32], y: &mut [f32], inner: &mut Buffer) {
        let rows = x.len() / self.layout.inputs;
        let inner = inner.sized(rows * self.layout.total_rank());
        self.packed.a.multiply(x, Start::Zero, inner);
        self.rescale(inner);
        for (index, (packed, part)) in self.packed.parts.iter().zip(&self.layout.parts).enumerate()
        {
            let outputs = Place {
                first: part.outputs.start,
                stride: self.layout.outputs,
            };
            packed.b.add(self.inner_columns(inner, index), y, outputs);
        }
    }

    /// The gradient of `A x` from that of the product's output, `[rows, outputs]`.
    pub(crate) fn d_inner(&self, dy: &[f32], d_inner: &mut Buffer) {
        let rows = dy.len() / self.layout.outputs;
        let d_inner = d_inner.sized_zeroed(rows * self.layout.total_rank());
        for (index, (packed, part)) in self.packed.parts.iter().zip(&self.layout.parts).enumerate()
        {
            let place = self.inner_columns(&[], index).place;
            packed
                .b_backward
                .add(self.output_columns(dy, &part.outputs), d_inner, place);
        }
        self.rescale(d_inner);
    }

    /// Adds to `dx`, the gradient of the input of `A`, what [`Self::d_inner`] makes of it.
    pub(crate) fn input_gradient(&self, d_inner: &[f32], start: Start, dx: &mut [f32]) {
        self.packed.a_backward.multiply(d_inner, start, dx);
    }

    /// Adds to the gradients of `A` and `B` in the flat `gradients` of the adapter.
    pub(crate) fn weight_gradients(
        &self,
        from: &ProductGradient,
        gradients: &mut [f32],
        scratch: &mut GradientScratch,
    ) {
        let d_a = &mut gradients[self.layout.a.clone()];
        linear::weight_gradient(from.d_inner, from.x, self.layout.inputs, d_a, scratch);
        for (index, part) in self.layout.parts.iter().enumerate() {
            linear::weight_gradient_of(
                self.output_columns(from.dy, &part.outputs),
                self.inner_columns(from.inner, index),
                &mut gradients[part.b.clone()],
                scratch,
            );
        }
    }

    /// The columns of `A x` that belong to one part.
    fn inner_columns<'a>(&self, inner: &'a [f32], part: usize) -> Columns<'a> {
        Columns {
            data: inner,
            place: Place {
                first: part * self.layout.rank,
                stride: self.layout.total_rank(),
            },
            width: self.layout.rank,
        }
    }

    fn output_columns<'a>(&self, outputs: &'a [f32], part: &std::ops::Range<usize>) -> Columns<'a> {
        Columns {
            data: outputs,
            place: Place {
                first: part.start,
                stride: self.layout.outputs,
            },
            width: part.len(),
        }
    }

    fn rescale(&self, inner: &mut [f32]) {
        inner.iter_mut().for_each(|value| *value *= self.scale);
    }
}
