//! Etude's side: the reinforcement loop of `etude train` over the benchmark's study, journal included.

use std::{path::Path, sync::Arc, time::Instant};

use chat::Chat;
use engine::{Engine, LearnerOptions, Model, Sampler, SamplerOptions};
use journal::{RunDir, RunStarted};
use learn::EngineTrainer;
use policy::EnginePolicy;
use record::{Sampling, Seed, TokenId, WeightVersion};
use rollout::{Options, Roles, Runner};
use serde_json::json;
use train::{Reinforce, ReinforceConfig, Stop, TrainedPolicy};

use crate::{
    job::{self, Arguments, Size, StepSeconds, WARM_UP},
    study::{self, Spaces, WRITER},
};

/// The only stop token of the run, which no vocabulary has: every response is of full length.
const NEVER: TokenId = TokenId::MAX;

/// Trains from the checkpoint and returns the seconds of every step, warm-up included.
pub(crate) fn run(
    arguments: &Arguments,
    size: &Size,
    checkpoint: &Path,
    prompts: &[String],
    folder: &Path,
) -> Vec<StepSeconds> {
    let steps = WARM_UP + arguments.steps;
    // As a recipe says it: what is not named is the default.
    let config = json!({
        "steps": steps,
        "tasks_per_step": size.groups,
        "group_size": size.group_size,
        "save_every": steps,
        "algorithm": job::algorithm(),
        "optimizer": job::optimizer(),
    });
    let config: ReinforceConfig = serde_json::from_value(config).unwrap();
    let engine = Engine::new(arguments.threads).unwrap();
    let model = Arc::new(Model::load(checkpoint).unwrap());
    let chat = Chat::load(checkpoint).unwrap();
    let sampler = Sampler::start(&engine, SamplerOptions::default()).unwrap();
    let policy = EnginePolicy::new(
        sampler,
        WRITER,
        chat.clone(),
        model.clone(),
        WeightVersion(0),
    );
    let policy = Arc::new(policy.unwrap());
    let options = LearnerOptions::default();
    let mut trainer = EngineTrainer::new(&engine, model.clone(), Some(model), options);
    let sampling = Sampling {
        stop: vec![NEVER],
        ..Sampling::at(1.0, size.response_tokens)
    };
    let study = Arc::new(Spaces);
    let roles = Roles::default().bind(WRITER, policy.clone(), sampling);
    let runner = Runner::new(study.clone(), roles, Options::default());
    let started = RunStarted {
        study: "spaces".to_owned(),
        name: size.name.to_owned(),
        seed: 0,
        recipe_hash: String::new(),
        etude: env!("CARGO_PKG_VERSION").to_owned(),
        machine: Default::default(),
    };
    let run = RunDir::create(&folder.join("run"), "", started).unwrap();
    let replay = run.replay();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads)
        .enable_all()
        .build()
        .unwrap();
    let (mut seconds, mut ended) = (Vec::new(), None);
    let reinforce = Reinforce {
        phase: "rl",
        run: &run,
        replay: &replay,
        study: study.as_ref(),
        runner: &runner,
        tasks: &study::tasks(prompts),
        config: &config,
        seed: Seed(0),
        runtime: runtime.handle(),
        stop: &Stop::default(),
    };
    reinforce
        .train(
            &mut [TrainedPolicy {
                name: WRITER,
                roles: &[WRITER],
                chat: &chat,
                trainer: &mut trainer,
                algorithm: &config.algorithm,
                optimizer: &config.optimizer,
                values: None,
                publish: Box::new(|published| {
                    policy.publish(published.weights, published.version);
                }),
            }],
            |_, _| {},
            |done| {
                let now = (Instant::now(), processor_seconds());
                let before: Option<(Instant, f64)> = ended.replace(now);
                let tokens = done.metrics["rollout/trained_tokens"];
                assert_eq!(tokens, size.sampled() as f64, "every response is whole");
                seconds.push(StepSeconds {
                    sample: done.timings["timing_s/gen"],
                    score: done.timings["timing_s/ref"],
                    update: done.timings["timing_s/update_actor"],
                    step: before.map_or(f64::NAN, |before| (now.0 - before.0).as_secs_f64()),
                    processor: before.map_or(f64::NAN, |before| now.1 - before.1),
                });
            },
        )
        .unwrap();
    seconds
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
