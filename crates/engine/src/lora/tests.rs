//! Gradients of adapters, and that they change nothing but what they should.

use std::sync::Arc;

use record::Seed;

use super::{Adapter, LoraConfig, LoraTarget};
use crate::{
    Engine, Family, Learner, LearnerOptions, Model, ModelConfig, RowScores, TokenLoss, TrainRow,
    testing::noise,
};

const VOCABULARY: usize = 37;

/// Fixed random coefficients: the loss is linear in log-probabilities and entropies.
struct Linear;

impl TokenLoss for Linear {
    fn row(
        &self,
        row: usize,
        scores: &RowScores,
        d_logprobs: &mut [f32],
        d_entropies: &mut [f32],
    ) -> f64 {
        d_logprobs.copy_from_slice(&noise(scores.logprobs.len(), 50 + row as u64));
        d_entropies.copy_from_slice(&noise(scores.logprobs.len(), 70 + row as u64));
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            let pairs = a.iter().zip(b);
            pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        dot(d_logprobs, &scores.logprobs) + dot(d_entropies, &scores.entropies)
    }
}

struct Rows(Vec<(Vec<u32>, Vec<bool>)>);

impl Rows {
    /// Rows that begin alike in pairs, so that prefixes are shared.
    fn new(lengths: &[usize]) -> Self {
        let row = |(row, &len): (usize, &usize)| {
            let token = |at: usize| {
                let stream = if at < 6 { row / 2 } else { row };
                Seed(stream as u64).stream("token", at as u64).0 % VOCABULARY as u64
            };
            let tokens = (0..len).map(|at| token(at) as u32).collect();
            (tokens, (0..len).map(|at| at > 6 && at % 2 == 0).collect())
        };
        Self(lengths.iter().enumerate().map(row).collect())
    }

    fn rows(&self) -> Vec<TrainRow<'_>> {
        let rows = self.0.iter();
        rows.map(|(tokens, mask)| TrainRow { tokens, mask })
            .collect()
    }
}

fn base(family: Family) -> Model {
    let config = ModelConfig {
        family,
        n_kv_heads: 2,
        head_dim: 10,
        initializer_range: 0.2,
        ..ModelConfig::qwen2(VOCABULARY, 24, 3, 4)
    };
    Model::random(config, Seed(3)).unwrap()
}

fn lora(targets: &[LoraTarget]) -> LoraConfig {
    LoraConfig {
        rank: 3,
        alpha: 5.0,
        dropout: 0.0,
        targets: targets.to_vec(),
        rslora: false,
    }
}

/// An adapter whose `B` is not zero.
fn trained_adapter(base: &Model, config: LoraConfig) -> Adapter {
    let mut adapter = Adapter::new(base, config, Seed(8)).unwrap();
    adapter.update(|weights| {
        let drawn = noise(weights.len(), 9);
        let pairs = weights.iter_mut().zip(drawn);
        pairs.for_each(|(weight, drawn)| *weight = 0.3 * drawn);
    });
    adapter
}

fn over(base: &Model, adapter: Adapter) -> Arc<Model> {
    Arc::new(base.with_adapter(Arc::new(adapter)).unwrap())
}

fn learner(model: Arc<Model>) -> Learner {
    Learner::new(&Engine::new(2).unwrap(), model, LearnerOptions::default())
}

fn check_gradients(family: Family, config: LoraConfig) {
    let base = base(family);
    let adapter = trained_adapter(&base, config);
    let rows = Rows::new(&[33, 30, 14, 20, 9]);
    let loss = |adapter: &Adapter| -> (f64, Vec<f32>) {
        let mut learner = learner(over(&base, adapter.clone()));
        let report = learner.forward_backward(&rows.rows(), &Linear).unwrap();
        let gradients = learner
            .gradients()
            .flat_map(|(_, _, values)| values.to_vec());
        (report.loss, gradients.collect())
    };
    let (_, gradients) = loss(&adapter);
    for tensor in &adapter.layout().tensors {
        let (name, range) = (&tensor.name, tensor.range.clone());
        let gradient = &gradients[range.clone()];
        let squares: f64 = gradient.iter().map(|g| f64::from(g * g)).sum();
        let length = squares.sqrt();
        assert!(length > 1e-3, "{name} has no gradient");
        // Along the gradient itself, so that the slope is its length.
        let shifted = |by: f64| {
            let mut adapter = adapter.clone();
            adapter.update(|weights| {
                let pairs = weights[range.clone()].iter_mut().zip(gradient);
                for (weight, g) in pairs {
                    *weight = (f64::from(*weight) + by * f64::from(*g) / length) as f32;
                }
            });
            loss(&adapter).0
        };
        let step = 2e-3;
        let slope = (shifted(step) - shifted(-step)) / (2.0 * step);
        let error = (slope / length - 1.0).abs();
        assert!(
            error < 1e-2,
            "{name}: slope {slope}, gradient of length {length}"
        );
    }
}

