//! A scalar value head over a decoder: what is expected to come after each token, and its training.

use std::{path::Path, sync::Arc};

use rayon::prelude::*;

use crate::{
    AdamW, Engine, Learner, LearnerOptions, Model, ModelConfig, ModelError, RowError, StepReport,
    TrainRow,
    batch::{check_rows, families, micro_batches},
    buffer::Buffer,
    checkpoint,
    kernels::{adamw, math},
    layout::{Tensor, TensorKind},
    pass::{self, Training},
    workspace::Workspace,
};

/// A loss over the values of masked tokens. `learn` implements it; the engine calls it once per row.
pub trait ValueLoss: Sync {
    /// Writes `d loss / d values[i]` (the slice arrives zeroed, as long as `values`) and returns the
    /// row's share of the loss. `row` is the index of the row in the batch given to the learner.
    fn row(&self, row: usize, values: &[f32], d_values: &mut [f32]) -> f64;
}

/// `V = w · h + b`, where `h` is the output of a decoder after its final norm: one number a position.
///
/// Tensors are named as those of `transformers`' token classifiers with one label: `score.weight`
/// `[1, hidden]` and `score.bias` `[1]`.
#[derive(Clone, Debug)]
pub struct ValueHead {
    /// The weights, then the bias.
    parameters: Buffer,
}

/// What [`ValueLearner::forward_backward`] came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueReport {
    /// Per row the value before each masked token, in the order of the rows.
    pub values: Vec<Vec<f32>>,
    /// Sum of the rows' shares, in the order of the rows.
    pub loss: f64,
}

/// A value function in training: a decoder of its own, the head over it, gradients and optimizer.
///
/// The decoder is trained as a [`Learner`] trains it (of a model with an adapter the adapter alone), and
/// both parts take one optimizer step with one gradient norm. An output projection that is not tied to
/// the embedding says nothing of values and gets no gradient.
pub struct ValueLearner {
    engine: Engine,
    learner: Learner,
    head: ValueHead,
    gradients: Vec<f32>,
    first_moments: Buffer,
    second_moments: Buffer,
}

const FILE: &str = "value_head.safetensors";
const PREFIXES: [&str; 3] = ["", "first_moment.", "second_moment."];
/// Tokens scored together by one thread. Values do not depend on it.
const MICRO_BATCH_TOKENS: usize = 512;

impl ValueHead {
    /// A head that says 0 everywhere.
    pub fn zeros(config: &ModelConfig) -> Self {
        Self {
            parameters: Buffer::zeroed(config.hidden_size + 1),
        }
    }

    /// `w`, as long as the decoder's hidden size.
    pub fn weight(&self) -> &[f32] {
        &self.parameters[..self.parameters.len() - 1]
    }

    pub fn bias(&self) -> f32 {
        self.parameters[self.parameters.len() - 1]
    }

    /// The value of one normed output.
    fn value(&self, normed: &[f32]) -> f32 {
        math::vectorised(
            #[inline(always)]
            || math::dot(normed, self.weight()),
        ) + self.bias()
    }
}

impl Engine {
    /// The value before each masked token of every row, under a decoder and a head over it, in the order
    /// of the rows. A row's values are the same bytes whatever the other rows and the number of threads.
    pub fn values(
        &self,
        decoder: &Model,
        head: &ValueHead,
        rows: &[TrainRow],
    ) -> Result<Vec<Vec<f32>>, RowError> {
        check_rows(decoder.config(), rows)?;
        let micro_batches = micro_batches(rows, &families(rows), MICRO_BATCH_TOKENS);
        let found: Vec<PackValues> = self.run(|| {
            let run = |families: &Vec<_>| {
                self.with_workspace(|workspace| {
                    workspace.pack.fill(rows, families);
                    run(decoder, head, workspace, None)
                })
            };
            micro_batches.par_iter().map(run).collect()
        });
        let rows = found.into_iter().flat_map(|pack| pack.rows);
        Ok(rows.map(|(_, values, _)| values).collect())
    }
}

impl ValueLearner {
    /// Trains a copy of `decoder` under a head that says 0 at first.
    pub fn new(engine: &Engine, decoder: Arc<Model>, options: LearnerOptions) -> Self {
        let head = ValueHead::zeros(decoder.config());
        let learner = Learner::new(engine, decoder, options);
        let moments = || Buffer::zeroed(head.parameters.len());
        let (first_moments, second_moments) = (moments(), moments());
        Self::from_parts(engine, learner, head, first_moments, second_moments)
    }

