//! `y = x Wᵀ + b` and its gradients, for weights in their natural `[out, in]` layout.

use std::cell::RefCell;

use super::{
    bf16,
    gemm::{Left, PANEL, Right, STRIP, Shape, Start, multiply, multiply_pairs},
    panels,
};
use crate::{Dtype, buffer::Buffer};

/// A weight matrix packed as the right operand of a product.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    data: Buffer,
    steps: usize,
    columns: usize,
    dtype: Dtype,
}

thread_local! {
    /// The left operand of the 16-bit product that this thread is computing.
    static PAIRS: RefCell<Buffer> = RefCell::default();
}

impl Packed {
    /// Nothing yet; operands will be of this type.
    pub(crate) fn of(dtype: Dtype) -> Self {
        Self {
            dtype,
            ..Self::default()
        }
    }

    pub(crate) fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// For `y = x Wᵀ`, from `weight[outputs, inputs]`.
    pub(crate) fn forward(&mut self, weight: &[f32], outputs: usize, inputs: usize) {
        let pack = match self.dtype {
            Dtype::F32 => panels::pack_transposed,
            Dtype::Bf16 => panels::pack_transposed_pairs,
        };
        pack(weight, outputs, inputs, inputs, &mut self.data);
        (self.steps, self.columns) = (inputs, outputs);
    }

    /// For `dx = dy W`, from `weight[outputs, inputs]`.
    pub(crate) fn backward(&mut self, weight: &[f32], outputs: usize, inputs: usize) {
        let pack = match self.dtype {
            Dtype::F32 => panels::pack_rows,
            Dtype::Bf16 => panels::pack_row_pairs,
        };
        pack(weight, outputs, inputs, inputs, &mut self.data);
        (self.steps, self.columns) = (outputs, inputs);
    }

    /// `y += x · packed` for columns of `x` and of `y`; of f32 operands.
    pub(crate) fn add(&self, x: Columns, y: &mut [f32], y_columns: Place) {
        debug_assert_eq!(self.dtype, Dtype::F32);
        if x.data.is_empty() {
            return;
        }
        let rows = x.data.len() / x.place.stride;
        let left = Left::rows(&x.data[x.place.first..], x.place.stride);
        let y = &mut y[y_columns.first..];
        let (shape, right) = (self.shape(rows), self.right());
        multiply(shape, left, right, Start::Output, y, y_columns.stride);
    }

    /// `out[rows, columns] = start + x[rows, steps] · packed`; `x` and `out` are contiguous.
    pub(crate) fn multiply(&self, x: &[f32], start: Start, out: &mut [f32]) {
        let (shape, right) = (self.shape(x.len() / self.steps), self.right());
        match self.dtype {
            Dtype::F32 => {
                let left = Left::rows(x, self.steps);
                multiply(shape, left, right, start, out, self.columns);
            }
            Dtype::Bf16 => PAIRS.with_borrow_mut(|pairs| {
                bf16::rows(x, self.steps, pairs);
                let left = Left::rows(pairs, shape.steps);
                multiply_pairs(shape, left, right, start, out, self.columns);
            }),
        }
    }

    /// Steps are words of the operands.
    fn shape(&self, rows: usize) -> Shape {
        Shape {
            rows,
            columns: self.columns,
            steps: match self.dtype {
                Dtype::F32 => self.steps,
                Dtype::Bf16 => self.steps.div_ceil(2),
            },
        }
    }

    fn right(&self) -> Right<'_> {
        Right {
            data: &self.data,
            panel_stride: self.shape(0).steps * PANEL,
        }
    }
}

/// Some neighbouring columns of a matrix with contiguous rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns<'a> {
    /// Whole rows.
    pub(crate) data: &'a [f32],
    pub(crate) place: Place,
    pub(crate) width: usize,
}

/// Where columns lie: from column `first` on, in rows of `stride` floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) first: usize,
    pub(crate) stride: usize,
}

impl<'a> Columns<'a> {
    /// All of a matrix of this width.
    pub(crate) fn all(data: &'a [f32], width: usize) -> Self {
        let place = Place {
            first: 0,
            stride: width,
        };
        Self { data, place, width }
    }
}

/// Packed operands of [`weight_gradient`], kept between calls.
#[derive(Debug, Default)]
pub(crate) struct GradientScratch {
    /// Of the operands; what is summed is always f32.
    pub(crate) dtype: Dtype,
    strips: Vec<Buffer>,
    panels: Vec<Buffer>,
}

/// Tokens whose outer products are summed in registers before the gradient is touched: as many as
/// leave one strip and one panel in the first-level cache.
const TOKENS: usize = 128;

/// The same for bf16 operands, whose additions must cost no more than half as much.
const TOKENS_BF16: usize = 512;

/// Floats of the gradient that stay in the second-level cache while all tokens are added to them.
const BLOCK: usize = 1 << 16;

