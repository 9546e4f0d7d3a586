//! Continuous batching: what is sampled depends on weights, prompt, sampling and seed alone.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::sync::{Arc, mpsc};

use engine::{
    AdamW, Engine, Learner, LearnerOptions, Model, ModelConfig, RowScores, SampleError,
    SampleRequest, Sampler, SamplerOptions, TokenLoss, TrainRow,
};
use record::{Completion, Sampling, Seed, StopReason, TokenId, WeightVersion};

const VOCABULARY: u32 = 61;

fn model(seed: u64) -> Arc<Model> {
    let config = ModelConfig {
        n_kv_heads: 2,
        context: 96,
        initializer_range: 0.3,
        ..ModelConfig::qwen2(VOCABULARY as usize, 40, 3, 4)
    };
    Arc::new(Model::random(config, Seed(seed)).unwrap())
}

fn prompt(len: usize, seed: u64) -> Vec<TokenId> {
    (0..len)
        .map(|at| Seed(seed).stream("prompt", at as u64).0 as u32 % VOCABULARY)
        .collect()
}

#[derive(Clone)]
struct Ask {
    model: &'static str,
    prompt: Vec<TokenId>,
    sampling: Sampling,
    seed: Seed,
}

/// Forty requests of every kind: two models, groups that share a prompt, all samplings.
fn asks() -> Vec<Ask> {
    let samplings = [
        Sampling::at(1.0, 40),
        Sampling::at(0.7, 25),
        Sampling {
            top_p: 0.8,
            ..Sampling::at(1.3, 60)
        },
        Sampling::greedy(30),
        Sampling {
            stop: vec![3, 4, 5, 6, 7, 8],
            ..Sampling::at(1.0, 50)
        },
    ];
    (0..40)
        .map(|index| Ask {
            model: if index % 3 == 0 { "critic" } else { "reviser" },
            prompt: prompt(1 + (index / 4) * 5, index as u64 / 4),
            sampling: samplings[index % 5].clone(),
            seed: Seed(100 + index as u64),
        })
        .collect()
}

fn sampler(threads: usize, options: SamplerOptions) -> Sampler {
    let sampler = Sampler::start(&Engine::new(threads).unwrap(), options).unwrap();
    sampler.publish("critic", model(1), WeightVersion(4));
    sampler.publish("reviser", model(2), WeightVersion(9));
    sampler
}

