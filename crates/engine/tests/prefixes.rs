//! Prompts that begin alike: what is reused changes no answer, whatever memory there is.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::sync::{Arc, mpsc};

use engine::{
    Dtype, Engine, Model, ModelConfig, SampleRequest, Sampler, SamplerOptions, SlidingWindow,
    TrainRow,
};
use proptest::prelude::*;
use record::{Completion, Sampling, Seed, TokenId, WeightVersion};

const VOCABULARY: u32 = 61;

fn model(seed: u64, window: Option<usize>) -> Arc<Model> {
    model_in(Dtype::F32, seed, window)
}

fn model_in(dtype: Dtype, seed: u64, window: Option<usize>) -> Arc<Model> {
    let window = window.map(|tokens| SlidingWindow {
        tokens,
        layers: vec![true, false, true],
    });
    let config = ModelConfig {
        n_kv_heads: 2,
        context: 512,
        initializer_range: 0.3,
        sliding_window: window,
        dtype,
        ..ModelConfig::qwen2(VOCABULARY as usize, 24, 3, 4)
    };
    Arc::new(Model::random(config, Seed(seed)).unwrap())
}

fn tokens(len: usize, seed: u64) -> Vec<TokenId> {
    (0..len)
        .map(|at| Seed(seed).stream("token", at as u64).0 as u32 % VOCABULARY)
        .collect()
}

fn sampler(model: &Arc<Model>, options: SamplerOptions) -> Sampler {
    let sampler = Sampler::start(&Engine::new(2).unwrap(), options).unwrap();
    sampler.publish("model", model.clone(), WeightVersion(0));
    sampler
}

fn sample_all(sampler: &Sampler, prompts: &[Vec<TokenId>], max_tokens: usize) -> Vec<Completion> {
    let (sender, receiver) = mpsc::channel();
    for (index, prompt) in prompts.iter().enumerate() {
        let sender = sender.clone();
        sampler.submit(SampleRequest {
            model: "model".to_owned(),
            prompt: prompt.clone(),
            sampling: Sampling::at(1.0, max_tokens),
            seed: Seed(index as u64),
            done: Box::new(move |answer| sender.send((index, answer.unwrap())).unwrap()),
        });
    }
    drop(sender);
    let mut answers: Vec<_> = receiver.iter().collect();
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Log-probs of the response by a scoring pass.
fn scored(model: &Arc<Model>, completion: &Completion) -> Vec<f32> {
    let tokens = [&completion.prompt[..], &completion.response].concat();
    let mask: Vec<bool> = (0..tokens.len())
        .map(|at| at >= completion.prompt.len())
        .collect();
    let rows = [TrainRow {
        tokens: &tokens,
        mask: &mask,
    }];
    let scores = Engine::new(1).unwrap().score(model, &rows).unwrap();
    scores[0].logprobs.clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn prompts_that_share_beginnings_are_answered_as_alone(
        // Each prompt: how much of which trunk, and how long its own end is.
        shapes in prop::collection::vec((0_u64..3, 0_usize..150, 1_usize..90), 1..14),
        window in prop::option::of(1_usize..80),
        megabytes in 1_usize..4,
        reuse in 0_usize..3,
        sequences in 1_usize..6,
        dtype in prop::sample::select(vec![Dtype::F32, Dtype::Bf16]),
    ) {
        let model = model_in(dtype, 1, window);
        let prompts: Vec<Vec<TokenId>> = shapes
            .iter()
            .enumerate()
            .map(|(index, &(trunk, shared, own))| {
                [tokens(shared, trunk), tokens(own, 100 + index as u64)].concat()
            })
            .collect();
        let options = SamplerOptions {
            // The largest request takes about 0.35 MB.
            cache_bytes: megabytes * 400_000,
            reuse_bytes: reuse * 300_000,
            max_sequences: sequences,
            ..Default::default()
        };
        let together = sampler(&model, options);
        let alone = sampler(&model, SamplerOptions { reuse_bytes: 0, max_sequences: 1, ..Default::default() });
        let expected = sample_all(&alone, &prompts, 20);
        for _ in 0..2 {
            prop_assert_eq!(&sample_all(&together, &prompts, 20), &expected);
        }
        for completion in &expected {
            prop_assert_eq!(&scored(&model, completion), &completion.logprobs);
        }
    }
}

#[test]
fn a_conversation_grows_turn_by_turn() {
    for window in [None, Some(45)] {
        let model = model(2, window);
        let sampler = sampler(&model, SamplerOptions::default());
        let mut conversation = tokens(40, 7);
        let mut added = 39;
        for turn in 0..12 {
            let answer = sample_all(&sampler, &[conversation.clone()], 20).remove(0);
            assert_eq!(answer.logprobs, scored(&model, &answer), "turn {turn}");
            let usage = sampler.prompt_usage();
            assert_eq!(usage.run, added as u64, "turn {turn}");
            conversation.extend(&answer.response);
            conversation.extend(tokens(1 + turn, turn as u64));
            // Of the new tokens, and the last of the answer, which was never fed; not the very last.
            added += 1 + turn;
        }
    }
}

#[test]
fn samples_of_one_prompt_and_prompts_of_one_beginning_are_run_once() {
    let model = model(5, None);
    let sampler = sampler(&model, SamplerOptions::default());
    let system = tokens(64, 1);
    let prompts: Vec<Vec<TokenId>> = (0..24)
        .map(|index| [&system[..], &tokens(20, 50 + index / 8)].concat())
        .collect();
    let answers = sample_all(&sampler, &prompts, 5);
    for answer in &answers {
        assert_eq!(answer.logprobs, scored(&model, answer));
    }
    let usage = sampler.prompt_usage();
    assert_eq!(usage.run + usage.reused, 24 * 83);
    // The beginning, and three ends of 19 tokens that are fed before the last.
    assert_eq!(usage.run, 64 + 3 * 19);
}

#[test]
fn new_weights_reuse_nothing_of_the_old() {
    let (old, new) = (model(3, None), model(4, None));
    let sampler = sampler(&old, SamplerOptions::default());
    let prompts = [tokens(60, 1)];
    let before = sample_all(&sampler, &prompts, 20);
    sampler.publish("model", new.clone(), WeightVersion(1));
    let after = sample_all(&sampler, &prompts, 20).remove(0);
    assert_eq!(after.weights, WeightVersion(1));
    assert_ne!(after.response, before[0].response);
    assert_eq!(after.logprobs, scored(&new, &after));
    drop(old);
}
