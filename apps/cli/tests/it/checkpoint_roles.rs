//! Roles that begin with checkpoints of other programs: `model = "hf:DIRECTORY"`.

use std::{fs, path::Path, process::Command, sync::Arc};

use chat::Chat;
use engine::{Adapter, Family, LoraConfig, LoraTarget, Model, ModelConfig};
use record::Seed;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    bad_input::smoke,
    etude::{assert_success, etude, last_step, package, resume_to_end, wait_while_running},
    runs::{RL, assert_same_metrics},
};

const SETS: [&str; 7] = [
    "sft.critic=[{rows=24, batch_rows=8, optimizer={lr=3e-3}, mix={}}]",
    "sft.reviser=[{rows=16, batch_rows=8, optimizer={lr=3e-3}, mix={}}]",
    "tasks.train=32",
    "tasks.eval=4",
    "eval.gates=false",
    "rl.steps=8",
    "rl.tasks_per_step=2",
];

/// A tokenizer and a template that are not those of the recipe.
fn foreign_chat(to: &Path) {
    Chat::load(&package("../../crates/chat/tests/fixtures/chat"))
        .unwrap()
        .save(to)
        .unwrap();
    let template = "{% for m in messages %}{{ '<|' + m.role + '|>' }}\n\
        {%- if m.role == 'assistant' %}{% generation %}{{ m.content + eos_token }}{% endgeneration %}\
        {%- else %}{{ m.content + eos_token }}{% endif %}{% endfor %}\
        {%- if add_generation_prompt %}<|assistant|>{% endif %}";
    fs::write(to.join("chat_template.jinja"), template).unwrap();
}

fn model(family: Family, seed: u64) -> Model {
    let config = ModelConfig {
        family,
        n_kv_heads: 1,
        context: 1024,
        ..ModelConfig::qwen2(384, 32, 2, 2)
    };
    Model::random(config, Seed(seed)).unwrap()
}

/// A Llama in `critic`, and in `reviser` an adapter over a Qwen3 beside it.
fn checkpoints(at: &Path) {
    model(Family::Llama, 1).save(&at.join("critic")).unwrap();
    foreign_chat(&at.join("critic"));
    let base = model(Family::Qwen3, 2);
    base.save(&at.join("base")).unwrap();
    let lora = LoraConfig {
        rank: 2,
        alpha: 4.0,
        dropout: 0.0,
        targets: LoraTarget::all(),
        rslora: false,
    };
    let adapter = Adapter::new(&base, lora, Seed(3)).unwrap();
    let adapter = Arc::new(adapter.named_base("../base"));
    let adapted = base.with_adapter(adapter).unwrap();
    adapted.save(&at.join("reviser")).unwrap();
    foreign_chat(&at.join("reviser"));
}

fn train(scratch: &Path, run: &Path, threads: &str) -> Command {
    let mut command = etude(scratch, ["train".as_ref(), smoke().as_os_str()]);
    command.args(["--run".as_ref(), run.as_os_str()]);
    let models = scratch.join("models");
    for role in ["critic", "reviser"] {
        let model = models.join(role).display().to_string();
        command.args(["--set", &format!("{role}.model=\"hf:{model}\"")]);
    }
    for set in SETS.iter().chain([&threads]) {
        command.args(["--set", set]);
    }
    command
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_run_from_checkpoints_keeps_their_make_and_needs_them_no_more_once_it_trains() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    checkpoints(&at("models"));
    assert_success(
        &train(directory.path(), &at("other"), "threads=4")
            .output()
            .unwrap(),
    );

    let run = at("run");
    let mut child = train(directory.path(), &run, "threads=1")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(
        wait_while_running(&mut child, || last_step(&run, RL) >= 1),
        "the run ended before the kill"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    fs::rename(at("models"), at("gone")).unwrap();
    assert_success(&resume_to_end(directory.path(), &run));
    assert_same_metrics(&run, &at("other"));

    for (checkpoint, source, family) in [
        ("critic-sft", "critic", "llama"),
        ("critic-rl", "critic", "llama"),
        ("reviser", "base", "qwen3"),
    ] {
        let trained = run.join("checkpoints").join(checkpoint);
        let config = json(&trained.join("config.json"));
        assert_eq!(config["model_type"], family, "{checkpoint}");
        let (before, after) = (
            Model::load(&at("gone").join(source)).unwrap(),
            Model::load(&trained).unwrap(),
        );
        assert_eq!(before.config(), after.config(), "{checkpoint}");
        assert_ne!(
            before.digest(),
            after.digest(),
            "{checkpoint} did not learn"
        );
        // The role goes on reading and writing by its own tokenizer and template.
        let (before, after) = (
            Chat::load(&at("gone/critic")).unwrap(),
            Chat::load(&trained).unwrap(),
        );
        assert_eq!(before.template().source(), after.template().source());
        assert_eq!(before.stop_tokens(), after.stop_tokens());
        assert_eq!(
            before.tokenizer().to_json().unwrap(),
            after.tokenizer().to_json().unwrap()
        );
    }
}

/// Roles that bring what they need are not supervised; a recipe does not have to speak of it.
#[test]
fn a_recipe_without_supervision_says_nothing_of_it() {
    let directory = TempDir::new().unwrap();
    checkpoints(&directory.path().join("models"));
    let recipe = directory.path().join("recipe.toml");
    let text = "study = \"critique\"\nname = \"brought\"\n\
        [tasks]\ntrain = 8\neval = 4\n\
        [critic]\ntemperature = 1.0\nmax_tokens = 24\nmodel = \"hf:models/critic\"\n\
        [reviser]\ntemperature = 0.0\nmax_tokens = 24\nmodel = \"hf:models/reviser\"\n\
        [rl]\nsteps = 1\ntasks_per_step = 2\ngroup_size = 2\noptimizer = { lr = 1e-3 }\n";
    fs::write(&recipe, text).unwrap();
    let planned = etude(directory.path(), ["plan".as_ref(), recipe.as_os_str()])
        .arg("--json")
        .output()
        .unwrap();
    assert_success(&planned);
    let planned: Value = serde_json::from_slice(&planned.stdout).unwrap();
    for phase in planned["phases"].as_array().unwrap() {
        let counted = phase["tokens"].as_f64().unwrap() > 0.0;
        assert_eq!(counted, phase["phase"] != "tasks", "{planned}");
    }
    let run = directory.path().join("run");
    let trained = etude(directory.path(), ["train".as_ref(), recipe.as_os_str()])
        .args(["--run".as_ref(), run.as_os_str()])
        .output()
        .unwrap();
    assert_success(&trained);
    assert!(run.join("checkpoints/critic-rl/model.safetensors").exists());

    let supervised = etude(directory.path(), ["plan".as_ref(), recipe.as_os_str()])
        .args(["--set", "tokenizer.vocabulary=300"])
        .output()
        .unwrap();
    assert_eq!(supervised.status.code(), Some(2));
    assert!(crate::etude::stderr(&supervised).contains("sft.drafts"));
}
