//! A planner that learns where to point, from outside: from lessons to held-out packages, through kills, and again.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use record::Seed;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    bad_input::complaint,
    etude::{
        assert_success, committed, etude, last_step, package, resume, resume_to_end, stderr,
        wait_while_running,
    },
    runs::{RL, assert_same_metrics, files, of_this_process, played, weights},
};

/// The recipe at a size that takes seconds.
const SHORT: [&str; 16] = [
    "tasks.limit=3",
    "tasks.train_limit=4",
    "patcher.budget=3",
    "environment.observation.suspects=4",
    "policies.planner.model.hidden_size=32",
    "policies.planner.model.intermediate_size=64",
    "policies.planner.model.layers=2",
    "policies.planner.model.heads=2",
    "policies.planner.model.kv_heads=2",
    "policies.planner.sft=[{ rows = 1200, batch_rows = 8, optimizer = { lr = 6e-3, warmup_steps = 10 }, mix = {} }]",
    "rl.steps=3",
    "rl.tasks_per_step=4",
    "rl.group_size=4",
    "rl.save_every=1",
    "sft.save_every=40",
    "eval.samples=1",
];

const CHECKPOINTS: [&str; 2] = ["planner-sft", "planner-rl"];

/// A run that nobody disturbed.
static UNDISTURBED: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = of_this_process("repair-training");
    let run = directory.join("run");
    assert_success(&train(&directory, &run, &[]).output().unwrap());
    run
});

fn recipe() -> PathBuf {
    package("../../recipes/repair/tiny.toml")
}

fn train(scratch: &Path, run: &Path, more: &[&str]) -> Command {
    let recipe = recipe();
    let arguments = [
        "train".as_ref(),
        recipe.as_os_str(),
        "--run".as_ref(),
        run.as_os_str(),
    ];
    let mut command = etude(scratch, arguments);
    for set in SHORT.iter().chain(more) {
        command.args(["--set", set]);
    }
    command
}

fn assert_same(run: &Path, expected: &Path) {
    assert_same_metrics(run, expected);
    for checkpoint in CHECKPOINTS {
        let same = weights(run, checkpoint) == weights(expected, checkpoint);
        assert!(same, "the weights of {checkpoint} differ");
    }
    assert!(played(run) == played(expected), "the episodes differ");
    let evaluations = |run: &Path| -> Vec<_> {
        let replay = committed(run);
        let all = replay.evaluations();
        all.map(|one| (one.name.clone(), one.metrics.clone()))
            .collect()
    };
    assert_eq!(evaluations(run), evaluations(expected));
}

