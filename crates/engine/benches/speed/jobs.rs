//! The engine's side of every job.

use std::{
    sync::{Arc, mpsc},
    time::Instant,
};

use engine::{
    AdamW, Dtype, Engine, Learner, LearnerOptions, Model, ModelConfig, RowScores, SampleRequest,
    Sampler, SamplerOptions, TokenLoss, TrainRow,
};
use record::{Sampling, Seed, WeightVersion};

use crate::{
    limits::Repeat,
    shapes::{Job, PROMPT, RESPONSE, ROW_TOKENS, Task},
};

/// The candidate that trains with gradient checkpointing.
pub(crate) const CHECKPOINTED: &str = "etude-recomp";

/// Repeats a job; gives tokens and seconds.
pub(crate) fn repeat(candidate: &str, job: &Job, threads: usize) -> Repeat {
    let engine = Engine::new(threads).unwrap();
    let dtype = match candidate {
        "etude-bf16" => Dtype::Bf16,
        _ => Dtype::F32,
    };
    let config = ModelConfig {
        dtype,
        ..job.size.config().model()
    };
    let vocab = config.vocab_size as u32;
    let model = Arc::new(Model::random(config, Seed(1)).unwrap());
    let rows = tokens(job.size.rows(), ROW_TOKENS, vocab);
    match job.task {
        Task::Train => {
            let options = LearnerOptions {
                gradient_checkpointing: candidate == CHECKPOINTED,
                ..LearnerOptions::default()
            };
            let mut learner = Learner::new(&engine, model, options);
            Box::new(move || {
                timed(|| {
                    let mask = mask();
                    learner
                        .forward_backward(&train_rows(&rows, &mask), &MeanLoss { rows: rows.len() })
                        .unwrap();
                    learner.optim_step(&AdamW::at(1e-4));
                    rows.len() * ROW_TOKENS
                })
            })
        }
        Task::Score => Box::new(move || {
            timed(|| {
                let mask = mask();
                engine.score(&model, &train_rows(&rows, &mask)).unwrap();
                rows.len() * ROW_TOKENS
            })
        }),
        Task::Decode32 | Task::Decode1 => {
            let count = if job.task == Task::Decode1 { 1 } else { 32 };
            let options = SamplerOptions {
                max_sequences: count,
                // Each round runs its prompts anew.
                reuse_bytes: 0,
                ..SamplerOptions::default()
            };
            let sampler = Sampler::start(&engine, options).unwrap();
            sampler.publish("model", model, WeightVersion(0));
            let prompts = tokens(count, PROMPT, vocab);
            Box::new(move || timed(|| decode(&sampler, &prompts)))
        }
    }
}

/// Tokens and seconds of one run.
fn timed(work: impl FnOnce() -> usize) -> (f64, f64) {
    let start = Instant::now();
    let tokens = work();
    (tokens as f64, start.elapsed().as_secs_f64())
}

fn decode(sampler: &Sampler, prompts: &[Vec<u32>]) -> usize {
    let (sender, receiver) = mpsc::channel();
    for prompt in prompts {
        let sender = sender.clone();
        sampler.submit(SampleRequest {
            model: "model".to_owned(),
            prompt: prompt.clone(),
            sampling: Sampling::at(0.0, RESPONSE),
            seed: Seed(1),
            done: Box::new(move |answer| sender.send(answer.unwrap().response.len()).unwrap()),
        });
    }
    drop(sender);
    receiver.iter().sum()
}

fn tokens(rows: usize, len: usize, vocab: u32) -> Vec<Vec<u32>> {
    let token = |row: usize, at: usize| Seed(3).stream("token", (row * len + at) as u64).0 as u32;
    let row = |row: usize| (0..len).map(move |at| token(row, at) % vocab).collect();
    (0..rows).map(row).collect()
}

fn mask() -> Vec<bool> {
    (0..ROW_TOKENS).map(|at| at > 0).collect()
}

fn train_rows<'a>(rows: &'a [Vec<u32>], mask: &'a [bool]) -> Vec<TrainRow<'a>> {
    rows.iter()
        .map(|tokens| TrainRow { tokens, mask })
        .collect()
}

/// Mean negative log-likelihood over the trained tokens of all rows.
struct MeanLoss {
    rows: usize,
}

impl TokenLoss for MeanLoss {
    fn row(&self, _: usize, scores: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        let weight = 1.0 / (self.rows * (ROW_TOKENS - 1)) as f32;
        d_logprobs.fill(-weight);
        let logprobs = scores.logprobs.iter();
        -f64::from(weight) * logprobs.map(|&logprob| f64::from(logprob)).sum::<f64>()
    }
}
