//! A study of two roles on a tiny model, and the whole job of training them.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use chat::{BpeOptions, Chat, Tokenizer};
use engine::{
    Adapter, Engine, LearnerOptions, LoraConfig, LoraTarget, Model, ModelConfig, Sampler,
    SamplerOptions,
};
use journal::{Replay, RunDir, RunStarted};
use learn::EngineTrainer;
use policy::EnginePolicy;
use record::{
    Datum, Episode, Estimate, Fault, Group, Message, Reward, Sampling, Seed, TaskId, WeightVersion,
};
use rollout::{Cx, Options, Played, Roles, Runner, Study, TaskRow};
use serde_json::json;
use train::{
    Reinforce, ReinforceConfig, Stop, Supervised, SupervisedStage, TrainError, TrainedPolicy,
};

pub(crate) const STEPS: u64 = 7;

/// Who is trained, and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Setting {
    /// Both roles are calls of one policy.
    Shared,
    /// A policy each: all weights of one, an adapter of the other.
    Separate,
    /// Only the role, whose policy is the one that it has in [`Self::Separate`].
    Only(&'static str),
}

struct Dialogue {
    id: TaskId,
    turns: u32,
}

impl TaskRow for Dialogue {
    fn id(&self) -> &TaskId {
        &self.id
    }
}

/// As many turns as the task says are noted, then the question is answered.
struct Notebook;

impl Study for Notebook {
    type Task = Dialogue;

