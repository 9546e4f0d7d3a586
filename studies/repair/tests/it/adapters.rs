//! Every format on small files made for it: what comes of rows that fit, and what is said of those that do
//! not.
//!
//! A folder of `tests/cases/adapters` is a test: `case.json` says what is read and how, `tasks.jsonl`,
//! `counts.json` and `errors.txt` what must come of it. With `ETUDE_UPDATE_CASES` set they are written anew,
//! to be read before they are kept.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use dataset::Rows;
use repair::{
    Task,
    adapters::{
        Adapted, Format, Options, adapt, graph_planner_instance, graph_planner_row, image_manifest,
        instance_of, read_image_manifest, safe_id, verl_row,
    },
    grading::Instance,
    read_tasks, write_tasks,
};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    file: String,
    format: String,
    source: Option<String>,
    image_namespace: Option<String>,
}

fn options(case: &Case) -> Options {
    Options {
        split: "test".to_owned(),
        data_source: case.source.clone(),
        image_namespace: case.image_namespace.clone(),
        rejections: 100,
    }
}

fn cases() -> Vec<(PathBuf, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/adapters");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let case = fs::read(path.join("case.json")).unwrap();
            (path, serde_json::from_slice(&case).unwrap())
        })
        .collect();
    found.sort_by(|(a, _): &(PathBuf, Case), (b, _)| a.cmp(b));
    found
}

fn read(folder: &Path, case: &Case) -> Adapted {
    let format: Format = case.format.parse().unwrap();
    adapt(format, &folder.join(&case.file), &options(case)).unwrap()
}

