//! Buffers of one pass over one pack, kept between passes.

use crate::{
    batch::Pack,
    buffer::Buffer,
    draw::DrawScratch,
    kernels::{
        attention::AttentionScratch, head::LogitScore, linear::GradientScratch,
        qk_norm::QkNormState, rope::Rope,
    },
    lora::Product,
};

/// What one thread needs to run a model forward and backward.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) pack: Pack,
    pub(crate) rope: Rope,
    /// One per layer when gradients follow from what was kept, one for all otherwise.
    pub(crate) layers: Vec<LayerState>,
    /// The input of each layer, `[tokens, hidden]`, when the rest is computed again for its gradients.
    pub(crate) inputs: Vec<Buffer>,
    /// Output of the last layer at the queries, `[queries, hidden]`.
    pub(crate) last: Buffer,
    pub(crate) last_scales: Buffer,
    /// The same after the final norm.
    pub(crate) normed_last: Buffer,
    pub(crate) scratch: Scratch,
    pub(crate) decode: DecodeState,
}

/// One token of each of several sequences on its way through the layers.
#[derive(Debug, Default)]
pub(crate) struct DecodeState {
    /// Residual stream, `[rows, hidden]`.
    pub(crate) stream: Buffer,
    pub(crate) next: Buffer,
    pub(crate) scales: Buffer,
    pub(crate) normed: Buffer,
    pub(crate) qkv: Buffer,
    pub(crate) qk_norm: QkNormState,
    pub(crate) attended: Buffer,
    pub(crate) gate_up: Buffer,
    pub(crate) inner: Buffer,
    /// Between `A` and `B` of adapters.
    pub(crate) adapted: Buffer,
    /// `[rows, vocabulary]`
    pub(crate) logits: Buffer,
    /// Of a few tokens of one sequence: rotated query heads, one rotated key, scores and mixed values
    /// of one group of heads.
    pub(crate) queries: Buffer,
    pub(crate) rotated: Buffer,
    pub(crate) probabilities: Buffer,
    pub(crate) mixed: Buffer,
    pub(crate) positions: Vec<u32>,
    pub(crate) inverses: Vec<f32>,
    pub(crate) draw: DrawScratch,
}

/// What a layer keeps for its backward pass. The rows after attention are all tokens, or in the
/// last layer the queries alone.
#[derive(Debug, Default)]
pub(crate) struct LayerState {
    /// Input, `[tokens, hidden]`.
    pub(crate) input: Buffer,
    pub(crate) attention_scales: Buffer,
    /// `[tokens, qkv width]`
    pub(crate) qkv: Buffer,
    /// Of models that norm queries and keys.
    pub(crate) qk_norm: QkNormState,
    /// Attention output, `[rows, heads width]`.
    pub(crate) attended: Buffer,
    /// `[rows, heads]`
    pub(crate) log_sums: Buffer,
    /// Input plus attention, `[rows, hidden]`.
    pub(crate) middle: Buffer,
    pub(crate) mlp_scales: Buffer,
    /// `[rows, 2 × intermediate]`
    pub(crate) gate_up: Buffer,
    /// What adapters keep of each product, see [`crate::lora::ProductAdapter::forward`].
    pub(crate) adapted: [Buffer; Product::COUNT],
}

/// Overwritten by every layer.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) attention: AttentionScratch,
    pub(crate) gradient: GradientScratch,
    /// A normed input, `[tokens, hidden]`.
    pub(crate) normed: Buffer,
    /// Inside of the MLP, `[rows, intermediate]`.
    pub(crate) inner: Buffer,
    pub(crate) next: Buffer,
    /// Positions `0..` for layers that query every token.
    pub(crate) all_positions: Vec<u32>,
    /// `[chunk, vocabulary]`
    pub(crate) logits: Buffer,
    pub(crate) scores: Vec<LogitScore>,
    /// Gradient of the residual stream.
    pub(crate) d_stream: Buffer,
    pub(crate) d_input: Buffer,
    pub(crate) d_normed: Buffer,
    pub(crate) d_attended: Buffer,
    pub(crate) d_qkv: Buffer,
    /// Of adapters: an input after dropout or its gradient, and the gradient between `A` and `B`.
    pub(crate) dropped: Buffer,
    pub(crate) d_adapted: Buffer,
    pub(crate) d_logprobs: Vec<f32>,
    pub(crate) d_entropies: Vec<f32>,
}
