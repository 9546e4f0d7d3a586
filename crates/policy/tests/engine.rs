//! The engine behind the policy border.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::sync::Arc;

use chat::{BpeOptions, Chat, Tokenizer};
use engine::{Engine, Model, ModelConfig, Sampler, SamplerOptions, TrainRow};
use futures::{executor::block_on, future::join_all};
use policy::{EnginePolicy, Policy, PolicyError, Request};
use record::{Completion, Message, Sampling, Seed, StopReason, TaskId, WeightVersion};

fn chat() -> Chat {
    let options = BpeOptions {
        vocabulary: 261,
        special_tokens: Chat::builtin_special_tokens(),
    };
    Chat::builtin(Tokenizer::train([], &options).unwrap()).unwrap()
}

fn model(seed: u64) -> Arc<Model> {
    Arc::new(Model::random(ModelConfig::qwen2(264, 32, 2, 2), Seed(seed)).unwrap())
}

fn request(chat: &Chat, index: u64, max_tokens: usize) -> Request {
    let messages = [Message::user(format!("task {index}"))];
    let sampling = Sampling {
        stop: chat.stop_tokens().to_vec(),
        ..Sampling::at(1.0, max_tokens)
    };
    Request {
        prompt: chat.render(&messages, true).unwrap().tokens,
        sampling,
        seed: Seed(7).stream("sample", index),
        role: "critic".to_owned(),
        task: TaskId(index.to_string()),
    }
}

#[test]
fn requests_are_answered_the_same_alone_and_together() {
    let engine = Engine::new(2).unwrap();
    let sampler = Sampler::start(&engine, SamplerOptions::default()).unwrap();
    let (chat, weights) = (chat(), model(1));
    let policy = EnginePolicy::new(
        sampler,
        "critic",
        chat.clone(),
        Arc::clone(&weights),
        WeightVersion(3),
    )
    .unwrap();
    let requests: Vec<Request> = (0..12).map(|index| request(&chat, index, 24)).collect();
    let alone: Vec<Completion> = requests
        .iter()
        .map(|request| block_on(policy.sample(request.clone())).unwrap())
        .collect();
    let together = block_on(join_all(requests.iter().map(|r| policy.sample(r.clone()))));
    for ((request, alone), together) in requests.iter().zip(&alone).zip(together) {
        assert_eq!(*alone, together.unwrap());
        assert_eq!(alone.prompt, request.prompt);
        assert_eq!(alone.weights, WeightVersion(3));
        let stopped = alone
            .response
            .last()
            .is_some_and(|last| chat.stop_tokens().contains(last));
        assert_eq!(alone.stop == StopReason::Stop, stopped);

        let tokens = [&alone.prompt[..], &alone.response].concat();
        let mask: Vec<bool> = (0..tokens.len()).map(|i| i >= alone.prompt.len()).collect();
        let rows = [TrainRow {
            tokens: &tokens,
            mask: &mask,
        }];
        let scored = engine.score(&weights, &rows).unwrap().remove(0).logprobs;
        assert_eq!(scored.len(), alone.logprobs.len());
        for (scored, recorded) in scored.iter().zip(&alone.logprobs) {
            assert!((scored - recorded).abs() < 1e-4);
        }
    }
}

#[test]
fn published_weights_answer_the_next_request() {
    let engine = Engine::new(1).unwrap();
    let sampler = Sampler::start(&engine, SamplerOptions::default()).unwrap();
    let chat = chat();
    let new = |name: &str, seed| {
        EnginePolicy::new(
            sampler.clone(),
            name,
            chat.clone(),
            model(seed),
            WeightVersion(0),
        )
        .unwrap()
    };
    let (critic, reviser) = (new("critic", 1), new("reviser", 2));
    let ask = |policy: &EnginePolicy| block_on(policy.sample(request(&chat, 0, 24))).unwrap();
    let (first, other) = (ask(&critic), ask(&reviser));
    assert_ne!(first.response, other.response);

    critic.publish(model(2), WeightVersion(1));
    assert_eq!(
        (critic.weights(), reviser.weights()),
        (WeightVersion(1), WeightVersion(0))
    );
    let second = ask(&critic);
    assert_eq!(second.weights, WeightVersion(1));
    assert_eq!(second.response, other.response);
    assert_eq!(ask(&reviser), other);
}

#[test]
fn failures_are_typed() {
    let engine = Engine::new(1).unwrap();
    let sampler = Sampler::start(&engine, SamplerOptions::default()).unwrap();
    let (chat, weights) = (chat(), model(1));
    let context = weights.config().context;
    let policy = EnginePolicy::new(
        sampler.clone(),
        "a",
        chat.clone(),
        weights,
        WeightVersion(0),
    )
    .unwrap();
    let fail = |request: Request| block_on(policy.sample(request)).unwrap_err();

    let mut long = request(&chat, 0, 4);
    long.prompt = vec![6; context];
    assert_eq!(
        fail(long),
        PolicyError::PromptTooLong {
            tokens: context,
            context
        }
    );
    let mut empty = request(&chat, 0, 4);
    empty.prompt.clear();
    assert!(matches!(fail(empty), PolicyError::Refused(_)));
    sampler.shutdown();
    assert_eq!(fail(request(&chat, 0, 4)), PolicyError::Stopped);

    let small = Arc::new(Model::random(ModelConfig::qwen2(260, 32, 1, 2), Seed(0)).unwrap());
    let error = EnginePolicy::new(sampler, "b", chat, small, WeightVersion(0)).unwrap_err();
    assert_eq!(
        error,
        PolicyError::Vocabulary {
            tokenizer: 261,
            model: 260
        }
    );
}