#[test]
fn a_planner_is_taught_and_reinforced_and_compared_on_packages_that_it_has_not_seen() {
    let run: &Path = &UNDISTURBED;
    let replay = committed(run);
    assert!(replay.finished());
    let learnt = replay.steps(RL);
    let learnt = learnt.filter(|step| step.metrics["actor/grad_norm"] > 0.0);
    assert!(learnt.count() >= 1, "nothing was learnt");
    let [before, after] = CHECKPOINTS.map(|name| weights(run, name));
    assert!(before != after, "the planner is what it was");
    let names: BTreeSet<String> = replay.evaluations().map(|one| one.name.clone()).collect();
    let expected = [
        "baseline/chance",
        "baseline/rules",
        "baseline/suspicion",
        "rl",
        "sft",
    ];
    assert_eq!(names, expected.map(str::to_owned).into());
    let repositories = |name: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(run.join("tasks").join(name)).unwrap();
        let tasks = text.lines().map(|line| serde_json::from_str(line).unwrap());
        tasks
            .map(|task: Value| task["public"]["repo"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(repositories("train.jsonl").is_disjoint(&repositories("eval.jsonl")));
    let report = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("sft") && report.contains("By package"));
}

#[test]
fn kills_and_threads_change_nothing() {
    const KILLS: u64 = 5;
    let directory = TempDir::new().unwrap();
    let scratch = directory.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let run = directory.path().join("run");
    let mut child = train(&scratch, &run, &["threads=1", "rollout.concurrency=3"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = wait_while_running(&mut child, || last_step(&run, RL) >= 1);
    assert!(begun, "the run ended before it could be killed");
    child.kill().unwrap();
    child.wait().unwrap();
    for kill in 0..KILLS {
        let luck = Seed(5).stream("kill", kill);
        let entries = committed(&run).entries.len();
        let mut child = resume(&scratch, &run);
        let alive = wait_while_running(&mut child, || {
            committed(&run).entries.len() > entries + 1 + (luck.0 % 3) as usize
        });
        if !alive {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_success(&resume_to_end(&scratch, &run));
    assert_same(&run, &UNDISTURBED);
    assert_eq!(
        files(&run),
        files(&UNDISTURBED),
        "a file too many or too few"
    );
}

#[test]
fn evaluations_of_a_trained_planner_are_those_of_its_run() {
    let run: &Path = &UNDISTURBED;
    let directory = TempDir::new().unwrap();
    let arguments = ["eval".as_ref(), run.as_os_str(), "--json".as_ref()];
    let output = etude(directory.path(), arguments).output().unwrap();
    assert_success(&output);
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    let again = again["evaluations"].as_array().unwrap();
    assert_eq!(again.len(), 5);
    let replay = committed(run);
    for one in again {
        let name = one["name"].as_str().unwrap();
        let first = replay.evaluation(name).unwrap();
        let metrics = serde_json::to_value(&first.metrics).unwrap();
        assert_eq!(one["metrics"], metrics, "{name}");
    }
}

#[test]
fn an_evaluation_whose_endpoint_is_not_there_begins_no_run() {
    let directory = TempDir::new().unwrap();
    let recipe = package("../../recipes/repair/smoke.toml");
    let run = directory.path().join("run");
    let planner =
        "policies.planner={ model = \"openai:http://127.0.0.1:9/v1#m\", roles = { planner = {} } }";
    let mut command = etude(directory.path(), ["eval".as_ref(), recipe.as_os_str()]);
    command.args(["--set", "planner.kind=model", "--set", planner]);
    let output = command.arg("--run").arg(&run).output().unwrap();
    let found = complaint(&output, 2, &["http://127.0.0.1:9/v1"]);
    assert_eq!(found, None, "{}", stderr(&output));
    assert!(!run.exists());
}

#[test]
fn what_cannot_be_trained_is_asked_wrongly() {
    let directory = TempDir::new().unwrap();
    let endpoint = "policies.planner.model=\"openai:http://127.0.0.1:9/v1#m\"";
    let untaught = "policies.planner.sft=[]";
    let weightless = "policies.planner.sft=[{ rows = 8, batch_rows = 8, optimizer = { lr = 1e-3 }, mix = { \
                      suspicion = 0, passing = 0, named = 0, raised = 0, short = 0, long = 0, chance = 0 } }]";
    let cases: [(&[&str], &str); 7] = [
        (&[endpoint], "behind an endpoint"),
        (&[endpoint, untaught], "policy with a local model"),
        (&[weightless], "all weights are 0"),
        (&["environment.observation.suspects=0"], "suspects is 0"),
        (&["rl.train=[\"patcher\"]"], "the planner alone is trained"),
        (&["planner.kind=\"rules\""], "nobody asks a role `planner`"),
        (
            &["patcher={ kind = \"generate\", url = \"http://127.0.0.1:9\" }"],
            "repair.remember",
        ),
    ];
    for (sets, expected) in cases {
        let recipe = recipe();
        let mut command = etude(directory.path(), ["plan".as_ref(), recipe.as_os_str()]);
        for set in sets {
            command.args(["--set", set]);
        }
        let output = command.output().unwrap();
        let found = complaint(&output, 2, &[expected]);
        assert_eq!(found, None, "{sets:?}: {}", stderr(&output));
    }
}
