//! Training: accumulated gradients over fixed lanes, one fused optimizer pass, free publication.

use std::{path::Path, sync::Arc};

use rayon::prelude::*;
use record::Seed;

use crate::{
    Adapter, Dtype, Engine, Model, ModelError, RowError, RowScores, TokenLoss, TrainRow,
    batch::{Family, check_rows, lanes, micro_batches},
    block::Gradients,
    buffer::Buffer,
    checkpoint,
    kernels::adamw::{self, Update},
    layout::{Tensor, TensorKind},
    model::named,
    pass::{self, BackwardWeights, Training},
    workspace::Workspace,
};

/// The optimizer's numbers for one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    pub learning_rate: f32,
    pub beta1: f32,
    pub beta2: f32,
    pub epsilon: f32,
    /// Decoupled; matrices only, not norms and biases.
    pub weight_decay: f32,
    /// Gradients of a larger global norm are scaled down to it; infinity clips nothing.
    pub max_grad_norm: f64,
}

impl AdamW {
    /// β = (0.9, 0.999), ε = 1e-8, no weight decay, clipping at norm 1.
    pub fn at(learning_rate: f32) -> Self {
        Self {
            learning_rate,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            max_grad_norm: 1.0,
        }
    }

    /// The scalars of optimizer step `step`, counted from 1, on gradients of this global norm; without
    /// and with weight decay.
    pub(crate) fn updates(&self, step: u64, grad_norm: f64) -> [Update; 2] {
        let step = step.min(i32::MAX as u64) as i32;
        let clip = if grad_norm > self.max_grad_norm {
            self.max_grad_norm / grad_norm
        } else {
            1.0
        };
        let rate = f64::from(self.learning_rate) / (1.0 - f64::from(self.beta1).powi(step));
        let update = Update {
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon,
            rate: rate as f32,
            root_correction: (1.0 / (1.0 - f64::from(self.beta2).powi(step)).sqrt()) as f32,
            keep: 1.0,
            gradient_factor: clip as f32,
        };
        let decayed = Update {
            keep: 1.0 - self.learning_rate * self.weight_decay,
            ..update
        };
        [update, decayed]
    }
}

/// How work is divided. Both numbers shape the order of summation, so they are part of what makes
/// two runs equal; the number of threads is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnerOptions {
    /// Tokens that one lane runs forward and backward together: bounds activation memory.
    pub micro_batch_tokens: usize,
    /// Independent gradient sums, added up in order before a step: the most threads that training
    /// can use.
    pub lanes: usize,
    /// Of the dropout of adapters; nothing else is random.
    pub seed: Seed,
    /// Keep the input of each layer alone and compute the rest again in the backward pass: more time, less
    /// memory, and the same bytes.
    pub gradient_checkpointing: bool,
}

impl Default for LearnerOptions {
    fn default() -> Self {
        Self {
            micro_batch_tokens: 512,
            lanes: 4,
            seed: Seed(0),
            gradient_checkpointing: false,
        }
    }
}

/// What [`Learner::forward_backward`] came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchReport {
    /// One per row, in the order of the rows.
    pub scores: Vec<RowScores>,
    /// Sum of the rows' shares, in the order of the rows.
    pub loss: f64,
}

/// What [`Learner::optim_step`] did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Global norm of the accumulated gradients before clipping.
    pub grad_norm: f64,
    /// False when the norm was not finite: weights, moments and step count are as before.
    pub applied: bool,
    /// Steps applied since the optimizer was made.
    pub step: u64,
}

/// A model in training, its gradients and its optimizer.
///
/// Of a model with an adapter the adapter is trained and everything else frozen: the weights get no
/// gradients and no moments, and the learners of several adapters over one base share them.
pub struct Learner {
    engine: Engine,
    options: LearnerOptions,
    model: Arc<Model>,
    backward: Arc<BackwardWeights>,
    lanes: Vec<Buffer>,
    moments: Moments,
    /// Of a bf16 model: its weights before they were rounded.
    master: Option<Buffer>,
    step: u64,
}

/// Adam's running means of gradients and of their squares.
struct Moments {
    first: Buffer,
    second: Buffer,
}

/// What an optimizer keeps besides the model.
struct OptimizerState {
    moments: Moments,
    master: Option<Buffer>,
    step: u64,
}

/// Names in the file of an optimizer: prefixes of those of the weights. The last is for bf16 models.
const PREFIXES: [&str; 3] = ["first_moment.", "second_moment.", "master."];

