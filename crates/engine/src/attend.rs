//! Attention of new tokens to a sequence that lies in several caches, one after the other.

use crate::{
    cache::KvCache,
    kernels::{
        attention::{Heads, Keys, softmax_rows},
        gemm::{Left, PANEL, Right, Shape, Start, multiply},
    },
    response::{Stretch, path_len},
    workspace::DecodeState,
};

/// Tokens whose scores are held at once.
pub(crate) const BLOCK: usize = 8;

/// Where the keys and values of a sequence are, and which of its tokens attend.
#[derive(Clone, Copy)]
pub(crate) struct Attending<'a> {
    pub(crate) path: &'a [Stretch],
    pub(crate) own: &'a KvCache,
    pub(crate) layer: usize,
    /// Slot of the first of them in `own`, which holds them already.
    pub(crate) slot: usize,
    /// At most [`BLOCK`].
    pub(crate) tokens: usize,
}

/// Fills the rows of `attended` from `row` on; the rotated queries are in `decode.queries`, laid out
/// `[key-value heads, tokens, heads of the group, head_dim]`.
///
/// The additions are those of the attention of a training pass, in the same order, whichever way the
/// sequence is cut.
pub(crate) fn attend(heads: Heads, attending: Attending, decode: &mut DecodeState, row: usize) {
    let Attending {
        path,
        own,
        layer,
        slot,
        tokens,
    } = attending;
    let (dim, group) = (heads.dim, heads.group());
    let (first, rows) = (path_len(path) + slot, tokens * group);
    decode.positions.clear();
    for position in first..first + tokens {
        let positions = std::iter::repeat_n(position as u32, group);
        decode.positions.extend(positions);
    }
    decode.inverses.clear();
    decode.inverses.resize(rows, 0.0);
    let visible = Keys::of(heads, &decode.positions);
    let (from, parts) = parts(path, own, slot + tokens, heads.first_key(first));
    let keys = Keys { from, ..visible };
    // Scores are written in whole panels, those of a part over the surplus of the one before.
    let stride = keys.len() + 2 * PANEL;
    for kv in 0..heads.key_values {
        let probabilities = decode.probabilities.sized(rows * stride);
        let mut at = 0;
        for part in parts.clone() {
            let len = part.to - part.from;
            multiply(
                Shape {
                    rows,
                    columns: len.next_multiple_of(PANEL),
                    steps: dim,
                },
                Left::rows(&decode.queries[kv * rows * dim..], dim),
                Right {
                    data: &part.cache.head(layer, kv).0[part.from * dim..],
                    panel_stride: dim * PANEL,
                },
                Start::Zero,
                &mut probabilities[at..],
                stride,
            );
            at += len;
        }
        softmax_rows(
            heads,
            keys,
            probabilities,
            stride,
            &decode.positions,
            &mut decode.inverses,
            |_, _| {},
        );
        let out = decode.mixed.sized_zeroed(rows * dim);
        let mut at = 0;
        for part in parts.clone() {
            let len = part.to - part.from;
            multiply(
                Shape {
                    rows,
                    columns: dim,
                    steps: len,
                },
                Left::rows(&probabilities[at..], stride),
                Right {
                    data: &part.cache.head(layer, kv).1[part.from * PANEL..],
                    panel_stride: part.cache.value_stride(),
                },
                Start::Chain,
                out,
                dim,
            );
            at += len;
        }
        for (index, (out, inverse)) in out.chunks_exact(dim).zip(&decode.inverses).enumerate() {
            let at = (row + index / group) * heads.width() + (kv * group + index % group) * dim;
            let to = &mut decode.attended[at..][..dim];
            for (to, value) in to.iter_mut().zip(out) {
                *to = value * inverse;
            }
        }
    }
}

/// Slots of a cache.
#[derive(Clone, Copy)]
struct Part<'a> {
    cache: &'a KvCache,
    from: usize,
    to: usize,
}

/// The parts of a sequence in which keys from `first_key` on lie, each from the beginning of a panel,
/// and the position of the first slot of the first of them.
fn parts<'a>(
    path: &'a [Stretch],
    own: &'a KvCache,
    own_len: usize,
    first_key: usize,
) -> (usize, impl Iterator<Item = Part<'a>> + Clone) {
    let (mut before, mut skipped) = (0, 0);
    for stretch in path {
        if before + stretch.tokens > first_key {
            break;
        }
        before += stretch.tokens;
        skipped += 1;
    }
    let hidden = (first_key - before) / PANEL * PANEL;
    let shared = path[skipped..].iter();
    let shared = shared.map(|stretch| (&*stretch.cache, stretch.tokens));
    let parts = shared.chain([(own, own_len)]).enumerate();
    let parts = parts.map(move |(index, (cache, to))| Part {
        cache,
        from: if index == 0 { hidden } else { 0 },
        to,
    });
    (before + hidden, parts.filter(|part| part.from < part.to))
}
