//! Causal grouped-query attention with rotary positions over one sequence of fused projections.
//!
//! The input is token-major, `[tokens, queries | keys | values]` as the fused projection leaves it.
//! Queries may be asked for at some positions only (the last layer needs those alone whose next
//! token is scored); keys and values come from every position. Probabilities are recomputed in the
//! backward pass from the kept log-sum of each query (Dao et al., 2022, FlashAttention, section 3).

use std::ops::Range;

use super::{
    gemm::{Left, PANEL, Right, Shape, Start, multiply},
    math::{dot, exp, exp_sum, max, vectorised},
    panels,
    rope::Rope,
};
use crate::{ModelConfig, buffer::Buffer};

/// Queries whose scores are held at once: whole tiles, few enough that keys in the future of a
/// block are mostly skipped.
const BLOCK: usize = 24;

/// How the fused projection is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub(crate) queries: usize,
    pub(crate) key_values: usize,
    pub(crate) dim: usize,
    /// Most recent keys that a query sees, its own among them; `usize::MAX` for all.
    pub(crate) window: usize,
}

impl Heads {
    /// The heads of one layer.
    pub(crate) fn of(config: &ModelConfig, layer: usize) -> Self {
        Self {
            queries: config.n_heads,
            key_values: config.n_kv_heads,
            dim: config.head_dim,
            window: config.window(layer).unwrap_or(usize::MAX),
        }
    }
    /// The first key that a query at `position` sees.
    pub(crate) fn first_key(self, position: usize) -> usize {
        (position + 1).saturating_sub(self.window)
    }
    /// Width of one token of the fused projection.
    pub(crate) fn qkv_width(self) -> usize {
        (self.queries + 2 * self.key_values) * self.dim
    }
    /// Width of one token of the output.
    pub(crate) fn width(self) -> usize {
        self.queries * self.dim
    }
    /// Column of the fused projection where key head `index` begins.
    pub(crate) fn key_column(self, index: usize) -> usize {
        (self.queries + index) * self.dim
    }
    /// Column of the fused projection where value head `index` begins.
    pub(crate) fn value_column(self, index: usize) -> usize {
        (self.queries + self.key_values + index) * self.dim
    }
    /// Query heads that share one key-value head.
    pub(crate) fn group(self) -> usize {
        self.queries / self.key_values
    }
    /// What scores are multiplied with.
    pub(crate) fn scale(self) -> f32 {
        1.0 / (self.dim as f32).sqrt()
    }
}

/// The fused projections of one sequence, `[tokens, qkv width]`, in two parts: what it shares with
/// other sequences, and its own tokens, which come behind.
#[derive(Clone, Copy)]
pub(crate) struct Sequence<'a> {
    pub(crate) shared: &'a [f32],
    pub(crate) own: &'a [f32],
}

impl<'a> Sequence<'a> {
    fn tokens(self, heads: Heads) -> usize {
        (self.shared.len() + self.own.len()) / heads.qkv_width()
    }

    /// One head of every token, by its column in the fused projection.
    fn heads(self, heads: Heads, column: usize) -> impl Iterator<Item = &'a [f32]> {
        let width = heads.qkv_width();
        let tokens = self
            .shared
            .chunks_exact(width)
            .chain(self.own.chunks_exact(width));
        tokens.map(move |qkv| &qkv[column..column + heads.dim])
    }
}

/// Where the gradients of a [`Sequence`] go.
pub(crate) struct SequenceGradient<'a> {
    /// Keys and values only; added to.
    pub(crate) shared: &'a mut [f32],
    /// Overwritten.
    pub(crate) own: &'a mut [f32],
}

/// Working memory of one call, kept between calls.
#[derive(Debug, Default)]
pub(crate) struct AttentionScratch {
    key_rows: Buffer,
    value_rows: Buffer,
    turned: Buffer,
    keys_across: Buffer,
    keys_down: Buffer,
    values_across: Buffer,
    values_down: Buffer,
    query_rows: Buffer,
    queries_down: Buffer,
    outputs_down: Buffer,
    probabilities: Buffer,
    d_scores: Buffer,
    d_queries: Buffer,
    d_keys: Buffer,
    d_values: Buffer,
}