/// Parameters that one task reduces and updates; also the grain of the gradient norm.
const CHUNK: usize = 1 << 14;

impl Learner {
    pub fn new(engine: &Engine, model: Arc<Model>, options: LearnerOptions) -> Self {
        let len = trained_len(&model);
        let moments = Moments {
            first: Buffer::zeroed(len),
            second: Buffer::zeroed(len),
        };
        let state = OptimizerState {
            moments,
            master: has_master(&model).then(|| Buffer::from(model.weights())),
            step: 0,
        };
        Self::with_state(engine, model, options, state)
    }

    fn with_state(
        engine: &Engine,
        model: Arc<Model>,
        options: LearnerOptions,
        state: OptimizerState,
    ) -> Self {
        let OptimizerState {
            moments,
            master,
            step,
        } = state;
        let lanes = (0..options.lanes.max(1))
            .map(|_| Buffer::zeroed(trained_len(&model)))
            .collect();
        let backward = if model.adapter().is_some() {
            Arc::clone(model.backward_weights())
        } else {
            let mut packed = BackwardWeights::default();
            packed.repack(&model);
            Arc::new(packed)
        };
        Self {
            engine: engine.clone(),
            options,
            model,
            backward,
            lanes,
            moments,
            master,
            step,
        }
    }

    /// Runs the rows forward and backward, adding to the gradients that the next
    /// [`Self::optim_step`] uses. On error nothing was added.
    ///
    /// Neighbouring rows that begin alike (the samples of one prompt) run their common beginning
    /// once. Rows are divided among the lanes by cost; inside a lane they run in micro-batches,
    /// packed without padding. Equal rows in equal order give equal bytes on any number of threads.
    pub fn forward_backward(
        &mut self,
        rows: &[TrainRow],
        loss: &dyn TokenLoss,
    ) -> Result<BatchReport, RowError> {
        let results = self.run_lanes(rows, loss, |model, workspace, training| {
            pass::run(model, workspace, Some(training))
        })?;
        let mut report = BatchReport {
            scores: vec![RowScores::default(); rows.len()],
            loss: 0.0,
        };
        let mut losses = vec![0.0; rows.len()];
        for (index, scores, loss) in results.into_iter().flat_map(|pack| pack.rows) {
            report.scores[index] = scores;
            losses[index] = loss;
        }
        report.loss = losses.iter().sum();
        Ok(report)
    }

    /// Divides the rows into packs, gives each to `pass`, which adds to the gradients of its lane, and
    /// returns what came of them: the same, in the same order, on any number of threads.
    pub(crate) fn run_lanes<L: ?Sized + Sync, R: Send>(
        &mut self,
        rows: &[TrainRow],
        loss: &L,
        pass: impl Fn(&Model, &mut Workspace, Training<L>) -> R + Sync,
    ) -> Result<Vec<R>, RowError> {
        check_rows(self.model.config(), rows)?;
        let order = lanes(rows, self.lanes.len());
        let Self {
            engine,
            options,
            model,
            backward,
            lanes,
            step,
            ..
        } = self;
        let (engine, model, backward) = (&*engine, &**model, &**backward);
        let seed = options.seed.stream("dropout", *step);
        let work = lanes.par_iter_mut().zip(&order);
        let results: Vec<Vec<R>> = engine.run(|| {
            work.with_max_len(1)
                .map(|(gradients, lane)| {
                    let run = |families: Vec<Family>| {
                        engine.with_workspace(|workspace| {
                            workspace.pack.fill(rows, &families);
                            let training = Training {
                                loss,
                                packed: backward,
                                gradients: match model.adapter() {
                                    Some(_) => Gradients::Adapter(gradients),
                                    None => Gradients::Weights(gradients),
                                },
                                seed,
                                checkpointing: options.gradient_checkpointing,
                            };
                            pass(model, workspace, training)
                        })
                    };
                    let runs = micro_batches(rows, lane, options.micro_batch_tokens);
                    runs.into_iter().map(run).collect()
                })
                .collect()
        });
        Ok(results.into_iter().flatten().collect())
    }

    /// Applies the accumulated gradients and clears them.
    ///
    /// The published model is changed in place unless someone still holds it; then it is copied
    /// first. A gradient norm that is not finite changes nothing but is reported.
    pub fn optim_step(&mut self, adam: &AdamW) -> StepReport {
        let grad_norm = self.reduce_gradients();
        self.step_at(adam, grad_norm)
    }

