//! The value function: same bytes on any number of threads, exact resume, and it learns.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::sync::Arc;

use engine::{
    AdamW, Adapter, Dtype, Engine, Learner, LearnerOptions, LoraConfig, LoraTarget, Model,
    ModelConfig, ModelError, RowError, RowScores, TokenLoss, TrainRow, ValueHead, ValueLearner,
    ValueLoss,
};
use record::Seed;

const VOCABULARY: u64 = 50;

fn model() -> Model {
    let config = ModelConfig {
        n_kv_heads: 2,
        ..ModelConfig::qwen2(VOCABULARY as usize, 40, 2, 4)
    };
    Model::random(config, Seed(1)).unwrap()
}

struct Rows(Vec<(Vec<u32>, Vec<bool>)>);

impl Rows {
    fn new(lengths: &[usize], seed: u64) -> Self {
        let row = |(row, &len): (usize, &usize)| {
            let token = |at: usize| {
                // All rows of a seed begin alike.
                let row = if at < 6 { 0 } else { row as u64 };
                let stream = Seed(seed).stream("token", row * 1000 + at as u64);
                (stream.0 % VOCABULARY) as u32
            };
            let mask = (0..len).map(|at| at > 6 && at % 3 > 0);
            ((0..len).map(token).collect(), mask.collect())
        };
        Self(lengths.iter().enumerate().map(row).collect())
    }

    fn rows(&self) -> Vec<TrainRow<'_>> {
        let rows = self.0.iter();
        rows.map(|(tokens, mask)| TrainRow { tokens, mask })
            .collect()
    }

    /// To be foretold: the share of even tokens among the last two that are seen.
    fn targets(&self, row: usize) -> Vec<f32> {
        let (tokens, mask) = &self.0[row];
        let scored = (0..tokens.len()).filter(|&at| mask[at]);
        let even = |token: u32| if token.is_multiple_of(2) { 0.5 } else { 0.0 };
        scored
            .map(|at| even(tokens[at - 1]) + even(tokens[at - 2]))
            .collect()
    }
}

/// Mean squared distance to the targets.
struct Fit<'a>(&'a Rows);

impl ValueLoss for Fit<'_> {
    fn row(&self, row: usize, values: &[f32], d_values: &mut [f32]) -> f64 {
        let targets = self.0.targets(row);
        assert_eq!(targets.len(), values.len());
        let mut loss = 0.0;
        for ((value, target), d_value) in values.iter().zip(targets).zip(d_values) {
            *d_value = 0.02 * (value - target);
            loss += 0.01 * f64::from(value - target).powi(2);
        }
        loss
    }
}

fn train(learner: &mut ValueLearner, steps: std::ops::Range<u64>) -> Vec<u64> {
    let step = |step: u64| {
        let mut loss = 0.0;
        for part in 0..2 {
            let rows = Rows::new(&[30, 3, 17, 44, 9, 1, 26], 2 * step + part);
            loss += learner
                .forward_backward(&rows.rows(), &Fit(&rows))
                .unwrap()
                .loss;
        }
        let adam = AdamW {
            weight_decay: 0.1,
            ..AdamW::at(3e-3)
        };
        assert!(learner.optim_step(&adam).applied);
        loss.to_bits()
    };
    steps.map(step).collect()
}

fn bits(learner: &ValueLearner) -> Vec<u32> {
    let decoder = learner.decoder().tensors();
    let decoder = decoder.flat_map(|(_, _, values)| values.iter().copied());
    let head = learner.head().weight().iter().copied();
    let all = decoder.chain(head).chain([learner.head().bias()]);
    all.map(f32::to_bits).collect()
}

