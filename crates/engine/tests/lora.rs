//! Adapters: those of peft, training that leaves the base alone, sampling side by side.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
};

use engine::{
    AdamW, Adapter, Engine, Learner, LearnerOptions, LoraConfig, LoraTarget, Model, ModelConfig,
    RowScores, SampleRequest, Sampler, SamplerOptions, TokenLoss, TrainRow,
};
use record::{Completion, Sampling, Seed, WeightVersion};
use safetensors::SafeTensors;
use serde::Deserialize;

const CASES: [&str; 3] = ["all_linear", "rslora", "one_layer"];

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn case(name: &str) -> PathBuf {
    cases().join("002_peft").join(name)
}

fn base() -> Model {
    Model::load(&cases().join("000_qwen2_parity/model")).unwrap()
}

#[derive(Deserialize)]
struct Expected {
    rows: Vec<Vec<u32>>,
    masked: Vec<usize>,
    loss: f64,
    logprobs: Vec<Vec<f32>>,
    merged_q_proj_row: Vec<f32>,
    merged_o_proj_row: Vec<f32>,
}

impl Expected {
    fn read(name: &str) -> Self {
        serde_json::from_slice(&fs::read(case(name).join("expected.json")).unwrap()).unwrap()
    }

    fn with_rows<T>(&self, work: impl FnOnce(&[TrainRow]) -> T) -> T {
        let pairs = self.rows.iter().zip(&self.masked);
        let masks: Vec<Vec<bool>> = pairs
            .map(|(row, masked)| (0..row.len()).map(|at| at + masked >= row.len()).collect())
            .collect();
        let rows: Vec<TrainRow> = self
            .rows
            .iter()
            .zip(&masks)
            .map(|(tokens, mask)| TrainRow { tokens, mask })
            .collect();
        work(&rows)
    }
}

/// Mean negative log-likelihood of so many masked tokens.
struct MeanLoss(usize);

impl TokenLoss for MeanLoss {
    fn row(&self, _: usize, scores: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        d_logprobs.fill(-1.0 / self.0 as f32);
        let logprobs = scores.logprobs.iter();
        -logprobs.map(|&logprob| f64::from(logprob)).sum::<f64>() / self.0 as f64
    }
}

/// Largest difference relative to the largest expected value.
fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected
        .iter()
        .fold(0.0_f32, |top, value| top.max(value.abs()));
    let pairs = found.iter().zip(expected);
    pairs.fold(0.0_f32, |top, (a, b)| top.max((a - b).abs())) / largest
}

#[test]
fn logprobs_loss_gradients_and_merged_weights_are_those_of_peft() {
    for name in CASES {
        let expected = Expected::read(name);
        let engine = Engine::new(2).unwrap();
        let base = base();
        // The expected gradients were made without dropout.
        let adapter = Adapter::load(&case(name), &base).unwrap();
        let adapter = adapter.with_dropout(0.0).unwrap();
        let model = Arc::new(base.with_adapter(Arc::new(adapter)).unwrap());
        let total = expected.masked.iter().sum();
        let mut learner = Learner::new(&engine, model.clone(), LearnerOptions::default());
        let report = expected
            .with_rows(|rows| learner.forward_backward(rows, &MeanLoss(total)))
            .unwrap();
        for (scores, expected) in report.scores.iter().zip(&expected.logprobs) {
            assert!(distance(&scores.logprobs, expected) < 1e-4, "{name}");
        }
        assert!((report.loss / expected.loss - 1.0).abs() < 1e-4, "{name}");
        let bytes = fs::read(case(name).join("gradients.safetensors")).unwrap();
        let gradients = SafeTensors::deserialize(&bytes).unwrap();
        let mut seen = 0;
        for (tensor, shape, found) in learner.gradients() {
            let view = gradients.tensor(tensor).unwrap();
            assert_eq!(view.shape(), shape, "{name}: {tensor}");
            let values = view.data().as_chunks::<4>().0.iter();
            let values: Vec<f32> = values.map(|bytes| f32::from_le_bytes(*bytes)).collect();
            let distance = distance(found, &values);
            assert!(distance < 1e-4, "{name}: {tensor} is off by {distance}");
            seen += 1;
        }
        assert_eq!(seen, gradients.len(), "{name}");
        let merged = model.merged();
        for (tensor, expected) in [
            ("self_attn.q_proj", &expected.merged_q_proj_row),
            ("self_attn.o_proj", &expected.merged_o_proj_row),
        ] {
            let tensor = format!("model.layers.1.{tensor}.weight");
            let (_, shape, values) = merged
                .tensors()
                .find(|(found, ..)| *found == tensor)
                .unwrap();
            let row = &values[5 * shape[1]..6 * shape[1]];
            assert!(distance(row, expected) < 1e-6, "{name}: {tensor}");
        }
    }
}

