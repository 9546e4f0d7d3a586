//! A model: its configuration and its weights.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use record::Seed;

use crate::{
    Adapter, Dtype, Initializer, ModelConfig, ModelError, WeightFiles, WeightType,
    buffer::Buffer,
    checkpoint, init,
    kernels::{bf16, linear::Packed, rope::Rope},
    layout::{Layout, Tensor},
    lora,
    pass::BackwardWeights,
    pool::for_each,
};

/// Immutable weights that samplers and trainers share through an [`Arc`], and perhaps a LoRA
/// [`Adapter`] over them.
///
/// A clone shares the weights: models with different adapters over one base hold it once.
#[derive(Clone, Debug)]
pub struct Model {
    base: Arc<Base>,
    adapter: Option<Arc<Adapter>>,
}

/// The weights proper. Besides them it holds them packed for the forward products, so it takes about
/// twice the size of the weights.
#[derive(Clone, Debug)]
struct Base {
    config: ModelConfig,
    layout: Arc<Layout>,
    weights: Buffer,
    layers: Vec<PackedLayer>,
    head: Packed,
    /// Of rotary positions: radians a position for each pair, and the factor on cosines and sines.
    rotation: (Vec<f32>, f32),
    /// Of the weights; worked out when first asked for.
    digest: OnceLock<String>,
    /// The weights packed for adapters to be trained over them; made when first asked for.
    backward: OnceLock<Arc<BackwardWeights>>,
}

/// The matrices of one layer, ready for `x Wᵀ`.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedLayer {
    pub(crate) qkv: Packed,
    pub(crate) output: Packed,
    pub(crate) gate_up: Packed,
    pub(crate) down: Packed,
}

impl PackedLayer {
    fn of(dtype: Dtype) -> Self {
        let packed = || Packed::of(dtype);
        Self {
            qkv: packed(),
            output: packed(),
            gate_up: packed(),
            down: packed(),
        }
    }
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
    /// `model.safetensors.index.json` names; F32, BF16 or F16 (widened). Or a directory of `peft`,
    /// which holds an adapter and names its base: both.
    pub fn load(directory: &Path) -> Result<Self, ModelError> {
        if lora::is_adapter(directory) {
            return lora::load_with_base(directory);
        }
        Self::load_dense(directory)
    }

    /// [`Self::load`] of a directory of the weights proper.
    pub(crate) fn load_dense(directory: &Path) -> Result<Self, ModelError> {
        let config = ModelConfig::load(directory)?;
        let layout = Layout::new(&config);
        let weights = checkpoint::read_weights(directory, &layout)?;
        Ok(Self::from_parts(config, layout, weights))
    }

    /// Writes `config.json` and `model.safetensors` into `directory`, made if missing, so that
    /// `transformers.AutoModelForCausalLM.from_pretrained` loads them. Each file appears whole or
    /// not at all; a caller that wants both at once writes a fresh directory and renames it.
    ///
    /// Of a model with an adapter the adapter alone is written: see [`Adapter::save`].
    pub fn save(&self, directory: &Path) -> Result<(), ModelError> {
        if let Some(adapter) = &self.adapter {
            return adapter.save(directory);
        }
        let files = WeightFiles {
            dtype: match self.config().dtype {
                Dtype::F32 => WeightType::F32,
                Dtype::Bf16 => WeightType::Bf16,
            },
            ..WeightFiles::default()
        };
        self.save_as(directory, files).map(drop)
    }

    /// [`Self::save`] of the weights proper, whatever the adapter, in files of another form. Returns the
    /// files of weights.
    ///
    /// # Errors
    /// [`ModelError::DoesNotFit`] for a weight that the type of numbers cannot hold.
    pub fn save_as(
        &self,
        directory: &Path,
        files: WeightFiles,
    ) -> Result<Vec<PathBuf>, ModelError> {
        checkpoint::make_directory(directory)?;
        let base = &*self.base;
        let tensors = &base.layout.tensors;
        let written = checkpoint::write_weights(directory, tensors, &base.weights, files)?;
        let mut config = base.config.to_json();
        config["torch_dtype"] = files.dtype.name().into();
        checkpoint::write_json(&directory.join("config.json"), &config)?;
        Ok(written)
    }

    pub fn config(&self) -> &ModelConfig {
        &self.base.config
    }

    /// Numbers of the weights, without those of an adapter; a tied embedding counts once.
    pub fn n_parameters(&self) -> usize {
        self.base.layout.len
    }