    /// [`Self::optim_step`] on gradients that [`Self::reduce_gradients`] has added up already, clipped as
    /// if their norm were `grad_norm`: with what is trained beside the model.
    pub(crate) fn step_at(&mut self, adam: &AdamW, grad_norm: f64) -> StepReport {
        let applied = grad_norm.is_finite();
        if applied {
            self.step += 1;
            self.apply(adam, grad_norm);
        } else {
            self.zero_gradients();
        }
        StepReport {
            grad_norm,
            applied,
            step: self.step,
        }
    }

    /// Forgets the accumulated gradients.
    pub fn zero_gradients(&mut self) {
        let lanes = &mut self.lanes;
        self.engine.run(|| {
            for lane in lanes {
                lane.par_chunks_mut(CHUNK).for_each(|part| part.fill(0.0));
            }
        });
    }

    /// The current weights, shared: the next [`Self::optim_step`] copies them only if the caller
    /// still holds them then.
    pub fn publish(&self) -> Arc<Model> {
        Arc::clone(&self.model)
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Optimizer steps applied so far.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The accumulated gradients of what is trained as they stand, under Hugging Face names with shapes,
    /// row-major.
    pub fn gradients(&mut self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        self.reduce_gradients();
        named(trained(&self.model), &self.lanes[0])
    }

    /// Writes the model ([`Model::save`]: of one with an adapter the adapter alone) and
    /// `optimizer.safetensors` into `directory`. Accumulated gradients are not kept: save after a step.
    pub fn save(&self, directory: &Path) -> Result<(), ModelError> {
        self.model.save(directory)?;
        let mut buffers = vec![
            (PREFIXES[0], &*self.moments.first),
            (PREFIXES[1], &*self.moments.second),
        ];
        buffers.extend(self.master.as_deref().map(|master| (PREFIXES[2], master)));
        checkpoint::write_tensors(
            &directory.join("optimizer.safetensors"),
            trained(&self.model),
            &buffers,
            &[("step", self.step.to_string())],
        )
    }

    /// Reads what [`Self::save`] wrote; training goes on with the same bytes as if never stopped. The
    /// base of an adapter is found as [`Model::load`] finds it.
    pub fn load(
        engine: &Engine,
        directory: &Path,
        options: LearnerOptions,
    ) -> Result<Self, ModelError> {
        let model = Model::load(directory)?;
        Self::load_moments(engine, model, directory, options)
    }

    /// [`Self::load`] of an adapter over a base that is in memory already; where `base` has an adapter, the
    /// loaded one takes over where that one says that the base is.
    pub fn load_over(
        engine: &Engine,
        base: &Model,
        directory: &Path,
        options: LearnerOptions,
    ) -> Result<Self, ModelError> {
        let mut adapter = Adapter::load(directory, base)?;
        let before = base.adapter().and_then(|adapter| adapter.base_name());
        if let Some(name) = before {
            adapter = adapter.named_base(name);
        }
        let model = base.with_adapter(Arc::new(adapter))?;
        Self::load_moments(engine, model, directory, options)
    }

    fn load_moments(
        engine: &Engine,
        model: Model,
        directory: &Path,
        options: LearnerOptions,
    ) -> Result<Self, ModelError> {
        let path = directory.join("optimizer.safetensors");
        let prefixes = &PREFIXES[..if has_master(&model) { 3 } else { 2 }];
        let (buffers, metadata) = checkpoint::read_tensors(&path, trained(&model), prefixes, None)?;
        let step = metadata.get("step").and_then(|step| step.parse().ok());
        let Some(step) = step else {
            return Err(ModelError::BadMetadata { path, key: "step" });
        };
        let mut buffers = buffers.into_iter();
        let state = OptimizerState {
            moments: Moments {
                first: buffers.next().unwrap_or_default(),
                second: buffers.next().unwrap_or_default(),
            },
            master: buffers.next(),
            step,
        };
        Ok(Self::with_state(engine, Arc::new(model), options, state))
    }

    /// Adds all lanes into the first, clears the others and returns the norm of the sum.
    pub(crate) fn reduce_gradients(&mut self) -> f64 {
        let Some((sum, others)) = self.lanes.split_first_mut() else {
            return 0.0;
        };
        let squares: Vec<f64> = self.engine.run(|| {
            let mut parts: Vec<_> = others
                .iter_mut()
                .map(|lane| lane.chunks_mut(CHUNK))
                .collect();
            let work: Vec<_> = sum
                .chunks_mut(CHUNK)
                .map(|sum| {
                    (
                        sum,
                        parts
                            .iter_mut()
                            .filter_map(Iterator::next)
                            .collect::<Vec<_>>(),
                    )
                })
                .collect();
            work.into_par_iter()
                .map(|(sum, others)| reduce_chunk(sum, others))
                .collect()
        });
        squares.iter().sum::<f64>().sqrt()
    }

    fn apply(&mut self, adam: &AdamW, grad_norm: f64) {
        let [update, decayed] = adam.updates(self.step, grad_norm);
        let model = Arc::make_mut(&mut self.model);
        let (gradients, moments) = (&mut *self.lanes[0], &mut self.moments);
        let engine = &self.engine;
        if let Some(adapter) = model.adapter() {
            let layout = Arc::clone(adapter.layout());
            model.update_adapter(|weights| {
                let tensors = &layout.tensors;
                update_all(
                    engine,
                    tensors,
                    [update, decayed],
                    weights,
                    gradients,
                    moments,
                );
            });
            return;
        }
        let layout = Arc::clone(model.layout());
        let master = &mut self.master;
        let mut apply = |weights: &mut [f32]| {
            let tensors = &layout.tensors;
            update_all(
                engine,
                tensors,
                [update, decayed],
                weights,
                gradients,
                moments,
            );
        };
        let backward = Arc::make_mut(&mut self.backward);
        engine.run(|| {
            model.update_weights(|weights| match master {
                None => apply(weights),
                Some(master) => {
                    apply(master);
                    let pairs = weights.par_chunks_mut(CHUNK).zip(master.par_chunks(CHUNK));
                    pairs.for_each(|(weights, master)| weights.copy_from_slice(master));
                }
            });
            backward.repack(model);
        });
    }
}

/// One optimizer step over flat buffers; `decayed` is for the matrices.
fn update_all(
    engine: &Engine,
    tensors: &[Tensor],
    [update, decayed]: [Update; 2],
    mut weights: &mut [f32],
    mut gradients: &mut [f32],
    moments: &mut Moments,
) {
    let (mut first, mut second) = (&mut *moments.first, &mut *moments.second);
    let mut work = Vec::new();
    for tensor in tensors {
        let update = if tensor.kind == TensorKind::Matrix {
            decayed
        } else {
            update
        };
        let mut left = tensor.range.len();
        while left > 0 {
            let len = left.min(CHUNK);
            left -= len;
            let (g, m, v, w);
            (g, gradients) = gradients.split_at_mut(len);
            (w, weights) = weights.split_at_mut(len);
            (m, first) = first.split_at_mut(len);
            (v, second) = second.split_at_mut(len);
            work.push((update, g, w, m, v));
        }
    }
    engine.run(|| {
        work.into_par_iter()
            .for_each(|(update, g, w, m, v)| adamw::update(update, g, w, m, v));
    });
}

/// What a learner of this model trains: its adapter, or all of its weights.
fn trained(model: &Model) -> &[Tensor] {
    match model.adapter() {
        Some(adapter) => &adapter.layout().tensors,
        None => &model.layout().tensors,
    }
}

/// Whether the weights that are trained are not those that the model computes with.
fn has_master(model: &Model) -> bool {
    model.adapter().is_none() && model.config().dtype == Dtype::Bf16
}

fn trained_len(model: &Model) -> usize {
    trained(model).last().map_or(0, |last| last.range.end)
}

/// Adds `others` to `sum` in order, clears them and returns the sum's Σ x², in double precision.
fn reduce_chunk(sum: &mut [f32], others: Vec<&mut [f32]>) -> f64 {
    for other in others {
        for (sum, value) in sum.iter_mut().zip(other) {
            *sum += *value;
            *value = 0.0;
        }
    }
    let mut squares = [0.0_f64; 8];
    let (blocks, rest) = sum.as_chunks::<8>();
    for block in blocks {
        for lane in 0..8 {
            squares[lane] += f64::from(block[lane]) * f64::from(block[lane]);
        }
    }
    let rest: f64 = rest
        .iter()
        .map(|&value| f64::from(value) * f64::from(value))
        .sum();
    squares.iter().sum::<f64>() + rest
}
