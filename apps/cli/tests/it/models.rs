//! `etude model`: checkpoints looked at, brought in, and handed on to `transformers` and `peft`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use chat::Chat;
use engine::{
    AdamW, Adapter, Engine, Learner, LearnerOptions, LoraConfig, LoraTarget, Model, ModelConfig,
    RowScores, TokenLoss, TrainRow,
};
use record::{Message, Seed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    etude::{assert_success, etude, package},
    runs::{copy, files, uninterrupted},
};

/// Models of every family, as `transformers` wrote them; all have 32 tokens or more.
const FAMILIES: [&str; 8] = [
    "000_qwen2_parity/model",
    "001_families/llama3",
    "001_families/linear",
    "001_families/yarn",
    "001_families/qwen3",
    "003_sliding_window/mistral",
    "003_sliding_window/qwen2",
    "003_sliding_window/qwen3",
];

/// A checkpoint of one family with a tokenizer, complete.
fn family(name: &str, to: &Path) {
    copy(&package("../../crates/engine/tests/cases").join(name), to);
    let _ = fs::remove_file(to.join("expected.json"));
    let _ = fs::remove_file(to.join("gradients.safetensors"));
    with_tokenizer(to);
}

pub(crate) fn with_tokenizer(to: &Path) {
    copy(&package("tests/cases/models"), to);
    fs::remove_file(to.join("scores.py")).unwrap();
}

fn json_of(arguments: &[&str]) -> Value {
    let scratch = TempDir::new().unwrap();
    let mut command = etude(scratch.path(), ["model"]);
    let output = command.args(arguments).arg("--json").output().unwrap();
    assert_success(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn path(directory: &Path) -> &str {
    directory.to_str().unwrap()
}

fn bits(model: &Model) -> Vec<(String, Vec<usize>, Vec<u32>)> {
    let tensors = model.tensors();
    tensors
        .map(|(name, shape, values)| {
            let bits = values.iter().map(|value| value.to_bits()).collect();
            (name.to_owned(), shape.to_vec(), bits)
        })
        .collect()
}

/// Rows that any of these models can be given.
struct Rows {
    tokens: Vec<Vec<u32>>,
    masks: Vec<Vec<bool>>,
}

impl Rows {
    fn draw(seed: u64) -> Self {
        let token = |row: u64, at: u64| (Seed(seed).stream("row", 100 * row + at).0 % 30) as u32;
        let rows = [30, 9].into_iter().zip(0..);
        Self {
            tokens: rows
                .map(|(len, row)| (0..len).map(|at| token(row, at)).collect())
                .collect(),
            masks: [30, 9]
                .map(|len| (0..len).map(|at| at > 0).collect())
                .into(),
        }
    }

    fn get(&self) -> Vec<TrainRow<'_>> {
        let rows = self.tokens.iter().zip(&self.masks);
        rows.map(|(tokens, mask)| TrainRow { tokens, mask })
            .collect()
    }
}

/// Of the rows of seed 1.
fn logprobs(model: &Model) -> Vec<Vec<f32>> {
    let rows = Rows::draw(1);
    let scores = Engine::new(1).unwrap().score(model, &rows.get()).unwrap();
    scores.into_iter().map(|row| row.logprobs).collect()
}

fn distance(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let rows = found.iter().zip(expected);
    rows.flat_map(|(found, expected)| {
        assert_eq!(found.len(), expected.len());
        found.iter().zip(expected).map(|(a, b)| (a - b).abs())
    })
    .fold(0.0, f32::max)
}

#[test]
fn inspection_says_what_a_checkpoint_is() {
    let directory = TempDir::new().unwrap();
    family("001_families/yarn", directory.path());
    let found = json_of(&["inspect", path(directory.path())]);
    let architecture = &found["architecture"];
    for (key, expected) in [
        ("family", json!("mistral")),
        ("layers", json!(2)),
        ("vocabulary", json!(32)),
        ("tied_embeddings", json!(false)),
        ("dtype", json!("f32")),
    ] {
        assert_eq!(architecture[key], expected, "{key}: {architecture}");
    }
    assert_eq!(architecture["rope_scaling"]["rope_type"], "yarn");
    assert_eq!(found["weights"].as_array().unwrap().len(), 4);
    let numbers = |file: &Value| -> u64 {
        let numbers = file["numbers"].as_object().unwrap().values();
        numbers.map(|n| n.as_u64().unwrap()).sum()
    };
    let stored: u64 = found["weights"]
        .as_array()
        .unwrap()
        .iter()
        .map(numbers)
        .sum();
    assert_eq!(architecture["parameters"], stored);
    let tokenizer = &found["tokenizer"];
    assert_eq!(tokenizer["entries"], 6);
    assert_eq!(tokenizer["eos"], "<|end|>");
    assert_eq!(tokenizer["chat_template"], "chat_template.jinja");
    assert_eq!(
        tokenizer["special_tokens"],
        json!([{"id": 0, "token": "<|end|>"}])
    );
    let stops = found["stop_tokens"].as_array().unwrap();
    let stops: Vec<u64> = stops
        .iter()
        .map(|stop| stop["id"].as_u64().unwrap())
        .collect();
    assert_eq!(stops[..2], [0, 5]);
    assert_eq!(found["usable"], true);
    assert_eq!(
        (&found["problems"], &found["notes"]),
        (&json!([]), &json!([]))
    );

    // The same for people, and a base model without a template is usable.
    fs::remove_file(directory.path().join("chat_template.jinja")).unwrap();
    let scratch = TempDir::new().unwrap();
    let output = etude(scratch.path(), ["model", "inspect", path(directory.path())])
        .output()
        .unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "family         mistral",
        "and 0 more",
        "model-00004-of-00004.safetensors",
        "chat template  none",
        "no chat template",
        "usable",
    ] {
        let expected = words != "and 0 more";
        assert_eq!(text.contains(words), expected, "{words}: {text}");
    }
}

