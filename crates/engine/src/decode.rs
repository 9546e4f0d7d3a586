//! Prompts into caches, and one more token for many sequences at once; one thread, no scheduling.
//!
//! Every number of a sequence is made by products with a fixed chain of additions per element and
//! by loops over that sequence alone, so it does not depend on which sequences share the call.

use record::TokenId;

use crate::{
    Adapter, Model,
    attend::{Attending, BLOCK, attend},
    block::{self, MlpParts},
    cache::KvCache,
    kernels::{attention::Heads, gemm::Start, qk_norm, rmsnorm, rope::Rope},
    lora::{Product, Span, add_spans},
    pass::{self, Keep},
    response::{Response, Stretch, path_len},
    workspace::{DecodeState, Workspace},
};

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
    pass::trunk(model, workspace, Keep::Nothing, None, |layer, workspace| {
        for (row, (_, cache)) in workspace.pack.rows.iter().zip(prompts.iter_mut()) {
            let width = heads.qkv_width();
            let qkv = &workspace.layers[0].qkv[row.tokens.start * width..row.tokens.end * width];
            cache.enter(heads, &workspace.rope, layer, (0, 0), qkv, &mut rotated);
        }
    });
    workspace.decode.rotated = rotated;
}

/// Runs tokens that follow those of `path` into an empty cache.
pub(crate) fn prefill_behind(
    model: &Model,
    path: &[Stretch],
    tokens: &[TokenId],
    cache: &mut KvCache,
    workspace: &mut Workspace,
) {
    /// Tokens on their way through the layers together.
    const CHUNK: usize = 64;
    for (index, chunk) in tokens.chunks(CHUNK).enumerate() {
        let lane = Lane {
            adapter: model.adapter().map(AsRef::as_ref),
            path,
            own: cache,
            own_len: index * CHUNK,
            tokens: chunk,
        };
        feed(model, &mut [lane], workspace);
    }
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
    let rows = responses.len();
    let mut lanes: Vec<Lane> = responses
        .iter_mut()
        .map(|Row { adapter, response }| Lane {
            adapter: *adapter,
            path: &response.path,
            own: &mut response.own,
            own_len: response.own_len,
            tokens: std::slice::from_ref(&response.next),
        })
        .collect();
    feed(model, &mut lanes, workspace);
    let config = model.config();
    let (layout, weights, hidden) = (model.layout(), model.weights(), config.hidden_size);
    let decode = &mut workspace.decode;
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

/// Tokens to be fed to one sequence.
struct Lane<'a> {
    adapter: Option<&'a Adapter>,
    path: &'a [Stretch],
    own: &'a mut KvCache,
    /// Slots of `own` that are taken.
    own_len: usize,
    tokens: &'a [TokenId],
}

/// Runs the tokens of all lanes, entering their keys and values; leaves the residual stream behind the
/// last layer in `decode.stream`, row by row.
fn feed(model: &Model, lanes: &mut [Lane], workspace: &mut Workspace) {
    let spans: Vec<Span> = lanes
        .chunk_by(|one, other| same_adapter(one.adapter, other.adapter))
        .map(|span| Span {
            rows: span.iter().map(|lane| lane.tokens.len()).sum(),
            adapter: span[0].adapter,
        })
        .collect();
    let config = model.config();
    let (layout, weights, hidden) = (model.layout(), model.weights(), config.hidden_size);
    let rows: usize = spans.iter().map(|span| span.rows).sum();
    let end = |lane: &Lane| path_len(lane.path) + lane.own_len + lane.tokens.len();
    let longest = lanes.iter().map(end).max().unwrap_or(0);
    let Workspace { rope, decode, .. } = workspace;
    model.prepare_rope(rope, longest);
    let embedding = &weights[layout.embedding.clone()];
    let stream = decode.stream.sized(rows * hidden);
    let tokens = lanes.iter().flat_map(|lane| lane.tokens);
    for (to, &token) in stream.chunks_exact_mut(hidden).zip(tokens) {
        to.copy_from_slice(&embedding[token as usize * hidden..][..hidden]);
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
        let mut row = 0;
        for lane in &mut *lanes {
            let first = path_len(lane.path) + lane.own_len;
            let tokens = lane.tokens.len();
            let width = heads.qkv_width();
            let qkv = &decode.qkv[row * width..(row + tokens) * width];
            let place = (first, lane.own_len);
            let rotated = &mut decode.rotated;
            lane.own.enter(heads, rope, index, place, qkv, rotated);
            for from in (0..tokens).step_by(BLOCK) {
                let attending = Attending {
                    path: lane.path,
                    own: lane.own,
                    layer: index,
                    slot: lane.own_len + from,
                    tokens: BLOCK.min(tokens - from),
                };
                rotate_queries(
                    heads,
                    rope,
                    first + from,
                    attending.tokens,
                    row + from,
                    decode,
                );
                attend(heads, attending, decode, row + from);
            }
            row += tokens;
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
}

/// The queries of some consecutive tokens, the first at `position` and in row `row`, as
/// [`attend`] wants them.
fn rotate_queries(
    heads: Heads,
    rope: &Rope,
    position: usize,
    tokens: usize,
    row: usize,
    decode: &mut DecodeState,
) {
    let (dim, group) = (heads.dim, heads.group());
    let queries = decode.queries.sized(tokens * heads.width());
    for token in 0..tokens {
        let qkv = &decode.qkv[(row + token) * heads.qkv_width()..];
        for (head, query) in qkv.chunks_exact(dim).take(heads.queries).enumerate() {
            let at = (head / group * tokens + token) * group + head % group;
            let to = &mut queries[at * dim..][..dim];
            rope.rotate(position + token, heads.scale(), query, to);
        }
    }
}

/// Whether two requests use the same adapter, or both none.
pub(crate) fn same_adapter(one: Option<&Adapter>, other: Option<&Adapter>) -> bool {
    one.map(std::ptr::from_ref) == other.map(std::ptr::from_ref)
}
