//! `etude plan`: what a recipe would do, in numbers, before anything is written.
//!
//! Row lengths are those of real rows drawn for the purpose, and training speed is that of a short
//! trial on this machine; the rest is arithmetic.

use std::{sync::Arc, time::Instant};

use critique::tiny::{CriticMix, ReviserMix};
use engine::{Adapter, Engine, Initializer, LearnerOptions, Model, ModelConfig};
use learn::{EngineTrainer, Loss, Trainer};
use recipe::Resolved;
use record::{Batch, Datum, Seed};
use serde::Serialize;

use crate::{
    args::PlanArgs,
    failure::{Classify, Outcome},
    report::{print_json, print_text},
    screen::Screen,
    walk::{
        recipe::{Recipe, Role},
        supervise::{critic_rows, reviser_rows},
        tasks::check_task_files,
        vocabulary::Chats,
    },
};

/// Rows drawn to learn how long they are.
const TRIAL_ROWS: usize = 96;
/// Sandbox runs a second and slot, and tokens decoded a second and thread, that the time is
/// estimated with: what the benchmarks beside `judge` and `engine` print on a small machine.
const RUNS_PER_SLOT: f64 = 80.0;
const DECODED_PER_THREAD: f64 = 18_000.0;

/// What will run.
#[derive(Debug, Serialize)]
struct Plan {
    recipe: String,
    hash: String,
    threads: usize,
    sandbox_tier: String,
    models: Vec<ModelPlan>,
    phases: Vec<PhasePlan>,
    total_seconds: f64,
    memory_mib: f64,
    machine_memory_mib: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ModelPlan {
    role: String,
    parameters: usize,
    /// Numbers of its adapters.
    #[serde(skip_serializing_if = "Option::is_none")]
    lora_parameters: Option<usize>,
    context: usize,
}

#[derive(Debug, Serialize)]
struct PhasePlan {
    phase: String,
    steps: u64,
    tokens: f64,
    sandbox_runs: f64,
    seconds: f64,
}

pub(crate) fn run(args: &PlanArgs, _screen: Screen) -> Outcome<()> {
    let Resolved {
        value: recipe,
        hash,
        ..
    } = Recipe::load(&args.recipe, &args.set).asked()?;
    recipe.check().asked()?;
    check_task_files(&recipe)?;
    let plan = Plan::of(&recipe, &args.recipe.display().to_string(), hash)?;
    if args.json {
        print_json(&plan)
    } else {
        print_text(&plan.text())
    }
}

impl Plan {
    fn of(recipe: &Recipe, path: &str, hash: String) -> Outcome<Self> {
        let chats = Chats::of(recipe)?;
        let engine = Engine::new(recipe.threads).failed()?;
        let mut phases = vec![tasks_phase(recipe)];
        let mut models = Vec::new();
        let mut speeds = Vec::new();
        for ((name, role), chat) in recipe
            .roles()
            .into_iter()
            .zip([&chats.critic, &chats.reviser])
        {
            let config = config(role, chat)?;
            models.push(ModelPlan {
                role: name.to_owned(),
                parameters: config.n_parameters(),
                lora_parameters: role
                    .lora
                    .as_ref()
                    .map(|lora| lora.config().n_parameters(&config)),
                context: config.context,
            });
        }
        for (index, stage) in recipe.sft.critic.iter().enumerate() {
            let rows = critic_rows(recipe, &chats.critic, &stage.mix, index as u64, TRIAL_ROWS)?;
            let role = (&recipe.critic, index);
            let speed = training_speed(&engine, recipe, role, &chats.critic, &rows)?;
            speeds.push(speed);
            let phase = format!("sft/critic/{}", index + 1);
            phases.push(supervised_phase(
                phase,
                stage.rows,
                stage.batch_rows,
                &rows,
                speed,
            ));
        }
        for (index, stage) in recipe.sft.reviser.iter().enumerate() {
            let rows = reviser_rows(recipe, &chats.reviser, &stage.mix, index as u64, TRIAL_ROWS)?;
            let role = (&recipe.reviser, index);
            let speed = training_speed(&engine, recipe, role, &chats.reviser, &rows)?;
            let phase = format!("sft/reviser/{}", index + 1);
            phases.push(supervised_phase(
                phase,
                stage.rows,
                stage.batch_rows,
                &rows,
                speed,
            ));
        }
        // As they are supervised, or might be.
        let mix = recipe.sft.critic.first();
        let mix = mix.map_or_else(CriticMix::default, |stage| stage.mix.clone());
        let rows = critic_rows(recipe, &chats.critic, &mix, 0, TRIAL_ROWS)?;
        let critic_row = length(&rows);
        let speed = match speeds.first() {
            Some(speed) => *speed,
            None => training_speed(&engine, recipe, (&recipe.critic, 0), &chats.critic, &rows)?,
        };
        let mix = recipe.sft.reviser.first();
        let mix = mix.map_or_else(ReviserMix::default, |stage| stage.mix.clone());
        let reviser_row = length(&reviser_rows(recipe, &chats.reviser, &mix, 0, TRIAL_ROWS)?);
        phases.push(reinforce_phase(recipe, critic_row, reviser_row, speed));
        phases.push(evaluation_phase(recipe, critic_row, reviser_row));
        let tier = sandbox::probe(&crate::machine::sandbox_config(1))
            .best()
            .map_or_else(
                || "none: programs cannot be run here, see `etude doctor`".to_owned(),
                |tier| tier.to_string(),
            );
        Ok(Self {
            recipe: path.to_owned(),
            hash,
            threads: recipe.threads,
            sandbox_tier: tier,
            models,
            total_seconds: phases.iter().map(|phase| phase.seconds).sum(),
            phases,
            memory_mib: recipe.memory_bytes().asked()? / (1u64 << 20) as f64,
            machine_memory_mib: crate::machine::memory_bytes()
                .map(|bytes| bytes as f64 / (1u64 << 20) as f64),
        })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} is sound (hash {})\n{} threads, sandbox tier {}\n",
            self.recipe,
            &self.hash[..12],
            self.threads,
            self.sandbox_tier
        );
        for model in &self.models {
            text += &format!(
                "{:<8} {:.2} M parameters{}, context {}\n",
                model.role,
                model.parameters as f64 / 1e6,
                model.lora_parameters.map_or_else(String::new, |n| {
                    format!(" and {:.3} M of adapters", n as f64 / 1e6)
                }),
                model.context
            );
        }
        text += &format!(
            "\n{:<16}{:>8}{:>12}{:>14}{:>10}\n",
            "phase", "steps", "tokens", "sandbox runs", "seconds"
        );
        for phase in &self.phases {
            text += &format!(
                "{:<16}{:>8}{:>10.2} M{:>14.0}{:>10.0}\n",
                phase.phase,
                phase.steps,
                phase.tokens / 1e6,
                phase.sandbox_runs,
                phase.seconds
            );
        }
        text += &format!(
            "\nabout {:.0} s in all, at the training speed just tried on this machine\nabout {:.0} MiB of memory",
            self.total_seconds, self.memory_mib
        );
        if let Some(machine) = self.machine_memory_mib {
            text += &format!(" of {machine:.0}");
        }
        text
    }
}

