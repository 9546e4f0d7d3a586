//! `y = x Wᵀ + b` and its gradients, for weights in their natural `[out, in]` layout.

use super::{
    gemm::{Left, PANEL, Right, STRIP, Shape, Start, multiply},
    panels,
};
use crate::buffer::Buffer;

/// A weight matrix packed as the right operand of a product.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    data: Buffer,
    steps: usize,
    columns: usize,
}

impl Packed {
    /// For `y = x Wᵀ`, from `weight[outputs, inputs]`.
    pub(crate) fn forward(&mut self, weight: &[f32], outputs: usize, inputs: usize) {
        panels::pack_transposed(weight, outputs, inputs, inputs, &mut self.data);
        (self.steps, self.columns) = (inputs, outputs);
    }

    /// For `dx = dy W`, from `weight[outputs, inputs]`.
    pub(crate) fn backward(&mut self, weight: &[f32], outputs: usize, inputs: usize) {
        panels::pack_rows(weight, outputs, inputs, inputs, &mut self.data);
        (self.steps, self.columns) = (outputs, inputs);
    }

    /// `out[rows, columns] = start + x[rows, steps] · packed`; `x` and `out` are contiguous.
    pub(crate) fn multiply(&self, x: &[f32], start: Start, out: &mut [f32]) {
        let shape = Shape {
            rows: x.len() / self.steps,
            columns: self.columns,
            steps: self.steps,
        };
        let right = Right {
            data: &self.data,
            panel_stride: self.steps * PANEL,
        };
        multiply(
            shape,
            Left::rows(x, self.steps),
            right,
            start,
            out,
            self.columns,
        );
    }
}

/// Packed operands of [`weight_gradient`], kept between calls.
#[derive(Debug, Default)]
pub(crate) struct GradientScratch {
    strips: Buffer,
    panels: Buffer,
}

/// Tokens whose outer products are summed in registers before the gradient is touched: as many as
/// leave one strip and one panel in the first-level cache.
const TOKENS: usize = 128;

/// `d_weight[outputs, inputs] += dyᵀ x` for `dy[tokens, outputs]` and `x[tokens, inputs]`.
pub(crate) fn weight_gradient(
    dy: &[f32],
    x: &[f32],
    inputs: usize,
    d_weight: &mut [f32],
    scratch: &mut GradientScratch,
) {
    let outputs = d_weight.len() / inputs;
    for (dy, x) in dy.chunks(TOKENS * outputs).zip(x.chunks(TOKENS * inputs)) {
        let tokens = x.len() / inputs;
        panels::strips(dy, tokens, outputs, outputs, &mut scratch.strips);
        panels::pack_rows(x, tokens, inputs, inputs, &mut scratch.panels);
        let left = Left {
            data: &scratch.strips,
            strip_stride: STRIP * tokens,
            row_stride: 1,
            step_stride: STRIP,
        };
        let right = Right {
            data: &scratch.panels,
            panel_stride: PANEL * tokens,
        };
        let shape = Shape {
            rows: outputs,
            columns: inputs,
            steps: tokens,
        };
        multiply(shape, left, right, Start::Output, d_weight, inputs);
    }
}

/// `d_bias[outputs] += Σ_tokens dy`.
pub(crate) fn bias_gradient(dy: &[f32], d_bias: &mut [f32]) {
    super::math::vectorised(
        #[inline(always)]
        || {
            for dy in dy.chunks_exact(d_bias.len()) {
                for (sum, value) in d_bias.iter_mut().zip(dy) {
                    *sum += value;
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_gradient, noise};

    const TOKENS: usize = 5;
    const INPUTS: usize = 7;
    const OUTPUTS: usize = 37;

    fn loss(weight: &[f32], bias: &[f32], x: &[f32], coefficients: &[f32]) -> f64 {
        let mut packed = Packed::default();
        packed.forward(weight, OUTPUTS, INPUTS);
        let mut y = vec![0.0; TOKENS * OUTPUTS];
        packed.multiply(x, Start::Row(bias), &mut y);
        y.iter()
            .zip(coefficients)
            .map(|(y, c)| f64::from(y * c))
            .sum()
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (weight, bias) = (noise(OUTPUTS * INPUTS, 1), noise(OUTPUTS, 2));
        let (x, dy) = (noise(TOKENS * INPUTS, 3), noise(TOKENS * OUTPUTS, 4));
        let mut d_weight = vec![0.0; weight.len()];
        weight_gradient(
            &dy,
            &x,
            INPUTS,
            &mut d_weight,
            &mut GradientScratch::default(),
        );
        assert_gradient(&weight, &d_weight, |weight| loss(weight, &bias, &x, &dy));
        let mut d_bias = vec![0.0; OUTPUTS];
        bias_gradient(&dy, &mut d_bias);
        assert_gradient(&bias, &d_bias, |bias| loss(&weight, bias, &x, &dy));
        let mut packed = Packed::default();
        packed.backward(&weight, OUTPUTS, INPUTS);
        let mut dx = vec![0.0; x.len()];
        packed.multiply(&dy, Start::Zero, &mut dx);
        assert_gradient(&x, &dx, |x| loss(&weight, &bias, x, &dy));
    }
}
