//! Where each `A` and `B` lies in the one flat buffer of an adapter, and which product it belongs to.
//!
//! The matrices of a layer whose inputs are the same are multiplied as one: `q`, `k`, `v`, and `gate`,
//! `up`. Their `A`s lie side by side in the buffer and are one matrix as well.

use std::ops::Range;

use super::{LoraTarget, Widths};
use crate::{
    ModelConfig,
    layout::{Tensor, TensorKind},
};

/// Matrices of a layer that are multiplied as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Qkv,
    Output,
    GateUp,
    Down,
}

#[derive(Debug)]
pub(crate) struct AdapterLayout {
    /// Every tensor of the file, in buffer order.
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) layers: Vec<[Option<ProductLayout>; Product::COUNT]>,
    widths: Widths,
}

/// The adapters of one product.
#[derive(Clone, Debug)]
pub(crate) struct ProductLayout {
    pub(crate) product: Product,
    pub(crate) layer: usize,
    pub(crate) rank: usize,
    pub(crate) inputs: usize,
    /// Outputs of the whole product.
    pub(crate) outputs: usize,
    /// The `A`s, `[parts × rank, inputs]`.
    pub(crate) a: Range<usize>,
    pub(crate) parts: Vec<Part>,
}

/// One adapted matrix of a product.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// `[outputs, rank]`
    pub(crate) b: Range<usize>,
    /// Its outputs among those of the product.
    pub(crate) outputs: Range<usize>,
}

impl Product {
    pub(crate) const COUNT: usize = 4;
    const ALL: [Self; Self::COUNT] = [Self::Qkv, Self::Output, Self::GateUp, Self::Down];

    /// The matrices, in the order of their outputs.
    fn targets(self) -> &'static [LoraTarget] {
        match self {
            Self::Qkv => &[LoraTarget::Query, LoraTarget::Key, LoraTarget::Value],
            Self::Output => &[LoraTarget::Output],
            Self::GateUp => &[LoraTarget::Gate, LoraTarget::Up],
            Self::Down => &[LoraTarget::Down],
        }
    }

    fn inputs(self, widths: Widths) -> usize {
        match self {
            Self::Qkv | Self::GateUp => widths.hidden,
            Self::Output => widths.queries,
            Self::Down => widths.intermediate,
        }
    }
}

impl LoraTarget {
    fn outputs(self, widths: Widths) -> usize {
        match self {
            Self::Query => widths.queries,
            Self::Key | Self::Value => widths.key_values,
            Self::Gate | Self::Up => widths.intermediate,
            Self::Output | Self::Down => widths.hidden,
        }
    }

    /// Its place below the model, for example `model.layers.3.self_attn.q_proj`.
    pub(crate) fn path(self, layer: usize) -> String {
        let block = match self {
            Self::Query | Self::Key | Self::Value | Self::Output => "self_attn",
            Self::Gate | Self::Up | Self::Down => "mlp",
        };
        format!("model.layers.{layer}.{block}.{}", self.name())
    }
}

impl AdapterLayout {
    /// Adapters of one rank for the matrices that `has` names.
    pub(crate) fn new(
        config: &ModelConfig,
        rank: usize,
        has: impl Fn(usize, LoraTarget) -> bool,
    ) -> Self {
        let widths = Widths::of(config);
        let mut tensors = Vec::new();
        let layers = (0..config.n_layers)
            .map(|layer| {
                Product::ALL.map(|product| {
                    let has = |target| has(layer, target);
                    ProductLayout::new(product, layer, rank, widths, has, &mut tensors)
                })
            })
            .collect();
        Self {
            tensors,
            layers,
            widths,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tensors.last().map_or(0, |last| last.range.end)
    }

    pub(crate) fn is_a(tensor: &Tensor) -> bool {
        tensor.name.ends_with(A)
    }

    /// Why it does not fit a model, if so.
    pub(crate) fn misfit(&self, config: &ModelConfig) -> Option<String> {
        let (layers, found) = (self.layers.len(), config.n_layers);
        if layers != found {
            return Some(format!(
                "it is for {layers} layers and this model has {found}"
            ));
        }
        let found = Widths::of(config);
        (self.widths != found).then(|| {
            format!(
                "it is for matrices of the widths {:?} and this model has {found:?}",
                self.widths
            )
        })
    }

    /// The matrices that have an adapter.
    pub(crate) fn adapted(&self) -> Vec<(usize, LoraTarget)> {
        let has = |layer, target| {
            let name = a_name(layer, target);
            self.tensors.iter().any(|tensor| tensor.name == name)
        };
        let layers = 0..self.layers.len();
        layers
            .flat_map(|layer| {
                LoraTarget::all()
                    .into_iter()
                    .map(move |target| (layer, target))
            })
            .filter(|&(layer, target)| has(layer, target))
            .collect()
    }
}

impl ProductLayout {
    fn new(
        product: Product,
        layer: usize,
        rank: usize,
        widths: Widths,
        has: impl Fn(LoraTarget) -> bool,
        tensors: &mut Vec<Tensor>,
    ) -> Option<Self> {
        let inputs = product.inputs(widths);
        let adapted: Vec<LoraTarget> = product
            .targets()
            .iter()
            .copied()
            .filter(|target| has(*target))
            .collect();
        let mut push = |name: String, shape: [usize; 2]| {
            let start = tensors.last().map_or(0, |last: &Tensor| last.range.end);
            let range = start..start + shape[0] * shape[1];
            tensors.push(Tensor {
                name,
                shape: shape.to_vec(),
                range: range.clone(),
                kind: TensorKind::Matrix,
            });
            range
        };
        let a = adapted
            .iter()
            .map(|&target| push(a_name(layer, target), [rank, inputs]))
            .reduce(|first, last| first.start..last.end)?;
        let mut parts = Vec::new();
        let mut outputs = 0;
        for &target in product.targets() {
            let width = target.outputs(widths);
            if adapted.contains(&target) {
                parts.push(Part {
                    b: push(b_name(layer, target), [width, rank]),
                    outputs: outputs..outputs + width,
                });
            }
            outputs += width;
        }
        Some(Self {
            product,
            layer,
            rank,
            inputs,
            outputs,
            a,
            parts,
        })
    }

    /// Rows of the `A`s together.
    pub(crate) fn total_rank(&self) -> usize {
        self.parts.len() * self.rank
    }
}

const A: &str = ".lora_A.weight";
const B: &str = ".lora_B.weight";
const PREFIX: &str = "base_model.model.";

pub(crate) fn a_name(layer: usize, target: LoraTarget) -> String {
    format!("{PREFIX}{}{A}", target.path(layer))
}

fn b_name(layer: usize, target: LoraTarget) -> String {
    format!("{PREFIX}{}{B}", target.path(layer))
}