/// Writes the attention output of the queries at `positions` (ascending, counted from the start of
/// the sequence, all among its own tokens).
///
/// `out` is `[positions, heads width]`, `log_sums` is
/// `[positions, heads]`: the logarithm of each query's softmax denominator.
pub(crate) fn forward(
    heads: Heads,
    rope: &Rope,
    sequence: Sequence,
    positions: &[u32],
    out: &mut [f32],
    log_sums: &mut [f32],
    scratch: &mut AttentionScratch,
) {
    let (tokens, dim) = (sequence.tokens(heads), heads.dim);
    if positions.is_empty() {
        return;
    }
    for kv in 0..heads.key_values {
        gather(heads, rope, sequence, kv, scratch);
        panels::pack_transposed(
            &scratch.key_rows,
            tokens,
            dim,
            dim,
            &mut scratch.keys_across,
        );
        panels::pack_rows(
            &scratch.value_rows,
            tokens,
            dim,
            dim,
            &mut scratch.values_down,
        );
        for head in kv * heads.group()..(kv + 1) * heads.group() {
            rotate_queries(
                heads,
                rope,
                sequence,
                head,
                positions,
                &mut scratch.query_rows,
            );
            for first in (0..positions.len()).step_by(BLOCK) {
                let block = &positions[first..positions.len().min(first + BLOCK)];
                let keys = Keys::of(heads, block);
                let stride = block_scores(heads, keys, tokens, block, first, scratch);
                let log_sums = &mut log_sums[first * heads.queries + head..];
                let mut inverses = [0.0_f32; BLOCK];
                softmax_rows(
                    heads,
                    keys,
                    &mut scratch.probabilities,
                    stride,
                    block,
                    &mut inverses,
                    |i, log_sum| log_sums[i * heads.queries] = log_sum,
                );
                let out = &mut out[first * heads.width() + head * heads.dim..];
                multiply(
                    Shape {
                        rows: block.len(),
                        columns: heads.dim,
                        steps: keys.len(),
                    },
                    Left::rows(&scratch.probabilities, stride),
                    Right {
                        data: &scratch.values_down[keys.from * PANEL..],
                        panel_stride: tokens * PANEL,
                    },
                    Start::Zero,
                    out,
                    heads.width(),
                );
                for (out, inverse) in out
                    .chunks_mut(heads.width())
                    .zip(inverses)
                    .take(block.len())
                {
                    out[..heads.dim]
                        .iter_mut()
                        .for_each(|value| *value *= inverse);
                }
            }
        }
    }
}

/// The kept results of [`forward`] and the gradient that reached its output.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'a> {
    pub(crate) out: &'a [f32],
    pub(crate) log_sums: &'a [f32],
    pub(crate) d_out: &'a [f32],
}