#[test]
fn every_family_keeps_every_bit_on_its_way_in_and_out() {
    for name in FAMILIES {
        let directory = TempDir::new().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("hf")).unwrap();
        family(name, &at("hf"));
        fs::write(at("hf").join("README.md"), "words").unwrap();
        let imported = json_of(&["import", path(&at("hf")), "--to", path(&at("own"))]);
        assert_eq!(imported["left"], json!(["README.md"]), "{name}");
        let exported = json_of(&["export", path(&at("own")), "--to", path(&at("out"))]);
        assert_eq!(exported["left"], json!([]));
        let source = Model::load(&at("hf")).unwrap();
        for copy in ["own", "out"] {
            let model = Model::load(&at(copy)).unwrap();
            assert_eq!(model.config(), source.config(), "{name}");
            assert!(bits(&model) == bits(&source), "{name}");
            for file in files(&package("tests/cases/models")) {
                if file.extension().is_some_and(|end| end != "py") {
                    let same = fs::read(at("hf").join(&file)).unwrap()
                        == fs::read(at(copy).join(&file)).unwrap();
                    assert!(same, "{name}: {}", file.display());
                }
            }
        }
        let listed = imported["files"].as_array().unwrap();
        let listed: Vec<PathBuf> = listed
            .iter()
            .map(|file| file.as_str().unwrap().into())
            .collect();
        assert_eq!(listed, files(&at("own")), "{name}");
    }
}

/// The one case in which `AutoTokenizer` makes another tokenizer than the one that is stored.
#[test]
fn a_qwen2_model_with_a_tokenizer_of_another_make_is_told() {
    let directory = TempDir::new().unwrap();
    family(FAMILIES[0], directory.path());
    let named = format!("hf:{}", path(directory.path()));
    let found = json_of(&["inspect", &named]);
    let notes = found["notes"].to_string();
    assert!(notes.contains("PreTrainedTokenizerFast"), "{notes}");
    let file = directory.path().join("tokenizer.json");
    let mut tokenizer: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    tokenizer["normalizer"] = json!({"type": "NFC"});
    tokenizer["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": words}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
    ]});
    fs::write(&file, tokenizer.to_string()).unwrap();
    assert_eq!(
        json_of(&["inspect", path(directory.path())])["notes"],
        json!([])
    );
}

