//! Roles of critique recipes that are played elsewhere, or by another role.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use critique::CriticLesson;
use journal::RunReader;
use record::{Episode, Outcome};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    bad_input::complaint,
    chat_server::ChatServer,
    etude::{
        assert_success, committed, etude, last_step, learning_recipe, package, resume_to_end,
        stderr,
    },
    runs::{RL, assert_same_metrics, final_weights, played},
};

/// A few steps of the learning recipe, with so little supervision that evaluations alone ask revisers.
const SETS: [&str; 7] = [
    "sft.critic=[{rows=80, batch_rows=8, optimizer={lr=4e-3}, mix={}}]",
    "tasks.train=16",
    "tasks.eval=4",
    "rl.steps=2",
    "rl.tasks_per_step=2",
    "rl.save_every=2",
    "rollout.concurrency=4",
];

fn train(scratch: &Path, run: &Path, sets: &[&str]) -> Command {
    let mut command = etude(scratch, ["train".as_ref(), learning_recipe().as_os_str()]);
    command.args(["--run".as_ref(), run.as_os_str()]);
    for set in SETS.iter().chain(sets) {
        command.args(["--set", set]);
    }
    command
}

fn run_of(scratch: &Path, name: &str, sets: &[&str]) -> (PathBuf, Output) {
    let run = scratch.join(name);
    let output = train(scratch, &run, sets).output().unwrap();
    (run, output)
}

/// Leaves the program as it is, or breaks it, by the length of the critique.
fn reviser() -> ChatServer {
    ChatServer::start(|messages| {
        let said = |message: &Value| message["content"].as_str().unwrap().to_owned();
        let critique = messages.last().map(said).unwrap();
        match critique.len() % 3 {
            0 => "def f(*values):\n    return None".to_owned(),
            _ => messages.get(1).map(said).unwrap(),
        }
    })
}

#[test]
fn a_reviser_elsewhere_that_dies_leaves_a_run_to_go_on_with() {
    let directory = TempDir::new().unwrap();
    let server = reviser();
    let model = format!("reviser.model={:?}", server.name);
    let sets = [model.as_str(), "sft.reviser=[]"];
    let (whole, output) = run_of(directory.path(), "whole", &sets);
    assert_success(&output);
    let revised = |run: &Path| {
        let episodes = played(run);
        let calls = episodes.iter().flat_map(|(_, calls, _)| calls);
        calls.filter(|call| call.said.is_some()).count() as u64
    };
    // 4 tasks without a critique, 4 before and 4 after reinforcement, and what was read in between.
    assert_eq!(server.asked(), 12 + revised(&whole));

    // In the middle of the evaluation before reinforcement.
    server.die_after(6);
    let (run, output) = run_of(directory.path(), "broken", &sets);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("without a verdict"),
        "{}",
        stderr(&output)
    );
    let done = last_step(&run, RL);
    assert_eq!(done, 0);
    assert!(committed(&run).evaluation("no-critique").is_some());

    // It is still dead: said before anything is done, and the run is as it was.
    let complained = complaint(&resume_to_end(directory.path(), &run), 2, &["127.0.0.1"]);
    assert_eq!(complained, None);
    assert_eq!(last_step(&run, RL), done);

    server.come_back();
    assert_success(&resume_to_end(directory.path(), &run));
    assert_same_metrics(&run, &whole);
    assert!(final_weights(&run) == final_weights(&whole));
    for (_, _, outcome) in played(&run) {
        assert!(matches!(outcome, Outcome::Graded { .. }), "{outcome:?}");
    }
}

