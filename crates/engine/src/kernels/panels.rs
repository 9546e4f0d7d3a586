//! Copies of matrices in the orders that the product reads fastest.

use super::gemm::{PANEL, STRIP};
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
