//! AdamW (Loshchilov and Hutter, 2019) over one stretch of parameters, one fused pass.

use super::math::vectorised;

/// The scalars of one update, bias corrections and clipping already worked out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Update {
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    pub(crate) epsilon: f32,
    /// `learning rate / (1 - beta1^step)`
    pub(crate) rate: f32,
    /// `1 / sqrt(1 - beta2^step)`
    pub(crate) root_correction: f32,
    /// `1 - learning rate · weight decay`; 1 where no decay applies.
    pub(crate) keep: f32,
    /// What gradients are multiplied with first: the clipping factor.
    pub(crate) gradient_factor: f32,
}

/// Clears the gradients on the way.
///
/// `m = β₁m + (1-β₁)g`, `v = β₂v + (1-β₂)g²`, `w = keep·w - rate·m / (sqrt(v)·root_correction + ε)`.
pub(crate) fn update(
    update: Update,
    gradients: &mut [f32],
    weights: &mut [f32],
    first_moments: &mut [f32],
    second_moments: &mut [f32],
) {
    vectorised(
        #[inline(always)]
        || {
            for (((gradient, w), m), v) in gradients
                .iter_mut()
                .zip(weights)
                .zip(first_moments)
                .zip(second_moments)
            {
                let g = *gradient * update.gradient_factor;
                *gradient = 0.0;
                *m = update.beta1 * *m + (1.0 - update.beta1) * g;
                *v = update.beta2 * *v + (1.0 - update.beta2) * (g * g);
                let root = v.sqrt() * update.root_correction;
                *w = update.keep * *w - update.rate * *m / (root + update.epsilon);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_update() {
        let (rate, decay, beta1, beta2, epsilon) = (0.1_f64, 0.01_f64, 0.9_f64, 0.999_f64, 1e-8);
        let (mut w, mut m, mut v) = (vec![1.0_f32; 20], vec![0.0; 20], vec![0.0; 20]);
        let (mut ew, mut em, mut ev) = (1.0_f64, 0.0_f64, 0.0_f64);
        for step in 1..=5 {
            let g = 0.3 * f64::from(step) - 0.7;
            em = beta1 * em + (1.0 - beta1) * g;
            ev = beta2 * ev + (1.0 - beta2) * g * g;
            let corrected = (em / (1.0 - beta1.powi(step)), ev / (1.0 - beta2.powi(step)));
            ew = ew * (1.0 - rate * decay) - rate * corrected.0 / (corrected.1.sqrt() + epsilon);
            let scalars = Update {
                beta1: beta1 as f32,
                beta2: beta2 as f32,
                epsilon: epsilon as f32,
                rate: (rate / (1.0 - beta1.powi(step))) as f32,
                root_correction: (1.0 / (1.0 - beta2.powi(step)).sqrt()) as f32,
                keep: (1.0 - rate * decay) as f32,
                gradient_factor: 0.5,
            };
            update(scalars, &mut [2.0 * g as f32; 20], &mut w, &mut m, &mut v);
        }
        assert!(
            w.iter().all(|&w| (f64::from(w) - ew).abs() < 1e-5),
            "{} is not {ew}",
            w[0]
        );
    }
}