    fn from_parts(
        engine: &Engine,
        learner: Learner,
        head: ValueHead,
        first_moments: Buffer,
        second_moments: Buffer,
    ) -> Self {
        Self {
            engine: engine.clone(),
            learner,
            gradients: vec![0.0; head.parameters.len()],
            head,
            first_moments,
            second_moments,
        }
    }

    /// The decoder as it stands.
    pub fn decoder(&self) -> &Model {
        self.learner.model()
    }

    pub fn head(&self) -> &ValueHead {
        &self.head
    }

    /// Optimizer steps applied so far.
    pub fn step(&self) -> u64 {
        self.learner.step()
    }

    /// The value before each masked token, without gradients: [`Engine::values`].
    pub fn values(&self, rows: &[TrainRow]) -> Result<Vec<Vec<f32>>, RowError> {
        self.engine.values(self.decoder(), &self.head, rows)
    }

    /// Runs the rows forward and backward, adding to the gradients that the next
    /// [`Self::optim_step`] uses; divided and packed as by [`Learner::forward_backward`]. On error
    /// nothing was added.
    pub fn forward_backward(
        &mut self,
        rows: &[TrainRow],
        loss: &dyn ValueLoss,
    ) -> Result<ValueReport, RowError> {
        let head = &self.head;
        let results = self
            .learner
            .run_lanes(rows, loss, |decoder, workspace, training| {
                run(decoder, head, workspace, Some(training))
            })?;
        let mut report = ValueReport {
            values: vec![Vec::new(); rows.len()],
            loss: 0.0,
        };
        let mut losses = vec![0.0; rows.len()];
        for pack in results {
            for (index, values, loss) in pack.rows {
                report.values[index] = values;
                losses[index] = loss;
            }
            let sums = self.gradients.iter_mut().zip(pack.d_head);
            sums.for_each(|(sum, gradient)| *sum += gradient);
        }
        report.loss = losses.iter().sum();
        Ok(report)
    }

    /// Applies the accumulated gradients of decoder and head and clears them. A gradient norm that is
    /// not finite changes nothing but is reported.
    pub fn optim_step(&mut self, adam: &AdamW) -> StepReport {
        let square = |gradient: &f32| f64::from(*gradient) * f64::from(*gradient);
        let head: f64 = self.gradients.iter().map(square).sum();
        let decoder = self.learner.reduce_gradients();
        let report = self
            .learner
            .step_at(adam, (decoder * decoder + head).sqrt());
        if report.applied {
            let hidden = self.gradients.len() - 1;
            let [plain, decayed] = adam.updates(report.step, report.grad_norm);
            for (update, part) in [(decayed, 0..hidden), (plain, hidden..hidden + 1)] {
                adamw::update(
                    update,
                    &mut self.gradients[part.clone()],
                    &mut self.head.parameters[part.clone()],
                    &mut self.first_moments[part.clone()],
                    &mut self.second_moments[part],
                );
            }
        }
        self.gradients.fill(0.0);
        report
    }

    /// Writes the decoder as [`Learner::save`] does, and beside it `value_head.safetensors` with the
    /// head and its moments. Accumulated gradients are not kept: save after a step.
    pub fn save(&self, directory: &Path) -> Result<(), ModelError> {
        self.learner.save(directory)?;
        let buffers: [&[f32]; 3] = [
            &self.head.parameters,
            &self.first_moments,
            &self.second_moments,
        ];
        let named: Vec<(&str, &[f32])> = PREFIXES.into_iter().zip(buffers).collect();
        checkpoint::write_tensors(
            &directory.join(FILE),
            &tensors(self.decoder().config()),
            &named,
            &[],
        )
    }

    /// Reads what [`Self::save`] wrote; training goes on with the same bytes as if never stopped.
    pub fn load(
        engine: &Engine,
        directory: &Path,
        options: LearnerOptions,
    ) -> Result<Self, ModelError> {
        Self::load_beside(
            engine,
            Learner::load(engine, directory, options)?,
            directory,
        )
    }