fn tasks_phase(recipe: &Recipe) -> PhasePlan {
    let tasks = (recipe.tasks.train + recipe.tasks.eval) as f64;
    PhasePlan {
        phase: "tasks".to_owned(),
        steps: 0,
        tokens: 0.0,
        // Three evaluations a draft, many drafts a jail run.
        sandbox_runs: (tasks * 3.0 / 250.0).ceil(),
        seconds: 1.0 + tasks / 1000.0,
    }
}

fn supervised_phase(
    phase: String,
    rows: usize,
    batch_rows: usize,
    trial: &[Datum],
    speed: f64,
) -> PhasePlan {
    let tokens = rows as f64 * length(trial);
    PhasePlan {
        phase,
        steps: (rows / batch_rows.max(1)) as u64,
        tokens,
        sandbox_runs: 0.0,
        seconds: tokens / speed,
    }
}

fn reinforce_phase(recipe: &Recipe, critic: f64, reviser: f64, speed: f64) -> PhasePlan {
    let (rl, algorithm) = (&recipe.rl, &recipe.rl.algorithm);
    let trained_on = f64::from(rl.group_size);
    let greedy = f64::from(u8::from(algorithm.advantage.needs_greedy()));
    let groups = rl.steps as f64 * rl.tasks_per_step as f64;
    let episodes = groups * (trained_on + greedy);
    // About half of a critic's row and a third of a reviser's are sampled.
    let sampled = episodes * (0.45 * critic + 0.3 * reviser);
    let trained = groups * trained_on * critic;
    // A pass without gradients costs a third of training.
    let scored = [
        algorithm.needs_reference(),
        algorithm.rollout_correction.is_some(),
        rl.value.is_some(),
    ];
    let scored = scored.into_iter().filter(|pass| *pass).count();
    let updated = rl.epochs + rl.value.as_ref().map_or(0, |value| value.epochs);
    let passes = updated as f64 + scored as f64 / 3.0;
    let threads = recipe.threads as f64;
    PhasePlan {
        phase: "rl".to_owned(),
        steps: recipe.rl.steps,
        tokens: sampled + trained,
        sandbox_runs: episodes,
        seconds: sampled / (DECODED_PER_THREAD * threads) + trained * passes / speed,
    }
}

