//! The one matrix product under every kernel: small tiles, one fixed chain of additions per element.
//!
//! `out[i, j] = (left[i, 0]·right[0, j] + left[i, 1]·right[1, j] + …) + start[i, j]`, always in this
//! order, one fused multiply-add per product. An element therefore does not depend on how many rows
//! are computed with it, on the tile that it falls into or on the number of threads, which is what
//! makes sampling independent of batch composition. (On a CPU without fused multiply-add the terms
//! are rounded twice; the order is the same.)

use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

#[cfg(target_arch = "x86_64")]
use super::dispatch::has_bf16;
use super::{
    bf16::{Products, Singles, Widened},
    dispatch::dispatch,
};

/// Columns that lie side by side in the right operand; two AVX-512 registers.
pub(crate) const PANEL: usize = 32;

/// Rows that lie side by side in strips of the left operand; the tallest tile.
pub(crate) const STRIP: usize = 12;

/// Left operand `[rows, steps]`: element `(i, p)` lies at
/// `(i / STRIP) · strip_stride + (i % STRIP) · row_stride + p · step_stride`.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) strip_stride: usize,
    pub(crate) row_stride: usize,
    pub(crate) step_stride: usize,
}

/// Right operand `[steps, columns]`: element `(p, j)` lies at
/// `(j / PANEL) · panel_stride + p · PANEL + j % PANEL`. The last panel is full width; what its
/// surplus columns hold does not matter.
#[derive(Clone, Copy)]
pub(crate) struct Right<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) panel_stride: usize,
}

/// What is added to the sum of products of each element.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    Zero,
    /// What the output holds already, added last.
    Output,
    /// What the output holds already, added first: two products one after the other then give the
    /// same bytes as one over the steps of both.
    Chain,
    /// One value per column.
    Row(&'a [f32]),
}

/// Sizes of one product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) steps: usize,
}

impl<'a> Left<'a> {
    /// A matrix whose rows are contiguous and `row_stride` floats apart.
    pub(crate) fn rows(data: &'a [f32], row_stride: usize) -> Self {
        Self {
            data,
            strip_stride: STRIP * row_stride,
            row_stride,
            step_stride: 1,
        }
    }

    /// The transpose of a matrix whose rows are contiguous and `row_stride` floats apart.
    pub(crate) fn columns(data: &'a [f32], row_stride: usize) -> Self {
        Self {
            data,
            strip_stride: STRIP,
            row_stride: 1,
            step_stride: row_stride,
        }
    }

    fn row_start(self, row: usize) -> usize {
        row / STRIP * self.strip_stride + row % STRIP * self.row_stride
    }
}

/// Computes `out[rows, columns]`, whose rows are `out_stride` floats apart.
pub(crate) fn multiply(
    shape: Shape,
    left: Left,
    right: Right,
    start: Start,
    out: &mut [f32],
    out_stride: usize,
) {
    if check(shape, left, right, start, out.len(), out_stride) {
        dispatch(Multiply::<Singles>::new(
            shape, left, right, start, out, out_stride,
        ));
    }
}

/// [`multiply`] for operands whose words are pairs of bf16 numbers; steps are counted in pairs.
pub(crate) fn multiply_pairs(
    shape: Shape,
    left: Left,
    right: Right,
    start: Start,
    out: &mut [f32],
    out_stride: usize,
) {
    if !check(shape, left, right, start, out.len(), out_stride) {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if has_bf16()
        && let Some(simd) = pulp::x86::V4::try_new()
    {
        let work = Multiply::new(shape, left, right, start, out, out_stride);
        // SAFETY: the CPU was asked for all of the instructions just now.
        unsafe { native(simd, work) };
        return;
    }
    dispatch(Multiply::<Widened>::new(
        shape, left, right, start, out, out_stride,
    ));
}

/// # Safety
/// The CPU has AVX-512 with bf16.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512bf16")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,fxsr")]
unsafe fn native(simd: pulp::x86::V4, work: Multiply<super::bf16::Native>) {
    work.with_simd(simd);
}

/// Whether there is anything to compute.
fn check(
    shape: Shape,
    left: Left,
    right: Right,
    start: Start,
    out_len: usize,
    out_stride: usize,
) -> bool {
    let Shape {
        rows,
        columns,
        steps,
    } = shape;
    if rows == 0 || columns == 0 {
        return false;
    }
    assert!(columns <= out_stride || rows == 1, "output rows overlap");
    assert!(
        (rows - 1) * out_stride + columns <= out_len,
        "output too short"
    );
    if let Start::Row(values) = start {
        assert!(values.len() >= columns, "start row too short");
    }
    if steps > 0 {
        // The farthest row is the last one, or the last of the strip before.
        let before = (rows - 1) / STRIP * STRIP;
        let last = left
            .row_start(rows - 1)
            .max(left.row_start(before.saturating_sub(1)));
        let last_left = last + (steps - 1) * left.step_stride;
        assert!(last_left < left.data.len(), "left operand too short");
        let last_panel = (columns - 1) / PANEL * right.panel_stride;
        assert!(
            last_panel + steps * PANEL <= right.data.len(),
            "right operand too short"
        );
    }
    true
}

struct Multiply<'a, P> {
    shape: Shape,
    left: Left<'a>,
    right: Right<'a>,
    start: Start<'a>,
    out: &'a mut [f32],
    out_stride: usize,
    products: PhantomData<P>,
}