    /// [`Self::load`] of an adapter over a base that is in memory already.
    pub fn load_over(
        engine: &Engine,
        base: &Model,
        directory: &Path,
        options: LearnerOptions,
    ) -> Result<Self, ModelError> {
        let learner = Learner::load_over(engine, base, directory, options)?;
        Self::load_beside(engine, learner, directory)
    }

    fn load_beside(
        engine: &Engine,
        learner: Learner,
        directory: &Path,
    ) -> Result<Self, ModelError> {
        let tensors = tensors(learner.model().config());
        let path = directory.join(FILE);
        let (buffers, _) = checkpoint::read_tensors(&path, &tensors, &PREFIXES, None)?;
        let mut buffers = buffers.into_iter();
        let mut next = || buffers.next().unwrap_or_default();
        let head = ValueHead { parameters: next() };
        let (first_moments, second_moments) = (next(), next());
        Ok(Self::from_parts(
            engine,
            learner,
            head,
            first_moments,
            second_moments,
        ))
    }
}

fn tensors(config: &ModelConfig) -> [Tensor; 2] {
    let hidden = config.hidden_size;
    let tensor = |name: &str, shape: Vec<usize>, range, kind| Tensor {
        name: name.to_owned(),
        shape,
        range,
        kind,
    };
    [
        tensor(
            "score.weight",
            vec![1, hidden],
            0..hidden,
            TensorKind::Matrix,
        ),
        tensor("score.bias", vec![1], hidden..hidden + 1, TensorKind::Bias),
    ]
}

/// What the rows of one pack came to.
struct PackValues {
    /// Values and, under a loss, the row's share of it, each with the row's index in the batch.
    rows: Vec<(usize, Vec<f32>, f64)>,
    /// Of the head's parameters; empty without a loss.
    d_head: Vec<f32>,
}

/// Runs the pack in `workspace`; in training also backward, adding to the gradients of the decoder.
fn run(
    decoder: &Model,
    head: &ValueHead,
    workspace: &mut Workspace,
    training: Option<Training<dyn ValueLoss>>,
) -> PackValues {
    let indexed = workspace.pack.rows.iter();
    let indexed = indexed.filter_map(|row| Some((row.index?, row.queries.clone())));
    let indexed: Vec<_> = indexed.collect();
    let mut found = PackValues {
        rows: Vec::with_capacity(indexed.len()),
        d_head: Vec::new(),
    };
    if workspace.pack.queries.is_empty() {
        let empty = indexed
            .into_iter()
            .map(|(index, _)| (index, Vec::new(), 0.0));
        found.rows.extend(empty);
        return found;
    }
    let dropout = training
        .as_ref()
        .and_then(|training| training.dropout(decoder, &workspace.pack));
    let dropout = dropout.as_ref();
    let keep = pass::Keep::for_training(training.as_ref());
    pass::trunk(decoder, workspace, keep, dropout, |_, _| {});
    let hidden = decoder.config().hidden_size;
    let mut d_values = vec![0.0; workspace.pack.queries.len()];
    for (index, queries) in indexed {
        let normed = &workspace.normed_last[queries.start * hidden..queries.end * hidden];
        let values = normed.chunks_exact(hidden);
        let values: Vec<f32> = values.map(|normed| head.value(normed)).collect();
        let share = training.as_ref().map_or(0.0, |training| {
            training.loss.row(index, &values, &mut d_values[queries])
        });
        found.rows.push((index, values, share));
    }
    if let Some(training) = training {
        found.d_head = head_backward(head, &d_values, workspace);
        pass::backward(decoder, workspace, dropout, training);
    }
    found
}

