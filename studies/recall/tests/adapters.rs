//! Every format on small files made for it: what comes of rows that fit, and what is said of those that
//! do not.
//!
//! A folder of `tests/cases/adapters` is a test: `case.json` says what is read and how, `dialogues.jsonl`,
//! `counts.json` and `errors.txt` what must come of it. With `ETUDE_UPDATE_CASES` set they are written
//! anew, to be read before they are kept.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed unwrap is a failed test"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use recall::{
    Dialogue, Granularity, Task, TurnRole,
    adapters::{Adapted, Format, Options, adapt, divide},
};
use record::Seed;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    file: String,
    format: String,
    chunk_tokens: Option<usize>,
    #[serde(default)]
    multi_target: bool,
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn options(case: &Case) -> Options {
    Options {
        split: "train".to_owned(),
        data_source: None,
        chunk_tokens: case.chunk_tokens,
        multi_target: case.multi_target,
        prefix: String::new(),
        rejections: 100,
    }
}

fn cases() -> Vec<(PathBuf, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/adapters");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| {
            let case = fs::read(path.join("case.json")).unwrap();
            (path, serde_json::from_slice(&case).unwrap())
        })
        .collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

fn read(folder: &Path, case: &Case) -> Adapted {
    let format: Format = case.format.parse().unwrap();
    adapt(format, &folder.join(&case.file), &options(case), &words).unwrap()
}

#[test]
fn files_of_every_format_become_the_dialogues_they_hold() {
    let update = std::env::var_os("ETUDE_UPDATE_CASES").is_some();
    let mut formats = BTreeSet::new();
    for (folder, case) in cases() {
        formats.insert(case.format.clone());
        let adapted = read(&folder, &case);
        let dialogues: String = adapted
            .dialogues
            .iter()
            .map(|dialogue| serde_json::to_string(dialogue).unwrap() + "\n")
            .collect();
        let counts = serde_json::to_string_pretty(&adapted.counts).unwrap() + "\n";
        let shown = folder.join(&case.file).display().to_string();
        let errors = match adapted.rejected.is_empty() {
            true => String::new(),
            false => adapted.rejected.to_string().replace(&shown, "FILE") + "\n",
        };
        for (name, found) in [
            ("dialogues.jsonl", dialogues),
            ("counts.json", counts),
            ("errors.txt", errors),
        ] {
            let path = folder.join(name);
            if update {
                fs::write(&path, &found).unwrap();
            }
            let expected = fs::read_to_string(&path).unwrap();
            assert_eq!(found, expected, "{}", path.display());
        }
    }
    let all: BTreeSet<String> = Format::ALL.map(|format| format.name().to_owned()).into();
    assert_eq!(formats, all, "every format has a case");
}

/// A key that nobody has heard of, in every object of every row: it is among the metadata, or what it stands in
/// is counted as left out.
#[test]
fn every_key_of_a_row_is_placed_kept_or_counted() {
    const COUNTED: [(&str, &str); 8] = [
        ("/paragraphs", "paragraphs without a question left out"),
        ("/haystack_sessions", "empty utterances left out"),
        ("/event_summary", "columns of summaries left out"),
        ("/observation", "columns of summaries left out"),
        ("/session_summary", "columns of summaries left out"),
        ("/prompt", "prompts made of other columns left out"),
        ("/prompt", "messages before the question left out"),
        (
            "/metadata/haystack_sessions",
            "sessions that repeat the context left out",
        ),
    ];
    let folder = tempfile::TempDir::new().unwrap();
    let mut formats = BTreeSet::new();
    for (place, case) in cases() {
        let name = place.file_name().unwrap().display().to_string();
        let is_text = case.file.ends_with(".json") || case.file.ends_with(".jsonl");
        // Our own format takes no unknown key.
        if !is_text || name.contains("malformed") || case.format == "dialogue" {
            continue;
        }
        let text = fs::read_to_string(place.join(&case.file)).unwrap();
        let mut values: Vec<Value> = serde_json::Deserializer::from_str(&text)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let mut marks = Vec::new();
        for value in &mut values {
            let rows = match value {
                Value::Object(file) if file.get("data").is_some_and(Value::is_array) => {
                    file.get_mut("data").unwrap()
                }
                rows => rows,
            };
            match rows {
                Value::Array(rows) => rows.iter_mut().for_each(|row| mark(row, "", &mut marks)),
                row => mark(row, "", &mut marks),
            }
        }
        let marked: String = values.iter().map(|value| format!("{value}\n")).collect();
        fs::write(folder.path().join(&case.file), marked).unwrap();
        let adapted = read(folder.path(), &case);
        assert!(adapted.rejected.is_empty(), "{name}: {}", adapted.rejected);
        let kept = serde_json::to_string(&adapted.dialogues).unwrap();
        for (path, mark) in marks {
            let counted = COUNTED.iter().any(|(column, what)| {
                path.starts_with(column) && adapted.counts.0.contains_key(*what)
            });
            assert!(kept.contains(&mark) || counted, "{name}: {path} is lost");
        }
        formats.insert(case.format);
    }
    assert!(formats.len() >= 9, "{formats:?}");
}