/// Requests of reinforcement are on their way when nobody answers any more.
#[test]
fn a_reviser_that_dies_during_reinforcement_leaves_a_run_to_go_on_with() {
    let directory = TempDir::new().unwrap();
    let server = reviser();
    let model = format!("reviser.model={:?}", server.name);
    let sets = [
        model.as_str(),
        "sft.reviser=[]",
        // Critiques must be readable, for revisers to be asked.
        "sft.critic=[{rows=800, batch_rows=8, optimizer={lr=4e-3}, mix={}}]",
        "rl.steps=4",
        "rl.save_every=1",
        "rollout.max_fault_share=0.0",
    ];
    let (whole, output) = run_of(directory.path(), "whole", &sets);
    assert_success(&output);
    let of_evaluations = 12;
    let of_rl = server.asked() - of_evaluations;
    assert!(of_rl >= 12, "revisers were asked {of_rl} times");

    server.die_after(8 + of_rl * 2 / 3);
    let (run, output) = run_of(directory.path(), "broken", &sets);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("without a verdict"),
        "{}",
        stderr(&output)
    );
    let done = last_step(&run, RL);
    assert!((1..4).contains(&done), "{done}");
    assert!(committed(&run).evaluation("sft").is_some());

    let complained = complaint(&resume_to_end(directory.path(), &run), 2, &["127.0.0.1"]);
    assert_eq!(complained, None);
    assert_eq!(last_step(&run, RL), done);

    server.come_back();
    assert_success(&resume_to_end(directory.path(), &run));
    assert_same_metrics(&run, &whole);
    assert!(final_weights(&run) == final_weights(&whole));
    for (_, _, outcome) in played(&run) {
        assert!(matches!(outcome, Outcome::Graded { .. }), "{outcome:?}");
    }
}

#[test]
fn a_few_unanswered_requests_are_counted_and_no_reward() {
    let directory = TempDir::new().unwrap();
    let server = reviser();
    // It is there when it is looked for, and answers once.
    server.die_after(1);
    let model = format!("reviser.model={:?}", server.name);
    let sets = [
        model.as_str(),
        "sft.reviser=[]",
        "rollout.max_fault_share=1.0",
    ];
    let (run, output) = run_of(directory.path(), "run", &sets);
    assert_success(&output);
    let episodes = evaluated(&run, "no-critique");
    let lost: Vec<&Episode> = episodes
        .iter()
        .filter(|episode| matches!(episode.outcome, Outcome::InfraFault { .. }))
        .collect();
    assert_eq!((episodes.len(), lost.len()), (4, 3), "{episodes:?}");
    for episode in lost {
        // Asked for once more, and then no reward of 0 but none.
        assert_eq!(episode.retries, 1);
        assert_eq!(episode.outcome.reward(), None);
    }
}

/// The episodes of an evaluation.
fn evaluated(run: &Path, name: &str) -> Vec<Episode> {
    let reader = RunReader::open(run).unwrap();
    let replay = reader.replay();
    let episodes = replay.evaluation(name).unwrap().episodes.as_ref().unwrap();
    let groups = reader.read_episodes(episodes).unwrap();
    groups
        .into_iter()
        .flat_map(|group| group.episodes)
        .collect()
}

#[test]
fn the_critic_revises_where_it_is_said_by_name() {
    let directory = TempDir::new().unwrap();
    let sets = ["reviser.model=\"critic\"", "sft.reviser=[]"];
    let (run, output) = run_of(directory.path(), "run", &sets);
    assert_success(&output);
    assert!(!run.join("checkpoints/reviser").exists());
    for name in ["no-critique", "sft", "rl"] {
        for episode in evaluated(&run, name) {
            let revision = episode.calls_of("reviser").next().unwrap();
            // In the critic's tokens, by its weights.
            let completion = &revision.completion;
            assert_eq!(completion.logprobs.len(), completion.response.len());
            assert!(!completion.response.is_empty() && revision.said.is_none());
        }
    }
}

#[test]
fn roles_that_make_no_sense_are_refused() {
    let directory = TempDir::new().unwrap();
    let elsewhere = "openai:http://127.0.0.1:9/v1#model";
    let model = |role: &str| format!("{role}.model={elsewhere:?}");
    let (critic, reviser) = (model("critic"), model("reviser"));
    let cases: [(&[&str], &[&str]); 8] = [
        (&[&critic, "sft.critic=[]"], &["critic.model", "[rl]"]),
        (&[&critic], &["sft.critic"]),
        (&[&reviser], &["sft.reviser"]),
        (
            &["critic.model=\"critic\""],
            &["critic.model", "reviser.model"],
        ),
        (&["reviser.model=\"critc\""], &["critc", "hf:"]),
        (
            &["reviser.api_key_env=\"KEY\""],
            &["reviser.api_key_env", "endpoints"],
        ),
        (
            &["reviser.model=\"openai:x\"", "sft.reviser=[]"],
            &["reviser", "openai:http"],
        ),
        (&["reward.judgment=-1.0"], &["reward.judgment", "-1"]),
    ];
    for (sets, says) in cases {
        let (run, output) = run_of(directory.path(), "run", sets);
        assert_eq!(complaint(&output, 2, says), None, "{sets:?}");
        assert!(!run.exists(), "{sets:?}");
    }
}