#[test]
fn gradients_agree_with_finite_differences() {
    check_gradients(Family::Qwen2, lora(&LoraTarget::all()));
    check_gradients(Family::Qwen3, lora(&LoraTarget::all()));
    check_gradients(
        Family::Llama,
        LoraConfig {
            rslora: true,
            ..lora(&[LoraTarget::Query, LoraTarget::Value])
        },
    );
    check_gradients(Family::Qwen2, lora(&[LoraTarget::Key, LoraTarget::Up]));
    check_gradients(Family::Qwen2, lora(&[LoraTarget::Down]));
}

#[test]
fn gradients_under_dropout_are_those_of_the_same_masks() {
    check_gradients(
        Family::Qwen2,
        LoraConfig {
            dropout: 0.3,
            ..lora(&LoraTarget::all())
        },
    );
}

#[test]
fn a_new_adapter_changes_no_bit_of_the_base() {
    let base = base(Family::Qwen2);
    let adapter = Adapter::new(&base, lora(&LoraTarget::all()), Seed(1)).unwrap();
    let adapted = over(&base, adapter);
    let rows = Rows::new(&[40, 13, 25]);
    let engine = Engine::new(2).unwrap();
    let expected = engine.score(&base, &rows.rows()).unwrap();
    assert_eq!(engine.score(&adapted, &rows.rows()).unwrap(), expected);
}

#[test]
fn merged_weights_score_as_the_adapter_does() {
    for (family, targets) in [
        (Family::Qwen2, LoraTarget::all()),
        (Family::Qwen3, vec![LoraTarget::Value, LoraTarget::Gate]),
    ] {
        let base = base(family);
        let adapted = over(&base, trained_adapter(&base, lora(&targets)));
        let merged = adapted.merged();
        assert!(merged.adapter().is_none() && !merged.shares_base(&base));
        let rows = Rows::new(&[40, 13, 25]);
        let engine = Engine::new(1).unwrap();
        let score = |model: &Model| -> Vec<f32> {
            let scores = engine.score(model, &rows.rows()).unwrap();
            scores.into_iter().flat_map(|row| row.logprobs).collect()
        };
        let (plain, found, expected) = (score(&base), score(&merged), score(&adapted));
        let distance = |a: &[f32], b: &[f32]| {
            let pairs = a.iter().zip(b);
            pairs.fold(0.0_f32, |top, (a, b)| top.max((a - b).abs()))
        };
        assert!(distance(&found, &expected) < 1e-5);
        assert!(
            distance(&plain, &expected) > 0.1,
            "the adapter does nothing"
        );
    }
}

#[test]
fn dropout_is_of_training_alone_and_drops_its_share() {
    let base = base(Family::Qwen2);
    let config = LoraConfig {
        dropout: 0.25,
        ..lora(&LoraTarget::all())
    };
    let adapted = over(&base, trained_adapter(&base, config));
    let rows = Rows::new(&[40, 30, 25]);
    let engine = Engine::new(2).unwrap();
    let scored = engine.score(&adapted, &rows.rows()).unwrap();
    let trained = |options: LearnerOptions| {
        let mut learner = Learner::new(&engine, Arc::clone(&adapted), options);
        let report = learner.forward_backward(&rows.rows(), &Linear).unwrap();
        let gradients = learner
            .gradients()
            .flat_map(|(_, _, values)| values.to_vec());
        (report.scores, gradients.collect::<Vec<f32>>())
    };
    let options = LearnerOptions::default();
    let first = trained(options);
    assert_ne!(first.0, scored);
    // However the rows are cut.
    let cut = LearnerOptions {
        micro_batch_tokens: 20,
        lanes: 3,
        ..options
    };
    assert_eq!(first.0, trained(cut).0);
    let computed_again = LearnerOptions {
        gradient_checkpointing: true,
        ..options
    };
    assert_eq!(first, trained(computed_again));
    let other = LearnerOptions {
        seed: Seed(1),
        ..options
    };
    assert_ne!(first, trained(other));

    let mut pack = crate::batch::Pack::default();
    pack.push_unscored(&[7; 400]);
    let dropout = super::Dropout::new(&pack, 0.25, Seed(5));
    let adapter = adapted.adapter().unwrap();
    let layout = adapter.layout().layers[1][2].as_ref().unwrap();
    let mut x = vec![1.0; 400 * layout.inputs];
    dropout.mask(layout, false, &mut x);
    let kept = x.iter().filter(|value| **value != 0.0).count() as f64;
    assert!((kept / x.len() as f64 - 0.75).abs() < 0.02);
    assert!(x.iter().all(|value| *value == 0.0 || *value == 1.0 / 0.75));
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let good = lora(&[LoraTarget::Query]);
    let cases = [
        (
            LoraConfig {
                rank: 0,
                ..good.clone()
            },
            "lora.rank is 0",
        ),
        (
            LoraConfig {
                alpha: 0.0,
                ..good.clone()
            },
            "lora.alpha is 0",
        ),
        (
            LoraConfig {
                dropout: 1.0,
                ..good.clone()
            },
            "lora.dropout is 1",
        ),
        (lora(&[]), "lora.targets is []"),
        (
            lora(&[LoraTarget::Up; 2]),
            "lora.targets is [up_proj, up_proj]",
        ),
    ];
    for (config, expected) in cases {
        let refused = Adapter::new(&base(Family::Qwen2), config, Seed(0)).unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}
