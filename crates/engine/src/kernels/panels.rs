//! Copies of matrices in the orders that the product reads fastest.

use super::{
    bf16::pair,
    gemm::{PANEL, STRIP},
    math::vectorised,
};
use crate::buffer::Buffer;

/// Packs `data[steps, columns]` (rows `stride` apart) as a right operand: panels of [`PANEL`]
/// columns, each `[steps, PANEL]`, surplus columns zero.
pub(crate) fn pack_rows(
    data: &[f32],
    steps: usize,
    columns: usize,
    stride: usize,
    packed: &mut Buffer,
) {
    let packed = packed.sized(columns.div_ceil(PANEL) * PANEL * steps);
    for (panel, packed) in packed.chunks_exact_mut((PANEL * steps).max(1)).enumerate() {
        let first = panel * PANEL;
        let used = PANEL.min(columns - first);
        for (step, packed) in packed.chunks_exact_mut(PANEL).enumerate() {
            let from = &data[step * stride + first..][..used];
            if let Some(whole) = from.first_chunk::<PANEL>() {
                packed.copy_from_slice(whole);
            } else {
                packed[..used].copy_from_slice(from);
                packed[used..].fill(0.0);
            }
        }
    }
}

/// Packs the transpose of `data[columns, steps]` (rows `stride` apart) as a right operand.
pub(crate) fn pack_transposed(
    data: &[f32],
    columns: usize,
    steps: usize,
    stride: usize,
    packed: &mut Buffer,
) {
    let packed = packed.sized(columns.div_ceil(PANEL) * PANEL * steps);
    for (panel, packed) in packed.chunks_exact_mut((PANEL * steps).max(1)).enumerate() {
        let first = panel * PANEL;
        let used = PANEL.min(columns - first);
        if used < PANEL {
            packed.fill(0.0);
        }
        for column in 0..used {
            let from = &data[(first + column) * stride..][..steps];
            for (step, &value) in from.iter().enumerate() {
                packed[step * PANEL + column] = value;
            }
        }
    }
}

/// Packs the transpose of `data[steps, rows]` (rows `stride` apart) as a left operand: strips of
/// [`STRIP`] rows, each `[steps, STRIP]`; surplus rows of the last strip are never read.
pub(crate) fn strips(data: &[f32], steps: usize, rows: usize, stride: usize, packed: &mut Buffer) {
    let packed = packed.sized(rows.div_ceil(STRIP) * STRIP * steps);
    for (strip, packed) in packed.chunks_exact_mut((STRIP * steps).max(1)).enumerate() {
        let first = strip * STRIP;
        let used = STRIP.min(rows - first);
        for (step, packed) in packed.chunks_exact_mut(STRIP).enumerate() {
            let from = &data[step * stride + first..];
            if let Some(whole) = from.first_chunk::<STRIP>().filter(|_| used == STRIP) {
                packed.copy_from_slice(whole);
            } else {
                packed[..used].copy_from_slice(&from[..used]);
            }
        }
    }
}

/// [`pack_rows`] as pairs of bf16 numbers: a word for every two steps, the last with a zero where the
/// number of steps is odd.
pub(crate) fn pack_row_pairs(
    data: &[f32],
    steps: usize,
    columns: usize,
    stride: usize,
    packed: &mut Buffer,
) {
    pair_up::<PANEL>(data, steps, columns, stride, packed);
}

/// [`strips`] as pairs of bf16 numbers.
pub(crate) fn strip_pairs(
    data: &[f32],
    steps: usize,
    rows: usize,
    stride: usize,
    packed: &mut Buffer,
) {
    pair_up::<STRIP>(data, steps, rows, stride, packed);
}

/// Blocks of `WIDTH` columns, each `[pairs of steps, WIDTH]`; surplus columns are zero.
fn pair_up<const WIDTH: usize>(
    data: &[f32],
    steps: usize,
    columns: usize,
    stride: usize,
    packed: &mut Buffer,
) {
    let pairs = steps.div_ceil(2);
    let packed = packed.sized(columns.div_ceil(WIDTH) * WIDTH * pairs);
    vectorised(
        #[inline(always)]
        || {
            for (block, packed) in packed.chunks_exact_mut((WIDTH * pairs).max(1)).enumerate() {
                let first = block * WIDTH;
                let used = WIDTH.min(columns - first);
                for (step, words) in packed.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
                    let (mut earlier, mut later) = ([0.0; WIDTH], [0.0; WIDTH]);
                    let row = |step: usize| &data[step * stride + first..][..used];
                    copy_into(row(2 * step), &mut earlier);
                    if 2 * step + 1 < steps {
                        copy_into(row(2 * step + 1), &mut later);
                    }
                    for lane in 0..WIDTH {
                        words[lane] = pair(earlier[lane], later[lane]);
                    }
                }
            }
        },
    );
}

#[inline(always)]
fn copy_into<const WIDTH: usize>(from: &[f32], to: &mut [f32; WIDTH]) {
    match from.first_chunk::<WIDTH>() {
        Some(whole) => *to = *whole,
        None => to[..from.len()].copy_from_slice(from),
    }
}

/// [`pack_transposed`] as pairs of bf16 numbers.
pub(crate) fn pack_transposed_pairs(
    data: &[f32],
    columns: usize,
    steps: usize,
    stride: usize,
    packed: &mut Buffer,
) {
    let pairs = steps.div_ceil(2);
    let packed = packed.sized(columns.div_ceil(PANEL) * PANEL * pairs);
    for (panel, packed) in packed.chunks_exact_mut((PANEL * pairs).max(1)).enumerate() {
        let first = panel * PANEL;
        let used = PANEL.min(columns - first);
        if used < PANEL {
            packed.fill(0.0);
        }
        for column in 0..used {
            let from = &data[(first + column) * stride..][..steps];
            for (step, both) in from.chunks(2).enumerate() {
                let later = both.get(1).copied().unwrap_or(0.0);
                packed[step * PANEL + column] = pair(both[0], later);
            }
        }
    }
}