#[test]
fn threads_do_not_change_a_byte() {
    let results: Vec<_> = [1, 2, 4]
        .into_iter()
        .map(|threads| {
            let engine = Engine::new(threads).unwrap();
            let decoder = Arc::new(model());
            let mut learner = ValueLearner::new(&engine, decoder, LearnerOptions::default());
            let losses = train(&mut learner, 0..4);
            let rows = Rows::new(&[20, 9, 40], 99);
            (
                losses,
                bits(&learner),
                learner.values(&rows.rows()).unwrap(),
            )
        })
        .collect();
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

fn of_dtype(dtype: Dtype) -> Arc<Model> {
    let config = ModelConfig {
        dtype,
        ..model().config().clone()
    };
    Arc::new(Model::random(config, Seed(1)).unwrap())
}

#[test]
fn resuming_is_exact_to_the_bit() {
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::new(2).unwrap();
        let options = LearnerOptions::default();
        let mut straight = ValueLearner::new(&engine, of_dtype(dtype), options);
        train(&mut straight, 0..3);
        straight.save(directory.path()).unwrap();
        let mut resumed = ValueLearner::load(&engine, directory.path(), options).unwrap();
        assert_eq!(resumed.step(), 3);
        assert_eq!(train(&mut straight, 3..6), train(&mut resumed, 3..6));
        assert_eq!(bits(&straight), bits(&resumed));
    }
}

#[test]
fn what_an_engine_ran_before_changes_nothing() {
    let options = LearnerOptions::default();
    let trained = |engine: &Engine, dtype| {
        let mut learner = ValueLearner::new(engine, of_dtype(dtype), options);
        (train(&mut learner, 0..2), bits(&learner))
    };
    let dtypes = [Dtype::F32, Dtype::Bf16];
    let alone = dtypes.map(|dtype| trained(&Engine::new(1).unwrap(), dtype));
    // Each after the other, and after a policy of the other's numbers.
    let engine = Engine::new(1).unwrap();
    for (dtype, other) in [(0, 1), (1, 0), (0, 1)] {
        let rows = Rows::new(&[12, 30], 3);
        let mut policy = Learner::new(&engine, of_dtype(dtypes[other]), options);
        policy.forward_backward(&rows.rows(), &Likely).unwrap();
        assert!(trained(&engine, dtypes[dtype]) == alone[dtype]);
    }
}

/// Every token shall be more probable.
struct Likely;

impl TokenLoss for Likely {
    fn row(&self, _: usize, _: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        d_logprobs.fill(-1.0);
        0.0
    }
}

#[test]
fn a_row_alone_has_the_values_that_it_has_among_others_and_in_training() {
    let engine = Engine::new(2).unwrap();
    let options = LearnerOptions::default();
    let mut learner = ValueLearner::new(&engine, Arc::new(model()), options);
    train(&mut learner, 0..2);
    let rows = Rows::new(&[30, 12, 0, 44, 9], 5);
    let together = learner.values(&rows.rows()).unwrap();
    for (row, expected) in rows.rows().into_iter().zip(&together) {
        assert_eq!(&learner.values(&[row]).unwrap()[0], expected);
    }
    let (decoder, head) = (learner.decoder().clone(), learner.head().clone());
    assert_eq!(
        engine.values(&decoder, &head, &rows.rows()).unwrap(),
        together
    );
    let report = learner.forward_backward(&rows.rows(), &Fit(&rows)).unwrap();
    assert_eq!(report.values, together);
}

#[test]
fn a_new_head_says_0_and_learns() {
    let engine = Engine::new(2).unwrap();
    let options = LearnerOptions::default();
    let mut learner = ValueLearner::new(&engine, Arc::new(model()), options);
    let rows = Rows::new(&[20, 25, 15, 30], 7);
    let said = learner.values(&rows.rows()).unwrap();
    assert!(said.iter().flatten().all(|&value| value == 0.0));
    let mut losses = Vec::new();
    for _ in 0..120 {
        let report = learner.forward_backward(&rows.rows(), &Fit(&rows)).unwrap();
        losses.push(report.loss);
        learner.optim_step(&AdamW::at(3e-3));
    }
    assert!(losses[119] < losses[0] / 20.0, "{losses:?}");
}

