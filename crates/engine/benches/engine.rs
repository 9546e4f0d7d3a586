//! Tokens per second of training, scoring and decoding at the size of the first studies.
//!
//! `cargo bench -p engine [-- THREADS] [score|train|decode]` prints one line per job.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops when a step fails"
)]

use std::{
    sync::{Arc, mpsc},
    time::Instant,
};

use engine::{
    AdamW, Adapter, Engine, Learner, LearnerOptions, LoraConfig, LoraTarget, Model, ModelConfig,
    RowScores, SampleRequest, Sampler, SamplerOptions, TokenLoss, TrainRow,
};
use record::{Sampling, Seed, WeightVersion};

const ROW_TOKENS: usize = 110;
const MASKED: usize = 48;
const JOBS: [&str; 3] = ["score", "train", "decode"];

fn main() {
    let threads = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(2);
    let engine = Engine::new(threads).unwrap();
    let config = ModelConfig {
        n_kv_heads: 2,
        ..ModelConfig::qwen2(640, 128, 4, 4)
    };
    let model = Arc::new(Model::random(config, Seed(1)).unwrap());
    println!("{threads} threads, {} parameters", model.n_parameters());
    for rows in [16, 32, 48] {
        let batch = Rows::new(rows, 640);
        report(&format!("score {rows} rows"), 9, || {
            engine.score(&model, &batch.rows()).unwrap();
            rows * ROW_TOKENS
        });
        let mut learner = Learner::new(&engine, Arc::clone(&model), LearnerOptions::default());
        report(&format!("train {rows} rows"), 15, || {
            learner
                .forward_backward(&batch.rows(), &MeanLoss { rows })
                .unwrap();
            learner.optim_step(&AdamW::at(1e-3));
            rows * ROW_TOKENS
        });
        let adapted = adapted(&model);
        let mut learner = Learner::new(&engine, adapted, LearnerOptions::default());
        report(
            &format!("train {rows} rows, adapters of rank 8"),
            15,
            || {
                learner
                    .forward_backward(&batch.rows(), &MeanLoss { rows })
                    .unwrap();
                learner.optim_step(&AdamW::at(1e-3));
                rows * ROW_TOKENS
            },
        );
    }
    let mut groups = Rows::new(48, 640);
    for row in 0..48 {
        let prompt = groups.tokens[row / 8 * 8][..ROW_TOKENS - MASKED].to_vec();
        groups.tokens[row][..ROW_TOKENS - MASKED].copy_from_slice(&prompt);
    }
    report("score 6 groups of 8", 9, || {
        engine.score(&model, &groups.rows()).unwrap();
        48 * ROW_TOKENS
    });
    let mut learner = Learner::new(&engine, Arc::clone(&model), LearnerOptions::default());
    report("train 6 groups of 8", 15, || {
        learner
            .forward_backward(&groups.rows(), &MeanLoss { rows: 48 })
            .unwrap();
        learner.optim_step(&AdamW::at(1e-3));
        48 * ROW_TOKENS
    });
    for concurrent in [1, 32, 128, 192] {
        let options = SamplerOptions {
            max_sequences: concurrent,
            ..SamplerOptions::default()
        };
        let sampler = Sampler::start(&engine, options).unwrap();
        sampler.publish("model", Arc::clone(&model), WeightVersion(0));
        report(&format!("decode {concurrent} at once"), 7, || {
            decode(&sampler, concurrent)
        });
    }
}

/// Samples groups of eight responses to prompts of 62 tokens, 48 tokens each, prefill included;
/// returns the response tokens.
fn decode(sampler: &Sampler, requests: usize) -> usize {
    let batch = Rows::new(requests.div_ceil(8), 640);
    let (sender, receiver) = mpsc::channel();
    for request in 0..requests {
        let sender = sender.clone();
        sampler.submit(SampleRequest {
            model: "model".to_owned(),
            prompt: batch.tokens[request / 8][..ROW_TOKENS - MASKED].to_vec(),
            sampling: Sampling::at(1.0, MASKED),
            seed: Seed(request as u64),
            done: Box::new(move |answer| sender.send(answer.unwrap().response.len()).unwrap()),
        });
    }
    drop(sender);
    receiver.iter().sum()
}

/// Runs a job some times, after two unmeasured runs, and prints the median of its tokens per second
/// and, where the system tells, its tokens per second of processor time: on a busy machine the
/// second says what an idle one would do on one thread.
fn report(name: &str, repetitions: usize, mut job: impl FnMut() -> usize) {
    if std::env::args()
        .skip(1)
        .any(|word| JOBS.contains(&&*word) && !name.starts_with(&word))
    {
        return;
    }
    job();
    job();
    let mut rates = Vec::new();
    let (mut tokens, before) = (0, processor_seconds());
    for _ in 0..repetitions {
        let start = Instant::now();
        let done = job();
        rates.push(done as f64 / start.elapsed().as_secs_f64());
        tokens += done;
    }
    rates.sort_by(f64::total_cmp);
    let busy = processor_seconds() - before;
    let (median, per_core) = (rates[repetitions / 2], tokens as f64 / busy);
    println!("{name:20} {median:8.0} tokens/s {per_core:8.0} per core-second");
}

/// Processor time of all threads so far; not a number where `/proc` is missing.
fn processor_seconds() -> f64 {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return f64::NAN;
    };
    let nanoseconds = tasks.filter_map(|task| {
        let times = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        times.split(' ').next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() * 1e-9
}

/// Mean negative log-likelihood over the masked tokens of all rows.
struct MeanLoss {
    rows: usize,
}

impl TokenLoss for MeanLoss {
    fn row(&self, _: usize, scores: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        let weight = 1.0 / (self.rows * MASKED) as f32;
        d_logprobs.fill(-weight);
        -f64::from(weight)
            * scores
                .logprobs
                .iter()
                .map(|&logprob| f64::from(logprob))
                .sum::<f64>()
    }
}

/// The same weights under a new adapter of every matrix.
fn adapted(model: &Model) -> Arc<Model> {
    let config = LoraConfig {
        rank: 8,
        alpha: 16.0,
        dropout: 0.0,
        targets: LoraTarget::all(),
        rslora: false,
    };
    let adapter = Adapter::new(model, config, Seed(2)).unwrap();
    Arc::new(model.with_adapter(Arc::new(adapter)).unwrap())
}

struct Rows {
    tokens: Vec<Vec<u32>>,
    mask: Vec<bool>,
}

impl Rows {
    fn new(rows: usize, vocab_size: u32) -> Self {
        let token = |row: usize, at: usize| {
            Seed(3).stream("token", (row * ROW_TOKENS + at) as u64).0 as u32 % vocab_size
        };
        let tokens = (0..rows).map(|row| (0..ROW_TOKENS).map(|at| token(row, at)).collect());
        let mask = (0..ROW_TOKENS)
            .map(|at| at >= ROW_TOKENS - MASKED)
            .collect();
        Self {
            tokens: tokens.collect(),
            mask,
        }
    }
    fn rows(&self) -> Vec<TrainRow<'_>> {
        self.tokens
            .iter()
            .map(|tokens| TrainRow {
                tokens,
                mask: &self.mask,
            })
            .collect()
    }
}
