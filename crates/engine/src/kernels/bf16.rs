//! Operands of 16 bits: pairs of bf16 numbers, multiplied exactly and summed in f32.
//!
//! One word of an operand holds two neighbouring steps of a product, the earlier in its low half.

use pulp::Simd;

use super::math::vectorised;
use crate::buffer::Buffer;

/// The nearest bf16 number, ties to even; NaN stays NaN.
#[inline(always)]
pub(crate) fn narrow(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        bits >> 16 | 0x40
    } else {
        rounded
    }
}

/// The f32 number of the same value.
#[inline(always)]
pub(crate) fn widen(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

/// The word of two neighbouring steps.
#[inline(always)]
pub(crate) fn pair(earlier: f32, later: f32) -> f32 {
    f32::from_bits(narrow(earlier) | narrow(later) << 16)
}

/// Rounds every element to bf16.
pub(crate) fn round(values: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            values
                .iter_mut()
                .for_each(|value| *value = widen(narrow(*value)))
        },
    );
}

/// Rows of `steps` floats, one after the other, as rows of words; an odd step gets a zero beside it.
pub(crate) fn rows(data: &[f32], steps: usize, words: &mut Buffer) {
    let words = words.sized(data.len() / steps * steps.div_ceil(2));
    vectorised(
        #[inline(always)]
        || {
            if steps.is_multiple_of(2) {
                for (word, [earlier, later]) in words.iter_mut().zip(data.as_chunks::<2>().0) {
                    *word = pair(*earlier, *later);
                }
                return;
            }
            let rows = words.chunks_exact_mut(steps.div_ceil(2));
            for (words, row) in rows.zip(data.chunks_exact(steps)) {
                for (word, pairs) in words.iter_mut().zip(row.chunks(2)) {
                    *word = pair(pairs[0], pairs.get(1).copied().unwrap_or(0.0));
                }
            }
        },
    );
}

/// How the word of a left operand and the words of a right operand are multiplied and added to sums.
pub(crate) trait Products {
    fn add<S: Simd>(simd: S, left: S::f32s, right: S::f32s, sum: S::f32s) -> S::f32s;
}

/// One f32 step a word.
pub(crate) struct Singles;

impl Products for Singles {
    #[inline(always)]
    fn add<S: Simd>(simd: S, left: S::f32s, right: S::f32s, sum: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(left, right, sum)
    }
}

/// Two bf16 steps a word, widened first. The products are exact; the later step is added first, as the
/// instruction does.
pub(crate) struct Widened;

impl Products for Widened {
    #[inline(always)]
    fn add<S: Simd>(simd: S, left: S::f32s, right: S::f32s, sum: S::f32s) -> S::f32s {
        let later = |words: S::f32s| {
            let bits = simd.transmute_u32s_f32s(words);
            simd.transmute_f32s_u32s(simd.and_u32s(bits, simd.splat_u32s(0xffff_0000)))
        };
        let earlier = |words: S::f32s| {
            let bits = simd.transmute_u32s_f32s(words);
            let shifted = simd.wrapping_dyn_shl_u32s(bits, simd.splat_u32s(16));
            simd.transmute_f32s_u32s(shifted)
        };
        let sum = simd.mul_add_e_f32s(later(left), later(right), sum);
        simd.mul_add_e_f32s(earlier(left), earlier(right), sum)
    }
}

/// Two bf16 steps a word, by the instruction made for it, which takes numbers too small for a full
/// mantissa (below 1e-38) as zero.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Native;

#[cfg(target_arch = "x86_64")]
impl Products for Native {
    #[inline(always)]
    fn add<S: Simd>(_: S, left: S::f32s, right: S::f32s, sum: S::f32s) -> S::f32s {
        use std::arch::x86_64::{__m512, __m512bh, _mm512_dpbf16_ps};
        assert!(size_of::<S::f32s>() == size_of::<__m512>());
        // SAFETY: both types are 512 bits of plain data, and only `gemm::multiply_pairs` uses this type,
        // after it has asked for the instruction.
        unsafe {
            let words = |words: S::f32s| std::mem::transmute_copy::<S::f32s, __m512bh>(&words);
            let sum = std::mem::transmute_copy::<S::f32s, __m512>(&sum);
            let sum = _mm512_dpbf16_ps(sum, words(left), words(right));
            std::mem::transmute_copy::<__m512, S::f32s>(&sum)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_rounds_to_the_nearest_as_the_half_crate_does() {
        let odd = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-40];
        let many = (0..100_000_u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b1)));
        for value in odd.into_iter().chain(many) {
            let expected = half::bf16::from_f32(value);
            if value.is_nan() {
                assert!(widen(narrow(value)).is_nan());
            } else {
                assert_eq!(narrow(value), u32::from(expected.to_bits()), "{value:e}");
            }
        }
    }
}
