//! Runs of the recall study: the same bytes whatever the threads, through kills and interrupts, on machines
//! that run no programs.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::LazyLock,
};

use record::Seed;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    etude::{
        assert_success, committed, etude, last_step, package, resume, resume_to_end, stderr,
        wait_while_running,
    },
    processes::signal,
    runs::{
        RL, assert_adapters_lie_over_something, assert_same_metrics, contents, files,
        of_this_process, played, weights,
    },
};

/// What the smoke recipe leaves behind.
const CHECKPOINTS: [&str; 4] = ["reader-sft", "writer-sft", "reader-rl", "writer-rl"];

/// The smoke recipe's run that nobody disturbed.
static UNDISTURBED: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = of_this_process("recall");
    let run = directory.join("run");
    // Neither Python nor namespaces are asked for: nothing is found on this path.
    let output = train(&directory, &smoke(), &run, &[])
        .env("PATH", "")
        .output()
        .unwrap();
    assert_success(&output);
    let said = stderr(&output);
    let scored = "answers are scored by f1, as their datasets are";
    assert!(said.contains(scored), "{said}");
    run
});

pub(crate) fn smoke() -> PathBuf {
    package("../../recipes/recall/smoke.toml")
}

fn case(name: &str) -> PathBuf {
    package("tests/cases/recall").join(name)
}

fn train(scratch: &Path, recipe: &Path, run: &Path, sets: &[&str]) -> Command {
    let mut command = etude(scratch, ["train".as_ref(), recipe.as_os_str()]);
    command.args(["--run".as_ref(), run.as_os_str()]);
    for set in sets {
        command.args(["--set", set]);
    }
    command
}