/// Large enough for several shards of a MiB.
fn large(to: &Path) -> Model {
    let config = ModelConfig {
        eos_tokens: vec![0],
        ..ModelConfig::qwen2(64, 128, 3, 4)
    };
    let model = Model::random(config, Seed(5)).unwrap();
    model.save(to).unwrap();
    with_tokenizer(to);
    model
}

#[test]
fn shards_and_half_precision_are_written_and_read() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let source = large(&at("own"));
    let mut arguments = vec!["export", path(directory.path()), "--to"];
    let (own, out) = (at("own"), at("sharded"));
    arguments[1] = path(&own);
    arguments.extend([path(&out), "--shard-size", "1"]);
    json_of(&arguments);
    assert!(out.join("model.safetensors.index.json").is_file());
    assert!(out.join("model-00002-of-00003.safetensors").is_file());
    assert!(bits(&Model::load(&out).unwrap()) == bits(&source));
    // Shards come in as one file.
    json_of(&["import", path(&out), "--to", path(&at("whole"))]);
    let whole = fs::read(at("whole").join("model.safetensors")).unwrap();
    assert!(whole == fs::read(own.join("model.safetensors")).unwrap());

    for dtype in ["bf16", "f16"] {
        let half = at(dtype);
        let told = json_of(&["export", path(&own), "--to", path(&half), "--dtype", dtype]);
        assert_eq!(told["stored"], dtype);
        let found = json_of(&["inspect", path(&half)]);
        let numbers = found["weights"][0]["numbers"].as_object().unwrap();
        assert_eq!(numbers.keys().collect::<Vec<_>>(), [&dtype.to_uppercase()]);
        let expected = |value: f32| match dtype {
            "bf16" => {
                f32::from_bits((value.to_bits() + 0x7fff + (value.to_bits() >> 16 & 1)) & !0xffff)
            }
            _ => value,
        };
        let model = Model::load(&half).unwrap();
        let pairs = model.tensors().zip(source.tensors());
        for ((_, _, found), (_, _, full)) in pairs {
            for (found, full) in found.iter().zip(full) {
                let expected = expected(*full);
                let tolerance = if dtype == "bf16" {
                    0.0
                } else {
                    1e-3 * full.abs() + 1e-7
                };
                assert!(
                    (found - expected).abs() <= tolerance,
                    "{found}, not {expected}"
                );
            }
        }
        // What is stored in half precision stays so unless told otherwise.
        let again = at(&format!("{dtype}-again"));
        let told = json_of(&["import", path(&half), "--to", path(&again)]);
        assert_eq!(
            (&told["stored"], &told["computed"]),
            (&json!(dtype), &json!("f32"))
        );
        assert!(bits(&Model::load(&again).unwrap()) == bits(&model));
    }
    let computed = at("computed");
    json_of(&[
        "import",
        path(&own),
        "--to",
        path(&computed),
        "--dtype",
        "bf16",
    ]);
    let found = json_of(&["inspect", path(&computed)]);
    assert_eq!(found["architecture"]["dtype"], "bf16");
    assert_eq!(found["weights"][0]["numbers"].as_object().unwrap().len(), 1);
}

/// The mean negative log-probability of the masked tokens.
struct MeanLoss(usize);

impl TokenLoss for MeanLoss {
    fn row(&self, _: usize, scores: &RowScores, d_logprobs: &mut [f32], _: &mut [f32]) -> f64 {
        d_logprobs.fill(-1.0 / self.0 as f32);
        let logprobs = scores.logprobs.iter();
        -logprobs.map(|&logprob| f64::from(logprob)).sum::<f64>() / self.0 as f64
    }
}

