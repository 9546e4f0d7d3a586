//! What a request may ask for beyond its tokens, and that it may be taken back.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver},
    },
};

use engine::{
    Engine, Model, ModelConfig, Next, SampleError, SampleExtras, SampleRequest, Sampled, Sampler,
    SamplerOptions, Ticket, TrainRow, Watch,
};
use record::{Completion, Sampling, Seed, StopReason, TokenId, WeightVersion};

const VOCABULARY: u32 = 61;

fn model() -> Arc<Model> {
    let config = ModelConfig {
        n_kv_heads: 2,
        context: 4096,
        initializer_range: 0.3,
        ..ModelConfig::qwen2(VOCABULARY as usize, 40, 3, 4)
    };
    Arc::new(Model::random(config, Seed(1)).unwrap())
}

fn sampler(options: SamplerOptions) -> Sampler {
    let sampler = Sampler::start(&Engine::new(2).unwrap(), options).unwrap();
    sampler.publish("model", model(), WeightVersion(4));
    sampler
}

type Answer = Result<Completion, SampleError>;

fn ask(
    sampler: &Sampler,
    prompt: &[TokenId],
    sampling: Sampling,
    extras: SampleExtras,
) -> (Ticket, Receiver<Answer>) {
    let (tell, told) = mpsc::channel();
    let request = SampleRequest {
        model: "model".to_owned(),
        prompt: prompt.to_vec(),
        sampling,
        seed: Seed(3),
        done: Box::new(move |answer| drop(tell.send(answer))),
    };
    (sampler.submit_with(request, extras), told)
}

fn sample(sampler: &Sampler, sampling: Sampling, extras: SampleExtras) -> Completion {
    let (_, told) = ask(sampler, &[5, 9, 2, 5], sampling, extras);
    told.recv().unwrap().unwrap()
}

/// Scores of every token but the first.
fn scores(tokens: &[TokenId]) -> Vec<f32> {
    let mask: Vec<bool> = (0..tokens.len()).map(|at| at > 0).collect();
    let rows = [TrainRow {
        tokens,
        mask: &mask,
    }];
    let scores = Engine::new(1).unwrap().score(&model(), &rows).unwrap();
    scores[0].logprobs.clone()
}

#[test]
fn prompts_and_alternatives_have_logprobs_and_change_no_draw() {
    let sampler = sampler(SamplerOptions::default());
    let plain = sample(&sampler, Sampling::at(1.0, 30), SampleExtras::default());
    let extras = || SampleExtras {
        prompt_logprobs: true,
        top_logprobs: 61,
        watch: None,
    };
    let full = sample(&sampler, Sampling::at(1.0, 30), extras());
    assert_eq!(
        (&full.response, &full.logprobs),
        (&plain.response, &plain.logprobs)
    );
    assert!(plain.top_logprobs.is_empty() && plain.prompt_logprobs.is_empty());
    let all = scores(&[&full.prompt[..], &full.response].concat());
    assert_eq!(full.prompt_logprobs, all[..3]);
    assert_eq!(full.logprobs, all[3..]);
    assert_eq!(full.top_logprobs.len(), 30);
    for ((top, token), logprob) in full
        .top_logprobs
        .iter()
        .zip(&full.response)
        .zip(&full.logprobs)
    {
        assert_eq!(top.len(), 61);
        assert!(top.is_sorted_by(|a, b| a.1 >= b.1));
        assert!(top.contains(&(*token, *logprob)));
        let sum: f32 = top.iter().map(|(_, logprob)| logprob.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-4);
    }
    let prompt_alone = sample(&sampler, Sampling::at(1.0, 0), extras());
    assert_eq!(prompt_alone.prompt_logprobs, all[..3]);
    assert!(prompt_alone.response.is_empty());
}

#[test]
fn logprobs_as_sampled_stand_beside_the_raw_ones() {
    let sampler = sampler(SamplerOptions::default());
    let plain = sample(&sampler, Sampling::at(1.0, 20), SampleExtras::default());
    assert!(plain.sampled_logprobs.is_empty());
    let greedy = sample(&sampler, Sampling::greedy(20), SampleExtras::default());
    assert_eq!(greedy.sampled_logprobs, [0.0; 20]);
    let cold = Sampling {
        top_k: 4,
        ..Sampling::at(0.7, 20)
    };
    let cold = sample(
        &sampler,
        cold,
        SampleExtras {
            top_logprobs: 4,
            ..Default::default()
        },
    );
    assert_eq!(
        cold.logprobs,
        scores(&[&cold.prompt[..], &cold.response].concat())[3..]
    );
    for (at, token) in cold.response.iter().enumerate() {
        let weight = |logprob: f32| (f64::from(logprob) / 0.7).exp();
        let total: f64 = cold.top_logprobs[at].iter().map(|top| weight(top.1)).sum();
        let expected = (weight(cold.logprobs[at]) / total).ln();
        let found = f64::from(cold.sampled_logprobs[at]);
        assert!(
            (found - expected).abs() < 1e-4,
            "token {token}: {found}, not {expected}"
        );
    }
}

