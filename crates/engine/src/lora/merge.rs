//! Adapters folded into the weights, for programs that know no adapters.

use super::layout::Part;
use crate::{Adapter, Model, layout::LayerLayout};

impl Model {
    /// One dense model: `W + scale · B A` for every adapted matrix, the others as they are. Its outputs
    /// are those of this model to rounding.
    pub fn merged(&self) -> Self {
        let mut merged = self.without_adapter();
        if let Some(adapter) = self.adapter() {
            let layout = self.layout().clone();
            merged.update_weights(|weights| {
                for (index, layer) in layout.layers.iter().enumerate() {
                    adapter.fold_layer(index, layer, weights);
                }
            });
        }
        merged
    }
}

impl Adapter {
    fn fold_layer(&self, index: usize, layer: &LayerLayout, weights: &mut [f32]) {
        let mut sums = Vec::new();
        let matrices = [&layer.qkv, &layer.output, &layer.gate_up, &layer.down];
        for (product, matrix) in self.layout.layers[index].iter().zip(matrices) {
            let Some(product) = product else { continue };
            let scale = self.config.scale();
            let all_a = &self.weights[product.a.clone()];
            let parts = all_a.chunks_exact(product.rank * product.inputs);
            for (a, Part { b, outputs }) in parts.zip(&product.parts) {
                let b = self.weights[b.clone()].chunks_exact(product.rank);
                let rows = &mut weights[matrix.clone()][outputs.start * product.inputs..];
                for (row, b) in rows.chunks_exact_mut(product.inputs).zip(b) {
                    fold_row(row, a, b, scale, &mut sums);
                }
            }
        }
    }
}

/// `row += scale · b A`, summed in double precision.
fn fold_row(row: &mut [f32], a: &[f32], b: &[f32], scale: f64, sums: &mut Vec<f64>) {
    sums.clear();
    sums.resize(row.len(), 0.0);
    for (a, b) in a.chunks_exact(row.len()).zip(b) {
        for (sum, a) in sums.iter_mut().zip(a) {
            *sum += f64::from(*b) * f64::from(*a);
        }
    }
    for (weight, sum) in row.iter_mut().zip(sums) {
        *weight = (f64::from(*weight) + scale * *sum) as f32;
    }
}