fn assert_same(run: &Path, expected: &Path, checkpoints: &[&str]) {
    assert_same_metrics(run, expected);
    for checkpoint in checkpoints {
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
fn the_smoke_recipe_learns_in_both_policies_and_compares_all_memories() {
    let run: &Path = &UNDISTURBED;
    let replay = committed(run);
    assert!(replay.finished());
    for policy in ["reader", "writer"] {
        let norm = format!("{policy}/actor/grad_norm");
        let learnt = replay.steps(RL).filter(|step| step.metrics[&norm] > 0.0);
        assert!(learnt.count() >= 2, "{policy} learnt nothing");
        let [before, after] = ["sft", "rl"].map(|end| weights(run, &format!("{policy}-{end}")));
        assert!(before != after, "{policy} is what it was");
    }
    let names: Vec<String> = replay.evaluations().map(|one| one.name.clone()).collect();
    for end in ["sft", "rl"] {
        for memory in [
            "no_memory",
            "full_context",
            "last_k",
            "raw_chunks",
            "rule_memory",
        ] {
            assert!(names.contains(&format!("{end}/{memory}")), "{names:?}");
        }
        assert!(names.contains(&end.to_owned()), "{names:?}");
    }
}

#[test]
fn threads_and_concurrency_change_nothing_and_the_seed_does() {
    let directory = TempDir::new().unwrap();
    let sets: [(&str, &[&str]); 2] = [
        ("one-by-one", &["threads=1", "rollout.concurrency=1"]),
        (
            "everything-twice",
            &["threads=4", "training.gradient_checkpointing=true"],
        ),
    ];
    for (name, sets) in sets {
        let run = directory.path().join(name);
        let output = train(directory.path(), &smoke(), &run, sets).output();
        assert_success(&output.unwrap());
        assert_same(&run, &UNDISTURBED, &CHECKPOINTS);
    }
    let run = directory.path().join("reseeded");
    let output = train(directory.path(), &smoke(), &run, &["seed=1"]).output();
    assert_success(&output.unwrap());
    assert!(weights(&run, "reader-sft") != weights(&UNDISTURBED, "reader-sft"));
}

#[test]
fn kills_and_interrupts_change_nothing() {
    const KILLS: u64 = 8;
    let directory = TempDir::new().unwrap();
    let scratch = directory.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let run = directory.path().join("run");

    let mut child = train(&scratch, &smoke(), &run, &[]).spawn().unwrap();
    let begun = wait_while_running(&mut child, || last_step(&run, "sft/reader/1") >= 50);
    assert!(begun, "{:?}", child.wait_with_output());
    signal("INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("etude train --resume"));

    let mut killed = 0;
    for kill in 0..KILLS {
        let luck = Seed(11).stream("kill", kill);
        let entries = committed(&run).entries.len();
        let more = 1 + (luck.0 % 30) as usize;
        let mut child = resume(&scratch, &run);
        let alive = wait_while_running(&mut child, || {
            committed(&run).entries.len() > entries + more
        });
        if !alive {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
    }
    assert!(
        killed >= KILLS / 2,
        "only {killed} kills came before the end"
    );
    assert_success(&resume_to_end(&scratch, &run));
    assert!(committed(&run).finished());
    assert_same(&run, &UNDISTURBED, &CHECKPOINTS);
    assert_eq!(
        files(&run),
        files(&UNDISTURBED),
        "a file too many or too few"
    );
    assert_eq!(
        files(&scratch),
        Vec::<PathBuf>::new(),
        "temporary files are left"
    );
}

#[test]
fn policies_share_weights_under_adapters_of_their_own() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    let output = train(directory.path(), &case("shared.toml"), &run, &[]).output();
    assert_success(&output.unwrap());
    let adapter = |checkpoint: &str| {
        let folder = run.join("checkpoints").join(checkpoint);
        fs::read(folder.join("adapter_model.safetensors")).unwrap()
    };
    for policy in ["reader", "writer"] {
        let replay = committed(&run);
        let norm = format!("{policy}/actor/grad_norm");
        assert!(
            replay
                .steps(RL)
                .all(|step| step.metrics.contains_key(&norm))
        );
    }
    assert!(adapter("writer-rl") != adapter("writer-sft"));
    assert!(adapter("writer-rl") != adapter("reader-rl"));
    // The weights below the writer's adapters are those that the reader learnt, and nobody changed them.
    let base = weights(&run, "writer-base");
    assert!(base == weights(&run, "reader-sft"));

    assert_adapters_lie_over_something(&run, 5);

    // Killed in reinforcement, both go on from a checkpoint with a folder for each.
    let again = directory.path().join("again");
    let mut child = train(directory.path(), &case("shared.toml"), &again, &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = wait_while_running(&mut child, || last_step(&again, RL) >= 1);
    assert!(begun);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_success(&resume_to_end(directory.path(), &again));
    assert_same_metrics(&again, &run);
    assert_adapters_lie_over_something(&again, 5);
}

/// Step rewards become advantages of single calls; memories are found by spelling as well as by words.
#[test]
fn step_rewards_and_hybrid_retrieval_are_settings() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    let sets = [
        "memory.retrieval=hybrid",
        "step_rewards={format={weight=0.5}, evidence={weight=1.0}}",
        "rl.algorithm={kl={coefficient=0.03}, singleton=\"zero\", step={weight=0.5}}",
        "rl.mini_batch_unit=episodes",
        "rl.steps=2",
        "eval.baselines=false",
    ];
    let output = train(directory.path(), &case("shared.toml"), &run, &sets).output();
    assert_success(&output.unwrap());
    let replay = committed(&run);
    for step in replay.steps(RL) {
        for name in [
            "step_reward",
            "step_reward/format",
            "writer/actor/grad_norm",
        ] {
            assert!(
                step.metrics.contains_key(name),
                "{name}: {:?}",
                step.metrics.keys()
            );
        }
        assert!(step.metrics["writer/actor/grad_norm"] > 0.0);
    }
    let paid = |call: &record::Call| call.step_reward.is_some();
    let calls = played(&run).into_iter().flat_map(|(_, calls, _)| calls);
    assert!(calls.filter(paid).all(|call| call.role == "memory"));
}

#[test]
fn four_roles_play_and_some_are_trained() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    let output = train(directory.path(), &case("four-roles.toml"), &run, &[]).output();
    assert_success(&output.unwrap());
    let mut roles: Vec<String> = played(&run)
        .into_iter()
        .flat_map(|(_, calls, _)| calls)
        .map(|call| call.role)
        .collect();
    roles.sort();
    roles.dedup();
    assert!(roles.contains(&"answer".to_owned()), "{roles:?}");
    assert!(roles.contains(&"fact_split".to_owned()), "{roles:?}");
}

/// Supervised on lessons of their own and reinforced under adapters of their own: a model that extracts, and
/// three roles of which two are trained, paid by questions about each session.
#[test]
fn those_who_write_in_other_ways_are_taught_and_trained_too() {
    let directory = TempDir::new().unwrap();
    let ways: [(&str, &[&str], &[&str]); 2] = [
        (
            "model",
            &["extract", "answer"],
            &[
                "policies.writer.roles={extract={max_tokens=48}}",
                "rl.train=[\"extract\", \"answer\"]",
            ],
        ),
        (
            "four_roles",
            &["fact_split", "answer", "chunk_qa"],
            &[
                "policies.reader.roles={answer={max_tokens=12},chunk_qa={max_tokens=12}}",
                "policies.writer.roles={fact_split={max_tokens=64},long_mem={max_tokens=16},short_mem={max_tokens=32}}",
                "rl.train=[\"fact_split\", \"long_mem\", \"answer\"]",
                "step_rewards={chunk_qa={weight=1.0,ask=true}}",
                "rl.algorithm={step={weight=1.0}}",
                "tasks.chunk_questions=2",
            ],
        ),
    ];
    for (extraction, roles, more) in ways {
        let run = directory.path().join(extraction);
        let way = format!("memory.extraction={extraction}");
        let sets = [&[way.as_str(), "rl.steps=1"], more].concat();
        let output = train(directory.path(), &case("shared.toml"), &run, &sets).output();
        assert_success(&output.unwrap());
        let calls: Vec<record::Call> = played(&run)
            .into_iter()
            .flat_map(|(_, calls, _)| calls)
            .collect();
        for role in roles {
            let found = calls.iter().any(|call| call.role == *role);
            assert!(found, "{extraction}: nobody asked {role}");
        }
        let adapter = |checkpoint: &str| {
            let folder = run.join("checkpoints").join(checkpoint);
            fs::read(folder.join("adapter_model.safetensors")).unwrap()
        };
        assert!(
            adapter("writer-rl") != adapter("writer-sft"),
            "{extraction}"
        );
        let paid = calls.iter().filter(|call| call.step_reward.is_some());
        let roles: BTreeSet<&str> = paid.map(|call| call.role.as_str()).collect();
        assert_eq!(roles.contains("fact_split"), extraction == "four_roles");
        assert!(!roles.contains("chunk_qa"), "{roles:?}");
    }
}

#[test]
fn evaluations_are_those_of_the_run_and_leave_it_as_it_is() {
    let directory = TempDir::new().unwrap();
    let run: &Path = &UNDISTURBED;
    let before = contents(run);
    let output = eval(directory.path(), run, &[]);
    assert!(contents(run) == before, "the run was changed");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let replay = committed(run);
    let found = found["evaluations"].as_array().unwrap();
    assert_eq!(found.len(), replay.evaluations().count());
    for one in found {
        let name = one["name"].as_str().unwrap();
        let then = replay.evaluation(name).unwrap();
        let metrics = serde_json::to_value(&then.metrics).unwrap();
        assert_eq!(one["metrics"], metrics, "{name}");
    }
}

#[test]
fn a_baseline_is_one_flag_away_also_where_policies_write_the_memory() {
    let directory = TempDir::new().unwrap();
    for baseline in ["no_memory", "full_context", "last_k", "raw_chunks"] {
        let run = directory.path().join(baseline);
        let flag = format!("baseline={baseline}");
        let sets = [
            flag.as_str(),
            "rl.steps=1",
            "eval.baselines=false",
            "policies.reader.sft=[]",
        ];
        let output = train(directory.path(), &smoke(), &run, &sets)
            .output()
            .unwrap();
        assert_success(&output);
        let said = stderr(&output);
        let line = format!("baseline {baseline}: nobody asks for memory");
        assert!(said.contains(&line), "{said}");
        assert!(
            said.contains(" of 96 tokens of memory in the prompt"),
            "{said}"
        );
        let calls = played(&run).into_iter().flat_map(|(_, calls, _)| calls);
        assert!(calls.into_iter().all(|call| call.role == "answer"));
        assert!(!run.join("checkpoints/writer-sft").exists());
    }
}

/// What becomes of episodes with nothing to compare them with is written into every new run.
#[test]
fn an_episode_alone_teaches_nothing_unless_the_recipe_says_so() {
    let text = |run: &Path| fs::read_to_string(run.join("recipe.toml")).unwrap();
    assert!(text(&UNDISTURBED).contains("singleton = \"zero\""));
    let replay = committed(&UNDISTURBED);
    let counted = |step: &journal::Step| step.metrics.contains_key("rollout/singleton_groups");
    assert!(replay.steps(RL).all(counted));

    let directory = TempDir::new().unwrap();
    let kept = directory.path().join("kept");
    let sets = [
        "rl.algorithm.singleton=keep",
        "rl.steps=1",
        "eval.baselines=false",
        "policies.reader.sft=[]",
        "policies.writer.sft=[]",
    ];
    let output = train(directory.path(), &smoke(), &kept, &sets).output();
    assert_success(&output.unwrap());
    assert!(text(&kept).contains("singleton = \"keep\""));
}

/// Tasks as a run keeps them, and those that are made of a dataset, are read from files.
#[test]
fn tasks_of_files_are_trained_and_evaluated_on() {
    let directory = TempDir::new().unwrap();
    let tasks = |name: &str| UNDISTURBED.join("tasks").join(name);
    let sets = [
        format!("tasks.train_file={}", tasks("train.jsonl").display()),
        format!("tasks.eval_file={}", tasks("eval.jsonl").display()),
    ];
    let run = directory.path().join("run");
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let output = train(directory.path(), &smoke(), &run, &sets).output();
    assert_success(&output.unwrap());
    assert_same(&run, &UNDISTURBED, &CHECKPOINTS);

    let evaluations = |more: &[&str]| -> Value {
        let output = eval(directory.path(), &run, more);
        let mut told: Value = serde_json::from_slice(&output.stdout).unwrap();
        told["evaluations"].take()
    };
    let file = tasks("eval.jsonl").display().to_string();
    assert_eq!(evaluations(&["--tasks", &file]), evaluations(&[]));

    // The same dialogues, prepared: the same answers to the same questions.
    let dialogues = package("../../studies/recall/tests/cases/adapters/081_dialogue/rows.jsonl");
    let out = directory.path().join("prepared");
    let mut prepare = etude(directory.path(), ["data", "prepare", "recall", "--json"]);
    prepare.args(["--format", "dialogue", "--eval", "1", "--out"]);
    assert_success(&prepare.arg(&out).arg(&dialogues).output().unwrap());
    let prepared = out.join("eval.jsonl").display().to_string();
    let found = evaluations(&["--tasks", &prepared]);
    let rows = fs::read_to_string(&prepared).unwrap().lines().count();
    assert_eq!(found[0]["n_tasks"], rows);
}

#[test]
fn plans_say_what_will_run_and_nothing_of_sandboxes() {
    let directory = TempDir::new().unwrap();
    let output = etude(directory.path(), ["plan".as_ref(), smoke().as_os_str()])
        .env("PATH", "")
        .output()
        .unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    for word in [
        "reader",
        "writer",
        "sft/reader/1",
        "sft/writer/1",
        "rl",
        "eval",
    ] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    assert!(!text.contains("sandbox"), "{text}");
    assert!(contents(directory.path()).is_empty());
}

fn eval(scratch: &Path, run: &Path, more: &[&str]) -> Output {
    let arguments = ["eval".as_ref(), run.as_os_str(), "--json".as_ref()];
    let output = etude(scratch, arguments).args(more).output().unwrap();
    assert_success(&output);
    output
}