/// `d_weight[outputs, inputs] += dyᵀ x` for `dy[tokens, outputs]` and `x[tokens, inputs]`.
pub(crate) fn weight_gradient(
    dy: &[f32],
    x: &[f32],
    inputs: usize,
    d_weight: &mut [f32],
    scratch: &mut GradientScratch,
) {
    let outputs = d_weight.len() / inputs;
    let (dy, x) = (Columns::all(dy, outputs), Columns::all(x, inputs));
    weight_gradient_of(dy, x, d_weight, scratch);
}

/// [`weight_gradient`] for some columns of matrices of equally many rows.
pub(crate) fn weight_gradient_of(
    dy: Columns,
    x: Columns,
    d_weight: &mut [f32],
    scratch: &mut GradientScratch,
) {
    let (outputs, inputs) = (dy.width, x.width);
    let (dy_stride, x_stride) = (dy.place.stride, x.place.stride);
    let GradientScratch {
        dtype,
        strips,
        panels,
    } = scratch;
    let together = match dtype {
        Dtype::F32 => TOKENS,
        Dtype::Bf16 => TOKENS_BF16,
    };
    let mut chunks = Vec::new();
    let pairs = dy.data.chunks(together * dy_stride);
    for (dy_rows, x_rows) in pairs.zip(x.data.chunks(together * x_stride)) {
        let tokens = x_rows.len() / x_stride;
        let (dy, x) = (&dy_rows[dy.place.first..], &x_rows[x.place.first..]);
        let at = chunks.len();
        if at == strips.len() {
            strips.push(Buffer::default());
            panels.push(Buffer::default());
        }
        match dtype {
            Dtype::F32 => {
                panels::strips(dy, tokens, outputs, dy_stride, &mut strips[at]);
                panels::pack_rows(x, tokens, inputs, x_stride, &mut panels[at]);
                chunks.push(tokens);
            }
            Dtype::Bf16 => {
                panels::strip_pairs(dy, tokens, outputs, dy_stride, &mut strips[at]);
                panels::pack_row_pairs(x, tokens, inputs, x_stride, &mut panels[at]);
                chunks.push(tokens.div_ceil(2));
            }
        }
    }
    let multiply = match dtype {
        Dtype::F32 => multiply,
        Dtype::Bf16 => multiply_pairs,
    };
    let block = (BLOCK / inputs).next_multiple_of(STRIP);
    for (index, d_weight) in d_weight.chunks_mut(block * inputs).enumerate() {
        let rows = d_weight.len() / inputs;
        for (at, &steps) in chunks.iter().enumerate() {
            let left = Left {
                data: &strips[at][index * block * steps..],
                strip_stride: STRIP * steps,
                row_stride: 1,
                step_stride: STRIP,
            };
            let right = Right {
                data: &panels[at],
                panel_stride: PANEL * steps,
            };
            let shape = Shape {
                rows,
                columns: inputs,
                steps,
            };
            multiply(shape, left, right, Start::Output, d_weight, inputs);
        }
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
    /// Columns 2..39 of `dy` in rows of 45, columns 3..10 of `x` in rows of 11.
    #[test]
    fn columns_of_wider_matrices_have_the_products_of_matrices_of_their_own() {
        let (wide_dy, wide_x) = (noise(TOKENS * 45, 1), noise(TOKENS * 11, 2));
        let cut = |wide: &[f32], stride: usize, first: usize, width: usize| -> Vec<f32> {
            wide.chunks_exact(stride)
                .flat_map(|row| row[first..first + width].to_vec())
                .collect()
        };
        let (dy, x) = (cut(&wide_dy, 45, 2, OUTPUTS), cut(&wide_x, 11, 3, INPUTS));
        let (dy_place, x_place) = (
            Place {
                first: 2,
                stride: 45,
            },
            Place {
                first: 3,
                stride: 11,
            },
        );
        let wide_x = Columns {
            data: &wide_x,
            place: x_place,
            width: INPUTS,
        };
        let columns = Columns {
            data: &wide_dy,
            place: dy_place,
            width: OUTPUTS,
        };
        let (mut found, mut expected) = (vec![0.0; OUTPUTS * INPUTS], vec![0.0; OUTPUTS * INPUTS]);
        let mut scratch = GradientScratch::default();
        weight_gradient_of(columns, wide_x, &mut found, &mut scratch);
        weight_gradient(&dy, &x, INPUTS, &mut expected, &mut scratch);
        assert_eq!(found, expected);

        let mut packed = Packed::default();
        packed.forward(&noise(OUTPUTS * INPUTS, 3), OUTPUTS, INPUTS);
        let mut wide_y = noise(TOKENS * 45, 4);
        let mut y = cut(&wide_y, 45, 2, OUTPUTS);
        let before = wide_y.clone();
        packed.add(wide_x, &mut wide_y, dy_place);
        packed.multiply(&x, Start::Output, &mut y);
        assert_eq!(cut(&wide_y, 45, 2, OUTPUTS), y);
        for (row, before) in wide_y.chunks_exact(45).zip(before.chunks_exact(45)) {
            assert_eq!(row[..2], before[..2]);
            assert_eq!(row[2 + OUTPUTS..], before[2 + OUTPUTS..]);
        }
    }
}
