//! What a recipe would do with models that are not here: arithmetic on the sizes and rates that it declares.
//!
//! Training past one machine is a service's work; this says what such a service would need.

use serde::{Deserialize, Serialize};

use engine::ModelConfig;

use super::{
    plan::Evaluations,
    recipe::{Recipe, Role},
};
use crate::plan::PhasePlan;

/// Sizes of a checkpoint, as its `config.json` has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declared {
    pub(crate) vocabulary: usize,
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) context: usize,
    /// The output projection is the embedding.
    #[serde(default)]
    pub(crate) tied_embeddings: bool,
}

/// `[plan]`: what a plan is reckoned with where nothing can be tried. Changes no run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Assumed {
    /// Tokens of a critic's prompt, of a critique, and of a revision.
    pub(crate) prompt_tokens: usize,
    pub(crate) critique_tokens: usize,
    pub(crate) revision_tokens: usize,
    /// Runs in the sandbox that one program takes: one a test, of tests on standard input.
    pub(crate) runs_per_program: f64,
    /// Accelerators, and GiB of memory of each.
    pub(crate) devices: usize,
    pub(crate) device_memory_gib: f64,
    /// Tokens a second and device: sampled, read without gradients, trained on.
    pub(crate) sampled_per_s: f64,
    pub(crate) read_per_s: f64,
    pub(crate) trained_per_s: f64,
    /// Sandbox runs a second, of all machines together.
    pub(crate) runs_per_s: f64,
}

impl Default for Assumed {
    fn default() -> Self {
        Self {
            prompt_tokens: 900,
            critique_tokens: 400,
            revision_tokens: 500,
            runs_per_program: 10.0,
            devices: 1,
            device_memory_gib: 80.0,
            sampled_per_s: 1000.0,
            read_per_s: 10_000.0,
            trained_per_s: 3000.0,
            runs_per_s: 80.0,
        }
    }
}

/// The plan.
#[derive(Debug, Serialize)]
pub(crate) struct DeclaredPlan {
    /// Why this recipe does not run on this machine as it is.
    not_here: Vec<String>,
    models: Vec<DeclaredModel>,
    phases: Vec<PhasePlan>,
    step: DeclaredStep,
    devices: usize,
    /// Of all devices together, and of one.
    memory_gib: f64,
    memory_gib_per_device: f64,
    device_memory_gib: f64,
    total_seconds: f64,
}

#[derive(Debug, Serialize)]
struct DeclaredModel {
    role: String,
    model: String,
    parameters: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    lora_parameters: Option<usize>,
    context: usize,
    memory_gib: f64,
}

/// One step of reinforcement.
#[derive(Debug, Serialize)]
struct DeclaredStep {
    episodes: f64,
    critique_tokens: f64,
    revision_tokens: f64,
    trained_tokens: f64,
    sandbox_runs: f64,
    sampling_seconds: f64,
    training_seconds: f64,
    /// What the sandbox must do for its work to hide behind sampling.
    sandbox_runs_per_s_needed: f64,
    /// Seconds that are waited for the sandbox at the declared rate.
    sandbox_wait_seconds: f64,
}

const GIB: f64 = (1u64 << 30) as f64;

impl Declared {
    pub(crate) fn config(&self) -> ModelConfig {
        let mut config =
            ModelConfig::qwen2(self.vocabulary, self.hidden_size, self.layers, self.heads);
        config.intermediate_size = self.intermediate_size;
        config.n_kv_heads = self.kv_heads;
        config.context = self.context;
        config.tied_embeddings = self.tied_embeddings;
        config
    }
}

impl Assumed {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let rates = [
            ("runs_per_program", self.runs_per_program),
            ("device_memory_gib", self.device_memory_gib),
            ("sampled_per_s", self.sampled_per_s),
            ("read_per_s", self.read_per_s),
            ("trained_per_s", self.trained_per_s),
            ("runs_per_s", self.runs_per_s),
        ];
        for (key, value) in rates {
            anyhow::ensure!(
                value.is_finite() && value > 0.0,
                "plan.{key} is {value}; it must be more than 0"
            );
        }
        anyhow::ensure!(
            self.devices >= 1,
            "plan.devices is 0; at least one is needed"
        );
        Ok(())
    }
}

