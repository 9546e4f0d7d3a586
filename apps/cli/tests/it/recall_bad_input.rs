//! Recall recipes and files that cannot be: one paragraph that says what to do, exit code 2, nothing done.

use std::fs;

use tempfile::TempDir;

use crate::{
    bad_input::complaint,
    etude::{assert_success, etude, stderr},
    recall::smoke,
    runs::contents,
};

/// Settings of the smoke recipe, and what the error must say.
const RECIPES: &[(&str, &[&str], &[&str])] = &[
    (
        "a role that nobody asks",
        &["policies.reader.roles={anser={max_tokens=8}}"],
        &["policies.reader.roles.anser", "did you mean `answer`"],
    ),
    (
        "a role that nobody plays",
        &[
            "memory.extraction=four_roles",
            "rl.train=[\"answer\"]",
            "policies.writer.roles={fact_split={max_tokens=8}}",
        ],
        &["no policy plays `long_mem`", "reader, writer"],
    ),
    (
        "a role of rules",
        &["memory.extraction=rule"],
        &["policies.writer.roles.memory", "rule", "answer"],
    ),
    (
        "a role played twice",
        &["policies.writer.roles={memory={max_tokens=8}, answer={max_tokens=8}}"],
        &["policies.writer.roles.answer", "policies.reader"],
    ),
    (
        "a policy without a role",
        &["policies.writer.roles={}"],
        &["policies.writer.roles is empty"],
    ),
    (
        "an unknown role to train",
        &["rl.train=[\"answr\"]"],
        &["rl.train", "answr", "did you mean `answer`"],
    ),
    ("nobody to train", &["rl.train=[]"], &["rl.train is empty"]),
    (
        "trained roles without chance",
        &[
            "rl.train=[\"answer\"]",
            "policies.reader.roles={answer={temperature=0.0, max_tokens=8}}",
        ],
        &["temperature"],
    ),
    (
        "questions about chunks that nobody has",
        &[
            "step_rewards={chunk_qa={weight=1.0,ask=true}}",
            "policies.reader.roles={answer={max_tokens=8},chunk_qa={max_tokens=8}}",
        ],
        &["step_rewards.chunk_qa.ask", "tasks.chunk_questions"],
    ),
    (
        "answers about chunks that are trained",
        &[
            "step_rewards={chunk_qa={weight=1.0,ask=true}}",
            "tasks.chunk_questions=2",
            "policies.reader.roles={answer={max_tokens=8},chunk_qa={max_tokens=8}}",
            "rl.train=[\"chunk_qa\"]",
        ],
        &["rl.train", "chunk_qa", "train `answer`"],
    ),
    (
        "a fusion of one list",
        &["memory.fusion=z_score"],
        &["memory.fusion", "hybrid"],
    ),
    (
        "variety beyond measure",
        &["memory.diversity=1.5"],
        &["memory.diversity is 1.5"],
    ),
    (
        "a chance above one",
        &["policies.reader.sft=[{rows=8,batch_rows=8,optimizer={lr=1e-3},mix={drill_near=2.0}}]"],
        &["drill_near is 2"],
    ),
    (
        "an unknown key of the memory",
        &["memory.topk=3"],
        &["topk", "did you mean `top_k`"],
    ),
    (
        "an unknown step reward",
        &["step_rewards.fromat={weight=1.0}"],
        &["fromat", "did you mean `format`"],
    ),
    (
        "a step reward with bounds the wrong way round",
        &["step_rewards.evidence={weight=1.0, clip=[1.0, -1.0]}"],
        &["step reward `evidence`", "lower bound first"],
    ),
    (
        "a judge whom nobody plays",
        &["reward.judge=true"],
        &["no policy plays `judge`"],
    ),
    (
        "a judge who is trained",
        &[
            "reward.judge=true",
            "policies.reader.roles={answer={max_tokens=8}, judge={max_tokens=4}}",
        ],
        &["policies.reader plays `judge`", "let another policy judge"],
    ),
    (
        "an unknown metric",
        &["reward.metric=locom"],
        &["locom", "did you mean `locomo`"],
    ),
    (
        "a memory that finds nothing",
        &["memory.top_k=0"],
        &["top_k"],
    ),
    (
        "a chance above one",
        &["policies.writer.sft=[{rows=8, batch_rows=8, optimizer={lr=1e-3}, mix={forget=1.5}}]"],
        &["policies.writer.sft stage 1", "forget is 1.5"],
    ),
    (
        "an unknown policy to begin as",
        &["policies.other={begins_as=\"reeder\", roles={}}"],
        &["policies.other.begins_as", "did you mean `reader`"],
    ),
    (
        "a policy without a model",
        &["policies.other={roles={}}"],
        &["policies.other", "`model`", "begins_as"],
    ),
    (
        "two sources of weights",
        &["policies.writer.begins_as=\"reader\""],
        &["policies.writer", "`model` and `begins_as`"],
    ),
    (
        "a name that is no file's",
        &["policies.\"a/b\"={begins_as=\"reader\", roles={}}"],
        &["a/b", "letters"],
    ),
    ("no tasks", &["tasks.eval=0"], &["tasks.eval"]),
    (
        "a prompt without room for any memory",
        &["prompt.context_tokens=0"],
        &["prompt.context_tokens is 0", "no_memory"],
    ),
    (
        "advantages of steps that nothing pays",
        &["rl.algorithm.step={weight=1.0}"],
        &["rl.algorithm.step", "[step_rewards]"],
    ),
    (
        "a baseline that asks nobody who is trained",
        &["baseline=full_context", "rl.train=[\"memory\"]"],
        &["rl.train is empty", "answer"],
    ),
    (
        "an unknown format",
        &["tasks.format=lokomo"],
        &["lokomo", "did you mean `locomo`"],
    ),
    (
        "a response longer than the context",
        &["policies.reader.roles={answer={max_tokens=600}}"],
        &["policies.reader.roles.answer.max_tokens is 600", "512"],
    ),
];