fn answers(sampler: &Sampler, asks: &[Ask]) -> Vec<Result<Completion, SampleError>> {
    let (sender, receiver) = mpsc::channel();
    for (index, ask) in asks.iter().cloned().enumerate() {
        let sender = sender.clone();
        sampler.submit(SampleRequest {
            model: ask.model.to_owned(),
            prompt: ask.prompt,
            sampling: ask.sampling,
            seed: ask.seed,
            done: Box::new(move |answer| sender.send((index, answer)).unwrap()),
        });
    }
    drop(sender);
    let mut answers: Vec<_> = receiver.iter().collect();
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn completions(sampler: &Sampler, asks: &[Ask]) -> Vec<Completion> {
    answers(sampler, asks)
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

/// Log-probs as bits, so that equality means equal bytes.
fn bits(completion: &Completion) -> Vec<u32> {
    completion
        .logprobs
        .iter()
        .map(|logprob| logprob.to_bits())
        .collect()
}

#[test]
fn a_request_alone_equals_the_request_in_a_crowd_on_any_number_of_threads() {
    let asks = asks();
    let alone: Vec<Completion> = {
        let sampler = sampler(1, SamplerOptions::default());
        asks.iter()
            .map(|ask| completions(&sampler, std::slice::from_ref(ask)).remove(0))
            .collect()
    };
    let tight = SamplerOptions {
        max_sequences: 7,
        prefill_tokens: 20,
        ..Default::default()
    };
    for (threads, options) in [
        (1, SamplerOptions::default()),
        (2, tight),
        (4, Default::default()),
    ] {
        let crowd = completions(&sampler(threads, options), &asks);
        for (alone, crowd) in alone.iter().zip(&crowd) {
            assert_eq!(alone, crowd, "{threads} threads");
            assert_eq!(bits(alone), bits(crowd), "{threads} threads");
        }
    }
}

#[test]
fn recorded_logprobs_are_those_of_a_scoring_pass() {
    let asks = asks();
    let engine = Engine::new(2).unwrap();
    let completions = completions(&sampler(2, SamplerOptions::default()), &asks);
    for (name, weights, version) in [("critic", model(1), 4), ("reviser", model(2), 9)] {
        let of_model = asks
            .iter()
            .zip(&completions)
            .filter(|(ask, _)| ask.model == name);
        let rows: Vec<(Vec<TokenId>, Vec<bool>, &Completion)> = of_model
            .map(|(_, completion)| {
                let tokens = [completion.prompt.as_slice(), &completion.response].concat();
                let mask = (0..tokens.len())
                    .map(|at| at >= completion.prompt.len())
                    .collect();
                (tokens, mask, completion)
            })
            .collect();
        let train_rows: Vec<TrainRow> = rows
            .iter()
            .map(|(tokens, mask, _)| TrainRow { tokens, mask })
            .collect();
        let scores = engine.score(&weights, &train_rows).unwrap();
        for (scores, (_, _, completion)) in scores.iter().zip(&rows) {
            assert_eq!(completion.weights, WeightVersion(version));
            // Stronger than the 1e-4 that training needs: both passes add in the same order.
            assert_eq!(scores.logprobs, completion.logprobs);
        }
    }
}

#[test]
fn responses_end_where_they_should() {
    let sampler = sampler(2, SamplerOptions::default());
    let ask = |len, sampling| Ask {
        model: "critic",
        prompt: prompt(len, 1),
        sampling,
        seed: Seed(1),
    };
    let stopping = Sampling {
        stop: (0..VOCABULARY).collect(),
        ..Sampling::at(1.0, 9)
    };
    let asks = [
        ask(5, Sampling::at(1.0, 0)),
        ask(5, Sampling::at(1.0, 1)),
        ask(5, stopping),
        ask(90, Sampling::at(1.0, 1000)),
        ask(95, Sampling::at(1.0, 1000)),
    ];
    let found = completions(&sampler, &asks);
    let lengths: Vec<usize> = found
        .iter()
        .map(|completion| completion.response.len())
        .collect();
    assert_eq!(lengths, [0, 1, 1, 6, 1]);
    assert_eq!(found[2].stop, StopReason::Stop);
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(i, c)| (c.stop == StopReason::Stop) == (i == 2))
    );
}

#[test]
fn requests_that_cannot_be_served_are_told_why() {
    let options = SamplerOptions {
        cache_bytes: 2 * 3 * 2 * 32 * (10 + 32) * 4,
        ..Default::default()
    };
    let sampler = sampler(1, options);
    let good = Ask {
        model: "critic",
        prompt: vec![1, 2],
        sampling: Sampling::at(1.0, 5),
        seed: Seed(1),
    };
    let with_sampling = |sampling| Ask {
        sampling,
        ..good.clone()
    };
    let asks = [
        Ask {
            model: "planner",
            ..good.clone()
        },
        Ask {
            prompt: vec![],
            ..good.clone()
        },
        Ask {
            prompt: vec![0; 96],
            ..good.clone()
        },
        Ask {
            prompt: vec![0, VOCABULARY],
            ..good.clone()
        },
        with_sampling(Sampling::at(-1.0, 5)),
        with_sampling(Sampling {
            top_p: 0.0,
            ..Sampling::at(1.0, 5)
        }),
        with_sampling(Sampling::at(1.0, 60)),
        good.clone(),
    ];
    let found = answers(&sampler, &asks);
    let expected = |error: &SampleError, index: usize| match index {
        0 => {
            *error
                == SampleError::UnknownModel {
                    model: "planner".to_owned(),
                }
        }
        1 => *error == SampleError::EmptyPrompt,
        2 => {
            *error
                == SampleError::PromptTooLong {
                    tokens: 96,
                    context: 96,
                }
        }
        3 => matches!(
            error,
            SampleError::UnknownToken {
                position: 1,
                token: VOCABULARY,
                ..
            }
        ),
        4 => matches!(
            error,
            SampleError::BadSampling {
                parameter: "temperature",
                ..
            }
        ),
        5 => matches!(
            error,
            SampleError::BadSampling {
                parameter: "top_p",
                ..
            }
        ),
        6 => matches!(error, SampleError::NoRoom { .. }),
        _ => false,
    };
    for (index, answer) in found.iter().enumerate().take(7) {
        let error = answer.as_ref().unwrap_err();
        assert!(expected(error, index), "request {index}: {error}");
    }
    assert_eq!(found[7].as_ref().unwrap().response.len(), 5);
}

