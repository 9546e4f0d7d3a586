//! SwiGLU on a fused `gate | up` row: `y = gate · sigmoid(gate) · up`.

use super::math::{LANES, exp, vectorised};

/// `y[rows, width]` from `gate_up[rows, 2·width]`.
pub(crate) fn forward(gate_up: &[f32], width: usize, y: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (gate_up, y) in gate_up
                .chunks_exact(2 * width)
                .zip(y.chunks_exact_mut(width))
            {
                let (gate, up) = gate_up.split_at(width);
                for ((y, &gate), &up) in y.iter_mut().zip(gate).zip(up) {
                    *y = gate / (1.0 + exp(-gate)) * up;
                }
            }
        },
    );
}

/// Turns `gate_up[rows, 2·width]` into its own gradient and `dy[rows, width]` into the forward
/// result, in one pass: the caller needs both and neither input again.
pub(crate) fn backward(gate_up: &mut [f32], width: usize, dy: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (gate_up, dy) in gate_up
                .chunks_exact_mut(2 * width)
                .zip(dy.chunks_exact_mut(width))
            {
                let (gates, ups) = gate_up.split_at_mut(width);
                // Blocks copied to registers: three outputs in place defeat the compiler's own
                // proof that they do not overlap.
                let (dy_blocks, dy_rest) = dy.as_chunks_mut::<LANES>();
                let (gate_blocks, gate_rest) = gates.as_chunks_mut::<LANES>();
                let (up_blocks, up_rest) = ups.as_chunks_mut::<LANES>();
                for ((dy, gate), up) in dy_blocks.iter_mut().zip(gate_blocks).zip(up_blocks) {
                    let (mut d, mut g, mut u) = (*dy, *gate, *up);
                    for lane in 0..LANES {
                        (d[lane], g[lane], u[lane]) = backward_one(d[lane], g[lane], u[lane]);
                    }
                    (*dy, *gate, *up) = (d, g, u);
                }
                for ((dy, gate), up) in dy_rest.iter_mut().zip(gate_rest).zip(up_rest) {
                    (*dy, *gate, *up) = backward_one(*dy, *gate, *up);
                }
            }
        },
    );
}

/// From `dy`, gate and up to the forward result and the gradients of gate and up.
#[inline(always)]
fn backward_one(dy: f32, gate: f32, up: f32) -> (f32, f32, f32) {
    let sigmoid = 1.0 / (1.0 + exp(-gate));
    let silu = gate * sigmoid;
    (
        silu * up,
        dy * up * (sigmoid + silu * (1.0 - sigmoid)),
        dy * silu,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_gradient, noise};

    #[test]
    fn gradients_agree_with_finite_differences() {
        const WIDTH: usize = 19;
        let (gate_up, dy) = (noise(3 * 2 * WIDTH, 1), noise(3 * WIDTH, 2));
        let run = |gate_up: &[f32]| {
            let mut y = vec![0.0; 3 * WIDTH];
            forward(gate_up, WIDTH, &mut y);
            y
        };
        let (mut gradient, mut y) = (gate_up.clone(), dy.clone());
        backward(&mut gradient, WIDTH, &mut y);
        for (recomputed, y) in y.iter().zip(run(&gate_up)) {
            assert!((recomputed - y).abs() < 1e-6);
        }
        assert_gradient(&gate_up, &gradient, |gate_up| {
            run(gate_up)
                .iter()
                .zip(&dy)
                .map(|(y, c)| f64::from(y * c))
                .sum()
        });
    }
}