/// Leaves the gradient of the normed outputs in `d_normed` and returns that of the head.
fn head_backward(head: &ValueHead, d_values: &[f32], workspace: &mut Workspace) -> Vec<f32> {
    let hidden = head.weight().len();
    let d_normed = workspace.scratch.d_normed.sized(d_values.len() * hidden);
    let mut d_head = vec![0.0; hidden + 1];
    let outputs = workspace.normed_last.chunks_exact(hidden);
    let pairs = outputs.zip(d_normed.chunks_exact_mut(hidden));
    for (&d_value, (normed, d_normed)) in d_values.iter().zip(pairs) {
        for (at, (d_normed, weight)) in d_normed.iter_mut().zip(head.weight()).enumerate() {
            *d_normed = d_value * weight;
            d_head[at] += d_value * normed[at];
        }
        d_head[hidden] += d_value;
    }
    d_head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Family,
        block::Gradients,
        pass::BackwardWeights,
        testing::{assert_gradient, noise},
    };
    use record::Seed;

    /// Half the squared distance to fixed targets.
    struct Fit;

    impl ValueLoss for Fit {
        fn row(&self, row: usize, values: &[f32], d_values: &mut [f32]) -> f64 {
            let targets = noise(values.len(), 90 + row as u64);
            let mut loss = 0.0;
            for ((value, target), d_value) in values.iter().zip(targets).zip(d_values) {
                *d_value = value - target;
                loss += f64::from(*d_value).powi(2) / 2.0;
            }
            loss
        }
    }

    type Row = (Vec<u32>, Vec<bool>);

    fn rows() -> Vec<Row> {
        let lengths = [5, 1, 33, 14];
        let row = |len: usize| {
            let tokens = noise(len, len as u64).into_iter();
            let mask = (0..len).map(|at| at > 0 && at % 2 == 0);
            (tokens.map(|x| x.to_bits() % 37).collect(), mask.collect())
        };
        lengths.into_iter().map(row).collect()
    }

    fn loss(decoder: &Model, head: &ValueHead, rows: &[Row], sink: &mut [f32]) -> (f64, Vec<f32>) {
        let mut workspace = Workspace::default();
        for (row, (tokens, mask)) in rows.iter().enumerate() {
            workspace.pack.push(row, TrainRow { tokens, mask }, 0..0);
        }
        let mut packed = BackwardWeights::default();
        packed.repack(decoder);
        let training = Training {
            loss: &Fit as &dyn ValueLoss,
            packed: &packed,
            gradients: Gradients::Weights(sink),
            seed: Seed(0),
            checkpointing: false,
        };
        let found = run(decoder, head, &mut workspace, Some(training));
        let loss = found.rows.iter().map(|(_, _, loss)| loss).sum();
        (loss, found.d_head)
    }

    fn check(config: ModelConfig) {
        let config = ModelConfig {
            initializer_range: 0.2,
            ..config
        };
        let mut decoder = Model::random(config, Seed(3)).unwrap();
        let mut head = ValueHead::zeros(decoder.config());
        let drawn = noise(head.parameters.len(), 4);
        head.parameters.copy_from_slice(&drawn);
        let rows = rows();
        let mut gradients = vec![0.0; decoder.n_parameters()];
        let (_, d_head) = loss(&decoder, &head, &rows, &mut gradients);
        assert_gradient(&drawn, &d_head, |parameters| {
            let mut head = head.clone();
            head.parameters.copy_from_slice(parameters);
            let mut ignored = vec![0.0; decoder.n_parameters()];
            loss(&decoder, &head, &rows, &mut ignored).0
        });
        let mut ignored = vec![0.0; decoder.n_parameters()];
        let layout = Arc::clone(decoder.layout());
        for Tensor { name, range, .. } in &layout.tensors {
            let gradient = &gradients[range.clone()];
            let squares = gradient.iter().map(|g| f64::from(*g) * f64::from(*g));
            let length = squares.sum::<f64>().sqrt();
            if name == "lm_head.weight" {
                assert_eq!(length, 0.0, "values do not read {name}");
                continue;
            }
            assert!(length > 1e-4, "{name} has no gradient");
            let before = decoder.weights()[range.clone()].to_vec();
            let step = 1e-3;
            // Along the gradient itself, so that the slope is its length.
            let mut shifted = |factor: f64| {
                decoder.update_weights(|weights| {
                    let pairs = before.iter().zip(gradient);
                    for (weight, (old, g)) in weights[range.clone()].iter_mut().zip(pairs) {
                        *weight = (f64::from(*old) + factor * f64::from(*g) / length) as f32;
                    }
                });
                loss(&decoder, &head, &rows, &mut ignored).0
            };
            let slope = (shifted(step) - shifted(-step)) / (2.0 * step);
            shifted(0.0);
            let error = (slope / length - 1.0).abs();
            assert!(
                error < 1e-2,
                "{name}: slope {slope}, gradient of length {length}"
            );
        }
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let config = ModelConfig {
            n_kv_heads: 2,
            ..ModelConfig::qwen2(37, 24, 3, 4)
        };
        check(config.clone());
        check(ModelConfig {
            family: Family::Llama,
            tied_embeddings: false,
            head_dim: 10,
            ..config
        });
    }
}