    async fn play<'a>(&'a self, task: &'a Dialogue, cx: &'a mut Cx) -> Result<Played, Fault> {
        let mut noted = String::new();
        for turn in 0..task.turns {
            cx.at_turn(turn);
            let step = cx.next_step();
            let said = format!("{}: {turn}", task.id);
            let answer = cx.ask("memory", &[Message::user(said)]).await?;
            if turn > 0 {
                cx.reward_step(step, low(&answer.text))?;
            }
            noted = answer.text;
        }
        cx.at_turn(task.turns);
        let answer = cx.ask("answer", &[Message::user(noted)]).await?;
        Ok(Played {
            reward: Reward::of("low", low(&answer.text)),
            notes: json!(answer.text),
        })
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn step_metrics(&self, _: &[Group], _: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn evaluation_metrics(&self, _: &[Group]) -> BTreeMap<String, Estimate> {
        BTreeMap::new()
    }

    fn replay(&self, _: &Episode) {}
}

/// The share of characters in the first half of ASCII.
fn low(text: &str) -> f64 {
    let low = text.chars().filter(|letter| (*letter as u32) < 64).count();
    low as f64 / text.chars().count().max(1) as f64
}

pub(crate) fn config() -> ReinforceConfig {
    let config = json!({
        "steps": STEPS,
        "tasks_per_step": 3,
        "group_size": 4,
        "mini_batches": 2,
        "mini_batch_unit": "episodes",
        "save_every": 3,
        "algorithm": {
            "step": { "weight": 0.5 },
            "singleton": "zero",
            "aggregation": "per-episode-mean",
            "kl": { "coefficient": 0.01, "controller": { "type": "adaptive", "horizon": 100.0 } },
        },
        "optimizer": { "lr": 5e-3 },
    });
    serde_json::from_value(config).unwrap()
}

/// The weights of a role before training, and what its adapter lies over.
struct Seat {
    policy: Arc<EnginePolicy>,
    trainer: EngineTrainer,
}

fn seat(engine: &Engine, chat: &Chat, name: &str, adapter: bool) -> Seat {
    let config = ModelConfig::qwen2(264, 16, 1, 2);
    let base = Arc::new(Model::random(config, Seed(3)).unwrap());
    let lora = LoraConfig {
        rank: 4,
        alpha: 8.0,
        dropout: 0.0,
        targets: LoraTarget::all(),
        rslora: false,
    };
    let model = match adapter {
        false => base.clone(),
        true => {
            let adapter = Adapter::new(&base, lora, Seed(4)).unwrap();
            Arc::new(base.with_adapter(Arc::new(adapter)).unwrap())
        }
    };
    let sampler = Sampler::start(engine, SamplerOptions::default()).unwrap();
    let version = WeightVersion(0);
    let policy = EnginePolicy::new(sampler, name, chat.clone(), model.clone(), version).unwrap();
    Seat {
        policy: Arc::new(policy),
        trainer: EngineTrainer::new(engine, model, Some(base), LearnerOptions::default()),
    }
}

fn started() -> RunStarted {
    RunStarted {
        study: "notebook".to_owned(),
        name: "test".to_owned(),
        seed: 0,
        recipe_hash: String::new(),
        etude: String::new(),
        machine: Default::default(),
    }
}

fn opened(path: &Path) -> (RunDir, Replay) {
    if path.join("journal.log").exists() {
        RunDir::open(path).unwrap()
    } else {
        let run = RunDir::create(path, "", started()).unwrap();
        let replay = run.replay();
        (run, replay)
    }
}

fn chat() -> Chat {
    let options = BpeOptions {
        vocabulary: 261,
        special_tokens: Chat::builtin_special_tokens(),
    };
    Chat::builtin(Tokenizer::train([], &options).unwrap()).unwrap()
}

/// A supervised stage of six steps, whatever of it is done already, and its replay.
pub(crate) fn supervise(path: &Path) -> Replay {
    let (run, replay) = opened(path);
    let chat = chat();
    let engine = Engine::new(1).unwrap();
    let mut trainer = seat(&engine, &chat, "memory", false).trainer;
    let rows: Vec<Datum> = (0..6)
        .map(|row| Datum::supervised(&[1, 2, row], &[row, 5]))
        .collect();
    let supervised = Supervised {
        run: &run,
        chat: &chat,
        replay: &replay,
        stop: &Stop::default(),
    };
    let stage = SupervisedStage {
        phase: "sft",
        rows: &rows,
        batch_rows: 1,
        optimizer: &config().optimizer,
        save_every: 2,
    };
    supervised.train(&stage, &mut trainer, |_| {}).unwrap();
    run.replay()
}

/// The whole job, whatever of it is done already; the replay of the finished run.
pub(crate) fn train(path: &Path, setting: Setting, config: &ReinforceConfig) -> Replay {
    let (run, replay) = opened(path);
    work(&run, &replay, setting, config).unwrap();
    if !run.replay().finished() {
        run.finish().unwrap();
    }
    run.replay()
}

fn work(
    run: &RunDir,
    replay: &Replay,
    setting: Setting,
    config: &ReinforceConfig,
) -> Result<(), TrainError> {
    let chat = chat();
    let engine = Engine::new(1).unwrap();
    let mut memory = seat(&engine, &chat, "memory", false);
    let mut answer = seat(&engine, &chat, "answer", true);
    let answers = match setting {
        Setting::Shared => &memory,
        _ => &answer,
    };
    let roles = Roles::default()
        .bind("memory", memory.policy.clone(), Sampling::at(1.0, 5))
        .bind("answer", answers.policy.clone(), Sampling::at(1.0, 5));
    let study = Arc::new(Notebook);
    let runner = Runner::new(study.clone(), roles, Options::default());
    let task = |index: u32| {
        Arc::new(Dialogue {
            id: TaskId(format!("dialogue-{index}")),
            turns: index % 4,
        })
    };
    let tasks: Vec<Arc<Dialogue>> = (0..5).map(task).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let reinforce = Reinforce {
        phase: "rl",
        run,
        replay,
        study: study.as_ref(),
        runner: &runner,
        tasks: &tasks,
        config,
        seed: Seed(11),
        runtime: runtime.handle(),
        stop: &Stop::default(),
    };
    let (both, one, other) = (["memory", "answer"], ["memory"], ["answer"]);
    let (of_memory, of_answer) = (memory.policy.clone(), answer.policy.clone());
    let memory = TrainedPolicy {
        name: "memory",
        roles: match setting {
            Setting::Shared => &both,
            _ => &one,
        },
        chat: &chat,
        trainer: &mut memory.trainer,
        algorithm: &config.algorithm,
        optimizer: &config.optimizer,
        values: None,
        publish: Box::new(move |new| of_memory.publish(new.weights, new.version)),
    };
    let answer = TrainedPolicy {
        name: "answer",
        roles: &other,
        chat: &chat,
        trainer: &mut answer.trainer,
        algorithm: &config.algorithm,
        optimizer: &config.optimizer,
        values: None,
        publish: Box::new(move |new| of_answer.publish(new.weights, new.version)),
    };
    let mut policies = match setting {
        Setting::Shared | Setting::Only("memory") => vec![memory],
        Setting::Only(_) => vec![answer],
        Setting::Separate => vec![memory, answer],
    };
    reinforce.train(&mut policies, |_, _| {}, |_| {})
}
