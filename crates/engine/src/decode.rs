//! Prompts into caches, and one more token for many sequences at once; one thread, no scheduling.
//!
//! Every number of a sequence is made by products with a fixed chain of additions per element and
//! by loops over that sequence alone, so it does not depend on which sequences share the call.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use record::{Sampling, StopReason, TokenId};

use crate::{
    Adapter, Model,
    block::{self, MlpParts},
    cache::KvCache,
    draw::{DrawScratch, draw},
    kernels::{
        attention::{Heads, Keys, softmax_rows},
        gemm::{Left, PANEL, Right, Shape, Start, multiply},
        qk_norm, rmsnorm,
    },
    lora::{Product, Span, add_spans},
    pass,
    workspace::{DecodeState, Workspace},
};

/// A response under way.
#[derive(Debug)]
pub(crate) struct Response {
    /// The prompt without its last token, shared with other responses to it.
    pub(crate) prompt: Arc<KvCache>,
    /// Tokens of `prompt` that belong to this sequence.
    pub(crate) prompt_len: usize,
    /// What comes after them.
    pub(crate) own: KvCache,
    pub(crate) own_len: usize,
    pub(crate) last_of_prompt: TokenId,
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) logprobs: Vec<f32>,
    pub(crate) sampling: Sampling,
    /// Most response tokens: `max_tokens`, or what the context leaves.
    pub(crate) limit: usize,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) state: ResponseState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseState {
    Running,
    Done(StopReason),
    /// The logits for the next token were not finite.
    Broken,
}

impl Response {
    /// Draws the next token from its logits.
    pub(crate) fn extend(&mut self, logits: &[f32], scratch: &mut DrawScratch) {
        let Some((token, logprob)) = draw(logits, &self.sampling, &mut self.rng, scratch) else {
            self.state = ResponseState::Broken;
            return;
        };
        self.tokens.push(token);
        self.logprobs.push(logprob);
        if self.sampling.stop.contains(&token) {
            self.state = ResponseState::Done(StopReason::Stop);
        } else if self.tokens.len() >= self.limit {
            self.state = ResponseState::Done(StopReason::Length);
        }
    }
}

/// Runs token sequences, each into its own empty cache.
pub(crate) fn prefill(
    model: &Model,
    prompts: &mut [(&[TokenId], &mut KvCache)],
    workspace: &mut Workspace,
) {
    let heads = Heads::of(model.config(), 0);
    workspace.pack.clear();
    for (prompt, _) in prompts.iter() {
        workspace.pack.push_unscored(prompt);
    }
    let mut rotated = std::mem::take(&mut workspace.decode.rotated);
    pass::trunk(model, workspace, false, None, |layer, workspace| {
        for (row, (_, cache)) in workspace.pack.rows.iter().zip(prompts.iter_mut()) {
            let width = heads.qkv_width();
            let qkv = &workspace.layers[0].qkv[row.tokens.start * width..row.tokens.end * width];
            cache.enter(heads, &workspace.rope, layer, (0, 0), qkv, &mut rotated);
        }
    });
    workspace.decode.rotated = rotated;
}

/// A running response and the adapter that it is sampled with.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) adapter: Option<&'a Adapter>,
    pub(crate) response: &'a mut Response,
}

