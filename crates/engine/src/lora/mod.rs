//! Low-rank adapters (LoRA, Hu et al. 2021, arXiv 2106.09685): `y = W x + scale · B A x`, `W` frozen.
//!
//! `A` and `B` are multiplied with what flows through the layer; `B A` is never formed, save by
//! [`Model::merged`]. Files are those of `peft`.

mod dropout;
mod layout;
mod merge;
mod peft;
mod product;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rand_chacha::rand_core::Rng;
use record::Seed;
use serde::{Deserialize, Serialize};

pub(crate) use dropout::Dropout;
pub(crate) use layout::{AdapterLayout, Product};
pub(crate) use peft::{base_of, is_adapter, load_with_base};
use product::PackedProduct;
pub(crate) use product::{ProductAdapter, ProductGradient, Span, add_spans};

use crate::{Model, ModelConfig, ModelError, buffer::Buffer, model::named};

/// What an adapter is made of; the keys of `[critic.lora]` and its like in a recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoraConfig {
    /// Rows of `A` and columns of `B`.
    pub rank: usize,
    /// `scale = alpha / rank`.
    pub alpha: f64,
    /// Chance that an input of `A` is zeroed while training; the others grow by `1 / (1 - dropout)`.
    #[serde(default)]
    pub dropout: f64,
    /// Matrices that get an adapter, in every layer.
    #[serde(default = "LoraTarget::all")]
    pub targets: Vec<LoraTarget>,
    /// `scale = alpha / sqrt(rank)` (rsLoRA, Kalajdzievski 2023, arXiv 2312.03732).
    #[serde(default)]
    pub rslora: bool,
}

/// A matrix of a decoder layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LoraTarget {
    #[serde(rename = "q_proj")]
    Query,
    #[serde(rename = "k_proj")]
    Key,
    #[serde(rename = "v_proj")]
    Value,
    #[serde(rename = "o_proj")]
    Output,
    #[serde(rename = "gate_proj")]
    Gate,
    #[serde(rename = "up_proj")]
    Up,
    #[serde(rename = "down_proj")]
    Down,
}

/// The weights of one adapter, ready for use over its base by [`Model::with_adapter`].
#[derive(Clone, Debug)]
pub struct Adapter {
    config: LoraConfig,
    layout: Arc<AdapterLayout>,
    weights: Buffer,
    /// One per layer and product.
    packed: Vec<[Option<PackedProduct>; Product::COUNT]>,
    /// Where to find the base, as `base_model_name_or_path` says.
    base_name: Option<String>,
    /// Of the base that it was made or trained for; files of other programs do not have it.
    base_digest: Option<String>,
}

impl LoraConfig {
    /// # Errors
    /// [`ModelError::BadLora`] for a number out of its range, no targets, or one named twice.
    pub fn check(&self) -> Result<(), ModelError> {
        let bad = |key, value: String, must| Err(ModelError::BadLora { key, value, must });
        if self.rank == 0 {
            return bad("rank", self.rank.to_string(), "at least 1");
        }
        if !(self.alpha > 0.0 && self.alpha.is_finite()) {
            return bad("alpha", self.alpha.to_string(), "more than 0");
        }
        if !(0.0..1.0).contains(&self.dropout) {
            let must = "at least 0 and less than 1";
            return bad("dropout", self.dropout.to_string(), must);
        }
        let mut sorted = self.targets.clone();
        sorted.sort_unstable();
        if sorted.is_empty() || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            let names: Vec<&str> = self.targets.iter().map(|target| target.name()).collect();
            let must = "a list of different matrices, at least one";
            return bad("targets", format!("[{}]", names.join(", ")), must);
        }
        Ok(())
    }

    /// Numbers of an adapter over a model of this shape.
    pub fn n_parameters(&self, base: &ModelConfig) -> usize {
        self.layout(base).len()
    }

    fn layout(&self, base: &ModelConfig) -> AdapterLayout {
        let everywhere = |_, target| self.targets.contains(&target);
        AdapterLayout::new(base, self.rank, everywhere)
    }

    /// What `B A x` is multiplied with.
    pub fn scale(&self) -> f64 {
        let rank = self.rank as f64;
        self.alpha / if self.rslora { rank.sqrt() } else { rank }
    }
}

impl LoraTarget {
    /// Every matrix of a layer: what `peft` calls `all-linear`.
    pub fn all() -> Vec<Self> {
        use LoraTarget::{Down, Gate, Key, Output, Query, Up, Value};
        vec![Query, Key, Value, Output, Gate, Up, Down]
    }

    /// Its name in Hugging Face checkpoints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "q_proj",
            Self::Key => "k_proj",
            Self::Value => "v_proj",
            Self::Output => "o_proj",
            Self::Gate => "gate_proj",
            Self::Up => "up_proj",
            Self::Down => "down_proj",
        }
    }
}