/// What cannot be put in order, and what the benchmark does not know, is counted.
#[test]
fn dates_without_an_order_and_unknown_types_are_counted() {
    let folder = tempfile::TempDir::new().unwrap();
    let row = |id: &str, kind: &str, dates: [&str; 2]| {
        let said = serde_json::json!([{"role": "user", "content": "Soup."}]);
        serde_json::json!({
            "question_id": id, "question_type": kind, "question": "What?", "answer": "soup",
            "haystack_dates": dates, "haystack_sessions": [said, said],
        })
    };
    let later = "2023/05/20 (Sat) 02:21";
    let rows = [
        row("a", "multi-session", [later, "2023/05/02 (Tue) 11:00"]),
        row("b", "multi-session", [later, "yesterday"]),
        row("c", "many-sessions", [later, later]),
    ];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(folder.path().join("rows.jsonl"), text).unwrap();
    let case = Case {
        file: "rows.jsonl".to_owned(),
        format: "longmemeval".to_owned(),
        chunk_tokens: None,
        multi_target: false,
    };
    let counts = read(folder.path(), &case).counts.0;
    for what in [
        "haystacks put in the order of their dates",
        "dates that say no order",
        "haystacks left in the order of the file, for want of dates",
        "questions of a type that the benchmark does not have",
    ] {
        assert_eq!(counts.get(what), Some(&1), "{what}: {counts:?}");
    }
}

/// Puts a key into every object below `value`; where, and what stands there.
fn mark(value: &mut Value, path: &str, marks: &mut Vec<(String, String)>) {
    match value {
        Value::Array(values) => {
            let below = values.iter_mut();
            below.for_each(|value| mark(value, path, marks));
        }
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                mark(value, &format!("{path}/{key}"), marks);
            }
            let text = format!("MARK-{}-", marks.len());
            // Each its own: those of a row and of its `extra_info` lie side by side among the metadata.
            let key = format!("unheard_of_{}", marks.len());
            object.insert(key.clone(), text.clone().into());
            marks.push((format!("{path}/{key}"), text));
        }
        _ => {}
    }
}

/// The files say CANARY wherever only gold may: in answers, in what is evidence, in summaries.
#[test]
fn no_gold_is_public_in_any_format() {
    let mut seen = BTreeMap::new();
    for (folder, case) in cases() {
        for dialogue in read(&folder, &case).dialogues {
            for granularity in [Granularity::Qa, Granularity::Sample] {
                for task in Task::of_dialogue(&dialogue, granularity) {
                    let public = serde_json::to_string(&task.public).unwrap();
                    assert!(!public.contains("CANARY"), "{}: {public}", folder.display());
                    let whole = serde_json::to_value(&task).unwrap();
                    if whole["gold"].to_string().contains("CANARY") {
                        *seen.entry(case.format.clone()).or_insert(0) += 1;
                    }
                }
            }
        }
    }
    assert_eq!(seen.len(), Format::ALL.len(), "{seen:?}");
}

#[test]
fn group_ids_are_unique_across_sources_splits_and_rows() {
    let mut numbered = BTreeSet::new();
    let mut number = 0;
    for (folder, case) in cases() {
        let mut ids = BTreeSet::new();
        let mut count = 0;
        for split in ["train", "test"] {
            let options = Options {
                split: split.to_owned(),
                prefix: format!("{}-", folder.file_name().unwrap().display()),
                ..options(&case)
            };
            let format: Format = case.format.parse().unwrap();
            let file = folder.join(&case.file);
            for dialogue in adapt(format, &file, &options, &words).unwrap().dialogues {
                // Our own dialogues say themselves which split they are of.
                if dialogue.split != split {
                    continue;
                }
                for task in Task::of_dialogue(&dialogue, Granularity::Qa) {
                    let named = format!("{}/{split}/", dialogue.data_source);
                    assert!(task.id.0.starts_with(&named), "{}", task.id.0);
                    count += 1;
                    if dialogue.sample_id.starts_with(&options.prefix) {
                        number += 1;
                        numbered.insert(task.id.0.clone());
                    }
                    ids.insert(task.id.0);
                }
            }
        }
        assert_eq!(ids.len(), count, "{}", folder.display());
    }
    // Rows without names of their own are told apart by their files too.
    assert!(number > 10);
    assert_eq!(numbered.len(), number);
}

