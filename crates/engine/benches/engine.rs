//! Tokens per second of training, scoring and decoding at the size of the first studies.
//!
//! `cargo bench -p engine [-- THREADS]` prints one line per job: the median of several repetitions.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{sync::Arc, time::Instant};

use engine::{AdamW, Engine, Learner, LearnerOptions, Model, ModelConfig, RowScores, TokenLoss, TrainRow};
use record::Seed;

const ROW_TOKENS: usize = 110;
const MASKED: usize = 48;

fn main() {
    let threads = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(2);
    let engine = Engine::new(threads).unwrap();
    let config = ModelConfig {
        n_kv_heads: 2,
        ..ModelConfig::qwen2(640, 128, 4, 4)
    };
    let model = Arc::new(Model::random(config, Seed(1)).unwrap());
    println!("{threads} threads, {} parameters", model.n_parameters());
    for rows in [16, 32, 48] {
        let batch = Rows::new(rows, 640);
        let rate = median(9, || {
            engine.score(&model, &batch.rows()).unwrap();
            rows * ROW_TOKENS
        });
        println!("score  {rows:3} rows: {rate:8.0} tokens/s");
        let mut learner = Learner::new(&engine, Arc::clone(&model), LearnerOptions::default());
        let rate = median(15, || {
            learner.forward_backward(&batch.rows(), &MeanLoss { rows }).unwrap();
            learner.optim_step(&AdamW::at(1e-3));
            rows * ROW_TOKENS
        });
        println!("train  {rows:3} rows: {rate:8.0} tokens/s");
    }
}

/// Median tokens per second of `repetitions` runs after two unmeasured ones.
fn median(repetitions: usize, mut job: impl FnMut() -> usize) -> f64 {
    job();
    job();
    let mut rates: Vec<f64> = (0..repetitions)
        .map(|_| {
            let start = Instant::now();
            job() as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[repetitions / 2]
}

/// Mean negative log-likelihood over the masked tokens of all rows.
struct MeanLoss {
    rows: usize,
}

impl TokenLoss for MeanLoss {
    fn row(&self, _: usize, scores: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        let weight = 1.0 / (self.rows * MASKED) as f32;
        d_logprobs.fill(-weight);
        -f64::from(weight) * scores.logprobs.iter().map(|&logprob| f64::from(logprob)).sum::<f64>()
    }
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
        let mask = (0..ROW_TOKENS).map(|at| at >= ROW_TOKENS - MASKED).collect();
        Self { tokens: tokens.collect(), mask }
    }
    fn rows(&self) -> Vec<TrainRow<'_>> {
        self.tokens.iter().map(|tokens| TrainRow { tokens, mask: &self.mask }).collect()
    }
}