/// The gradient of the fused projections.
pub(crate) fn backward(
    heads: Heads,
    rope: &Rope,
    sequence: Sequence,
    positions: &[u32],
    kept: Kept,
    gradient: SequenceGradient,
    scratch: &mut AttentionScratch,
) {
    let (dim, width, qkv_width) = (heads.dim, heads.width(), heads.qkv_width());
    let tokens = sequence.tokens(heads);
    let shared = sequence.shared.len() / qkv_width;
    if positions.is_empty() {
        gradient.own.fill(0.0);
        return;
    }
    if positions.len() < tokens - shared {
        for d_qkv in gradient.own.chunks_exact_mut(qkv_width) {
            d_qkv[..width].fill(0.0);
        }
    }
    for kv in 0..heads.key_values {
        gather(heads, rope, sequence, kv, scratch);
        panels::pack_transposed(
            &scratch.key_rows,
            tokens,
            dim,
            dim,
            &mut scratch.keys_across,
        );
        panels::pack_rows(&scratch.key_rows, tokens, dim, dim, &mut scratch.keys_down);
        panels::pack_transposed(
            &scratch.value_rows,
            tokens,
            dim,
            dim,
            &mut scratch.values_across,
        );
        scratch.d_keys.sized_zeroed(tokens * dim);
        scratch.d_values.sized_zeroed(tokens * dim);
        for head in kv * heads.group()..(kv + 1) * heads.group() {
            rotate_queries(
                heads,
                rope,
                sequence,
                head,
                positions,
                &mut scratch.query_rows,
            );
            for first in (0..positions.len()).step_by(BLOCK) {
                let block = &positions[first..positions.len().min(first + BLOCK)];
                let at = first * width + head * dim;
                let kept = Kept {
                    out: &kept.out[at..],
                    d_out: &kept.d_out[at..],
                    log_sums: &kept.log_sums[first * heads.queries + head..],
                };
                backward_block(heads, tokens, block, first, kept, scratch);
                for (d_query, &position) in scratch.d_queries.chunks_exact(dim).zip(block) {
                    let position = position as usize;
                    let at = (position - shared) * qkv_width + head * dim;
                    let to = &mut gradient.own[at..][..dim];
                    rope.rotate_back(position, heads.scale(), d_query, to);
                }
            }
        }
        let (key_column, value_column) = (heads.key_column(kv), heads.value_column(kv));
        let turned = scratch.turned.sized(dim);
        for (position, d_qkv) in gradient.shared.chunks_exact_mut(qkv_width).enumerate() {
            rope.rotate_back(
                position,
                1.0,
                &scratch.d_keys[position * dim..][..dim],
                turned,
            );
            let d_value = &scratch.d_values[position * dim..][..dim];
            add(&mut d_qkv[key_column..][..dim], turned);
            add(&mut d_qkv[value_column..][..dim], d_value);
        }
        for (position, d_qkv) in (shared..).zip(gradient.own.chunks_exact_mut(qkv_width)) {
            let d_key = &scratch.d_keys[position * dim..][..dim];
            rope.rotate_back(position, 1.0, d_key, &mut d_qkv[key_column..][..dim]);
            d_qkv[value_column..][..dim]
                .copy_from_slice(&scratch.d_values[position * dim..][..dim]);
        }
    }
}

fn add(sums: &mut [f32], values: &[f32]) {
    sums.iter_mut()
        .zip(values)
        .for_each(|(sum, value)| *sum += value);
}