/// Feeds the next token of every response and draws the one after it. All are running, each with its
/// adapter over the weights of `model`, those of one adapter side by side.
pub(crate) fn step(model: &Model, responses: &mut [Row], workspace: &mut Workspace) {
    let spans: Vec<Span> = responses
        .chunk_by(|one, other| same_adapter(one.adapter, other.adapter))
        .map(|span| Span {
            rows: span.len(),
            adapter: span[0].adapter,
        })
        .collect();
    let config = model.config();
    let (layout, weights, hidden) = (model.layout(), model.weights(), config.hidden_size);
    let rows = responses.len();
    let longest = responses
        .iter()
        .map(|Row { response, .. }| response.prompt_len + response.own_len + 1)
        .max()
        .unwrap_or(0);
    let Workspace { rope, decode, .. } = workspace;
    model.prepare_rope(rope, longest);
    let embedding = &weights[layout.embedding.clone()];
    let stream = decode.stream.sized(rows * hidden);
    for (to, Row { response, .. }) in stream.chunks_exact_mut(hidden).zip(&*responses) {
        let token = response
            .tokens
            .last()
            .copied()
            .unwrap_or(response.last_of_prompt) as usize;
        to.copy_from_slice(&embedding[token * hidden..][..hidden]);
    }
    for (index, layer) in layout.layers.iter().enumerate() {
        let packed = model.layer(index);
        let heads = Heads::of(config, index);
        rmsnorm::forward(
            &decode.stream,
            &weights[layer.attention_norm.clone()],
            config.norm_epsilon,
            decode.scales.sized(rows),
            decode.normed.sized(rows * hidden),
        );
        let start = match &layer.qkv_bias {
            Some(bias) => Start::Row(&weights[bias.clone()]),
            None => Start::Zero,
        };
        let qkv = decode.qkv.sized(rows * heads.qkv_width());
        packed.qkv.multiply(&decode.normed, start, qkv);
        let place = (index, Product::Qkv);
        add_spans(&spans, place, &decode.normed, qkv, &mut decode.adapted);
        if let Some(norm) = layer.qk_norm_of(weights) {
            let (qkv, state) = (&mut decode.qkv, &mut decode.qk_norm);
            qk_norm::forward(heads, &norm, config.norm_epsilon, qkv, state);
        }
        decode.attended.set_len(rows * heads.width());
        for (row, Row { response, .. }) in responses.iter_mut().enumerate() {
            let qkv = &decode.qkv[row * heads.qkv_width()..][..heads.qkv_width()];
            let position = response.prompt_len + response.own_len;
            let place = (position, response.own_len);
            response
                .own
                .enter(heads, rope, index, place, qkv, &mut decode.rotated);
            for (query, head) in qkv.chunks_exact(heads.dim).zip(0..heads.queries) {
                let to = &mut decode.queries.sized(heads.width())[head * heads.dim..][..heads.dim];
                rope.rotate(position, heads.scale(), query, to);
            }
            attend(heads, response, index, decode, row);
        }
        packed
            .output
            .multiply(&decode.attended, Start::Output, &mut decode.stream);
        let place = (index, Product::Output);
        let (attended, stream) = (&decode.attended, &mut decode.stream);
        add_spans(&spans, place, attended, stream, &mut decode.adapted);
        let adapt = |product, x: &[f32], y: &mut [f32]| {
            add_spans(&spans, (index, product), x, y, &mut decode.adapted);
        };
        let parts = MlpParts {
            scales: &mut decode.scales,
            normed: &mut decode.normed,
            gate_up: &mut decode.gate_up,
            inner: &mut decode.inner,
        };
        block::mlp(model, index, &decode.stream, parts, adapt, &mut decode.next);
        std::mem::swap(&mut decode.stream, &mut decode.next);
    }
    rmsnorm::forward(
        &decode.stream,
        &weights[layout.final_norm.clone()],
        config.norm_epsilon,
        decode.scales.sized(rows),
        decode.normed.sized(rows * hidden),
    );
    let logits = decode.logits.sized(rows * config.vocab_size);
    model.head().multiply(&decode.normed, Start::Zero, logits);
    for (Row { response, .. }, logits) in responses
        .iter_mut()
        .zip(logits.chunks_exact(config.vocab_size))
    {
        response.own_len += 1;
        response.extend(logits, &mut decode.draw);
    }
}

/// Whether two requests use the same adapter, or both none.
pub(crate) fn same_adapter(one: Option<&Adapter>, other: Option<&Adapter>) -> bool {
    one.map(std::ptr::from_ref) == other.map(std::ptr::from_ref)
}

/// Attention of the new token of one sequence, which is in its own cache already, into row `row` of
/// `attended`.
fn attend(heads: Heads, response: &Response, layer: usize, decode: &mut DecodeState, row: usize) {
    let (dim, group) = (heads.dim, heads.group());
    let (shared, own) = (response.prompt_len, response.own_len + 1);
    // Scores are written in whole panels, the second part over the surplus of the first.
    let stride = shared + own.next_multiple_of(PANEL) + PANEL;
    decode.positions.clear();
    decode.positions.resize(group, (shared + own - 1) as u32);
    decode.inverses.resize(group, 0.0);
    for kv in 0..heads.key_values {
        let parts = [(&*response.prompt, 0, shared), (&response.own, shared, own)];
        let probabilities = decode.probabilities.sized(group * stride);
        for (cache, first, tokens) in parts {
            multiply(
                Shape {
                    rows: group,
                    columns: tokens.next_multiple_of(PANEL),
                    steps: dim,
                },
                Left::rows(&decode.queries[kv * group * dim..], dim),
                Right {
                    data: cache.head(layer, kv).0,
                    panel_stride: dim * PANEL,
                },
                Start::Zero,
                &mut probabilities[first..],
                stride,
            );
        }
        let inverses = &mut decode.inverses;
        let keys = Keys {
            from: 0,
            to: shared + own,
        };
        softmax_rows(
            heads,
            keys,
            probabilities,
            stride,
            &decode.positions,
            inverses,
            |_, _| {},
        );
        let out = &mut decode.attended[row * heads.width() + kv * group * dim..][..group * dim];
        out.fill(0.0);
        for (cache, first, tokens) in parts {
            multiply(
                Shape {
                    rows: group,
                    columns: dim,
                    steps: tokens,
                },
                Left::rows(&probabilities[first..], stride),
                Right {
                    data: cache.head(layer, kv).1,
                    panel_stride: cache.value_stride(),
                },
                Start::Chain,
                out,
                dim,
            );
        }
        for (out, inverse) in out.chunks_exact_mut(dim).zip(inverses) {
            out.iter_mut().for_each(|value| *value *= *inverse);
        }
    }
}