#[test]
fn files_of_every_format_become_the_tasks_they_hold() {
    let update = std::env::var_os("ETUDE_UPDATE_CASES").is_some();
    let mut formats = BTreeSet::new();
    for (folder, case) in cases() {
        formats.insert(case.format.clone());
        let adapted = read(&folder, &case);
        let shown = folder.display().to_string();
        let portable = |text: String| text.replace(&shown, "FOLDER");
        let tasks = adapted
            .tasks
            .iter()
            .map(|task| serde_json::to_string(task).unwrap() + "\n");
        let errors = match adapted.rejected.is_empty() {
            true => String::new(),
            false => adapted.rejected.to_string() + "\n",
        };
        for (name, found) in [
            ("tasks.jsonl", portable(tasks.collect())),
            (
                "counts.json",
                serde_json::to_string_pretty(&adapted.counts).unwrap() + "\n",
            ),
            ("errors.txt", portable(errors)),
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

/// The files say CANARY wherever only gold may: in patches, tests, hints, commits, solutions.
#[test]
fn no_gold_is_public_in_any_format() {
    let mut seen = BTreeMap::new();
    for (folder, case) in cases() {
        for task in read(&folder, &case).tasks {
            let public = serde_json::to_string(&task.public).unwrap();
            assert!(!public.contains("CANARY"), "{}: {public}", folder.display());
            if let Some(row) = verl_row(&task) {
                let row = Value::Object(row).to_string();
                assert!(!row.contains("CANARY"), "{}: {row}", folder.display());
            }
            let gold = serde_json::to_string(&task.gold).unwrap();
            *seen.entry(case.format.clone()).or_insert(0) += usize::from(gold.contains("CANARY"));
        }
    }
    assert_eq!(seen.len(), Format::ALL.len(), "{seen:?}");
    assert!(seen.values().all(|count| *count > 0), "{seen:?}");
}

/// Lists as lists, whatever text they came as, and without nulls.
fn plain(row: Map<String, Value>) -> Map<String, Value> {
    let lists = ["FAIL_TO_PASS", "PASS_TO_PASS"];
    row.into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| match lists.contains(&name.as_str()) {
            true => (name, dataset::unpack(value)),
            false => (name, value),
        })
        .collect()
}

#[test]
fn no_column_of_swe_bench_is_dropped() {
    let (folder, case) = cases()
        .into_iter()
        .find(|(_, case)| case.file == "rows.json")
        .unwrap();
    let rows: Vec<Map<String, Value>> = dataset::read(&folder.join(&case.file))
        .map(|rows: Vec<Map<String, Value>>| match rows.as_slice() {
            [keyed] => keyed
                .values()
                .map(|row| row.as_object().unwrap().clone())
                .collect(),
            _ => rows,
        })
        .unwrap();
    let rows: BTreeMap<String, Map<String, Value>> = rows
        .into_iter()
        .map(|row| (row["instance_id"].as_str().unwrap().to_owned(), plain(row)))
        .collect();
    let lines = cases()
        .into_iter()
        .find(|(_, case)| case.file == "rows.jsonl" && case.format == "swe-bench")
        .unwrap();
    for (folder, case) in [(folder, case), lines] {
        for task in read(&folder, &case).tasks {
            let Some(instance) = instance_of(&task) else {
                continue;
            };
            let written = serde_json::to_value(&instance).unwrap();
            let again: Instance = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(again, instance);
            if let Some(row) = rows.get(&instance.instance_id) {
                assert_eq!(&plain(written.as_object().unwrap().clone()), row);
            }
        }
    }
}

#[test]
fn rows_in_parquet_are_the_tasks_that_they_are_in_json() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/adapters/swe_bench_list");
    let case: Case = serde_json::from_slice(&fs::read(folder.join("case.json")).unwrap()).unwrap();
    let mut rows: Vec<Map<String, Value>> = Rows::open(&folder.join(&case.file))
        .unwrap()
        .map(|row| row.unwrap().object().unwrap())
        .collect();
    for row in &mut rows {
        // One type a column: the lists as texts in both rows.
        for list in ["FAIL_TO_PASS", "PASS_TO_PASS"] {
            if !row[list].is_string() {
                row[list] = row[list].to_string().into();
            }
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("rows.parquet");
    dataset::write_parquet(&file, &rows, &[]).unwrap();
    let adapted = adapt(Format::SweBench, &file, &options(&case)).unwrap();
    assert!(adapted.rejected.is_empty(), "{}", adapted.rejected);
    assert_eq!(adapted.tasks, read(&folder, &case).tasks);
}

/// Tasks to Graph Planner's rows and instances, and those to tasks again.
#[test]
fn graph_planners_rows_are_read_as_the_tasks_they_were_made_of() {
    for (folder, case) in cases() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("rows.jsonl");
        fs::create_dir(scratch.path().join("instances")).unwrap();
        // Harbor's own files have no place there.
        let tasks: Vec<Task> = match case.format.as_str() {
            "harbor" => continue,
            _ => read(&folder, &case).tasks,
        };
        let mut lines = String::new();
        for task in &tasks {
            let row = graph_planner_row(task).unwrap();
            let instance = row["sandbox"]["r2e_ds_json"].as_str().unwrap();
            let held = graph_planner_instance(task).to_string();
            fs::write(
                scratch
                    .path()
                    .join("instances")
                    .join(Path::new(instance).file_name().unwrap()),
                held,
            )
            .unwrap();
            lines += &(Value::Object(row).to_string() + "\n");
        }
        fs::write(&file, lines).unwrap();
        let options = Options {
            data_source: None,
            ..options(&case)
        };
        let again = adapt(Format::GraphPlanner, &file, &options).unwrap();
        assert!(again.rejected.is_empty(), "{}", again.rejected);
        assert_eq!(again.tasks.len(), tasks.len());
        for (again, task) in again.tasks.iter().zip(&tasks) {
            assert_eq!(again.id, task.id);
            assert_eq!(again.public.issue, task.public.issue);
            assert_eq!(again.public.repo, task.public.repo);
            assert_eq!(again.public.base_commit, task.public.base_commit);
            assert_eq!(again.checks, task.checks);
            assert_eq!(again.place, task.place);
            assert_eq!(again.gold, task.gold, "{}", task.id.0);
            // No column of SWE-bench's rows is lost; the image is one more.
            let columns = |task: &Task| {
                let mut instance = instance_of(task)?;
                instance.rest.remove("docker_image");
                Some(instance)
            };
            assert_eq!(columns(again), columns(task), "{}", task.id.0);
        }
    }
}

#[test]
fn tasks_are_kept_in_our_own_files_and_their_images_listed() {
    let scratch = tempfile::tempdir().unwrap();
    for (folder, case) in cases() {
        let tasks = read(&folder, &case).tasks;
        let file = scratch.path().join("tasks.jsonl");
        write_tasks(&file, &tasks).unwrap();
        assert_eq!(read_tasks(&file).unwrap(), tasks);
        let images = image_manifest(&tasks);
        let text: String = images.iter().map(|image| format!("{image}\n")).collect();
        assert_eq!(read_image_manifest(&text), images);
        if case.format == "harbor" {
            assert_eq!(images.into_iter().collect::<Vec<_>>(), ["example/area:1"]);
        }
    }
    let manifest = "# images\n\nexample/a:1  # twice\nexample/a:1\n";
    assert_eq!(read_image_manifest(manifest).len(), 1);
    assert_eq!(safe_id("a/b c:ü-1.x_"), "a_b_c__-1.x_");
}