/// One block of queries of one head: leaves the rotated query gradients, without the score scale,
/// in `d_queries` and adds to `d_keys` and `d_values`. `kept` begins at the block and the head.
fn backward_block(
    heads: Heads,
    tokens: usize,
    block: &[u32],
    first: usize,
    kept: Kept,
    scratch: &mut AttentionScratch,
) {
    let (dim, width) = (heads.dim, heads.width());
    let (rows, keys) = (block.len(), Keys::of(heads, block));
    let seen = keys.len();
    let stride = block_scores(heads, keys, tokens, block, first, scratch);
    multiply(
        Shape {
            rows,
            columns: seen.next_multiple_of(PANEL),
            steps: dim,
        },
        Left::rows(kept.d_out, width),
        Right {
            data: &scratch.values_across[keys.from * dim..],
            panel_stride: dim * PANEL,
        },
        Start::Zero,
        scratch.d_scores.sized(rows * stride),
        stride,
    );
    for (i, &position) in block.iter().enumerate() {
        let probabilities = &mut scratch.probabilities[i * stride..][..seen];
        let d_scores = &mut scratch.d_scores[i * stride..][..seen];
        let log_sum = kept.log_sums[i * heads.queries];
        let (out, d_out) = (
            &kept.out[i * width..][..dim],
            &kept.d_out[i * width..][..dim],
        );
        let visible = keys.seen_by(heads, position);
        vectorised(
            #[inline(always)]
            || {
                let mean = dot(out, d_out);
                for (p, d) in probabilities[visible.clone()]
                    .iter_mut()
                    .zip(&mut d_scores[visible.clone()])
                {
                    *p = exp(*p - log_sum);
                    *d = *p * (*d - mean);
                }
            },
        );
        for row in [probabilities, d_scores] {
            row[..visible.start].fill(0.0);
            row[visible.end..].fill(0.0);
        }
    }
    panels::pack_rows(kept.d_out, rows, dim, width, &mut scratch.outputs_down);
    multiply(
        Shape {
            rows: seen,
            columns: dim,
            steps: rows,
        },
        Left::columns(&scratch.probabilities, stride),
        Right {
            data: &scratch.outputs_down,
            panel_stride: rows * PANEL,
        },
        Start::Output,
        &mut scratch.d_values[keys.from * dim..],
        dim,
    );
    panels::pack_rows(
        &scratch.query_rows[first * dim..],
        rows,
        dim,
        dim,
        &mut scratch.queries_down,
    );
    multiply(
        Shape {
            rows: seen,
            columns: dim,
            steps: rows,
        },
        Left::columns(&scratch.d_scores, stride),
        Right {
            data: &scratch.queries_down,
            panel_stride: rows * PANEL,
        },
        Start::Output,
        &mut scratch.d_keys[keys.from * dim..],
        dim,
    );
    multiply(
        Shape {
            rows,
            columns: dim,
            steps: seen,
        },
        Left::rows(&scratch.d_scores, stride),
        Right {
            data: &scratch.keys_down[keys.from * PANEL..],
            panel_stride: tokens * PANEL,
        },
        Start::Zero,
        scratch.d_queries.sized(rows * dim),
        dim,
    );
}

/// The keys that a block of queries is scored against: from a panel's first on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl Keys {
    /// Those that any query at these ascending positions sees, and the rest of their first panel.
    pub(crate) fn of(heads: Heads, positions: &[u32]) -> Self {
        let (first, last) = (positions.first(), positions.last());
        let first = first.map_or(0, |&position| heads.first_key(position as usize));
        Self {
            from: first / PANEL * PANEL,
            to: last.map_or(0, |&position| position as usize + 1),
        }
    }

    pub(crate) fn len(self) -> usize {
        self.to - self.from
    }

    /// Those that the query at `position` sees, counted from the first of these.
    fn seen_by(self, heads: Heads, position: u32) -> Range<usize> {
        let position = position as usize;
        heads.first_key(position) - self.from..position + 1 - self.from
    }
}

/// Turns rows of scores into unnormalised probabilities of the visible keys and zeros around them.
/// Row `i` is the query at `positions[i]`.
pub(crate) fn softmax_rows(
    heads: Heads,
    keys: Keys,
    scores: &mut [f32],
    stride: usize,
    positions: &[u32],
    inverses: &mut [f32],
    mut log_sums: impl FnMut(usize, f32),
) {
    for (i, (&position, inverse)) in positions.iter().zip(inverses).enumerate() {
        let row = &mut scores[i * stride..][..keys.len()];
        let visible = keys.seen_by(heads, position);
        row[..visible.start].fill(0.0);
        row[visible.end..].fill(0.0);
        let visible = &mut row[visible];
        let (top, total) = vectorised(
            #[inline(always)]
            || {
                let top = max(visible);
                (top, exp_sum(visible, top))
            },
        );
        *inverse = 1.0 / total;
        log_sums(i, top + total.ln());
    }
}

/// Scores of a block of queries against `keys`; returns the distance of the rows left in
/// `probabilities`.
fn block_scores(
    heads: Heads,
    keys: Keys,
    tokens: usize,
    block: &[u32],
    first: usize,
    scratch: &mut AttentionScratch,
) -> usize {
    let stride = tokens.next_multiple_of(PANEL);
    multiply(
        // Whole panels: the surplus columns are zero keys, or keys that are masked next.
        Shape {
            rows: block.len(),
            columns: keys.len().next_multiple_of(PANEL),
            steps: heads.dim,
        },
        Left::rows(&scratch.query_rows[first * heads.dim..], heads.dim),
        Right {
            data: &scratch.keys_across[keys.from * heads.dim..],
            panel_stride: heads.dim * PANEL,
        },
        Start::Zero,
        scratch.probabilities.sized(block.len() * stride),
        stride,
    );
    stride
}