/// The plan of a recipe with models that are declared and not here; `None` where they are, or are not declared.
pub(super) fn plan(recipe: &Recipe) -> Option<DeclaredPlan> {
    let absent = recipe.absent();
    if absent.is_empty() {
        return None;
    }
    let assumed = &recipe.plan;
    let mut not_here: Vec<String> = absent
        .iter()
        .map(|(name, directory)| format!("{name}.model: {} is not there", directory.display()))
        .collect();
    let files = [&recipe.tasks.train_file, &recipe.tasks.eval_file];
    let files = files.into_iter().flatten();
    let rows = recipe
        .sft
        .critic
        .iter()
        .filter_map(|stage| stage.file.as_ref());
    for file in files.chain(rows).filter(|file| !file.exists()) {
        not_here.push(format!("{} is not there", file.display()));
    }
    let models: Vec<DeclaredModel> = recipe
        .roles()
        .into_iter()
        .filter_map(|(name, role)| model(recipe, name, role))
        .collect();
    let memory_gib: f64 = models.iter().map(|model| model.memory_gib).sum();
    if let Some(here) = crate::machine::memory_bytes() {
        let here = here as f64 / GIB;
        if memory_gib > here {
            not_here.push(format!(
                "the models take {memory_gib:.0} GiB and this machine has {here:.0}"
            ));
        }
    }
    let memory_gib_per_device = memory_gib / assumed.devices as f64;
    if memory_gib_per_device > assumed.device_memory_gib {
        not_here.push(format!(
            "nor on {} devices of {:.0} GiB: each would hold {memory_gib_per_device:.0}",
            assumed.devices, assumed.device_memory_gib
        ));
    }
    let step = step(recipe);
    let mut phases = supervised(recipe);
    if let Some(rl) = &recipe.rl {
        let steps = rl.steps as f64;
        let seconds = step.sampling_seconds + step.training_seconds + step.sandbox_wait_seconds;
        let sampled = step.critique_tokens + step.revision_tokens;
        phases.push(PhasePlan {
            phase: "rl".to_owned(),
            steps: rl.steps,
            tokens: steps * (sampled + step.trained_tokens),
            sandbox_runs: steps * step.sandbox_runs,
            seconds: steps * seconds,
        });
    }
    phases.push(evaluation(recipe));
    Some(DeclaredPlan {
        not_here,
        models,
        total_seconds: phases.iter().map(|phase| phase.seconds).sum(),
        phases,
        step,
        devices: assumed.devices,
        memory_gib,
        memory_gib_per_device,
        device_memory_gib: assumed.device_memory_gib,
    })
}

/// Of every weight that is trained: 32-bit itself, gradient and two moments, and 16 bits to compute with. The
/// reference and whoever only answers: 16 bits. Under adapters from the first stage on, the same of the adapters
/// alone, over 16-bit weights that are the reference's too.
fn model(recipe: &Recipe, name: &str, role: &Role) -> Option<DeclaredModel> {
    const TRAINED: f64 = 18.0;
    const FROZEN: f64 = 2.0;
    let declared = role.declared.as_ref()?;
    let config = declared.config();
    let parameters = config.n_parameters();
    let lora = role.lora.as_ref();
    let lora_parameters = lora.map(|lora| lora.config().n_parameters(&config));
    let of_rl = recipe.rl.as_ref().filter(|_| name == critique::CRITIC);
    let supervised = match name {
        critique::CRITIC => !recipe.sft.critic.is_empty(),
        _ => !recipe.sft.reviser.is_empty(),
    };
    let weights = parameters as f64;
    let bytes = match (of_rl.is_some() || supervised, lora_parameters) {
        (false, _) => FROZEN * weights,
        (true, Some(adapters)) if lora.is_some_and(|lora| lora.full_stages == 0) => {
            FROZEN * weights + TRAINED * adapters as f64
        }
        (true, _) => {
            let reference = of_rl.is_some_and(|rl| rl.algorithm.needs_reference());
            (TRAINED + if reference { FROZEN } else { 0.0 }) * weights
        }
    };
    Some(DeclaredModel {
        role: name.to_owned(),
        model: role
            .model
            .here()
            .map_or_else(String::new, |model| model.origin()),
        parameters,
        lora_parameters,
        context: declared.context,
        memory_gib: bytes / GIB,
    })
}

