//! Shared by the unit tests: noise and the finite-difference check.

use rand_chacha::rand_core::Rng;

/// Reproducible values in -1..1.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = record::Seed(seed).rng();
    (0..len)
        .map(|_| rng.next_u32() as f32 / 2_147_483_648.0 - 1.0)
        .collect()
}

/// Compares a gradient with central differences of `loss` at every element of `at`.
pub(crate) fn assert_gradient(at: &[f32], gradient: &[f32], loss: impl Fn(&[f32]) -> f64) {
    const STEP: f32 = 1e-2;
    assert_eq!(at.len(), gradient.len());
    let mut moved = at.to_vec();
    let largest = gradient.iter().fold(0.0_f32, |top, g| top.max(g.abs()));
    for (index, (&value, &found)) in at.iter().zip(gradient).enumerate() {
        moved[index] = value + STEP;
        let above = loss(&moved);
        moved[index] = value - STEP;
        let below = loss(&moved);
        moved[index] = value;
        let expected = (above - below) / f64::from(2.0 * STEP);
        let tolerance = 2e-3 * f64::from(largest.max(1.0));
        assert!(
            (f64::from(found) - expected).abs() < tolerance,
            "element {index}: gradient {found}, difference quotient {expected}"
        );
    }
}
