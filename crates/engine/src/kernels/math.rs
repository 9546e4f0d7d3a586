//! Scalar functions and reductions written so that they vectorise, in a fixed order.

use pulp::{Simd, WithSimd};

use super::dispatch::dispatch;

/// Runs a loop compiled for the widest vectors that this CPU has.
#[inline(always)]
pub(crate) fn vectorised<R, F: FnOnce() -> R>(work: F) -> R {
    struct Run<F>(F);
    impl<R, F: FnOnce() -> R> WithSimd for Run<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    dispatch(Run(work))
}

/// `e^x` to 2 ulp for `x` in -87..=88; arguments outside give the value at the bound, NaN gives NaN.
///
/// Splits `x = n ln 2 + r` (Cody and Waite) and evaluates a polynomial of degree 6 in `r`.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    /// Adding it rounds to an integer, which then sits in the low mantissa bits.
    const ROUNDER: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Written out because `f32::clamp` and `f32::max` differ in how they treat NaN.
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let tail = 0.166_666_55 + r * (0.041_665_795 + r * (0.008_333_452 + r * 0.001_388_876));
    let polynomial = 1.0 + r * (1.0 + r * (0.5 + r * tail));
    f32::from_bits(polynomial.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// Elements that loops treat as one block: the widest register.
pub(crate) const LANES: usize = 16;

/// Σ a[i]·b[i] over equally long slices: 16 running sums, then their sum.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    fold(sums) + rest
}

/// Σ a[i]: 16 running sums, then their sum.
#[inline(always)]
pub(crate) fn sum(a: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (blocks, rest) = a.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            sums[lane] += block[lane];
        }
    }
    fold(sums) + rest.iter().sum::<f32>()
}

/// The largest element; minus infinity for none. NaN elements are passed over.
#[inline(always)]
pub(crate) fn max(a: &[f32]) -> f32 {
    let mut tops = [f32::NEG_INFINITY; LANES];
    let (blocks, rest) = a.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            tops[lane] = if block[lane] > tops[lane] {
                block[lane]
            } else {
                tops[lane]
            };
        }
    }
    tops.iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |top, &value| top.max(value))
}

/// Replaces each element by `e^(element - shift)` and returns the sum of the results.
#[inline(always)]
pub(crate) fn exp_sum(a: &mut [f32], shift: f32) -> f32 {
    for value in a.iter_mut() {
        *value = exp(*value - shift);
    }
    sum(a)
}

#[inline(always)]
fn fold(sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    let mut sums = sums;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_over_its_range() {
        let worst = (-8700..=8800)
            .map(|hundredths| hundredths as f32 / 100.0)
            .map(|x| (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs())
            .fold(0.0, f64::max);
        assert!(worst < 3e-7, "relative error {worst}");
        assert!(exp(f32::NAN).is_nan() && exp(1e30) < f32::INFINITY);
        assert!(exp(-1e30) > 0.0 && exp(-1e30) < 2e-38);
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn reductions_agree_with_their_definition() {
        let a: Vec<f32> = (0..53).map(|i| (i as f32 * 0.7).sin()).collect();
        let expected: f32 = a.iter().sum();
        assert!((sum(&a) - expected).abs() < 1e-5);
        let expected: f32 = a.iter().map(|x| x * x).sum();
        assert!((dot(&a, &a) - expected).abs() < 1e-5);
        assert_eq!(max(&a), a.iter().copied().fold(f32::MIN, f32::max));
    }
}
