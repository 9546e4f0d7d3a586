//! Rounds of critique and revision from the command line: a forest survives `kill -9` inside a layer, and its
//! file, its measures and the run's report say the same.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    thread::sleep,
    time::Duration,
};

use critique::forest::{NodeType, read_forest};
use record::Seed;
use tempfile::TempDir;

use crate::{
    etude::{
        assert_success, committed, etude, package, resume, resume_to_end, stderr,
        wait_while_running,
    },
    runs::files,
};

const CONTENDERS: [&str; 6] = [
    "no-critique",
    "self-critique",
    "execution-feedback",
    "oracle",
    "sft",
    "rl",
];
/// Kills that must have come while a layer was on its way.
const KILLS: u64 = 4;

fn arguments(run: &Path) -> Vec<String> {
    let recipe = package("../../recipes/critique/smoke.toml");
    let mut arguments = vec!["train".to_owned(), recipe.display().to_string()];
    for set in [
        "eval.rounds=2",
        "eval.baselines=true",
        "eval.pairs.votes=2",
        "eval.gates=false",
        "tasks.eval=20",
        "rl.steps=1",
        "rl.tasks_per_step=2",
        "tasks.train=8",
        // A layer takes long enough to be caught in.
        "rollout.concurrency=2",
    ] {
        arguments.extend(["--set".to_owned(), set.to_owned()]);
    }
    arguments.extend(["--run".to_owned(), run.display().to_string()]);
    arguments
}

/// Episodes of a layer that is on its way: its file, once there is an episode in it.
fn unfinished_layer(run: &Path) -> Option<PathBuf> {
    let directory = run.join("episodes").join("evaluations");
    if !directory.exists() {
        return None;
    }
    let kept = |path: &PathBuf| path.extension().is_some_and(|end| end == "kept");
    let mut found = files(&directory).into_iter().filter(kept);
    found.find(|path| fs::metadata(directory.join(path)).is_ok_and(|found| found.len() > 400))
}

#[test]
fn a_forest_that_is_killed_inside_its_layers_ends_as_one_that_is_not() {
    let directory = TempDir::new().unwrap();
    let scratch = directory.path().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let whole = directory.path().join("whole");
    assert_success(&etude(&scratch, arguments(&whole)).output().unwrap());

    let run = directory.path().join("killed");
    let mut child = etude(&scratch, arguments(&run))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut caught = 0;
    for kill in 0..4 * KILLS {
        let done = committed(&run).evaluations().count();
        // Inside another layer than the one before.
        let reached = wait_while_running(&mut child, || {
            committed(&run).evaluations().count() > done && unfinished_layer(&run).is_some()
        });
        if !reached {
            break;
        }
        sleep(Duration::from_micros(
            Seed(7).stream("pause", kill).0 % 20_000,
        ));
        child.kill().unwrap();
        child.wait().unwrap();
        caught += u64::from(unfinished_layer(&run).is_some());
        child = resume(&scratch, &run);
        if caught == KILLS {
            break;
        }
    }
    let _ = child.kill();
    child.wait().unwrap();
    assert!(
        caught >= KILLS / 2,
        "only {caught} kills hit a layer on its way"
    );
    if !committed(&run).finished() {
        assert_success(&resume_to_end(&scratch, &run));
    }

    let (here, there) = (committed(&run), committed(&whole));
    let names = |replay: &journal::Replay| -> Vec<String> {
        replay.evaluations().map(|one| one.name.clone()).collect()
    };
    assert_eq!(names(&here), names(&there));
    for one in there.evaluations() {
        let other = here.evaluation(&one.name).unwrap();
        assert_eq!(other.metrics, one.metrics, "{}", one.name);
    }
    for name in CONTENDERS {
        let file = format!("forest-{name}.jsonl");
        let [here, there] = [&run, &whole].map(|run| fs::read_to_string(run.join(&file)).unwrap());
        assert!(here == there, "{file} differs");
        let lines = read_forest(&here).unwrap();
        let of = |kind| lines.iter().filter(|line| line.node_type == kind).count();
        assert_eq!(of(NodeType::Generation), 20, "{file}");
        if name != "oracle" {
            assert_eq!(of(NodeType::CritiqueRevision), 2 * 20, "{file}");
        }
        let rounds = there_rounds(&whole, name);
        // The file says what the measures do.
        let last = lines
            .iter()
            .rev()
            .take(20)
            .filter(|line| line.success == Some(1.0));
        if name != "oracle" {
            assert!((rounds - last.count() as f64 / 20.0).abs() < 1e-9, "{file}");
        }
    }
    assert_eq!(files(&run), files(&whole), "a file too many or too few");
}