#[test]
fn under_an_adapter_only_adapter_and_head_are_trained() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::new(2).unwrap();
    let options = LearnerOptions::default();
    let base = model();
    base.save(&directory.path().join("base")).unwrap();
    let config = LoraConfig {
        rank: 4,
        alpha: 8.0,
        dropout: 0.1,
        targets: LoraTarget::all(),
        rslora: false,
    };
    let adapter = Adapter::new(&base, config, Seed(2)).unwrap();
    let decoder = Arc::new(base.with_adapter(Arc::new(adapter)).unwrap());
    let mut learner = ValueLearner::new(&engine, decoder, options);
    let losses = train(&mut learner, 0..3);
    assert!(losses.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(learner.decoder().shares_base(&base));
    assert!(learner.head().weight().iter().any(|&weight| weight != 0.0));

    let saved = directory.path().join("value");
    learner.save(&saved).unwrap();
    assert!(!saved.join("model.safetensors").exists());
    let mut resumed = ValueLearner::load_over(&engine, &base, &saved, options).unwrap();
    assert_eq!(train(&mut resumed, 3..6), train(&mut learner, 3..6));
    let rows = Rows::new(&[20, 9, 40], 99);
    assert_eq!(
        resumed.values(&rows.rows()).unwrap(),
        learner.values(&rows.rows()).unwrap()
    );
}

#[test]
fn a_loss_that_is_not_finite_changes_nothing() {
    struct Broken;
    impl ValueLoss for Broken {
        fn row(&self, _: usize, _: &[f32], d_values: &mut [f32]) -> f64 {
            d_values.fill(f32::NAN);
            f64::NAN
        }
    }
    let engine = Engine::new(1).unwrap();
    let options = LearnerOptions::default();
    let mut learner = ValueLearner::new(&engine, Arc::new(model()), options);
    train(&mut learner, 0..1);
    let before = bits(&learner);
    let rows = Rows::new(&[20], 7);
    learner.forward_backward(&rows.rows(), &Broken).unwrap();
    let report = learner.optim_step(&AdamW::at(3e-3));
    assert!(!report.applied && report.step == 1);
    assert_eq!(bits(&learner), before);
    // Nor is anything of it left for the next step.
    train(&mut learner, 1..2);
    assert!(
        bits(&learner)
            .iter()
            .all(|&bits| f32::from_bits(bits).is_finite())
    );
}

#[test]
fn wrong_files_and_rows_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, options) = (Engine::new(1).unwrap(), LearnerOptions::default());
    let learner = ValueLearner::new(&engine, Arc::new(model()), options);
    let long = (vec![0; 5000], vec![true; 5000]);
    let row = TrainRow {
        tokens: &long.0,
        mask: &long.1,
    };
    let refused = learner.values(&[row]);
    assert!(matches!(
        refused,
        Err(RowError::FirstTokenMasked { row: 0 })
    ));
    learner.save(directory.path()).unwrap();
    let file = directory.path().join("value_head.safetensors");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let error = ValueLearner::load(&engine, directory.path(), options).err();
    assert!(matches!(error, Some(ModelError::Safetensors { path, .. }) if path == file));
    std::fs::remove_file(&file).unwrap();
    let error = ValueLearner::load(&engine, directory.path(), options).err();
    assert!(matches!(error, Some(ModelError::Io { path, .. }) if path == file));
    let narrow = ModelConfig::qwen2(VOCABULARY as usize, 24, 1, 4);
    let narrow = Arc::new(Model::random(narrow, Seed(1)).unwrap());
    assert_eq!(ValueHead::zeros(narrow.config()).weight().len(), 24);
    let elsewhere = tempfile::tempdir().unwrap();
    let narrow = ValueLearner::new(&engine, narrow, options);
    narrow.save(elsewhere.path()).unwrap();
    std::fs::copy(elsewhere.path().join("value_head.safetensors"), &file).unwrap();
    let error = ValueLearner::load(&engine, directory.path(), options).err();
    assert!(
        matches!(&error, Some(ModelError::WrongShape { tensor, .. }) if tensor == "score.weight"),
        "{error:?}"
    );
}