/// A file of critiques as somebody wrote them, all right ones of the tasks of `run`.
fn written(run: &Path, to: &Path, n: usize) {
    let tasks = fs::read_to_string(run.join("tasks/train.jsonl")).unwrap();
    let mut lines = String::new();
    for line in tasks.lines().take(n) {
        let task: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let public = &task["public"];
        let lesson = CriticLesson {
            critic_instruction: format!(
                "{}\n{}",
                text(&public["statement"]),
                text(&public["program"])
            ),
            critique: text(&task["gold"]["right_critique"]),
        };
        lines += &(serde_json::to_string(&lesson).unwrap() + "\n");
    }
    fs::write(to, lines).unwrap();
}

#[test]
fn a_critic_learns_from_a_file_and_long_prompts_are_left_out_or_refused() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let server = reviser();
    let model = format!("reviser.model={:?}", server.name);
    let stage = |rows: usize| {
        format!(
            "sft.critic=[{{rows={rows}, batch_rows=4, file={:?}, optimizer={{lr=3e-3}}}}]",
            at("critiques.jsonl").display().to_string()
        )
    };
    let elsewhere = [model.as_str(), "sft.reviser=[]"];
    let few = [
        "sft.critic=[{rows=8, batch_rows=4, mix={}, optimizer={lr=3e-3}}]",
        "rl.steps=1",
    ];
    let (first, output) = run_of(directory.path(), "first", &[&elsewhere[..], &few].concat());
    assert_success(&output);

    // Ten rows, each three times.
    written(&first, &at("critiques.jsonl"), 10);
    let thrice = stage(30);
    let sets = [&elsewhere[..], &[thrice.as_str(), "rl.steps=1"]].concat();
    let (run, output) = run_of(directory.path(), "run", &sets);
    assert_success(&output);
    let steps = committed(&run);
    let losses: Vec<f64> = steps
        .steps("sft/critic/1")
        .map(|step| step.metrics["sft/loss"])
        .collect();
    assert_eq!(losses.len(), 7);
    assert!(losses[6] < losses[0], "{losses:?}");

    // What a role cannot read: refused with a count, or left out and counted.
    let tight = "prompts.critic_tokens=1";
    let refused = [&sets[..], &[tight]].concat();
    let (_, output) = run_of(directory.path(), "refused", &refused);
    assert_eq!(complaint(&output, 2, &["16 tasks", "leave-out"]), None);
    let prompts = |run: &Path| -> Vec<usize> {
        let episodes = played(run);
        episodes
            .iter()
            .map(|(_, calls, _)| calls[0].completion.prompt.len())
            .collect()
    };
    let longest = prompts(&run).into_iter().max().unwrap() - 1;
    let tight = format!("prompts={{over_long=\"leave-out\", critic_tokens={longest}}}");
    let (run, output) = run_of(directory.path(), "left", &[&sets[..], &[&tight]].concat());
    assert_success(&output);
    let replay = committed(&run);
    let note = replay.note("tasks/over-long").unwrap();
    assert!(note["train"]["left_out"].as_u64().unwrap() > 0, "{note}");
    assert!(prompts(&run).into_iter().all(|tokens| tokens <= longest));

    // A row without a critique is named.
    fs::write(
        at("critiques.jsonl"),
        "{\"critic_instruction\": \"x\", \"critique\": \" \"}\n",
    )
    .unwrap();
    let (_, output) = run_of(directory.path(), "empty", &sets);
    assert_eq!(
        complaint(&output, 2, &["critiques.jsonl", "row 1", "critique"]),
        None
    );
}

