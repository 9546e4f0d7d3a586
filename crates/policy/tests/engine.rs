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
        top_logprobs: 0,
        prompt_logprobs: false,
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

#[test]
fn stop_strings_cut_at_the_token_that_completes_them() {
    let engine = Engine::new(2).unwrap();
    let sampler = Sampler::start(&engine, SamplerOptions::default()).unwrap();
    let chat = chat();
    let policy =
        EnginePolicy::new(sampler, "critic", chat.clone(), model(1), WeightVersion(0)).unwrap();
    let mut long = request(&chat, 3, 200);
    long.sampling.stop.clear();
    let whole = block_on(policy.sample(long.clone())).unwrap();
    // The random model says single bytes: any two ASCII letters that follow each other will do.
    let text: Vec<String> = whole
        .response
        .iter()
        .map(|&id| chat.tokenizer().decode(&[id]).unwrap())
        .collect();
    let at = (20..text.len())
        .find(|&at| text[at - 1..=at].iter().all(|letter| letter.is_ascii()))
        .unwrap();
    let stop = text[at - 1..=at].concat();
    long.sampling.stop_strings = vec!["never said".to_owned(), stop.clone()];
    long.top_logprobs = 3;
    long.prompt_logprobs = true;
    let cut = block_on(policy.sample(long)).unwrap();
    assert_eq!(cut.stop, StopReason::Stop);
    assert_eq!(cut.prompt_logprobs.len(), cut.prompt.len() - 1);
    assert_eq!(cut.top_logprobs.len(), cut.response.len());
    assert!(cut.top_logprobs.iter().all(|top| top.len() == 3));
    let len = cut.response.len();
    assert!(len <= at + 1);
    assert_eq!(cut.response, whole.response[..len]);
    assert_eq!(cut.logprobs, whole.logprobs[..len]);
    let said = chat.tokenizer().decode(&cut.response).unwrap();
    assert!(said.ends_with(&stop), "{said:?} ends with {stop:?}");
    let read = chat.completion_text(&cut).unwrap();
    assert_eq!(format!("{read}{stop}"), said);
}

#[test]
fn a_dropped_future_frees_its_place() {
    let engine = Engine::new(1).unwrap();
    let options = SamplerOptions {
        max_sequences: 1,
        ..Default::default()
    };
    let sampler = Sampler::start(&engine, options).unwrap();
    let chat = chat();
    let config = ModelConfig {
        context: 200_000,
        ..ModelConfig::qwen2(264, 8, 1, 2)
    };
    let model = Arc::new(Model::random(config, Seed(1)).unwrap());
    let policy =
        EnginePolicy::new(sampler, "critic", chat.clone(), model, WeightVersion(0)).unwrap();
    let mut endless = request(&chat, 0, 190_000);
    endless.sampling.stop.clear();
    let mut held = policy.sample(endless);
    // Submitted, and left: minutes of work, were it not taken back.
    assert!(futures::FutureExt::now_or_never(&mut held).is_none());
    drop(held);
    let answered = block_on(policy.sample(request(&chat, 1, 5))).unwrap();
    assert!(!answered.response.is_empty());
}
