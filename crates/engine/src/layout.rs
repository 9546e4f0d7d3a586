//! Where each tensor lies in the one flat parameter buffer.
//!
//! Weights, gradients and optimizer moments are flat buffers of equal layout, so a pass over all
//! parameters is one loop. Tensors that a fused product reads together lie side by side: the rows
//! of `q_proj`, `k_proj`, `v_proj` form one `[qkv width, hidden]` matrix, `gate_proj` and `up_proj`
//! one `[2 × intermediate, hidden]` matrix.

use std::ops::Range;

use crate::{ModelConfig, kernels::qk_norm::QkNorm};

#[derive(Debug)]
pub(crate) struct Layout {
    /// Every tensor of a checkpoint, in buffer order.
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) embedding: Range<usize>,
    pub(crate) layers: Vec<LayerLayout>,
    pub(crate) final_norm: Range<usize>,
    /// `[vocab, hidden]`; the same range as `embedding` when the embeddings are tied.
    pub(crate) head: Range<usize>,
    pub(crate) len: usize,
}

/// One tensor under its Hugging Face name.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) range: Range<usize>,
    pub(crate) kind: TensorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorKind {
    /// Random at the start; weight decay applies.
    Matrix,
    /// Ones at the start; no weight decay.
    Norm,
    /// Zeros at the start; no weight decay.
    Bias,
}

/// Ranges of one decoder layer.
#[derive(Debug)]
pub(crate) struct LayerLayout {
    pub(crate) attention_norm: Range<usize>,
    /// `[qkv width, hidden]`
    pub(crate) qkv: Range<usize>,
    /// `[qkv width]`
    pub(crate) qkv_bias: Option<Range<usize>>,
    /// `[head_dim]` each.
    pub(crate) qk_norm: Option<QkNorm<Range<usize>>>,
    /// `[hidden, heads width]`
    pub(crate) output: Range<usize>,
    pub(crate) mlp_norm: Range<usize>,
    /// `[2 × intermediate, hidden]`: the gate rows, then the up rows.
    pub(crate) gate_up: Range<usize>,
    /// `[hidden, intermediate]`
    pub(crate) down: Range<usize>,
}

impl Layout {
    pub(crate) fn new(config: &ModelConfig) -> Self {
        let mut list = List::default();
        let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
        let (heads, kv_heads) = (config.heads_width(), config.n_kv_heads * config.head_dim);
        let embedding = list.matrix("model.embed_tokens.weight", config.vocab_size, hidden);
        let layers = (0..config.n_layers)
            .map(|layer| {
                let name = |tensor: &str| format!("model.layers.{layer}.{tensor}");
                let attention_norm = list.norm(&name("input_layernorm.weight"), hidden);
                let query = list.matrix(&name("self_attn.q_proj.weight"), heads, hidden);
                list.matrix(&name("self_attn.k_proj.weight"), kv_heads, hidden);
                let value = list.matrix(&name("self_attn.v_proj.weight"), kv_heads, hidden);
                let qkv_bias = config.qkv_bias().then(|| {
                    let query = list.bias(&name("self_attn.q_proj.bias"), heads);
                    list.bias(&name("self_attn.k_proj.bias"), kv_heads);
                    let value = list.bias(&name("self_attn.v_proj.bias"), kv_heads);
                    query.start..value.end
                });
                let qk_norm = config.has_qk_norm().then(|| QkNorm {
                    query: list.norm(&name("self_attn.q_norm.weight"), config.head_dim),
                    key: list.norm(&name("self_attn.k_norm.weight"), config.head_dim),
                });
                let output = list.matrix(&name("self_attn.o_proj.weight"), hidden, heads);
                let mlp_norm = list.norm(&name("post_attention_layernorm.weight"), hidden);
                let gate = list.matrix(&name("mlp.gate_proj.weight"), intermediate, hidden);
                let up = list.matrix(&name("mlp.up_proj.weight"), intermediate, hidden);
                let down = list.matrix(&name("mlp.down_proj.weight"), hidden, intermediate);
                LayerLayout {
                    attention_norm,
                    qkv: query.start..value.end,
                    qkv_bias,
                    qk_norm,
                    output,
                    mlp_norm,
                    gate_up: gate.start..up.end,
                    down,
                }
            })
            .collect();
        let final_norm = list.norm("model.norm.weight", hidden);
        let head = if config.tied_embeddings {
            embedding.clone()
        } else {
            list.matrix("lm_head.weight", config.vocab_size, hidden)
        };
        Self {
            tensors: list.tensors,
            embedding,
            layers,
            final_norm,
            head,
            len: list.len,
        }
    }
}

impl Layout {
    /// The output projection is the transposed embedding.
    pub(crate) fn is_tied(&self) -> bool {
        self.head == self.embedding
    }
}

impl LayerLayout {
    /// The norms of query and key heads among the weights.
    pub(crate) fn qk_norm_of<'a>(&self, weights: &'a [f32]) -> Option<QkNorm<&'a [f32]>> {
        let norm = self.qk_norm.as_ref()?;
        Some(QkNorm {
            query: &weights[norm.query.clone()],
            key: &weights[norm.key.clone()],
        })
    }

    /// Their gradients among the gradients.
    pub(crate) fn qk_norm_gradient<'a>(
        &self,
        gradients: &'a mut [f32],
    ) -> Option<QkNorm<&'a mut [f32]>> {
        let norm = self.qk_norm.as_ref()?;
        // The key norm follows the query norm directly.
        let both = &mut gradients[norm.query.start..norm.key.end];
        let (query, key) = both.split_at_mut(norm.query.len());
        Some(QkNorm { query, key })
    }
}

#[derive(Default)]
struct List {
    tensors: Vec<Tensor>,
    len: usize,
}

impl List {
    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Range<usize> {
        self.push(name, vec![rows, columns], TensorKind::Matrix)
    }
    fn norm(&mut self, name: &str, size: usize) -> Range<usize> {
        self.push(name, vec![size], TensorKind::Norm)
    }
    fn bias(&mut self, name: &str, size: usize) -> Range<usize> {
        self.push(name, vec![size], TensorKind::Bias)
    }
    fn push(&mut self, name: &str, shape: Vec<usize>, kind: TensorKind) -> Range<usize> {
        let range = self.len..self.len + shape.iter().product::<usize>();
        self.len = range.end;
        self.tensors.push(Tensor {
            name: name.to_owned(),
            shape,
            range: range.clone(),
            kind,
        });
        range
    }
}