#[test]
fn a_recipe_without_reinforcement_evaluates_a_critic_elsewhere() {
    let directory = TempDir::new().unwrap();
    let recipe = directory.path().join("recipe.toml");
    let (critic, reviser) = (
        ChatServer::start(|_| "Overall judgment: Correct".to_owned()),
        reviser(),
    );
    let text = format!(
        "study = \"critique\"\nname = \"elsewhere\"\n[tasks]\ntrain = 1\neval = 6\n\
         [critic]\ntemperature = 0.7\nmax_tokens = 64\nmodel = {:?}\n\
         [reviser]\ntemperature = 0.0\nmax_tokens = 64\nmodel = {:?}\n[eval]\nsamples = 2\n",
        critic.name, reviser.name
    );
    fs::write(&recipe, text).unwrap();
    let run = directory.path().join("run");
    let mut command = etude(directory.path(), ["eval".as_ref(), recipe.as_os_str()]);
    let output = command
        .args(["--run".as_ref(), run.as_os_str()])
        .output()
        .unwrap();
    assert_success(&output);
    let replay = committed(&run);
    let evaluation = replay.evaluation("critic").unwrap();
    assert_eq!(evaluation.metrics["gate_fail_rate"].value, 0.0);
    assert_eq!(critic.asked(), 12);
    let mut again = etude(
        directory.path(),
        ["eval".as_ref(), run.as_os_str(), "--json".as_ref()],
    );
    let output = again.output().unwrap();
    assert_success(&output);
    assert_eq!(critic.asked(), 24);
}

#[test]
fn a_recipe_of_models_that_are_not_here_is_reckoned() {
    let directory = TempDir::new().unwrap();
    let recipe = package("../../recipes/critique/ctrl-32b.toml");
    let plan = |arguments: &[&str]| {
        let mut command = etude(directory.path(), ["plan".as_ref(), recipe.as_os_str()]);
        let output = command.args(arguments).output().unwrap();
        assert_success(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    let told: Value = serde_json::from_str(&plan(&["--json"])).unwrap();
    let step = &told["step"];
    assert_eq!(step["episodes"], 8192.0);
    assert_eq!(step["sandbox_runs"], 8192.0 * 20.0);
    // (400 + 500) / (600 · 64) + (2 · 900 + 400) / (6000 · 64) seconds an episode.
    let sampling = 8192.0 * (900.0 / 38_400.0 + 2200.0 / 384_000.0);
    let close = |value: &Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!(
            (value / expected - 1.0).abs() < 1e-9,
            "{value} instead of {expected}"
        );
    };
    close(&step["sampling_seconds"], sampling);
    close(&step["sandbox_runs_per_s_needed"], 8192.0 * 20.0 / sampling);
    close(
        &step["sandbox_wait_seconds"],
        8192.0 * 20.0 / 300.0 - sampling,
    );
    let weights = told["models"][0]["parameters"].as_f64().unwrap();
    assert!((32.7e9..32.8e9).contains(&weights), "{weights}");
    // 32-bit weights, gradients and moments, 16 bits to compute with, and 16 bits of reference.
    close(
        &told["models"][0]["memory_gib"],
        weights * 20.0 / (1u64 << 30) as f64,
    );
    let why = told["not_here"].to_string();
    for says in [
        "Qwen2.5-Coder-32B-Instruct is not there",
        "taco-pairs.parquet",
        "this machine has",
    ] {
        assert!(why.contains(says), "{why}");
    }
    let text = plan(&[]);
    for says in ["64 devices", "sandbox runs a second", "hours in all"] {
        assert!(text.contains(says), "{text}");
    }
    // Too small a cluster is said.
    let small = plan(&["--set", "plan.devices=4"]);
    assert!(small.contains("nor on 4 devices"), "{small}");
    // It runs nowhere without its models.
    let mut command = etude(directory.path(), ["train".as_ref(), recipe.as_os_str()]);
    let output = command.output().unwrap();
    assert_eq!(
        complaint(&output, 2, &["critic.model", "Qwen2.5-Coder-32B-Instruct"]),
        None
    );
}

#[test]
fn declared_sizes_are_those_of_the_checkpoint() {
    let directory = TempDir::new().unwrap();
    let model = directory.path().join("model");
    let config = engine::ModelConfig {
        n_kv_heads: 1,
        context: 1024,
        ..engine::ModelConfig::qwen2(384, 32, 2, 2)
    };
    engine::Model::random(config, record::Seed(1))
        .unwrap()
        .save(&model)
        .unwrap();
    chat::Chat::load(&package("../../crates/chat/tests/fixtures/chat"))
        .unwrap()
        .save(&model)
        .unwrap();
    let model = format!("critic.model=\"hf:{}\"", model.display());
    let declared = "critic.declared={vocabulary=384, hidden_size=32, intermediate_size=96, layers=3, heads=2, kv_heads=1, context=1024}";
    let (_, output) = run_of(directory.path(), "run", &[&model, declared]);
    assert_eq!(
        complaint(&output, 2, &["critic.declared.layers is 3", "has 2"]),
        None
    );
}