#[test]
fn penalties_keep_tokens_from_coming_again() {
    let sampler = sampler(SamplerOptions::default());
    let never_again = Sampling {
        presence_penalty: 100.0,
        ..Sampling::at(1.0, VOCABULARY as usize)
    };
    let mut tokens = sample(&sampler, never_again, SampleExtras::default()).response;
    tokens.sort_unstable();
    assert!(tokens.into_iter().eq(0..VOCABULARY));
    let always = Sampling {
        logit_bias: BTreeMap::from([(7, 1e6)]),
        ..Sampling::at(1.0, 9)
    };
    let said = sample(&sampler, always, SampleExtras::default());
    assert_eq!(said.response, [7; 9]);
    assert!(
        said.logprobs.iter().all(|logprob| *logprob < -0.01),
        "raw log-probs know no bias"
    );
}

#[test]
fn a_watch_sees_each_token_and_ends_the_response_with_one() {
    let sampler = sampler(SamplerOptions::default());
    let long = sample(&sampler, Sampling::at(1.0, 40), SampleExtras::default());
    let seen: Arc<Mutex<Vec<Sampled>>> = Arc::default();
    let watch = {
        let seen = Arc::clone(&seen);
        Watch::new(move |sampled| {
            let mut seen = seen.lock().unwrap();
            seen.push(sampled);
            if seen.len() == 11 {
                Next::Stop
            } else {
                Next::GoOn
            }
        })
    };
    let extras = SampleExtras {
        watch: Some(watch),
        top_logprobs: 2,
        ..Default::default()
    };
    let cut = sample(&sampler, Sampling::at(1.0, 40), extras);
    assert_eq!(cut.stop, StopReason::Stop);
    assert_eq!(cut.response, long.response[..11]);
    assert_eq!(cut.logprobs, long.logprobs[..11]);
    assert_eq!(cut.top_logprobs.len(), 11);
    let seen = seen.lock().unwrap();
    assert!(
        seen.iter()
            .map(|sampled| sampled.token)
            .eq(cut.response.iter().copied())
    );
    assert!(
        seen.iter()
            .map(|sampled| sampled.logprob)
            .eq(cut.logprobs.iter().copied())
    );
}

#[test]
fn a_cancelled_request_makes_room_and_disturbs_nobody() {
    let options = SamplerOptions {
        max_sequences: 2,
        ..Default::default()
    };
    let sampler = sampler(options);
    let alone = sample(&sampler, Sampling::at(1.0, 200), SampleExtras::default());
    let (begun, begins) = mpsc::channel();
    let extras = || {
        let begun = begun.clone();
        SampleExtras {
            watch: Some(Watch::new(move |_| {
                begun.send(()).unwrap();
                Next::GoOn
            })),
            ..Default::default()
        }
    };
    // Both places are taken by responses of thousands of tokens; a third waits.
    let long = Sampling::at(1.0, 4000);
    let (first, first_told) = ask(&sampler, &[1, 2, 3], long.clone(), extras());
    let (second, second_told) = ask(&sampler, &[1, 2, 3, 4], long.clone(), extras());
    let (third, third_told) = ask(&sampler, &[9, 9], long, extras());
    begins.recv().unwrap();
    sampler.cancel(third);
    assert_eq!(third_told.recv().unwrap(), Err(SampleError::Cancelled));
    sampler.cancel(first);
    assert_eq!(first_told.recv().unwrap(), Err(SampleError::Cancelled));
    let beside = sample(&sampler, Sampling::at(1.0, 200), SampleExtras::default());
    assert_eq!(beside, alone);
    sampler.cancel(second);
    assert_eq!(second_told.recv().unwrap(), Err(SampleError::Cancelled));
    // Twice, or after the answer, is no harm.
    sampler.cancel(second);
    assert_eq!(
        sample(&sampler, Sampling::at(1.0, 200), SampleExtras::default()),
        alone
    );
}

#[test]
fn impossible_parameters_are_named() {
    let sampler = sampler(SamplerOptions::default());
    let plain = Sampling::at(1.0, 5);
    let refused = |sampling: Sampling| {
        let (_, told) = ask(&sampler, &[1], sampling, SampleExtras::default());
        told.recv().unwrap().unwrap_err().to_string()
    };
    let bad = |change: fn(&mut Sampling)| {
        let mut sampling = plain.clone();
        change(&mut sampling);
        refused(sampling)
    };
    assert!(bad(|s| s.min_p = 1.5).contains("min_p"));
    assert!(bad(|s| s.repetition_penalty = 0.0).contains("repetition_penalty"));
    assert!(bad(|s| s.presence_penalty = f32::NAN).contains("presence_penalty"));
    assert!(bad(|s| s.frequency_penalty = f32::INFINITY).contains("frequency_penalty"));
    assert!(bad(|s| s.logit_bias = [(1, f32::NAN)].into()).contains("logit_bias"));
    assert!(bad(|s| s.logit_bias = [(VOCABULARY, 1.0)].into()).contains("vocabulary"));
    assert!(bad(|s| s.stop_strings = vec!["x".to_owned()]).contains("stop strings"));
}