impl<'a, P> Multiply<'a, P> {
    fn new(
        shape: Shape,
        left: Left<'a>,
        right: Right<'a>,
        start: Start<'a>,
        out: &'a mut [f32],
        out_stride: usize,
    ) -> Self {
        Self {
            shape,
            left,
            right,
            start,
            out,
            out_stride,
            products: PhantomData,
        }
    }
}

impl<P: Products> WithSimd for Multiply<'_, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Tall enough to hide the latency of the multiply-add, small enough for the registers:
        // 12 x 2 of 32 with AVX-512, 6 x 2 of 16 otherwise.
        if S::F32_LANES >= 16 {
            self.panels::<S, 12>(simd);
        } else {
            self.panels::<S, 6>(simd);
        }
    }
}

impl<P: Products> Multiply<'_, P> {
    #[inline(always)]
    fn panels<S: Simd, const TALL: usize>(mut self, simd: S) {
        let Shape { rows, columns, .. } = self.shape;
        let width = 2 * S::F32_LANES;
        let mut column = 0;
        while column < columns {
            let used = width.min(columns - column);
            let mut row = 0;
            while row + TALL <= rows {
                self.tile::<S, TALL>(simd, row, column, used);
                row += TALL;
            }
            match rows - row {
                1 => self.tile::<S, 1>(simd, row, column, used),
                2 => self.tile::<S, 2>(simd, row, column, used),
                3 => self.tile::<S, 3>(simd, row, column, used),
                4 => self.tile::<S, 4>(simd, row, column, used),
                5 => self.tile::<S, 5>(simd, row, column, used),
                6 => self.tile::<S, 6>(simd, row, column, used),
                7 => self.tile::<S, 7>(simd, row, column, used),
                8 => self.tile::<S, 8>(simd, row, column, used),
                9 => self.tile::<S, 9>(simd, row, column, used),
                10 => self.tile::<S, 10>(simd, row, column, used),
                11 => self.tile::<S, 11>(simd, row, column, used),
                _ => {}
            }
            column += width;
        }
    }

    /// `ROWS` rows from `row` (all in one strip) by `used` of the columns from `column` on (all in
    /// one panel).
    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
        used: usize,
    ) {
        let lanes = S::F32_LANES;
        let width = 2 * lanes;
        let left_start = self.left.row_start(row);
        let right_start = column / PANEL * self.right.panel_stride + column % PANEL;
        for i in 0..ROWS {
            prefetch(&self.out[(row + i) * self.out_stride + column..]);
        }
        let mut sums = [[simd.splat_f32s(0.0); 2]; ROWS];
        if matches!(self.start, Start::Chain) {
            if used == width {
                let out = &self.out[row * self.out_stride + column..];
                for (i, sums) in sums.iter_mut().enumerate() {
                    *sums = load_pair::<S>(&out[i * self.out_stride..][..width]);
                }
            } else {
                let wide = self.load_edge::<ROWS>(row, column, used);
                for (sums, wide) in sums.iter_mut().zip(&wide) {
                    *sums = load_pair::<S>(&wide[..width]);
                }
            }
        }
        // SAFETY: `check` has found the last element of both operands inside, and addresses grow
        // with row, step and column.
        unsafe {
            let mut left = self.left.data.as_ptr().wrapping_add(left_start);
            let mut right = self.right.data.as_ptr().wrapping_add(right_start);
            for _ in 0..self.shape.steps {
                let columns = [load::<S>(right), load::<S>(right.add(lanes))];
                for (i, sums) in sums.iter_mut().enumerate() {
                    let factor = simd.splat_f32s(*left.add(i * self.left.row_stride));
                    sums[0] = P::add(simd, factor, columns[0], sums[0]);
                    sums[1] = P::add(simd, factor, columns[1], sums[1]);
                }
                left = left.wrapping_add(self.left.step_stride);
                right = right.wrapping_add(PANEL);
            }
        }
        // One short loop per case: a longer body is not unrolled, which would put the sums in memory.
        if used < width {
            let mut wide = [[0.0; PANEL]; ROWS];
            for (sums, wide) in sums.iter().zip(&mut wide) {
                store_pair::<S>(*sums, &mut wide[..width]);
            }
            self.store_edge(&wide, row, column, used);
            return;
        }
        let out = &mut self.out[row * self.out_stride + column..];
        match self.start {
            Start::Zero | Start::Chain => {
                for (i, sums) in sums.iter().enumerate() {
                    store_pair::<S>(*sums, &mut out[i * self.out_stride..][..width]);
                }
            }
            Start::Output => {
                for (i, sums) in sums.iter().enumerate() {
                    let out = &mut out[i * self.out_stride..][..width];
                    let start = load_pair::<S>(out);
                    let sums = add_pair(simd, *sums, start);
                    store_pair::<S>(sums, out);
                }
            }
            Start::Row(values) => {
                let start = load_pair::<S>(&values[column..column + width]);
                for (i, sums) in sums.iter().enumerate() {
                    let sums = add_pair(simd, *sums, start);
                    store_pair::<S>(sums, &mut out[i * self.out_stride..][..width]);
                }
            }
        }
    }

    /// The first `used` columns of a tile of the output, zeros behind them.
    #[inline(always)]
    fn load_edge<const ROWS: usize>(
        &self,
        row: usize,
        column: usize,
        used: usize,
    ) -> [[f32; PANEL]; ROWS] {
        let mut wide = [[0.0; PANEL]; ROWS];
        for (i, wide) in wide.iter_mut().enumerate() {
            let from = &self.out[(row + i) * self.out_stride + column..][..used];
            wide[..used].copy_from_slice(from);
        }
        wide
    }

    /// The first `used` columns of a tile.
    #[inline(always)]
    fn store_edge(&mut self, wide: &[[f32; PANEL]], row: usize, column: usize, used: usize) {
        for (i, sums) in wide.iter().enumerate() {
            let out = &mut self.out[(row + i) * self.out_stride + column..][..used];
            match self.start {
                Start::Zero | Start::Chain => out.copy_from_slice(&sums[..used]),
                Start::Output => out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum),
                Start::Row(values) => {
                    for ((out, sum), start) in out.iter_mut().zip(sums).zip(&values[column..]) {
                        *out = sum + start;
                    }
                }
            }
        }
    }
}