#[test]
fn granularities_ask_the_same_questions_of_the_same_history() {
    for (folder, case) in cases() {
        for dialogue in read(&folder, &case).dialogues {
            let history = |task: &Task| -> Vec<Value> {
                let turns = task.public.turns.iter();
                turns
                    .filter(|turn| turn.turn_role == TurnRole::History)
                    .map(|turn| serde_json::to_value(turn).unwrap())
                    .collect()
            };
            let samples = Task::of_dialogue(&dialogue, Granularity::Sample);
            let [sample] = samples.as_slice() else {
                panic!("one episode a sample")
            };
            let asked = Task::of_dialogue(&dialogue, Granularity::Qa);
            assert_eq!(asked.len(), dialogue.questions.len());
            assert!(asked.iter().all(|task| history(task) == history(sample)));
            let targets = sample.public.turns.len() - history(sample).len();
            assert_eq!(targets, dialogue.questions.len());
            // What is written is what is read.
            for task in samples.iter().chain(&asked) {
                let text = serde_json::to_string(task).unwrap();
                assert_eq!(&serde_json::from_str::<Task>(&text).unwrap(), task);
            }
        }
    }
}

#[test]
fn turns_fit_the_budget_of_their_source() {
    for (folder, case) in cases() {
        let adapted = read(&folder, &case);
        for dialogue in &adapted.dialogues {
            let budget = case
                .chunk_tokens
                .unwrap_or_else(|| recall::adapters::chunk_tokens(&dialogue.data_source));
            for task in Task::of_dialogue(dialogue, Granularity::Sample) {
                for turn in &task.public.turns {
                    assert!(words(&turn.observation()) <= budget, "{}", folder.display());
                }
            }
        }
        // 3 000 words are one chunk of 4 096 but three of 1 024.
        if folder.ends_with("052_memoryagentbench_budgets") {
            let turns: Vec<usize> = adapted
                .dialogues
                .iter()
                .map(|dialogue| dialogue.sessions.len())
                .collect();
            assert_eq!(turns, [1, 3]);
        }
    }
}

fn dialogue(source: &str, document: usize, sample: usize) -> Dialogue {
    let text = format!(
        r#"{{"sample_id":"{document}-{sample}","data_source":"{source}","split":"train","document":"d{document}",
            "sessions":[],"questions":[]}}"#
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn documents_are_never_on_both_sides() {
    let dialogues = || -> Vec<Dialogue> {
        (0..40)
            .flat_map(|document| {
                (0..=document % 3).map(move |sample| dialogue("a", document, sample))
            })
            .chain((0..2).map(|document| dialogue("b", document, 0)))
            .chain([dialogue("c", 0, 0)])
            .collect()
    };
    let documents = |dialogues: &[Dialogue]| -> BTreeSet<String> {
        dialogues
            .iter()
            .map(|dialogue| format!("{} {}", dialogue.data_source, dialogue.document))
            .collect()
    };
    let (train, eval) = divide(dialogues(), 0.2, Seed(1));
    assert_eq!(train.len() + eval.len(), dialogues().len());
    let (trained, evaluated) = (documents(&train), documents(&eval));
    assert!(trained.is_disjoint(&evaluated));
    let of = |documents: &BTreeSet<String>, source: &str| {
        documents
            .iter()
            .filter(|name| name.starts_with(source))
            .count()
    };
    assert_eq!(
        ["a", "b", "c"].map(|source| of(&evaluated, source)),
        [8, 1, 0]
    );

    // Neither the order of the dialogues nor those of other datasets change anything.
    let mut backwards: Vec<Dialogue> = dialogues();
    backwards.retain(|dialogue| dialogue.data_source == "a");
    backwards.reverse();
    let (_, again) = divide(backwards, 0.2, Seed(1));
    let of_a: BTreeSet<String> = evaluated
        .iter()
        .filter(|name| name.starts_with('a'))
        .cloned()
        .collect();
    assert_eq!(documents(&again), of_a);
    let (_, other) = divide(dialogues(), 0.2, Seed(2));
    assert_ne!(documents(&other), evaluated);
    assert!(divide(dialogues(), 0.0, Seed(1)).1.is_empty());
    assert!(divide(dialogues(), 1.0, Seed(1)).0.is_empty());
}