impl Adapter {
    /// A new adapter over `base`: `A` uniform with the variance `1 / (3 · inputs)` (as `peft` draws
    /// it), `B` zero, so that at first it changes nothing.
    ///
    /// # Errors
    /// See [`LoraConfig::check`].
    pub fn new(base: &Model, config: LoraConfig, seed: Seed) -> Result<Self, ModelError> {
        config.check()?;
        let layout = config.layout(base.config());
        let mut weights = Buffer::zeroed(layout.len());
        for (index, tensor) in layout.tensors.iter().enumerate() {
            if !AdapterLayout::is_a(tensor) {
                continue;
            }
            let mut rng = seed.stream("lora", index as u64).rng();
            let bound = 1.0 / (tensor.shape[1] as f32).sqrt();
            for weight in &mut weights[tensor.range.clone()] {
                // The upper 24 bits, so that every value has an exact f32.
                let unit = (rng.next_u32() >> 8) as f32 / (1 << 24) as f32;
                *weight = bound * (2.0 * unit - 1.0);
            }
        }
        let digest = Some(base.digest().to_owned());
        Ok(Self::from_parts(config, layout, weights, None, digest))
    }

    /// Says in `adapter_config.json` where the base is: a directory, relative to the adapter's own, or
    /// a name on the Hugging Face hub.
    pub fn named_base(mut self, name: &str) -> Self {
        self.base_name = Some(name.to_owned());
        self
    }

    /// Where the base is, as [`Self::named_base`] said or the adapter's file did.
    pub fn base_name(&self) -> Option<&str> {
        self.base_name.as_deref()
    }

    /// The same weights, to be trained with another dropout.
    ///
    /// # Errors
    /// See [`LoraConfig::check`].
    pub fn with_dropout(mut self, dropout: f64) -> Result<Self, ModelError> {
        self.config.dropout = dropout;
        self.config.check()?;
        Ok(self)
    }

    pub fn config(&self) -> &LoraConfig {
        &self.config
    }

    /// Trained numbers.
    pub fn n_parameters(&self) -> usize {
        self.layout.len()
    }

    /// Every tensor under its name in `peft`'s files, with its shape, row-major.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        named(&self.layout.tensors, &self.weights)
    }

    fn from_parts(
        config: LoraConfig,
        layout: AdapterLayout,
        weights: Buffer,
        base_name: Option<String>,
        base_digest: Option<String>,
    ) -> Self {
        let mut adapter = Self {
            config,
            packed: Vec::new(),
            layout: Arc::new(layout),
            weights,
            base_name,
            base_digest,
        };
        adapter.repack();
        adapter
    }

    /// Whether it can be used over `base`.
    pub(crate) fn check_base(&self, base: &Model) -> Result<(), ModelError> {
        let another = |reason| Err(ModelError::AdapterOfAnotherBase { reason });
        if let Some(reason) = self.layout.misfit(base.config()) {
            return another(reason);
        }
        match &self.base_digest {
            Some(digest) if digest != base.digest() => another(format!(
                "it was trained over weights with the digest {digest} and these have {}",
                base.digest()
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn layout(&self) -> &Arc<AdapterLayout> {
        &self.layout
    }

    /// Has `update` change the weights.
    pub(crate) fn update(&mut self, update: impl FnOnce(&mut [f32])) {
        update(&mut self.weights);
        self.repack();
    }

    /// The part that belongs to one product of one layer.
    pub(crate) fn product(&self, layer: usize, product: Product) -> Option<ProductAdapter<'_>> {
        let index = product as usize;
        let layout = self.layout.layers[layer][index].as_ref()?;
        Some(ProductAdapter {
            layout,
            packed: self.packed[layer][index].as_ref()?,
            scale: self.config.scale() as f32,
        })
    }

    /// The first layer that has anything to train.
    pub(crate) fn first_layer(&self) -> usize {
        let has_any = |products: &[Option<_>; Product::COUNT]| products.iter().any(Option::is_some);
        let first = self.layout.layers.iter().position(has_any);
        first.unwrap_or(self.layout.layers.len())
    }

    fn repack(&mut self) {
        self.packed
            .resize_with(self.layout.layers.len(), Default::default);
        for (packed, layouts) in self.packed.iter_mut().zip(&self.layout.layers) {
            for (packed, layout) in packed.iter_mut().zip(layouts) {
                if let Some(layout) = layout {
                    let packed = packed.get_or_insert_default();
                    packed.repack(layout, &self.weights);
                }
            }
        }
    }
}

/// The widths that decide whether an adapter fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) hidden: usize,
    pub(crate) intermediate: usize,
    pub(crate) queries: usize,
    pub(crate) key_values: usize,
}

impl Widths {
    pub(crate) fn of(config: &ModelConfig) -> Self {
        Self {
            hidden: config.hidden_size,
            intermediate: config.intermediate_size,
            queries: config.heads_width(),
            key_values: config.n_kv_heads * config.head_dim,
        }
    }
}