/// Fills `key_rows` with one rotated key head of every token and `value_rows` with the values.
fn gather(
    heads: Heads,
    rope: &Rope,
    sequence: Sequence,
    kv: usize,
    scratch: &mut AttentionScratch,
) {
    let len = sequence.tokens(heads) * heads.dim;
    let (keys, values) = (scratch.key_rows.sized(len), scratch.value_rows.sized(len));
    vectorised(
        #[inline(always)]
        || {
            let from = sequence.heads(heads, heads.key_column(kv)).enumerate();
            for ((position, from), to) in from.zip(keys.chunks_exact_mut(heads.dim)) {
                rope.rotate(position, 1.0, from, to);
            }
        },
    );
    let from = sequence.heads(heads, heads.value_column(kv));
    for (from, to) in from.zip(values.chunks_exact_mut(heads.dim)) {
        to.copy_from_slice(from);
    }
}

fn rotate_queries(
    heads: Heads,
    rope: &Rope,
    sequence: Sequence,
    head: usize,
    positions: &[u32],
    rows: &mut Buffer,
) {
    let rows = rows.sized(positions.len() * heads.dim);
    let shared = sequence.shared.len() / heads.qkv_width();
    vectorised(
        #[inline(always)]
        || {
            for (&position, to) in positions.iter().zip(rows.chunks_exact_mut(heads.dim)) {
                let position = position as usize;
                let at = (position - shared) * heads.qkv_width() + head * heads.dim;
                rope.rotate(
                    position,
                    heads.scale(),
                    &sequence.own[at..][..heads.dim],
                    to,
                );
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_gradient, noise};

    const HEADS: Heads = Heads {
        queries: 4,
        key_values: 2,
        dim: 6,
        window: usize::MAX,
    };

    struct Case {
        heads: Heads,
        rope: Rope,
        positions: Vec<u32>,
        shared: usize,
    }

    impl Case {
        fn new(tokens: usize, positions: Vec<u32>) -> Self {
            let mut rope = Rope::default();
            let pairs = HEADS.dim / 2;
            let frequencies: Vec<f32> = (0..pairs)
                .map(|i| 100_f32.powf(-(i as f32) / pairs as f32))
                .collect();
            rope.prepare(&frequencies, 1.0, tokens);
            Self {
                heads: HEADS,
                rope,
                positions,
                shared: 0,
            }
        }
        fn within(window: usize, tokens: usize, positions: Vec<u32>) -> Self {
            Self {
                heads: Heads { window, ..HEADS },
                ..Self::new(tokens, positions)
            }
        }
        fn sequence<'a>(&self, qkv: &'a [f32]) -> Sequence<'a> {
            let (shared, own) = qkv.split_at(self.shared * HEADS.qkv_width());
            Sequence { shared, own }
        }
        fn run(&self, qkv: &[f32]) -> (Vec<f32>, Vec<f32>) {
            let rows = self.positions.len();
            let (mut out, mut log_sums) = (
                vec![0.0; rows * HEADS.width()],
                vec![0.0; rows * HEADS.queries],
            );
            let mut scratch = AttentionScratch::default();
            let sequence = self.sequence(qkv);
            let (rope, positions) = (&self.rope, &self.positions);
            forward(
                self.heads,
                rope,
                sequence,
                positions,
                &mut out,
                &mut log_sums,
                &mut scratch,
            );
            (out, log_sums)
        }
        fn loss(&self, qkv: &[f32], coefficients: &[f32]) -> f64 {
            let (out, _) = self.run(qkv);
            out.iter()
                .zip(coefficients)
                .map(|(y, c)| f64::from(y * c))
                .sum()
        }
    }

    #[test]
    fn agrees_with_the_definition() {
        const TOKENS: usize = 101;
        for window in [1, 5, 33, 64, 100, usize::MAX] {
            check_definition(
                Case::within(window, TOKENS, (0..TOKENS as u32).collect()),
                TOKENS,
            );
        }
    }

    fn check_definition(case: Case, tokens: usize) {
        let qkv = noise(tokens * HEADS.qkv_width(), 1);
        let (out, _) = case.run(&qkv);
        for head in 0..HEADS.queries {
            for t in 0..tokens {
                let rotated = |position: usize, column: usize, factor: f32| {
                    let mut to = [0.0; HEADS.dim];
                    let from = &qkv[position * HEADS.qkv_width() + column..][..HEADS.dim];
                    case.rope.rotate(position, factor, from, &mut to);
                    to
                };
                let query = rotated(t, head * HEADS.dim, HEADS.scale());
                let kv = head / HEADS.group();
                let weights: Vec<f32> = (case.heads.first_key(t)..=t)
                    .map(|s| dot(&query, &rotated(s, HEADS.key_column(kv), 1.0)).exp())
                    .collect();
                let total: f32 = weights.iter().sum();
                for i in 0..HEADS.dim {
                    let value = |s| qkv[s * HEADS.qkv_width() + HEADS.value_column(kv) + i];
                    let keys = (case.heads.first_key(t)..=t).zip(&weights);
                    let expected: f32 = keys.map(|(s, weight)| weight / total * value(s)).sum();
                    let found = out[t * HEADS.width() + head * HEADS.dim + i];
                    assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
                }
            }
        }
    }

    #[test]
    fn some_queries_give_the_same_bytes_as_all() {
        const TOKENS: usize = 70;
        let qkv = noise(TOKENS * HEADS.qkv_width(), 2);
        let (all, _) = Case::new(TOKENS, (0..TOKENS as u32).collect()).run(&qkv);
        let positions = vec![0, 5, 6, 31, 32, 33, 69];
        let (some, _) = Case::new(TOKENS, positions.clone()).run(&qkv);
        for (some, position) in some.chunks(HEADS.width()).zip(positions) {
            assert_eq!(
                some,
                &all[position as usize * HEADS.width()..][..HEADS.width()]
            );
        }
        let behind = Case {
            shared: 50,
            ..Case::new(TOKENS, (50..TOKENS as u32).collect())
        };
        assert_eq!(behind.run(&qkv).0, all[50 * HEADS.width()..]);
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let cases = [
            (usize::MAX, 0, (0..35).collect()),
            (usize::MAX, 0, vec![2, 3, 7, 30, 34]),
            (usize::MAX, 9, vec![9, 10, 33]),
            (7, 0, (0..75).collect()),
            (20, 9, vec![9, 10, 33, 60, 74]),
        ];
        for (window, shared, positions) in cases {
            let tokens = positions.last().map_or(0, |&last| last as usize + 1);
            let case = Case {
                shared,
                ..Case::within(window, tokens, positions)
            };
            let qkv = noise(tokens * HEADS.qkv_width(), 3);
            let (out, log_sums) = case.run(&qkv);
            let d_out = noise(out.len(), 4);
            // Gradients of what is shared are added, here to nothing.
            let mut d_shared = vec![0.0; shared * HEADS.qkv_width()];
            let mut d_own = vec![f32::NAN; qkv.len() - d_shared.len()];
            let kept = Kept {
                out: &out,
                log_sums: &log_sums,
                d_out: &d_out,
            };
            backward(
                case.heads,
                &case.rope,
                case.sequence(&qkv),
                &case.positions,
                kept,
                SequenceGradient {
                    shared: &mut d_shared,
                    own: &mut d_own,
                },
                &mut AttentionScratch::default(),
            );
            let d_qkv = [d_shared, d_own].concat();
            assert_gradient(&qkv, &d_qkv, |qkv| case.loss(qkv, &d_out));
        }
    }
}