struct Push;

impl TokenLoss for Push {
    fn row(&self, _: usize, _: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        d_logprobs.fill(1.0);
        0.0
    }
}

#[test]
fn a_publication_reaches_later_requests_only_and_old_weights_stay_as_they_were() {
    let engine = Engine::new(2).unwrap();
    let mut learner = Learner::new(&engine, model(1), LearnerOptions::default());
    let sampler = Sampler::start(&engine, SamplerOptions::default()).unwrap();
    sampler.publish("critic", learner.publish(), WeightVersion(0));
    let mask: Vec<bool> = (0..20).map(|at| at > 0).collect();
    let (sender, receiver) = mpsc::channel();
    for version in 0..3 {
        for index in 0..4 {
            let sender = sender.clone();
            sampler.submit(SampleRequest {
                model: "critic".to_owned(),
                prompt: prompt(6, 1),
                sampling: Sampling::at(1.0, 60),
                seed: Seed(index),
                done: Box::new(move |answer| sender.send((version, index, answer)).unwrap()),
            });
        }
        let row = TrainRow {
            tokens: &prompt(20, 8),
            mask: &mask,
        };
        learner.forward_backward(&[row], &Push).unwrap();
        assert!(learner.optim_step(&AdamW::at(1e-2)).applied);
        sampler.publish("critic", learner.publish(), WeightVersion(version + 1));
    }
    drop(sender);
    let mut found: Vec<_> = receiver.iter().collect();
    found.sort_by_key(|(version, index, _)| (*version, *index));
    assert_eq!(found.len(), 12);
    for (version, index, answer) in found {
        let completion = answer.unwrap();
        assert_eq!(completion.weights, WeightVersion(version));
        if version == 0 {
            let ask = Ask {
                model: "critic",
                prompt: completion.prompt.clone(),
                sampling: completion.sampling.clone(),
                seed: Seed(index),
            };
            let mut fresh = completions(&self::sampler(1, SamplerOptions::default()), &[ask]);
            assert_eq!(fresh.remove(0).response, completion.response);
        }
    }
}

#[test]
fn shutting_down_answers_everything() {
    let sampler = sampler(
        1,
        SamplerOptions {
            max_sequences: 2,
            ..Default::default()
        },
    );
    let (sender, receiver) = mpsc::channel();
    let submit = |seed| {
        let sender = sender.clone();
        sampler.submit(SampleRequest {
            model: "critic".to_owned(),
            prompt: prompt(4, 1),
            sampling: Sampling::at(1.0, 80),
            seed: Seed(seed),
            done: Box::new(move |answer| sender.send(answer).unwrap()),
        });
    };
    (0..50).for_each(submit);
    sampler.shutdown();
    submit(50);
    drop(sender);
    let answers: Vec<_> = receiver.iter().collect();
    assert_eq!(answers.len(), 51);
    assert_eq!(answers[50], Err(SampleError::Stopped));
}