/// Asks for the memory that a tile is written to while its sums are made: rows far apart in a large output
/// would be waited for one by one.
#[inline(always)]
fn prefetch(out: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first = out.as_ptr().cast::<i8>();
        _mm_prefetch::<_MM_HINT_T0>(first);
        _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(64));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = out;
}

/// Two registers from as many floats.
#[inline(always)]
fn load_pair<S: Simd>(from: &[f32]) -> [S::f32s; 2] {
    assert!(from.len() == 2 * S::F32_LANES);
    // SAFETY: just checked.
    unsafe {
        [
            load::<S>(from.as_ptr()),
            load::<S>(from.as_ptr().add(S::F32_LANES)),
        ]
    }
}

/// Written out: the compiler calls the closure of `array::map`, and what a call is given lies in memory.
#[inline(always)]
fn add_pair<S: Simd>(simd: S, one: [S::f32s; 2], other: [S::f32s; 2]) -> [S::f32s; 2] {
    [
        simd.add_f32s(one[0], other[0]),
        simd.add_f32s(one[1], other[1]),
    ]
}

#[inline(always)]
fn store_pair<S: Simd>(values: [S::f32s; 2], to: &mut [f32]) {
    assert!(to.len() == 2 * S::F32_LANES);
    // SAFETY: just checked.
    unsafe {
        store::<S>(to.as_mut_ptr(), values[0]);
        store::<S>(to.as_mut_ptr().add(S::F32_LANES), values[1]);
    }
}

