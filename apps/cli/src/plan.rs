//! `etude plan`: what a recipe would do, in numbers, before anything is written.
//!
//! Row lengths are those of real rows drawn for the purpose, and training speed is that of a short
//! trial on this machine; the rest is arithmetic.

use std::{sync::Arc, time::Instant};

use chat::Chat;
use engine::{Adapter, Engine, Initializer, LearnerOptions, Model, ModelConfig};
use learn::{EngineTrainer, Loss, Trainer};
use recipe::Resolved;
use record::{Batch, Datum, Seed};
use serde::Serialize;

use crate::{
    args::PlanArgs,
    failure::{Classify, Outcome},
    report::{print_json, print_text},
    walk::{Commands, Common, PolicySettings, StageSize, StudyWalk, critique::DeclaredPlan, load},
};

/// Rows that are drawn to learn how long they are.
pub(crate) const TRIAL_ROWS: usize = 96;
/// Tokens decoded a second and thread, that the time is estimated with: what the benchmark beside
/// `engine` prints on a small machine.
pub(crate) const DECODED_PER_THREAD: f64 = 18_000.0;

/// What will run.
#[derive(Serialize)]
pub(crate) struct Plan {
    recipe: String,
    hash: String,
    threads: usize,
    /// Of studies that run programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox_tier: Option<String>,
    models: Vec<ModelPlan>,
    phases: Vec<PhasePlan>,
    total_seconds: f64,
    memory_mib: f64,
    machine_memory_mib: Option<f64>,
    #[serde(skip)]
    engine: Engine,
}

/// What would run where the models are.
#[derive(Serialize)]
struct Reckoned {
    recipe: String,
    hash: String,
    #[serde(flatten)]
    plan: DeclaredPlan,
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
pub(crate) struct PhasePlan {
    pub(crate) phase: String,
    pub(crate) steps: u64,
    pub(crate) tokens: f64,
    pub(crate) sandbox_runs: f64,
    pub(crate) seconds: f64,
}

/// What an episode of reinforcement takes.
pub(crate) struct EpisodePlan {
    /// Tokens that all roles sample.
    pub(crate) sampled: f64,
    /// Tokens of prompts, where they are many beside what is sampled.
    pub(crate) read: f64,
    /// Tokens of the rows that are trained on.
    pub(crate) trained: f64,
    pub(crate) sandbox_runs: f64,
}

impl EpisodePlan {
    /// Seconds of playing it beside many others. What is read passes without gradients, at a third of what
    /// training costs at `speed`.
    pub(crate) fn seconds(&self, common: &Common<'_>, speed: f64) -> f64 {
        let decoded = DECODED_PER_THREAD * common.threads as f64;
        self.sampled / decoded + self.read / (3.0 * speed)
    }
}

pub(crate) fn run(args: &PlanArgs) -> Outcome<()> {
    let study = Commands::of_recipe(&args.recipe, &args.set)?;
    (study.plan)(args)
}

/// Plans a recipe of a study.
pub(crate) fn of_recipe<W: StudyWalk>(args: &PlanArgs) -> Outcome<()> {
    let Resolved { value, hash, .. } = load::<W>(&args.recipe, &args.set).asked()?;
    if let Some(declared) = W::declared(&value).asked()? {
        let recipe = args.recipe.display().to_string();
        return match args.json {
            true => print_json(&Reckoned {
                recipe,
                hash,
                plan: declared,
            }),
            false => print_text(&declared.text(&recipe, &hash)),
        };
    }
    W::check(&value).asked()?;
    W::check_files(&value)?;
    let common = W::common(&value);
    let mut plan = Plan {
        recipe: args.recipe.display().to_string(),
        hash,
        threads: common.threads,
        sandbox_tier: None,
        models: Vec::new(),
        phases: Vec::new(),
        total_seconds: 0.0,
        memory_mib: common.memory_bytes().asked()? / (1u64 << 20) as f64,
        machine_memory_mib: crate::machine::memory_bytes()
            .map(|bytes| bytes as f64 / (1u64 << 20) as f64),
        engine: Engine::new(common.threads).failed()?,
    };
    W::plan(&value, &mut plan)?;
    plan.total_seconds = plan.phases.iter().map(|phase| phase.seconds).sum();
    if args.json {
        print_json(&plan)
    } else {
        print_text(&plan.text())
    }
}

impl Plan {
    pub(crate) fn model(&mut self, policy: &PolicySettings<'_>, chat: &Chat) -> Outcome<()> {
        let config = config(policy, chat)?;
        self.models.push(ModelPlan {
            role: policy.name.to_owned(),
            parameters: config.n_parameters(),
            lora_parameters: policy.lora.map(|lora| lora.config().n_parameters(&config)),
            context: config.context,
        });
        Ok(())
    }

    pub(crate) fn phase(&mut self, phase: PhasePlan) {
        self.phases.push(phase);
    }

