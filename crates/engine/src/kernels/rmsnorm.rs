//! Root-mean-square norm: `y = x · w / sqrt(mean(x²) + ε)` per row.

use super::math::{LANES, dot, vectorised};

/// `y[rows, width]` from `x[rows, width]`; leaves `1 / sqrt(mean(x²) + ε)` of each row in `scales`.
pub(crate) fn forward(x: &[f32], weight: &[f32], epsilon: f32, scales: &mut [f32], y: &mut [f32]) {
    let width = weight.len();
    vectorised(
        #[inline(always)]
        || {
            for ((x, y), scale) in x
                .chunks_exact(width)
                .zip(y.chunks_exact_mut(width))
                .zip(scales)
            {
                *scale = 1.0 / (dot(x, x) / width as f32 + epsilon).sqrt();
                for ((y, x), weight) in y.iter_mut().zip(x).zip(weight) {
                    *y = x * *scale * weight;
                }
            }
        },
    );
}

/// The forward result again from the kept scales.
pub(crate) fn recompute(x: &[f32], weight: &[f32], scales: &[f32], y: &mut [f32]) {
    let width = weight.len();
    vectorised(
        #[inline(always)]
        || {
            for ((x, y), scale) in x
                .chunks_exact(width)
                .zip(y.chunks_exact_mut(width))
                .zip(scales)
            {
                for ((y, x), weight) in y.iter_mut().zip(x).zip(weight) {
                    *y = x * *scale * weight;
                }
            }
        },
    );
}

/// Adds to `dx[rows, width]` and `d_weight[width]` what `dy[rows, width]` makes of them.
pub(crate) fn backward(
    x: &[f32],
    weight: &[f32],
    scales: &[f32],
    dy: &[f32],
    dx: &mut [f32],
    d_weight: &mut [f32],
) {
    let width = weight.len();
    vectorised(
        #[inline(always)]
        || {
            for (((x, dy), dx), &scale) in x
                .chunks_exact(width)
                .zip(dy.chunks_exact(width))
                .zip(dx.chunks_exact_mut(width))
                .zip(scales)
            {
                // Σ dy·w·x, with the product dy·x that d_weight needs as well.
                let mut sums = [0.0_f32; LANES];
                let (x_blocks, x_rest) = x.as_chunks::<LANES>();
                let (dy_blocks, dy_rest) = dy.as_chunks::<LANES>();
                let (weight_blocks, weight_rest) = weight.as_chunks::<LANES>();
                let (d_weight_blocks, d_weight_rest) = d_weight.as_chunks_mut::<LANES>();
                for (((x, dy), weight), d_weight) in x_blocks
                    .iter()
                    .zip(dy_blocks)
                    .zip(weight_blocks)
                    .zip(d_weight_blocks)
                {
                    let mut d = *d_weight;
                    for lane in 0..LANES {
                        let product = dy[lane] * x[lane];
                        d[lane] += product * scale;
                        sums[lane] += product * weight[lane];
                    }
                    *d_weight = d;
                }
                let mut total: f32 = sums.iter().sum();
                for (((x, dy), weight), d_weight) in x_rest
                    .iter()
                    .zip(dy_rest)
                    .zip(weight_rest)
                    .zip(d_weight_rest)
                {
                    *d_weight += dy * x * scale;
                    total += dy * x * weight;
                }
                let pull = total * scale * scale * scale / width as f32;
                for (((dx, x), dy), weight) in dx.iter_mut().zip(x).zip(dy).zip(weight) {
                    *dx += dy * weight * scale - x * pull;
                }
            }
        },
    );
}

/// [`backward`] for a frozen weight: adds to `dx` alone, the same bytes.
pub(crate) fn backward_frozen(
    x: &[f32],
    weight: &[f32],
    scales: &[f32],
    dy: &[f32],
    dx: &mut [f32],
) {
    let width = weight.len();
    vectorised(
        #[inline(always)]
        || {
            for (((x, dy), dx), &scale) in x
                .chunks_exact(width)
                .zip(dy.chunks_exact(width))
                .zip(dx.chunks_exact_mut(width))
                .zip(scales)
            {
                let mut sums = [0.0_f32; LANES];
                let (x_blocks, x_rest) = x.as_chunks::<LANES>();
                let (dy_blocks, dy_rest) = dy.as_chunks::<LANES>();
                let (weight_blocks, weight_rest) = weight.as_chunks::<LANES>();
                for ((x, dy), weight) in x_blocks.iter().zip(dy_blocks).zip(weight_blocks) {
                    for lane in 0..LANES {
                        sums[lane] += dy[lane] * x[lane] * weight[lane];
                    }
                }
                let mut total: f32 = sums.iter().sum();
                for ((x, dy), weight) in x_rest.iter().zip(dy_rest).zip(weight_rest) {
                    total += dy * x * weight;
                }
                let pull = total * scale * scale * scale / width as f32;
                for (((dx, x), dy), weight) in dx.iter_mut().zip(x).zip(dy).zip(weight) {
                    *dx += dy * weight * scale - x * pull;
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_gradient, noise};

    const ROWS: usize = 3;
    const WIDTH: usize = 21;

    fn loss(x: &[f32], weight: &[f32], coefficients: &[f32]) -> f64 {
        let (mut y, mut scales) = (vec![0.0; x.len()], vec![0.0; ROWS]);
        forward(x, weight, 1e-5, &mut scales, &mut y);
        let mut again = vec![0.0; x.len()];
        recompute(x, weight, &scales, &mut again);
        assert_eq!(y, again);
        y.iter()
            .zip(coefficients)
            .map(|(y, c)| f64::from(y * c))
            .sum()
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (x, weight, dy) = (
            noise(ROWS * WIDTH, 1),
            noise(WIDTH, 2),
            noise(ROWS * WIDTH, 3),
        );
        let (mut y, mut scales) = (vec![0.0; x.len()], vec![0.0; ROWS]);
        forward(&x, &weight, 1e-5, &mut scales, &mut y);
        let (mut dx, mut d_weight) = (vec![0.0; x.len()], vec![0.0; WIDTH]);
        backward(&x, &weight, &scales, &dy, &mut dx, &mut d_weight);
        let mut frozen = vec![0.0; x.len()];
        backward_frozen(&x, &weight, &scales, &dy, &mut frozen);
        assert_eq!(frozen, dx);
        assert_gradient(&x, &dx, |x| loss(x, &weight, &dy));
        assert_gradient(&weight, &d_weight, |weight| loss(&x, weight, &dy));
    }
}
