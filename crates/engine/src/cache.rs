//! Keys and values of a stretch of one sequence, laid out as right operands of attention products.

use crate::{
    ModelConfig,
    buffer::Buffer,
    kernels::{attention::Heads, gemm::PANEL, rope::Rope},
};

/// Room for a fixed number of consecutive tokens, a multiple of [`PANEL`]. Slot 0 holds whatever
/// position the owner begins with.
///
/// Per layer and key-value head: the rotated keys as panels of [`PANEL`] tokens, each
/// `[head_dim, PANEL]`, then the values as panels of [`PANEL`] columns, each `[capacity, PANEL]`.
#[derive(Debug, Default)]
pub(crate) struct KvCache {
    data: Buffer,
    shape: CacheShape,
}

/// What decides the size of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CacheShape {
    layers: usize,
    key_values: usize,
    dim: usize,
    capacity: usize,
}

impl CacheShape {
    /// For sequences of up to `tokens` tokens.
    pub(crate) fn new(config: &ModelConfig, tokens: usize) -> Self {
        Self {
            layers: config.n_layers,
            key_values: config.n_kv_heads,
            dim: config.head_dim,
            capacity: tokens.next_multiple_of(PANEL),
        }
    }

    pub(crate) fn bytes(self) -> usize {
        self.layers * self.key_values * self.head_len() * size_of::<f32>()
    }

    /// The same for another number of tokens.
    pub(crate) fn with_tokens(self, tokens: usize) -> Self {
        Self {
            capacity: tokens.next_multiple_of(PANEL),
            ..self
        }
    }

    fn head_len(self) -> usize {
        self.capacity * (self.dim + self.dim.next_multiple_of(PANEL))
    }
}

impl KvCache {
    pub(crate) fn new(shape: CacheShape) -> Self {
        Self {
            data: Buffer::zeroed(shape.bytes() / size_of::<f32>()),
            shape,
        }
    }

    pub(crate) fn shape(&self) -> CacheShape {
        self.shape
    }

    /// Distance of the value panels of one head.
    pub(crate) fn value_stride(&self) -> usize {
        self.shape.capacity * PANEL
    }

    /// Key panels and value panels of one head.
    pub(crate) fn head(&self, layer: usize, kv: usize) -> (&[f32], &[f32]) {
        let len = self.shape.head_len();
        let head = &self.data[(layer * self.shape.key_values + kv) * len..][..len];
        head.split_at(self.shape.capacity * self.shape.dim)
    }

    /// Copies what fits into a cache of the same model that has less room.
    pub(crate) fn copy_into(&self, copy: &mut Self) {
        let (from, to) = (self.shape, copy.shape);
        let whole = |capacity: usize| (capacity * PANEL).max(1);
        let heads = self.data.chunks_exact(from.head_len().max(1));
        for (from_head, to_head) in heads.zip(copy.data.chunks_exact_mut(to.head_len().max(1))) {
            let (from_keys, from_values) = from_head.split_at(from.capacity * from.dim);
            let (to_keys, to_values) = to_head.split_at_mut(to.capacity * to.dim);
            to_keys.copy_from_slice(&from_keys[..to_keys.len()]);
            let panels = from_values.chunks_exact(whole(from.capacity));
            for (from, to) in panels.zip(to_values.chunks_exact_mut(whole(to.capacity))) {
                to.copy_from_slice(&from[..to.len()]);
            }
        }
    }

    /// Enters the keys and values of one layer's fused projections. The first token is at `position`
    /// of its sequence and goes to `slot`.
    pub(crate) fn enter(
        &mut self,
        heads: Heads,
        rope: &Rope,
        layer: usize,
        (position, slot): (usize, usize),
        qkv: &[f32],
        rotated: &mut Buffer,
    ) {
        let CacheShape {
            key_values,
            dim,
            capacity,
            ..
        } = self.shape;
        let len = self.shape.head_len();
        let rotated = rotated.sized(dim);
        for kv in 0..key_values {
            let head = &mut self.data[(layer * key_values + kv) * len..][..len];
            let (keys, values) = head.split_at_mut(capacity * dim);
            for (offset, qkv) in qkv.chunks_exact(heads.qkv_width()).enumerate() {
                let slot = slot + offset;
                rope.rotate(
                    position + offset,
                    1.0,
                    &qkv[heads.key_column(kv)..][..dim],
                    rotated,
                );
                let panel = &mut keys[slot / PANEL * PANEL * dim..][..PANEL * dim];
                for (to, &value) in panel.chunks_exact_mut(PANEL).zip(&*rotated) {
                    to[slot % PANEL] = value;
                }
                let value = &qkv[heads.value_column(kv)..][..dim];
                for (panel, part) in values
                    .chunks_exact_mut(capacity * PANEL)
                    .zip(value.chunks(PANEL))
                {
                    panel[slot * PANEL..][..part.len()].copy_from_slice(part);
                }
            }
        }
    }
}