#[test]
fn bad_recipes() {
    let directory = TempDir::new().unwrap();
    let recipe = smoke();
    let mut failures = Vec::new();
    for (name, sets, words) in RECIPES {
        for command in ["train", "plan"] {
            let mut arguments = vec![command, recipe.to_str().unwrap()];
            arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
            let output = etude(directory.path(), arguments)
                .current_dir(directory.path())
                .output()
                .unwrap();
            let found = complaint(&output, 2, words);
            failures.extend(found.map(|found| format!("{command}: {name}: {found}")));
            if !contents(directory.path()).is_empty() {
                failures.push(format!("{command}: {name}: something was written"));
                fs::remove_dir_all(directory.path().join("runs")).unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What a context must hold is known when there are tasks and a tokenizer: before anything is trained.
#[test]
fn a_context_without_room_for_a_full_memory_is_refused() {
    let directory = TempDir::new().unwrap();
    let run = directory.path().join("run");
    let recipe = smoke();
    let arguments = [
        "train",
        recipe.to_str().unwrap(),
        "--run",
        run.to_str().unwrap(),
        "--set",
        "prompt.context_tokens=500",
    ];
    let output = etude(directory.path(), arguments).output().unwrap();
    let words = ["prompt.context_tokens", "max_tokens", "512", "lower"];
    assert_eq!(complaint(&output, 2, &words), None);
    assert!(!run.join("checkpoints/reader-sft").exists());
}

/// Name, format, content, and what the error must say beside the file's name.
const FILES: &[(&str, &str, &str, &[&str])] = &[
    ("no JSON", "locomo", "{\"sample_id\": \n", &[]),
    (
        "another format",
        "locomo",
        "{\"chunks\": []}\n",
        &["line 1", "skip_rejected"],
    ),
    ("no rows", "dialogue", "", &[]),
    (
        "one document",
        "dialogue",
        "{\"sample_id\": \"s\", \"data_source\": \"own\", \"split\": \"all\", \"document\": \"d\", \"sessions\": [], \
         \"questions\": [{\"question_id\": \"q\", \"text\": \"Who?\", \"question_type\": \"person\", \"gold\": \
         {\"answers\": [\"Ann\"]}}]}\n",
        &["divided by document", "tasks.eval_file"],
    ),
];

#[test]
fn bad_files_of_dialogues() {
    let directory = TempDir::new().unwrap();
    let recipe = smoke();
    for (name, format, content, words) in FILES {
        let file = directory.path().join("dialogues.jsonl");
        fs::write(&file, content).unwrap();
        let path = file.to_str().unwrap();
        let (train, format) = (
            format!("tasks.train_file={path}"),
            format!("tasks.format={format}"),
        );
        let arguments = [
            "plan",
            recipe.to_str().unwrap(),
            "--set",
            &train,
            "--set",
            &format,
        ];
        let output = etude(directory.path(), arguments).output().unwrap();
        let words: Vec<&str> = words.iter().copied().chain(["dialogues.jsonl"]).collect();
        assert_eq!(complaint(&output, 2, &words), None, "{name}");
    }
}

/// Content of a file that should hold tasks as runs keep them, and what the error must say beside its name.
const TASKS: &[(&str, &str, &[&str])] = &[
    ("nothing", "", &["has no tasks"]),
    (
        "a dataset",
        "{\"sample_id\": \"conv-1\", \"qa\": []}\n",
        &["1 row is no task", "line 1", "etude data prepare recall"],
    ),
    (
        "a task without a question",
        "{\"id\": \"a\", \"public\": {\"turns\": []}, \"facts\": {\"data_source\": \"own\", \"document\": \
         \"d\", \"questions\": {}}, \"gold\": {\"answers\": {}}}\n",
        &["line 1", "no target turn"],
    ),
];

#[test]
fn bad_files_of_tasks() {
    let directory = TempDir::new().unwrap();
    let recipe = smoke();
    let file = directory.path().join("tasks.jsonl");
    for (name, content, words) in TASKS {
        fs::write(&file, content).unwrap();
        let words: Vec<&str> = words.iter().copied().chain(["tasks.jsonl"]).collect();
        for key in ["train_file", "eval_file"] {
            let set = format!("tasks.{key}={}", file.display());
            let arguments = ["plan", recipe.to_str().unwrap(), "--set", &set];
            let output = etude(directory.path(), arguments).output().unwrap();
            assert_eq!(complaint(&output, 2, &words), None, "{name}, {key}");
        }
    }
}

/// Dialogues of a file are divided by document where one file is all there is.
#[test]
fn dialogues_of_a_file_are_trained_and_evaluated_on_apart() {
    let directory = TempDir::new().unwrap();
    let rows: Vec<String> = (0..6)
        .map(|index| {
            format!(
                "{{\"sample_id\": \"s{index}\", \"data_source\": \"own\", \"split\": \"all\", \
                 \"document\": \"d{index}\", \"sessions\": [{{\"timestamp\": \"May\", \"utterances\": \
                 [{{\"speaker\": \"Ann\", \"text\": \"I live in Rome now.\"}}]}}], \"questions\": \
                 [{{\"question_id\": \"q\", \"text\": \"Which city does Ann live in?\", \
                 \"question_type\": \"place\", \"gold\": {{\"answers\": [\"Rome\"]}}}}]}}\n"
            )
        })
        .collect();
    let file = directory.path().join("dialogues.jsonl");
    fs::write(&file, rows.concat()).unwrap();
    let run = directory.path().join("run");
    let recipe = smoke();
    let file = format!("tasks.train_file={}", file.display());
    let sets = [
        file.as_str(),
        "tasks.format=dialogue",
        "tasks.train=4",
        "tasks.eval=2",
        "rl.steps=1",
        "eval.baselines=false",
        "policies.reader.sft=[]",
        "policies.writer.sft=[]",
    ];
    let mut command = etude(directory.path(), ["train".as_ref(), recipe.as_os_str()]);
    command.args(["--run".as_ref(), run.as_os_str()]);
    for set in sets {
        command.args(["--set", set]);
    }
    assert_success(&command.output().unwrap());
    let documents = |name: &str| -> Vec<String> {
        let text = fs::read_to_string(run.join("tasks").join(name)).unwrap();
        let rows = text.lines().map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["facts"]["document"].as_str().unwrap().to_owned()
        });
        rows.collect()
    };
    let (train, eval) = (documents("train.jsonl"), documents("eval.jsonl"));
    assert_eq!((train.len(), eval.len()), (4, 2));
    assert!(train.iter().all(|document| !eval.contains(document)));

    // Evaluated again on files: of the recipe's format, and of another that is named.
    let documents = "[{\"title\": \"Ann\", \"context\": \"Ann lives in Rome.\", \"question\": \"Where \
                     does Ann live?\", \"id\": \"a\", \"answers\": {\"text\": [\"Rome\"], \
                     \"answer_start\": [13]}}]";
    let squad = directory.path().join("squad.json");
    fs::write(&squad, documents).unwrap();
    let evaluated = |more: &[&str]| {
        let arguments = [
            "eval".as_ref(),
            run.as_os_str(),
            "--tasks".as_ref(),
            squad.as_os_str(),
        ];
        etude(directory.path(), arguments)
            .args(more)
            .output()
            .unwrap()
    };
    assert_success(&evaluated(&["--format", "squad"]));
    // Without its format the file is read as the recipe says.
    assert_eq!(complaint(&evaluated(&[]), 2, &["squad.json"]), None);
    let misspelt = evaluated(&["--format", "squat"]);
    assert_eq!(misspelt.status.code(), Some(2));
    assert!(stderr(&misspelt).contains("squad"), "{}", stderr(&misspelt));
}