fn step(recipe: &Recipe) -> DeclaredStep {
    let assumed = &recipe.plan;
    let devices = assumed.devices as f64;
    let (episodes, passes) = recipe.rl.as_ref().map_or((0.0, 0.0), |rl| {
        let episodes = rl.tasks_per_step as f64 * f64::from(rl.group_size);
        let scored = f64::from(u8::from(rl.algorithm.needs_reference()));
        // A pass without gradients costs a third of training.
        (episodes, rl.epochs as f64 + scored / 3.0)
    });
    let critique_tokens = episodes * assumed.critique_tokens as f64;
    let revision_tokens = episodes * assumed.revision_tokens as f64;
    // The problem, the program twice over, and the critique once more.
    let read = episodes * (2 * assumed.prompt_tokens + assumed.critique_tokens) as f64;
    let trained_tokens = episodes * (assumed.prompt_tokens + assumed.critique_tokens) as f64;
    let sandbox_runs = episodes * assumed.runs_per_program;
    let sampling_seconds = (critique_tokens + revision_tokens) / (assumed.sampled_per_s * devices)
        + read / (assumed.read_per_s * devices);
    DeclaredStep {
        episodes,
        critique_tokens,
        revision_tokens,
        trained_tokens,
        sandbox_runs,
        sampling_seconds,
        training_seconds: trained_tokens * passes / (assumed.trained_per_s * devices),
        sandbox_runs_per_s_needed: if sampling_seconds > 0.0 {
            sandbox_runs / sampling_seconds
        } else {
            0.0
        },
        sandbox_wait_seconds: (sandbox_runs / assumed.runs_per_s - sampling_seconds).max(0.0),
    }
}

fn supervised(recipe: &Recipe) -> Vec<PhasePlan> {
    let assumed = &recipe.plan;
    let stages = recipe.sft.critic.iter().enumerate().map(|(index, stage)| {
        let tokens = stage.rows as f64 * (assumed.prompt_tokens + assumed.critique_tokens) as f64;
        PhasePlan {
            phase: format!("sft/critic/{}", index + 1),
            steps: (stage.rows / stage.batch_rows.max(1)) as u64,
            tokens,
            sandbox_runs: 0.0,
            seconds: tokens / (assumed.trained_per_s * assumed.devices as f64),
        }
    });
    stages.collect()
}

fn evaluation(recipe: &Recipe) -> PhasePlan {
    let assumed = &recipe.plan;
    let asked = Evaluations::of(recipe);
    let tokens = asked.critiques * assumed.critique_tokens as f64
        + (asked.revisions + asked.generated) * assumed.revision_tokens as f64;
    let runs = asked.sandbox_runs() * assumed.runs_per_program;
    let sampling = tokens / (assumed.sampled_per_s * assumed.devices as f64);
    PhasePlan {
        phase: "eval".to_owned(),
        steps: 0,
        tokens,
        sandbox_runs: runs,
        seconds: sampling.max(runs / assumed.runs_per_s),
    }
}

impl DeclaredPlan {
    /// For people; `recipe` and `hash` say which it is.
    pub(crate) fn text(&self, recipe: &str, hash: &str) -> String {
        let mut text = format!("{recipe} is sound (hash {})\n", &hash[..12]);
        text +=
            "reckoned from its own sizes and rates ([plan], declared), as not all of it is here:\n";
        for why in &self.not_here {
            text += &format!("  {why}\n");
        }
        for model in &self.models {
            text += &format!(
                "{:<8} {:.2} G parameters{}, context {}, {:.1} GiB, {}\n",
                model.role,
                model.parameters as f64 / 1e9,
                model.lora_parameters.map_or_else(String::new, |n| {
                    format!(" and {:.1} M of adapters", n as f64 / 1e6)
                }),
                model.context,
                model.memory_gib,
                model.model,
            );
        }
        text += &format!(
            "\n{:<16}{:>8}{:>12}{:>16}{:>10}\n",
            "phase", "steps", "tokens", "sandbox runs", "hours"
        );
        for phase in &self.phases {
            text += &format!(
                "{:<16}{:>8}{:>10.1} M{:>16.0}{:>10.1}\n",
                phase.phase,
                phase.steps,
                phase.tokens / 1e6,
                phase.sandbox_runs,
                phase.seconds / 3600.0
            );
        }
        let step = &self.step;
        if step.episodes > 0.0 {
            text += &format!(
                "\na step: {:.0} critiques of {:.1} M tokens, revisions of {:.1} M, {:.0} sandbox runs; {:.0} s of \
                 sampling, {:.0} s of training, {:.0} s of waiting for the sandbox\n{:.0} sandbox runs a second are \
                 needed for them to hide behind sampling\n",
                step.episodes,
                step.critique_tokens / 1e6,
                step.revision_tokens / 1e6,
                step.sandbox_runs,
                step.sampling_seconds,
                step.training_seconds,
                step.sandbox_wait_seconds,
                step.sandbox_runs_per_s_needed,
            );
        }
        text += &format!(
            "\nabout {:.1} hours in all at these rates, on {} device{}\nabout {:.0} GiB of memory for models, {:.1} of \
             {:.0} GiB on each device; caches and activations come on top",
            self.total_seconds / 3600.0,
            self.devices,
            if self.devices == 1 { "" } else { "s" },
            self.memory_gib,
            self.memory_gib_per_device,
            self.device_memory_gib,
        );
        text
    }
}