    /// A supervised stage of a policy whose rows are as long as those of `trial`, at `speed`.
    pub(crate) fn supervised(
        &mut self,
        policy: &str,
        index: usize,
        stage: &StageSize<'_>,
        trial: &[Datum],
        speed: f64,
    ) {
        let tokens = stage.rows as f64 * length(trial);
        self.phase(PhasePlan {
            phase: format!("sft/{policy}/{}", index + 1),
            steps: (stage.rows / stage.batch_rows.max(1)) as u64,
            tokens,
            sandbox_runs: 0.0,
            seconds: tokens / speed,
        });
    }

    /// Reinforcement with episodes like this one, training at `speed`.
    pub(crate) fn reinforcement(&mut self, common: &Common<'_>, episode: &EpisodePlan, speed: f64) {
        let Some(rl) = common.rl else {
            return;
        };
        let algorithm = &rl.algorithm;
        let trained_on = f64::from(rl.group_size);
        let greedy = f64::from(u8::from(algorithm.advantage.needs_greedy()));
        let groups = rl.steps as f64 * rl.tasks_per_step as f64;
        let episodes = groups * (trained_on + greedy);
        let sampled = episodes * episode.sampled;
        let trained = groups * trained_on * episode.trained;
        // A pass without gradients costs a third of training.
        let scored = [
            algorithm.needs_reference(),
            algorithm.rollout_correction.is_some(),
            rl.value.is_some(),
        ];
        let scored = scored.into_iter().filter(|pass| *pass).count();
        let updated = rl.epochs + rl.value.as_ref().map_or(0, |value| value.epochs);
        let passes = updated as f64 + scored as f64 / 3.0;
        self.phase(PhasePlan {
            phase: "rl".to_owned(),
            steps: rl.steps,
            tokens: sampled + trained,
            sandbox_runs: episodes * episode.sandbox_runs,
            seconds: episodes * episode.seconds(common, speed) + trained * passes / speed,
        });
    }

    /// Tokens a second of training this policy, or its adapters, in a stage with these rows; tried for
    /// about a second.
    pub(crate) fn training_speed(
        &self,
        common: &Common<'_>,
        policy: &PolicySettings<'_>,
        stage: usize,
        chat: &Chat,
        rows: &[Datum],
    ) -> Outcome<f64> {
        let seed = Seed(common.seed);
        let mut model = Model::new(config(policy, chat)?, Initializer::Normal, seed).asked()?;
        if let Some(lora) = policy.lora.filter(|lora| lora.full_stages <= stage) {
            let adapter = Adapter::new(&model, lora.config(), seed).asked()?;
            model = model.with_adapter(Arc::new(adapter)).failed()?;
        }
        let of_stage = policy.stages.get(stage).map(|stage| stage.optimizer);
        let Some(optimizer) = common.rl.map(|rl| &rl.optimizer).or(of_stage) else {
            return Ok(f64::INFINITY);
        };
        let options = LearnerOptions::default();
        let mut trainer = EngineTrainer::new(&self.engine, Arc::new(model), None, options);
        let batch = Batch {
            data: rows[..8.min(rows.len())].to_vec(),
        };
        let tokens: usize = batch.data.iter().map(|row| row.tokens.len()).sum();
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

    fn text(&self) -> String {
        let mut text = format!(
            "{} is sound (hash {})\n{} threads{}\n",
            self.recipe,
            &self.hash[..12],
            self.threads,
            self.sandbox_tier
                .as_ref()
                .map_or_else(String::new, |tier| format!(", sandbox tier {tier}"))
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
            "\n{:<16}{:>8}{:>12}{}{:>10}\n",
            "phase",
            "steps",
            "tokens",
            self.runs(|| format!("{:>14}", "sandbox runs")),
            "seconds"
        );
        for phase in &self.phases {
            text += &format!(
                "{:<16}{:>8}{:>10.2} M{}{:>10.0}\n",
                phase.phase,
                phase.steps,
                phase.tokens / 1e6,
                self.runs(|| format!("{:>14.0}", phase.sandbox_runs)),
                phase.seconds
            );
        }
        let most = match self
            .phases
            .iter()
            .any(|phase| phase.phase.ends_with("at most"))
        {
            true => "at most",
            false => "about",
        };
        let tried = match self.models.is_empty() {
            true => "",
            false => ", at the training speed just tried on this machine",
        };
        text += &format!(
            "\n{most} {:.0} s in all{tried}\nabout {:.0} MiB of memory",
            self.total_seconds, self.memory_mib
        );
        if let Some(machine) = self.machine_memory_mib {
            text += &format!(" of {machine:.0}");
        }
        text
    }
    /// A column that only studies that run programs have.
    fn runs(&self, column: impl FnOnce() -> String) -> String {
        self.sandbox_tier
            .as_ref()
            .map_or_else(String::new, |_| column())
    }
}

/// Tokens of a row, on average.
pub(crate) fn length(rows: &[Datum]) -> f64 {
    let tokens: usize = rows.iter().map(|row| row.tokens.len()).sum();
    tokens as f64 / rows.len().max(1) as f64
}

fn config(policy: &PolicySettings<'_>, chat: &Chat) -> Outcome<ModelConfig> {
    let vocabulary = chat.tokenizer().vocabulary();
    policy.model.config(vocabulary, chat.stop_tokens()).asked()
}