/// Learns two rows almost by heart.
fn train(model: Model, seed: u64) -> Model {
    let engine = Engine::new(1).unwrap();
    let rows = Rows::draw(seed);
    let loss = MeanLoss(37);
    let mut learner = Learner::new(&engine, Arc::new(model), LearnerOptions::default());
    let mut losses = Vec::new();
    for _ in 0..30 {
        let report = learner.forward_backward(&rows.get(), &loss).unwrap();
        losses.push(report.loss);
        assert!(learner.optim_step(&AdamW::at(2e-2)).applied);
    }
    assert!(losses[29] < 0.5 * losses[0], "{losses:?}");
    Arc::unwrap_or_clone(learner.publish())
}

/// A trained adapter in `adapter` over a trained model in `trained`, both with a tokenizer. The
/// adapter is the better one on the rows of seed 1.
fn trained(directory: &Path) -> Model {
    let cases = package("../../crates/engine/tests/cases");
    let base = train(Model::load(&cases.join(FAMILIES[0])).unwrap(), 2);
    base.save(&directory.join("trained")).unwrap();
    with_tokenizer(&directory.join("trained"));
    let lora = LoraConfig {
        rank: 4,
        alpha: 8.0,
        dropout: 0.0,
        targets: LoraTarget::all(),
        rslora: false,
    };
    let adapter = Adapter::new(&base, lora, Seed(3)).unwrap();
    let adapter = adapter.named_base("../trained");
    let model = train(base.with_adapter(Arc::new(adapter)).unwrap(), 1);
    model.save(&directory.join("adapter")).unwrap();
    with_tokenizer(&directory.join("adapter"));
    model
}

#[test]
fn an_adapter_goes_out_merged_or_beside_its_base() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    let model = trained(directory.path());
    let expected = logprobs(&model);
    let (adapter, merged, apart) = (at("adapter"), at("merged"), at("apart"));
    let found = json_of(&["inspect", path(&adapter)]);
    assert_eq!(found["adapter"]["rank"], 4);
    assert_eq!(found["adapter"]["targets"].as_array().unwrap().len(), 7);

    let told = json_of(&["export", path(&adapter), "--to", path(&merged)]);
    assert_eq!(told["adapter"], "merged");
    let dense = Model::load(&merged).unwrap();
    assert!(dense.adapter().is_none());
    assert!(distance(&logprobs(&dense), &expected) < 1e-4);
    assert!(distance(&logprobs(&model.without_adapter()), &expected) > 0.1);

    let arguments = ["export", path(&adapter), "--adapter", "separate", "--to"];
    let told = json_of(&[&arguments[..], &[path(&apart)]].concat());
    assert_eq!(told["adapter"], "separate");
    let listed = told["files"].as_array().unwrap();
    assert!(listed.contains(&json!("base/model.safetensors")), "{told}");
    // The directory is whole: it may be moved.
    let moved = at("moved");
    fs::rename(&apart, &moved).unwrap();
    let again = Model::load(&moved).unwrap();
    assert_eq!(logprobs(&again), expected);
    assert_eq!(json_of(&["inspect", path(&moved)])["usable"], true);

    let named = at("named");
    let base = at("trained");
    let arguments = [&arguments[..], &[path(&named), "--base", path(&base)]].concat();
    json_of(&arguments);
    assert!(!named.join("base").exists());
    assert_eq!(logprobs(&Model::load(&named).unwrap()), expected);
}

#[test]
fn wrong_wishes_exit_with_2_and_write_nothing() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    trained(directory.path());
    let (dense, adapter, out) = (at("trained"), at("adapter"), at("out"));
    let (dense, adapter, out) = (path(&dense), path(&adapter), path(&out));
    let nowhere = format!("{out}/deep/down");
    let before = files(directory.path());
    let cases: [(&[&str], &str); 8] = [
        (&["inspect", "/no/such/model"], "/no/such/model"),
        (&["import", "/no/such/model", "--to", out], "/no/such/model"),
        (&["import", dense, "--to", adapter], "exists already"),
        (
            &["import", dense, "--to", &nowhere],
            "there is no directory",
        ),
        (
            &["export", dense, "--to", out, "--adapter", "merged"],
            "has no adapter",
        ),
        (
            &["export", adapter, "--to", out, "--base", "x/y"],
            "--adapter separate",
        ),
        (
            &[
                "export",
                adapter,
                "--to",
                out,
                "--adapter",
                "separate",
                "--dtype",
                "f16",
            ],
            "rounds the base",
        ),
        (&["export", dense, "--to", out, "--dtype", "int8"], "int8"),
    ];
    for (arguments, words) in cases {
        let mut command = etude(directory.path(), ["model"]);
        let output = command.args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
        assert_eq!(files(directory.path()), before, "{arguments:?}");
    }
}

