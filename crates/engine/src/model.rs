//! A model: its configuration and its weights.

use std::{path::Path, sync::Arc};

use record::Seed;

use crate::{
    Initializer, ModelConfig, ModelError,
    buffer::Buffer,
    checkpoint, init,
    kernels::{linear::Packed, rope::Rope},
    layout::Layout,
};

/// Immutable weights that samplers and trainers share through an [`Arc`].
///
/// Besides the weights it holds them packed for the forward products, so a clone costs about twice
/// the size of the weights.
#[derive(Clone, Debug)]
pub struct Model {
    config: ModelConfig,
    layout: Arc<Layout>,
    weights: Buffer,
    layers: Vec<PackedLayer>,
    head: Packed,
    /// Of rotary positions: radians a position for each pair, and the factor on cosines and sines.
    rotation: (Vec<f32>, f32),
}

/// The matrices of one layer, ready for `x Wᵀ`.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedLayer {
    pub(crate) qkv: Packed,
    pub(crate) output: Packed,
    pub(crate) gate_up: Packed,
    pub(crate) down: Packed,
}

impl Model {
    /// A new model, its weights drawn as `initializer` says.
    pub fn new(
        config: ModelConfig,
        initializer: Initializer,
        seed: Seed,
    ) -> Result<Self, ModelError> {
        config.check()?;
        let layout = Layout::new(&config);
        let weights = init::draw(&config, &layout, initializer, seed)?;
        Ok(Self::from_parts(config, layout, weights))
    }

    /// A new model by [`Initializer::Normal`].
    pub fn random(config: ModelConfig, seed: Seed) -> Result<Self, ModelError> {
        Self::new(config, Initializer::Normal, seed)
    }

    /// Reads a Hugging Face directory: `config.json`, and `model.safetensors` or the shards that
    /// `model.safetensors.index.json` names; F32, BF16 or F16 (widened).
    pub fn load(directory: &Path) -> Result<Self, ModelError> {
        let config =
            ModelConfig::from_json(&checkpoint::read_json(&directory.join("config.json"))?)?;
        let layout = Layout::new(&config);
        let weights = checkpoint::read_weights(directory, &layout)?;
        Ok(Self::from_parts(config, layout, weights))
    }

    /// Writes `config.json` and `model.safetensors` into `directory`, made if missing, so that
    /// `transformers.AutoModelForCausalLM.from_pretrained` loads them. Each file appears whole or
    /// not at all; a caller that wants both at once writes a fresh directory and renames it.
    pub fn save(&self, directory: &Path) -> Result<(), ModelError> {
        checkpoint::make_directory(directory)?;
        let path = directory.join("model.safetensors");
        checkpoint::write_tensors(&path, &self.layout, &[("", &self.weights)], &[])?;
        checkpoint::write_json(&directory.join("config.json"), &self.config.to_json())
    }

    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Trained numbers; a tied embedding counts once.
    pub fn n_parameters(&self) -> usize {
        self.layout.len
    }

    /// Every tensor under its Hugging Face name, with its shape, row-major.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        named(&self.layout, &self.weights)
    }

    pub(crate) fn from_parts(config: ModelConfig, layout: Layout, weights: Buffer) -> Self {
        let layers = vec![PackedLayer::default(); config.n_layers];
        let layout = Arc::new(layout);
        let rope = config.rope();
        let rotation = (rope.frequencies(), rope.amplitude());
        let mut model = Self {
            config,
            layout,
            weights,
            layers,
            head: Packed::default(),
            rotation,
        };
        model.repack();
        model
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub(crate) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The weights, for an update; [`Self::repack`] must follow.
    pub(crate) fn weights_mut(&mut self) -> &mut [f32] {
        &mut self.weights
    }

    pub(crate) fn layer(&self, layer: usize) -> &PackedLayer {
        &self.layers[layer]
    }

    /// Makes `rope` hold the first `positions` positions of this model.
    pub(crate) fn prepare_rope(&self, rope: &mut Rope, positions: usize) {
        let (frequencies, amplitude) = &self.rotation;
        rope.prepare(frequencies, *amplitude, positions);
    }

    /// `[hidden] → [vocabulary]`
    pub(crate) fn head(&self) -> &Packed {
        &self.head
    }

    /// Brings the packed matrices in line with the weights.
    pub(crate) fn repack(&mut self) {
        let (config, weights) = (&self.config, &self.weights);
        let hidden = config.hidden_size;
        for (packed, layer) in self.layers.iter_mut().zip(&self.layout.layers) {
            let matrix = |range: &std::ops::Range<usize>| &weights[range.clone()];
            packed
                .qkv
                .forward(matrix(&layer.qkv), config.qkv_width(), hidden);
            packed
                .output
                .forward(matrix(&layer.output), hidden, config.heads_width());
            let intermediate = config.intermediate_size;
            packed
                .gate_up
                .forward(matrix(&layer.gate_up), 2 * intermediate, hidden);
            packed
                .down
                .forward(matrix(&layer.down), hidden, intermediate);
        }
        self.head.forward(
            &weights[self.layout.head.clone()],
            config.vocab_size,
            hidden,
        );
    }
}

/// The tensors of a flat buffer under their names.
pub(crate) fn named<'a>(
    layout: &'a Layout,
    flat: &'a [f32],
) -> impl Iterator<Item = (&'a str, &'a [usize], &'a [f32])> {
    let tensors = layout.tensors.iter();
    tensors.map(|t| (t.name.as_str(), t.shape.as_slice(), &flat[t.range.clone()]))
}