fn evaluation_phase(recipe: &Recipe, critic: f64, reviser: f64) -> PhasePlan {
    let wrong = recipe.tasks.eval as f64 * (1.0 - recipe.tasks.share_right);
    let gates = if recipe.eval.gates { 7.0 * wrong } else { 0.0 };
    let asked = 2.0 * recipe.tasks.eval as f64 * f64::from(recipe.eval.samples);
    let episodes = gates + asked + recipe.tasks.eval as f64;
    let tokens = asked * 0.45 * critic + episodes * 0.3 * reviser;
    let threads = recipe.threads as f64;
    PhasePlan {
        phase: "eval".to_owned(),
        steps: 0,
        tokens,
        sandbox_runs: episodes,
        seconds: (tokens / (DECODED_PER_THREAD * threads))
            .max(episodes / (RUNS_PER_SLOT * threads)),
    }
}

fn length(rows: &[Datum]) -> f64 {
    let tokens: usize = rows.iter().map(|row| row.tokens.len()).sum();
    tokens as f64 / rows.len().max(1) as f64
}

fn config(role: &Role, chat: &chat::Chat) -> Outcome<ModelConfig> {
    let vocabulary = chat.tokenizer().vocabulary();
    role.model.config(vocabulary, chat.stop_tokens()).asked()
}

/// Tokens a second of training this role's model, or its adapters, in a stage with these rows; tried for
/// about a second.
fn training_speed(
    engine: &Engine,
    recipe: &Recipe,
    (role, stage): (&Role, usize),
    chat: &chat::Chat,
    rows: &[Datum],
) -> Outcome<f64> {
    let config = config(role, chat)?;
    let mut model = Model::new(config, Initializer::Normal, Seed(recipe.seed)).asked()?;
    if let Some(lora) = role.lora.as_ref().filter(|lora| lora.full_stages <= stage) {
        let adapter = Adapter::new(&model, lora.config(), Seed(recipe.seed)).asked()?;
        model = model.with_adapter(Arc::new(adapter)).failed()?;
    }
    let mut trainer = EngineTrainer::new(engine, Arc::new(model), None, LearnerOptions::default());
    let batch = Batch {
        data: rows[..8.min(rows.len())].to_vec(),
    };
    let tokens: usize = batch.data.iter().map(|row| row.tokens.len()).sum();
    let optimizer = &recipe.rl.optimizer;
    let mut done = 0;
    let mut began = Instant::now();
    // The first pass allocates; it is not counted.
    for pass in 0..40 {
        trainer
            .forward_backward(&batch, &Loss::supervised())
            .failed()?;
        trainer.optim_step(optimizer, 0.0).failed()?;
        if pass == 0 {
            began = Instant::now();
        } else {
            done += tokens;
        }
        if began.elapsed().as_secs_f64() > 1.0 {
            break;
        }
    }
    Ok(done as f64 / began.elapsed().as_secs_f64().max(1e-6))
}