fn there_rounds(run: &Path, name: &str) -> f64 {
    let replay = committed(run);
    let rounds = replay.evaluation(&format!("{name}/rounds")).unwrap();
    rounds.metrics["pass_at_1/round-2"].value
}

/// A model of the run writes three programs of every problem, and what is known of the tasks' own is of no use.
#[test]
fn a_generator_writes_the_programs_that_rounds_begin_with() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    let mut asked = arguments(&run);
    for set in [
        "eval.rounds=1",
        "eval.widths=[1, 3, 1, 1]",
        "eval.pairs.votes=1",
        "tasks.eval=4",
        "generator={temperature=1.0, max_tokens=64, model={hidden_size=32, intermediate_size=64, layers=2, heads=2, \
         kv_heads=1, context=384}}",
        "sft.generator=[{rows=80, batch_rows=8, optimizer={lr=5e-3}, mix={right=0.5}}]",
        "sft.reviser=[{rows=80, batch_rows=8, optimizer={lr=5e-3}, mix={}}]",
        "sft.critic=[{rows=80, batch_rows=8, optimizer={lr=5e-3}, mix={}}]",
    ] {
        asked.extend(["--set".to_owned(), set.to_owned()]);
    }
    assert_success(&etude(directory.path(), asked).output().unwrap());
    let replay = committed(&run);
    let tasks = fs::read_to_string(run.join("tasks/eval.jsonl")).unwrap();
    let problems: std::collections::BTreeSet<String> = tasks
        .lines()
        .map(|line| {
            let task: serde_json::Value = serde_json::from_str(line).unwrap();
            task["facts"]["function"].as_str().unwrap().to_owned()
        })
        .collect();
    let n = problems.len();
    for name in [
        "no-critique",
        "self-critique",
        "hinted-critique",
        "sft",
        "rl",
    ] {
        let text = fs::read_to_string(run.join(format!("forest-{name}.jsonl"))).unwrap();
        let lines = read_forest(&text).unwrap();
        let of = |kind| lines.iter().filter(|line| line.node_type == kind).count();
        let found = [
            NodeType::Root,
            NodeType::Generation,
            NodeType::CritiqueRevision,
        ]
        .map(of);
        assert_eq!(found, [n, 3 * n, 2 * 3 * n], "{name}");
        let rounds = replay.evaluation(&format!("{name}/rounds")).unwrap();
        assert!(rounds.metrics.contains_key("pass_at_1/round-2"));
    }
    assert!(replay.evaluation("oracle").is_none());
    assert!(run.join("checkpoints/generator").exists());
    // The same programs once more, from the run alone.
    let mut again = etude(directory.path(), ["eval".as_ref(), run.as_os_str()]);
    let output = again.arg("--json").output().unwrap();
    assert_success(&output);
    let start = &replay.evaluation("start").unwrap().metrics["pass_at_1"];
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told.to_string().contains("round-2"), "{told}");
    assert!((0.0..=1.0).contains(&start.value));
}

#[test]
fn impossible_widths_are_refused_before_anything_is_done() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    let mut asked = arguments(&run);
    asked.extend(["--set".to_owned(), "eval.widths=[1,5,1]".to_owned()]);
    let output = etude(directory.path(), asked).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("eval.widths"),
        "{}",
        stderr(&output)
    );
    assert!(!run.exists());
}
