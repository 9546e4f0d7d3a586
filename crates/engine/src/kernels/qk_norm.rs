//! The norm of each query and key head, before rotary positions (Qwen3).

use super::{attention::Heads, rmsnorm};
use crate::buffer::Buffer;

/// Weights of the norms, `[head_dim]` each, or their gradients.
#[derive(Debug)]
pub(crate) struct QkNorm<T> {
    pub(crate) query: T,
    pub(crate) key: T,
}

/// What the backward pass needs.
#[derive(Debug, Default)]
pub(crate) struct QkNormState {
    /// Queries and keys before the norm, `[tokens, heads and key heads, head_dim]`.
    raw: Buffer,
    /// `[tokens, heads and key heads]`
    scales: Buffer,
}

fn normed_heads(heads: Heads) -> usize {
    heads.queries + heads.key_values
}

/// Norms the queries and keys of `qkv[tokens, qkv width]` in place.
pub(crate) fn forward(
    heads: Heads,
    norm: &QkNorm<&[f32]>,
    epsilon: f32,
    qkv: &mut [f32],
    state: &mut QkNormState,
) {
    let (width, query_width) = (normed_heads(heads) * heads.dim, heads.width());
    let tokens = qkv.len() / heads.qkv_width();
    let raw = state.raw.sized(tokens * width);
    let scales = state.scales.sized(tokens * normed_heads(heads));
    for ((qkv, raw), scales) in qkv
        .chunks_exact_mut(heads.qkv_width())
        .zip(raw.chunks_exact_mut(width))
        .zip(scales.chunks_exact_mut(normed_heads(heads)))
    {
        let normed = &mut qkv[..width];
        raw.copy_from_slice(normed);
        let (raw_queries, raw_keys) = raw.split_at(query_width);
        let (queries, keys) = normed.split_at_mut(query_width);
        let (query_scales, key_scales) = scales.split_at_mut(heads.queries);
        rmsnorm::forward(raw_queries, norm.query, epsilon, query_scales, queries);
        rmsnorm::forward(raw_keys, norm.key, epsilon, key_scales, keys);
    }
}

/// From the gradient of the normed queries and keys in `d_qkv` to that of the raw ones in the same
/// place, adding to `d_norm` unless the norms are frozen.
pub(crate) fn backward(
    heads: Heads,
    norm: &QkNorm<&[f32]>,
    state: &QkNormState,
    d_qkv: &mut [f32],
    mut d_norm: Option<QkNorm<&mut [f32]>>,
) {
    let (width, query_width) = (normed_heads(heads) * heads.dim, heads.width());
    let mut d_normed = vec![0.0; width];
    for ((d_qkv, raw), scales) in d_qkv
        .chunks_exact_mut(heads.qkv_width())
        .zip(state.raw.chunks_exact(width))
        .zip(state.scales.chunks_exact(normed_heads(heads)))
    {
        let d_raw = &mut d_qkv[..width];
        d_normed.copy_from_slice(d_raw);
        d_raw.fill(0.0);
        let (raw_queries, raw_keys) = raw.split_at(query_width);
        let (d_raw_queries, d_raw_keys) = d_raw.split_at_mut(query_width);
        let (query_scales, key_scales) = scales.split_at(heads.queries);
        let (d_queries, d_keys) = d_normed.split_at(query_width);
        match &mut d_norm {
            Some(d_norm) => {
                rmsnorm::backward(
                    raw_queries,
                    norm.query,
                    query_scales,
                    d_queries,
                    d_raw_queries,
                    d_norm.query,
                );
                rmsnorm::backward(
                    raw_keys, norm.key, key_scales, d_keys, d_raw_keys, d_norm.key,
                );
            }
            None => {
                rmsnorm::backward_frozen(
                    raw_queries,
                    norm.query,
                    query_scales,
                    d_queries,
                    d_raw_queries,
                );
                rmsnorm::backward_frozen(raw_keys, norm.key, key_scales, d_keys, d_raw_keys);
            }
        }
    }
}