    /// Every tensor under its Hugging Face name, with its shape, row-major; without an adapter's.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        named(&self.base.layout.tensors, &self.base.weights)
    }

    /// The same weights, rounded if need be, computing with another type; without an adapter.
    pub fn with_dtype(&self, dtype: Dtype) -> Self {
        let base = &*self.base;
        let config = ModelConfig {
            dtype,
            ..base.config.clone()
        };
        let layout = Layout::new(&config);
        Self::from_parts(config, layout, base.weights.clone())
    }

    /// The adapter that is turned on.
    pub fn adapter(&self) -> Option<&Arc<Adapter>> {
        self.adapter.as_ref()
    }

    /// The same weights under another adapter.
    ///
    /// # Errors
    /// [`ModelError::AdapterOfAnotherBase`] for an adapter of another shape or for other weights.
    pub fn with_adapter(&self, adapter: Arc<Adapter>) -> Result<Self, ModelError> {
        adapter.check_base(self)?;
        Ok(Self {
            base: Arc::clone(&self.base),
            adapter: Some(adapter),
        })
    }

    /// The same weights with the adapter turned off.
    pub fn without_adapter(&self) -> Self {
        Self {
            base: Arc::clone(&self.base),
            adapter: None,
        }
    }

    /// Whether both read the same weights in memory, whatever their adapters.
    pub fn shares_base(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    /// BLAKE3 of shapes and weights, in hexadecimal; an adapter does not count.
    pub fn digest(&self) -> &str {
        let base = &*self.base;
        base.digest.get_or_init(|| {
            let mut hasher = blake3::Hasher::new();
            for (name, shape, values) in self.tensors() {
                hasher.update(format!("{name}{shape:?}").as_bytes());
                hasher.update(bytemuck::cast_slice(values));
            }
            hasher.finalize().to_hex().to_string()
        })
    }

    /// The weights packed for `dy W`, kept with them for all adapters that are trained over them.
    pub(crate) fn backward_weights(&self) -> &Arc<BackwardWeights> {
        self.base.backward.get_or_init(|| {
            let mut packed = BackwardWeights::default();
            packed.repack(self);
            Arc::new(packed)
        })
    }

    pub(crate) fn from_parts(config: ModelConfig, layout: Layout, weights: Buffer) -> Self {
        let layers = vec![PackedLayer::of(config.dtype); config.n_layers];
        let (rope, head) = (config.rope(), Packed::of(config.dtype));
        let mut base = Base {
            rotation: (rope.frequencies(), rope.amplitude()),
            config,
            layout: Arc::new(layout),
            weights,
            layers,
            head,
            digest: OnceLock::new(),
            backward: OnceLock::new(),
        };
        base.repack();
        Self {
            base: Arc::new(base),
            adapter: None,
        }
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.base.layout
    }

    pub(crate) fn weights(&self) -> &[f32] {
        &self.base.weights
    }

    /// Has `update` change the weights, which are then rounded to the type of the model; copied first if another model shares them.
    pub(crate) fn update_weights(&mut self, update: impl FnOnce(&mut [f32])) {
        let base = Arc::make_mut(&mut self.base);
        update(&mut base.weights);
        base.repack();
        (base.digest, base.backward) = Default::default();
    }

    /// Has `update` change the adapter's weights, copied first if another model shares them.
    pub(crate) fn update_adapter(&mut self, update: impl FnOnce(&mut [f32])) {
        if let Some(adapter) = &mut self.adapter {
            Arc::make_mut(adapter).update(update);
        }
    }

    pub(crate) fn layer(&self, layer: usize) -> &PackedLayer {
        &self.base.layers[layer]
    }

    /// Makes `rope` hold the first `positions` positions of this model.
    pub(crate) fn prepare_rope(&self, rope: &mut Rope, positions: usize) {
        let (frequencies, amplitude) = &self.base.rotation;
        rope.prepare(frequencies, *amplitude, positions);
    }

    /// `[hidden] → [vocabulary]`
    pub(crate) fn head(&self) -> &Packed {
        &self.base.head
    }
}

impl Base {
    /// Rounds the weights to the type of the model and brings the packed matrices in line with them.
    fn repack(&mut self) {
        if self.config.dtype == Dtype::Bf16 {
            for_each(self.weights.chunks_mut(ROUNDED).collect(), bf16::round);
        }
        let (config, weights) = (&self.config, &self.weights);
        let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
        let mut matrices = vec![(&mut self.head, &self.layout.head, config.vocab_size, hidden)];
        for (packed, layer) in self.layers.iter_mut().zip(&self.layout.layers) {
            let heads = config.heads_width();
            matrices.extend([
                (&mut packed.qkv, &layer.qkv, config.qkv_width(), hidden),
                (&mut packed.output, &layer.output, hidden, heads),
                (
                    &mut packed.gate_up,
                    &layer.gate_up,
                    2 * intermediate,
                    hidden,
                ),
                (&mut packed.down, &layer.down, hidden, intermediate),
            ]);
        }
        for_each(matrices, |(packed, range, outputs, inputs)| {
            packed.forward(&weights[range.clone()], outputs, inputs);
        });
    }
}

/// Weights that one task rounds.
const ROUNDED: usize = 1 << 18;

/// The tensors of a flat buffer under their names.
pub(crate) fn named<'a>(
    tensors: &'a [Tensor],
    flat: &'a [f32],
) -> impl Iterator<Item = (&'a str, &'a [usize], &'a [f32])> {
    let tensors = tensors.iter();
    tensors.map(|t| (t.name.as_str(), t.shape.as_slice(), &flat[t.range.clone()]))
}