#[test]
fn an_adapter_directory_names_its_base() {
    for name in CASES {
        let expected = Expected::read(name);
        let model = Model::load(&case(name)).unwrap();
        assert_eq!(ModelConfig::load(&case(name)).unwrap(), *base().config());
        let engine = Engine::new(1).unwrap();
        let scores = expected
            .with_rows(|rows| engine.score(&model, rows))
            .unwrap();
        for (scores, expected) in scores.iter().zip(&expected.logprobs) {
            assert!(distance(&scores.logprobs, expected) < 1e-4, "{name}");
        }
    }
}

#[test]
fn saving_and_loading_keep_every_byte() {
    for name in CASES {
        let base = base();
        let adapter = Adapter::load(&case(name), &base).unwrap();
        let directory = tempfile::tempdir().unwrap();
        adapter.save(directory.path()).unwrap();
        let again = Adapter::load(directory.path(), &base).unwrap();
        assert_eq!(adapter.config(), again.config());
        assert!(adapter.tensors().eq(again.tensors()), "{name}");
    }
}

/// Runs where `ETUDE_TEST_PEFT` names a Python with peft.
#[test]
#[expect(clippy::disallowed_methods, reason = "peft is a Python library")]
fn peft_loads_what_the_engine_saves() {
    let Ok(python) = std::env::var("ETUDE_TEST_PEFT") else {
        println!("skipped: ETUDE_TEST_PEFT names no Python with torch, transformers and peft");
        return;
    };
    for name in CASES {
        let expected = Expected::read(name);
        let adapter = Adapter::load(&case(name), &base()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        adapter.save(directory.path()).unwrap();
        let done = std::process::Command::new(&python)
            .arg(case("generate.py"))
            .arg(directory.path())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{told}");
        let scores = fs::read(directory.path().join("scores.json")).unwrap();
        let scores: Vec<Vec<f32>> = serde_json::from_slice(&scores).unwrap();
        for (found, expected) in scores.iter().zip(&expected.logprobs) {
            assert!(distance(found, expected) < 1e-5, "{name}");
        }
    }
}

fn lora(dropout: f64) -> LoraConfig {
    LoraConfig {
        rank: 4,
        alpha: 8.0,
        dropout,
        targets: LoraTarget::all(),
        rslora: false,
    }
}

fn adapted(base: &Model, dropout: f64, seed: u64) -> Arc<Model> {
    let adapter = Adapter::new(base, lora(dropout), Seed(seed)).unwrap();
    Arc::new(base.with_adapter(Arc::new(adapter)).unwrap())
}

/// Rows to learn, drawn from a seed; each begins like its neighbour.
fn corpus(seed: u64) -> Vec<(Vec<u32>, Vec<bool>)> {
    let draw = |row: u64, at: u64| Seed(seed).stream("token", 100 * row + at).0 % 64;
    (0..6)
        .map(|row| {
            let len = 12 + 5 * row;
            let tokens = (0..len).map(|at| draw(if at < 8 { row / 2 } else { row }, at) as u32);
            (tokens.collect(), (0..len).map(|at| at >= 9).collect())
        })
        .collect()
}

fn train(learner: &mut Learner, steps: std::ops::Range<u64>) -> Vec<f64> {
    steps
        .map(|step| {
            let rows = corpus(step % 2);
            let rows: Vec<TrainRow> = rows
                .iter()
                .map(|(tokens, mask)| TrainRow { tokens, mask })
                .collect();
            let masked = rows.iter().flat_map(|row| row.mask).filter(|mask| **mask);
            let loss = MeanLoss(masked.count());
            let report = learner.forward_backward(&rows, &loss).unwrap();
            let adam = AdamW {
                weight_decay: 0.1,
                ..AdamW::at(5e-3)
            };
            assert!(learner.optim_step(&adam).applied);
            report.loss
        })
        .collect()
}

fn adapter_bits(learner: &Learner) -> Vec<u32> {
    let adapter = learner.model().adapter().unwrap();
    let values = adapter.tensors().flat_map(|(_, _, values)| values);
    values.map(|value| value.to_bits()).collect()
}

fn weight_bits(model: &Model) -> Vec<u32> {
    let values = model.tensors().flat_map(|(_, _, values)| values);
    values.map(|value| value.to_bits()).collect()
}

#[test]
fn training_moves_the_adapter_and_no_bit_of_the_base_which_is_held_once() {
    let engine = Engine::new(2).unwrap();
    let base = base();
    let before = weight_bits(&base);
    // Two adapters over one base, trained in turns.
    let mut one = Learner::new(&engine, adapted(&base, 0.0, 1), LearnerOptions::default());
    let mut other = Learner::new(&engine, adapted(&base, 0.0, 2), LearnerOptions::default());
    let published = one.publish();
    let losses = train(&mut one, 0..60);
    train(&mut other, 0..3);
    assert!(losses[59] < 0.6 * losses[1], "{losses:?}");
    for learner in [&one, &other] {
        assert!(learner.model().shares_base(&base));
    }
    assert_eq!(weight_bits(one.model()), before);
    // What was published before stays as it was.
    let b = |model: &Model| -> f32 {
        let tensors = model.adapter().unwrap().tensors();
        let b = tensors.filter(|(name, ..)| name.contains("lora_B"));
        b.flat_map(|(_, _, values)| values.to_vec())
            .map(f32::abs)
            .sum()
    };
    assert!(b(&published) == 0.0 && b(one.model()) > 0.0);
}

#[test]
fn threads_do_not_change_a_byte() {
    let results = [1, 2, 4].map(|threads| {
        let engine = Engine::new(threads).unwrap();
        let options = LearnerOptions::default();
        let mut learner = Learner::new(&engine, adapted(&base(), 0.2, 1), options);
        (train(&mut learner, 0..5), adapter_bits(&learner))
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

#[test]
fn resuming_is_exact_to_the_bit() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::new(2).unwrap();
    let (base, options) = (base(), LearnerOptions::default());
    let mut straight = Learner::new(&engine, adapted(&base, 0.2, 1), options);
    train(&mut straight, 0..3);
    straight.save(directory.path()).unwrap();
    assert!(!directory.path().join("model.safetensors").exists());
    let mut resumed = Learner::load_over(&engine, &base, directory.path(), options).unwrap();
    assert!(resumed.step() == 3 && resumed.model().shares_base(&base));
    assert_eq!(train(&mut straight, 3..6), train(&mut resumed, 3..6));
    assert_eq!(adapter_bits(&straight), adapter_bits(&resumed));
}

fn sample(sampler: &Sampler, names: &[String], prompt: &[u32]) -> Vec<Completion> {
    let (tell, told) = mpsc::channel();
    for (index, name) in names.iter().enumerate() {
        let tell = tell.clone();
        sampler.submit(SampleRequest {
            model: name.clone(),
            prompt: prompt.to_vec(),
            sampling: Sampling::at(1.0, 20),
            seed: Seed(index as u64),
            done: Box::new(move |answer| tell.send((index, answer.unwrap())).unwrap()),
        });
    }
    drop(tell);
    let mut answers: Vec<_> = told.iter().collect();
    assert_eq!(answers.len(), names.len());
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[test]
fn a_batch_mixes_adapters_and_every_request_has_its_own() {
    let base = base();
    let engine = Engine::new(2).unwrap();
    let mut models = vec![(String::from("base"), Arc::new(base.clone()))];
    for name in CASES {
        let adapter = Arc::new(Adapter::load(&case(name), &base).unwrap());
        models.push((
            name.to_owned(),
            Arc::new(base.with_adapter(adapter).unwrap()),
        ));
    }
    // Each twice, with others between.
    let names: Vec<String> = models
        .iter()
        .chain(&models)
        .map(|(name, _)| name.clone())
        .collect();
    let prompt = [5, 17, 3, 60, 41];
    let sampler = Sampler::start(&engine, SamplerOptions::default()).unwrap();
    for (name, model) in &models {
        sampler.publish(name, model.clone(), WeightVersion(0));
    }
    let together = sample(&sampler, &names, &prompt);
    for (index, (name, found)) in names.iter().zip(&together).enumerate() {
        let model = &models[index % models.len()].1;
        let tokens = [&prompt[..], &found.response].concat();
        let mask: Vec<bool> = (0..tokens.len()).map(|at| at >= prompt.len()).collect();
        let row = TrainRow {
            tokens: &tokens,
            mask: &mask,
        };
        let scored = engine.score(model, &[row]).unwrap();
        assert_eq!(found.logprobs, scored[0].logprobs, "{name}");
        // The same request on a sampler of its own.
        let alone = Sampler::start(&engine, SamplerOptions::default()).unwrap();
        alone.publish("alone", model.clone(), WeightVersion(0));
        let requests = vec![String::from("alone"); index + 1];
        assert_eq!(sample(&alone, &requests, &prompt)[index], *found, "{name}");
    }
    assert_ne!(together[0].response, together[1].response);
    // Each goes on with its first answer, of which its own keys and values are known, and no other's.
    let before = sampler.prompt_usage();
    for (index, (name, model)) in models.iter().enumerate() {
        let prompt = [&prompt[..], &together[index].response, &[3, 9]].concat();
        let found = sample(&sampler, std::slice::from_ref(name), &prompt).remove(0);
        let tokens = [&prompt[..], &found.response].concat();
        let mask: Vec<bool> = (0..tokens.len()).map(|at| at >= prompt.len()).collect();
        let row = TrainRow {
            tokens: &tokens,
            mask: &mask,
        };
        let scored = engine.score(model, &[row]).unwrap();
        assert_eq!(found.logprobs, scored[0].logprobs, "{name}");
    }
    let after = sampler.prompt_usage();
    assert!(after.reused - before.reused >= 4 * 20, "{after:?}");
}

/// A copy of a case that can be damaged.
fn copy(name: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for file in fs::read_dir(case(name)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), directory.path().join(file.file_name())).unwrap();
    }
    directory
}

fn edited(name: &str, from: &str, to: &str) -> String {
    let directory = copy(name);
    let path = directory.path().join("adapter_config.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replace(from, to)).unwrap();
    Adapter::load(directory.path(), &base())
        .unwrap_err()
        .to_string()
}

#[test]
fn what_would_be_computed_differently_is_refused_by_name() {
    let cases = [
        (
            "\"use_dora\": false",
            "\"use_dora\": true",
            "`use_dora` = true",
        ),
        (
            "\"bias\": \"none\"",
            "\"bias\": \"all\"",
            "`bias` = \"all\"",
        ),
        (
            "\"modules_to_save\": null",
            "\"modules_to_save\": [\"lm_head\"]",
            "`modules_to_save`",
        ),
        (
            "\"rank_pattern\": {}",
            "\"rank_pattern\": {\"q_proj\": 8}",
            "`rank_pattern`",
        ),
        ("\"LORA\"", "\"VERA\"", "`peft_type` = \"VERA\""),
        (
            "\"use_dora\"",
            "\"of_the_future\": 1.5, \"use_dora\"",
            "`of_the_future` = 1.5",
        ),
        (
            "\"init_lora_weights\": true",
            "\"init_lora_weights\": \"pissa\"",
            "\"pissa\"",
        ),
        ("\"r\": 4", "\"r\": 0", "`r` is 0"),
        ("\"q_proj\"", "\"embed_tokens\"", "\"embed_tokens\""),
    ];
    for (from, to, expected) in cases {
        let refused = edited("rslora", from, to);
        assert!(
            refused.contains("adapter_config.json") && refused.contains(expected),
            "{refused}"
        );
    }
    let refused = edited("rslora", "\"r\": 4", "\"r\": 5");
    assert!(
        refused.contains("q_proj.lora_A.weight") && refused.contains("[5, 32]"),
        "{refused}"
    );
}

#[test]
fn an_adapter_for_another_base_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let base = base();
    let engine = Engine::new(1).unwrap();
    // Of another shape: by the tensor that does not fit.
    let wider = Model::load(&cases().join("001_families/qwen3")).unwrap();
    let refused = Adapter::load(&case("all_linear"), &wider)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("another base") && refused.contains("lora_A.weight"),
        "{refused}"
    );
    // Of the same shape with other weights: by the digest of the base.
    let mut learner = Learner::new(&engine, Arc::new(base.clone()), LearnerOptions::default());
    train(&mut learner, 0..1);
    let moved = learner.publish();
    let adapter = Adapter::new(&base, lora(0.0), Seed(1)).unwrap();
    adapter.save(directory.path()).unwrap();
    for refused in [
        Adapter::load(directory.path(), &moved).unwrap_err(),
        moved.with_adapter(Arc::new(adapter)).unwrap_err(),
    ] {
        let refused = refused.to_string();
        assert!(
            refused.contains("another base") && refused.contains(base.digest()),
            "{refused}"
        );
    }
    // A base that is not there.
    let lost = copy("rslora");
    let refused = Model::load(lost.path()).unwrap_err().to_string();
    assert!(
        refused.contains("no model at `../../000_qwen2_parity/model`"),
        "{refused}"
    );
    // Damage.
    let weights = lost.path().join("adapter_model.safetensors");
    let bytes = fs::read(&weights).unwrap();
    fs::write(&weights, &bytes[..bytes.len() - 2]).unwrap();
    let refused = Adapter::load(lost.path(), &base).unwrap_err().to_string();
    assert!(
        refused.contains("adapter_model.safetensors") && refused.contains("truncated"),
        "{refused}"
    );
}