/// # Safety
/// `from` is readable for `S::F32_LANES` floats.
#[inline(always)]
unsafe fn load<S: Simd>(from: *const f32) -> S::f32s {
    // SAFETY: by contract; `S::f32s` is plain data.
    unsafe { from.cast::<S::f32s>().read_unaligned() }
}

/// # Safety
/// `to` is writable for `S::F32_LANES` floats.
#[inline(always)]
unsafe fn store<S: Simd>(to: *mut f32, values: S::f32s) {
    // SAFETY: by contract; `S::f32s` is plain data.
    unsafe { to.cast::<S::f32s>().write_unaligned(values) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;
    use crate::{
        buffer::Buffer,
        kernels::{
            bf16,
            dispatch::{Level, at_each_level},
            panels,
        },
    };
    use proptest::prelude::*;

    fn pack(right: &[f32], steps: usize, columns: usize) -> Buffer {
        let mut packed = Buffer::default();
        panels::pack_rows(right, steps, columns, columns, &mut packed);
        packed
    }

    fn reference(shape: Shape, left: &[f32], right: &[f32], start: &[f32]) -> Vec<f64> {
        let Shape {
            rows,
            columns,
            steps,
        } = shape;
        let mut out: Vec<f64> = start.iter().map(|&value| f64::from(value)).collect();
        for i in 0..rows {
            for j in 0..columns {
                for p in 0..steps {
                    out[i * columns + j] +=
                        f64::from(left[i * steps + p]) * f64::from(right[p * columns + j]);
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition_and_rows_do_not_influence_each_other(
            rows in 1_usize..40, columns in 1_usize..80, steps in 1_usize..50,
        ) {
            let shape = Shape { rows, columns, steps };
            let left = noise(rows * steps, 1);
            let right = noise(steps * columns, 2);
            let start = noise(rows * columns, 3);
            let packed = pack(&right, steps, columns);
            let packed = Right { data: &packed, panel_stride: steps * PANEL };
            let mut out = start.clone();
            multiply(shape, Left::rows(&left, steps), packed, Start::Output, &mut out, columns);
            for (found, expected) in out.iter().zip(reference(shape, &left, &right, &start)) {
                prop_assert!((f64::from(*found) - expected).abs() < 1e-4);
            }
            for row in 0..rows {
                let mut alone = start[row * columns..(row + 1) * columns].to_vec();
                let left = Left::rows(&left[row * steps..], steps);
                let shape = Shape { rows: 1, ..shape };
                multiply(shape, left, packed, Start::Output, &mut alone, columns);
                prop_assert_eq!(&alone[..], &out[row * columns..(row + 1) * columns]);
            }
        }

        #[test]
        fn reads_the_left_operand_transposed_or_in_strips(
            rows in 1_usize..30, columns in 1_usize..40, steps in 1_usize..20,
        ) {
            let shape = Shape { rows, columns, steps };
            let transposed = noise(steps * rows, 4);
            let left: Vec<f32> =
                (0..rows * steps).map(|at| transposed[at % steps * rows + at / steps]).collect();
            let right = noise(steps * columns, 5);
            let packed = pack(&right, steps, columns);
            let packed = Right { data: &packed, panel_stride: steps * PANEL };
            let run = |left| {
                let mut out = vec![0.0; rows * columns];
                multiply(shape, left, packed, Start::Zero, &mut out, columns);
                out
            };
            let natural = run(Left::rows(&left, steps));
            prop_assert_eq!(&natural, &run(Left::columns(&transposed, rows)));
            let mut strips = Buffer::default();
            panels::strips(&transposed, steps, rows, rows, &mut strips);
            let strips = Left {
                data: &strips, strip_stride: STRIP * steps, row_stride: 1, step_stride: STRIP,
            };
            prop_assert_eq!(&natural, &run(strips));
        }
    }

    #[test]
    fn a_chain_of_products_has_the_bytes_of_one() {
        for (rows, columns) in [(13, 70), (1, 32), (2, 5)] {
            let (left, right) = (noise(rows * 9, 1), noise(9 * columns, 2));
            let run = |start, steps: std::ops::Range<usize>, out: &mut [f32]| {
                let packed = pack(&right[steps.start * columns..], steps.len(), columns);
                let packed = Right {
                    data: &packed,
                    panel_stride: steps.len() * PANEL,
                };
                let shape = Shape {
                    rows,
                    columns,
                    steps: steps.len(),
                };
                multiply(
                    shape,
                    Left::rows(&left[steps.start..], 9),
                    packed,
                    start,
                    out,
                    columns,
                );
            };
            let (mut whole, mut parts) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
            run(Start::Zero, 0..9, &mut whole);
            run(Start::Zero, 0..4, &mut parts);
            run(Start::Chain, 4..9, &mut parts);
            assert_eq!(whole, parts);
        }
    }

    /// The tiles of CPUs other than this one: AVX2 where there is no AVX-512, and no vectors at all.
    /// `left[29, 11] · right[11, 75]` plus a row, by the instructions of each level.
    #[test]
    fn every_instruction_set_gives_the_same_products() {
        let shape = Shape {
            rows: 29,
            columns: 75,
            steps: 11,
        };
        let (left, right, bias) = (noise(29 * 11, 1), noise(11 * 75, 2), noise(75, 3));
        let right = pack(&right, 11, 75);
        let right = Right {
            data: &right,
            panel_stride: 11 * PANEL,
        };
        let results = at_each_level(|| {
            let mut out = vec![0.0; 29 * 75];
            let start = Start::Row(&bias);
            multiply(shape, Left::rows(&left, 11), right, start, &mut out, 75);
            out
        });
        compare_levels(&results);
    }

    /// Those with a fused multiply-add are equal; without one each term is rounded twice.
    fn compare_levels(results: &[(Level, Vec<f32>)]) {
        let (_, widest) = results.last().unwrap();
        for (level, out) in results {
            for (found, expected) in out.iter().zip(widest) {
                assert!(
                    (found - expected).abs() < 1e-5,
                    "{level:?}: {found} is not {expected}"
                );
            }
            assert!(*level == Level::Portable || out == widest, "{level:?}");
        }
    }

    /// The same of bf16 pairs, with an odd number of steps, against the product of rounded operands.
    #[test]
    fn every_instruction_set_gives_the_same_products_of_pairs() {
        let shape = Shape {
            rows: 29,
            columns: 75,
            steps: 6,
        };
        let (mut left, mut right, bias) = (noise(29 * 11, 1), noise(11 * 75, 2), noise(75, 3));
        let (mut pairs, mut packed) = (Buffer::default(), Buffer::default());
        bf16::rows(&left, 11, &mut pairs);
        panels::pack_row_pairs(&right, 11, 75, 75, &mut packed);
        let operand = Right {
            data: &packed,
            panel_stride: 6 * PANEL,
        };
        let results = at_each_level(|| {
            let mut out = vec![0.0; 29 * 75];
            let start = Start::Row(&bias);
            multiply_pairs(shape, Left::rows(&pairs, 6), operand, start, &mut out, 75);
            out
        });
        compare_levels(&results);
        bf16::round(&mut left);
        bf16::round(&mut right);
        let steps = Shape { steps: 11, ..shape };
        let start: Vec<f32> = bias.iter().copied().cycle().take(29 * 75).collect();
        let expected = reference(steps, &left, &right, &start);
        for (found, expected) in results[0].1.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5);
        }
    }

    #[test]
    fn starts_from_a_row() {
        let shape = Shape {
            rows: 3,
            columns: 5,
            steps: 0,
        };
        let mut out = [7.0; 15];
        let row = [1.0, 2.0, 3.0, 4.0, 5.0];
        let right = Right {
            data: &[],
            panel_stride: 0,
        };
        multiply(
            shape,
            Left::rows(&[], 0),
            right,
            Start::Row(&row),
            &mut out,
            5,
        );
        assert_eq!(out, [row, row, row].concat()[..]);
    }
}