/// A model that `transformers` is to score.
#[derive(Serialize)]
struct Job {
    directory: PathBuf,
    base: Option<PathBuf>,
    rows: Vec<Vec<u32>>,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Scored {
    logprobs: Vec<Vec<f32>>,
    dtype: String,
    ids: Vec<u32>,
    stop: Value,
}

/// Runs where `ETUDE_TEST_PEFT` names a Python with torch, transformers and peft.
#[test]
fn transformers_and_peft_load_what_is_exported_and_score_it_alike() {
    let Ok(python) = std::env::var("ETUDE_TEST_PEFT") else {
        println!("skipped: ETUDE_TEST_PEFT names no Python with torch, transformers and peft");
        return;
    };
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    trained(directory.path());
    for (index, name) in FAMILIES.into_iter().enumerate() {
        let place = at(&format!("hf-{index}"));
        fs::create_dir(&place).unwrap();
        family(name, &place);
    }
    // A run's own checkpoint too.
    copy(&uninterrupted().join("checkpoints/critic-rl"), &at("run"));
    let mut wishes: Vec<(String, Vec<&str>)> = vec![
        ("trained".to_owned(), vec![]),
        ("trained".to_owned(), vec!["--dtype", "bf16"]),
        ("adapter".to_owned(), vec!["--adapter", "merged"]),
        ("adapter".to_owned(), vec!["--adapter", "separate"]),
        ("run".to_owned(), vec![]),
    ];
    wishes.extend((0..FAMILIES.len()).map(|index| (format!("hf-{index}"), vec![])));
    let messages = vec![
        Message::user("Hello world"),
        Message::assistant("world"),
        Message::user("Hello"),
    ];
    let (mut jobs, mut expected) = (Vec::new(), Vec::new());
    for (index, (source, wish)) in wishes.iter().enumerate() {
        let (from, out) = (at(source), at(&format!("out-{index}")));
        let told = json_of(&[&["export", path(&from), "--to", path(&out)], &wish[..]].concat());
        let base = out.join("base");
        jobs.push(Job {
            base: base.is_dir().then_some(base),
            rows: Rows::draw(1).tokens,
            messages: messages.clone(),
            directory: out.clone(),
        });
        // Of the copy, for bf16 rounds; that the others are exact is tested elsewhere.
        let model = Model::load(&if wish.is_empty() { from } else { out.clone() }).unwrap();
        let chat = Chat::load(&out).unwrap();
        let ids = chat.render(&messages, true).unwrap().tokens;
        let dtype = match told["stored"].as_str() {
            Some("bf16") => "bfloat16",
            Some("f16") => "float16",
            _ => "float32",
        };
        expected.push((logprobs(&model), dtype, ids, chat.stop_tokens().to_vec()));
    }
    let list = at("jobs.json");
    fs::write(&list, serde_json::to_vec(&jobs).unwrap()).unwrap();
    let done = Command::new(&python)
        .arg(package("tests/cases/models/scores.py"))
        .arg(&list)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{told}");
    let scored: Vec<Scored> = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(scored.len(), wishes.len());
    for ((wish, found), (logprobs, dtype, ids, stop)) in wishes.iter().zip(scored).zip(expected) {
        let distance = distance(&found.logprobs, &logprobs);
        assert!(distance < 2e-4, "{wish:?}: {distance}");
        assert_eq!(found.dtype, dtype, "{wish:?}");
        assert_eq!(found.ids, ids, "{wish:?}");
        let listed = match found.stop {
            Value::Array(ids) => ids,
            id => vec![id],
        };
        assert_eq!(json!(listed), json!(stop), "{wish:?}");
    }
}
