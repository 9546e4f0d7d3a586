//! Graph Planner's rows and instances to tasks, and tasks to its rows (spec of the repair study, section 7.2).

use std::path::{Path, PathBuf};

use dataset::{RowError, Rows};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Options, Record, r2e_gym, records, swe_bench, without_nulls};
use crate::{
    Checks, Facts, Gold, Issue, Place, Public, Task, TestFramework,
    grading::{EvalType, Grader, LogParser, SweBenchGrader},
};

#[derive(Deserialize)]
struct TaskRow {
    task_id: String,
    data_source: Option<String>,
    split: Option<String>,
    max_steps: Option<u32>,
    repo: Option<String>,
    #[serde(default)]
    issue: Issue,
    sandbox: Sandbox,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Sandbox {
    docker_image: Option<String>,
    /// The file of the instance.
    r2e_ds_json: Option<PathBuf>,
    workdir: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What an instance's file says of its task.
#[derive(Deserialize)]
struct InstanceRow {
    repo: Option<String>,
    base_commit: Option<String>,
    #[serde(default)]
    patch: String,
    #[serde(default)]
    test_patch: String,
    /// The original leaves these out; files that have them are read all the same.
    #[serde(
        rename = "FAIL_TO_PASS",
        default,
        deserialize_with = "dataset::json_text"
    )]
    fail_to_pass: Vec<String>,
    #[serde(
        rename = "PASS_TO_PASS",
        default,
        deserialize_with = "dataset::json_text"
    )]
    pass_to_pass: Vec<String>,
    version: Option<String>,
    environment_setup_commit: Option<String>,
    image: Option<String>,
    eval_script: Option<String>,
    log_parser: Option<LogParser>,
    eval_type: Option<EvalType>,
    /// A row of R2E-Gym.
    raw: Option<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

pub(super) fn read(record: &Record, options: &Options, file: &Path) -> Result<Task, RowError> {
    let row: TaskRow = record.parse()?;
    if row.task_id.trim().is_empty() {
        return Err(record.error("task_id", "must not be empty"));
    }
    let split = row.split.clone().unwrap_or_else(|| options.split.clone());
    let own = row.data_source.clone();
    let options = Options {
        split,
        data_source: options.data_source.clone().or(own),
        ..options.clone()
    };
    let instance = match &row.sandbox.r2e_ds_json {
        Some(path) => Some(instance(record, file, path)?),
        None => None,
    };
    let source = options.source("graph-planner").to_owned();
    let mut task = match instance {
        // Its rows may be those of any of the kinds that R2E-Gym has, and the whole of an instance.
        Some((held, path)) if held.raw.is_some() => {
            r2e_gym_task(record, &path, Some("raw"), &options)?
        }
        Some((held, path)) if held.rest.contains_key("expected_output_json") => {
            r2e_gym_task(record, &path, None, &options)?
        }
        Some((held, _)) => with_instance(held),
        None => empty(),
    };
    let image = row.sandbox.docker_image.clone();
    match (image, &mut task.place) {
        (None, Place::Image { name, .. }) if name.is_empty() => {
            return Err(record.error("sandbox.docker_image", "missing, and no instance names one"));
        }
        (Some(image), Place::Image { name, .. } | Place::PatchedImage { name, .. }) => {
            *name = image
        }
        _ => {}
    }
    if let (Some(folder), Place::Image { work_tree, .. } | Place::PatchedImage { work_tree, .. }) =
        (row.sandbox.workdir, &mut task.place)
    {
        *work_tree = folder;
    }
    let id = row.issue.id.clone().unwrap_or_else(|| row.task_id.clone());
    task.id = options.id(&source, &row.task_id);
    task.public.issue = Issue {
        id: Some(id),
        ..row.issue
    };
    if let Some(repo) = row.repo {
        task.public.repo = repo;
    }
    task.public.max_steps = row.max_steps;
    task.facts.data_source = source;
    task.facts.split = options.split;
    let sandbox = without_nulls(row.sandbox.rest);
    task.facts.metadata.extend(without_nulls(row.rest));
    task.facts
        .metadata
        .insert("task_id".to_owned(), row.task_id.into());
    if !sandbox.is_empty() {
        task.facts
            .metadata
            .insert("sandbox".to_owned(), sandbox.into());
    }
    if task.public.issue.title.trim().is_empty() && task.public.issue.body.trim().is_empty() {
        return Err(record.error("issue", "neither a title nor a body"));
    }
    Ok(task)
}

fn empty() -> Task {
    Task {
        id: record::TaskId(String::new()),
        public: Public {
            repo: String::new(),
            base_commit: None,
            issue: Issue::default(),
            framework: TestFramework::Pytest,
            max_steps: None,
        },
        place: Place::Image {
            name: String::new(),
            work_tree: swe_bench::WORK_TREE.to_owned(),
        },
        checks: Checks::default(),
        facts: Facts::default(),
        gold: Gold::default(),
    }
}

fn with_instance(held: InstanceRow) -> Task {
    let mut task = empty();
    task.public.repo = held.repo.unwrap_or_default();
    task.public.base_commit = held.base_commit;
    task.checks = Checks {
        fail_to_pass: held.fail_to_pass,
        pass_to_pass: held.pass_to_pass,
    };
    let named = held.rest.get("docker_image").and_then(Value::as_str);
    if let (Some(image), Place::Image { name, .. }) =
        (named.or(held.image.as_deref()), &mut task.place)
    {
        image.clone_into(name);
    }
    task.gold = Gold {
        patch: held.patch,
        test_patch: held.test_patch,
        grader: (!task.checks.fail_to_pass.is_empty()).then(|| {
            Grader::SweBench(Box::new(SweBenchGrader {
                version: held.version,
                environment_setup_commit: held.environment_setup_commit,
                image: held.image,
                eval_script: held.eval_script,
                log_parser: held.log_parser,
                eval_type: held.eval_type,
            }))
        }),
        ..Gold::default()
    };
    let rest = without_nulls(held.rest);
    if !rest.is_empty() {
        task.facts
            .metadata
            .insert(swe_bench::INSTANCE.to_owned(), rest.into());
    }
    task
}

/// The file of an instance, wherever the rows were moved with it: where the row says, or below or beside
/// the file of rows.
fn instance(
    record: &Record,
    file: &Path,
    named: &Path,
) -> Result<(InstanceRow, PathBuf), RowError> {
    const FIELD: &str = "sandbox.r2e_ds_json";
    let beside = file.parent().unwrap_or(Path::new(""));
    let name = Path::new(named.file_name().unwrap_or_default());
    let places = [
        beside.join(named),
        beside.join("instances").join(name),
        beside.join(name),
    ];
    let found = places.iter().find(|path| path.is_file()).ok_or_else(|| {
        let message = format!(
            "there is no {}, neither where the row says nor in {}",
            named.display(),
            beside.join("instances").display()
        );
        record.error(FIELD, message)
    })?;
    let read = Rows::open(found).and_then(|mut rows| match rows.next() {
        Some(row) => Ok(row?.parse()?),
        None => Err(dataset::DatasetError::Empty {
            path: found.clone(),
        }),
    });
    let held = read.map_err(|error| record.error(FIELD, error.to_string()))?;
    Ok((held, found.clone()))
}

fn r2e_gym_task(
    record: &Record,
    path: &Path,
    field: Option<&str>,
    options: &Options,
) -> Result<Task, RowError> {
    let unreadable =
        |error: dataset::DatasetError| record.error("sandbox.r2e_ds_json", error.to_string());
    let mut rows = records(path, "task_id").map_err(unreadable)?;
    let row = rows.next().transpose().map_err(unreadable)?;
    let row = match field {
        Some(field) => row.and_then(|row| row.at(field)),
        None => row,
    };
    let row = row.ok_or_else(|| record.error("sandbox.r2e_ds_json", "it holds no row"))?;
    r2e_gym::read(&row, options)
}

/// A name that every file system takes: other characters are `_`.
pub fn safe_id(id: &str) -> String {
    let safe = |character: char| match character {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '.' | '_' | '-' => character,
        _ => '_',
    };
    id.chars().map(safe).collect()
}

/// What Graph Planner calls a task.
pub fn graph_planner_id(task: &Task) -> String {
    match task.facts.metadata.get("task_id") {
        Some(Value::String(id)) => id.clone(),
        _ => swe_bench::instance_id(task),
    }
}

/// Graph Planner's row of a task in a container; `None` of a task in a folder.
pub fn graph_planner_row(task: &Task) -> Option<Map<String, Value>> {
    let (Place::Image { name, work_tree }
    | Place::PatchedImage {
        name, work_tree, ..
    }) = &task.place
    else {
        return None;
    };
    let id = graph_planner_id(task);
    let mut sandbox = json!({
        "backend": "repoenv",
        "docker_image": name,
        "r2e_ds_json": format!("instances/{}.json", safe_id(&id)),
        "workdir": work_tree,
    });
    if let (Some(Value::Object(own)), Some(sandbox)) =
        (task.facts.metadata.get("sandbox"), sandbox.as_object_mut())
    {
        sandbox.extend(own.clone());
    }
    let row = json!({
        "task_id": id,
        "data_source": task.facts.data_source,
        "split": task.facts.split,
        "max_steps": task.public.max_steps.unwrap_or(40),
        "repo": task.public.repo,
        "issue": task.public.issue,
        "sandbox": sandbox,
    });
    match row {
        Value::Object(row) => Some(row),
        _ => None,
    }
}

/// The content of `instances/ID.json` for a task. Unlike the original's it names the tests, and has every column that
/// the task's own row had.
pub fn graph_planner_instance(task: &Task) -> Value {
    let image = match &task.place {
        Place::Image { name, .. } | Place::PatchedImage { name, .. } => Some(name.as_str()),
        Place::Folder(_) | Place::Patched { .. } => None,
    };
    let id = graph_planner_id(task);
    if let Some(raw) = raw(task, image) {
        return json!({
            "task_id": id,
            "docker_image": image,
            "repo": task.public.repo,
            "raw": raw,
            "gym_config": {},
        });
    }
    let columns = swe_bench::instance_of(task).and_then(|row| serde_json::to_value(row).ok());
    let mut columns = match columns {
        Some(Value::Object(columns)) => columns,
        _ => Map::new(),
    };
    set(
        &mut columns,
        json!({
            "instance_id": swe_bench::instance_id(task),
            "docker_image": image,
            "repo": task.public.repo,
            "base_commit": task.public.base_commit,
            "patch": task.gold.patch,
            "test_patch": task.gold.test_patch,
            "FAIL_TO_PASS": task.checks.fail_to_pass,
            "PASS_TO_PASS": task.checks.pass_to_pass,
        }),
    );
    columns.into()
}

/// The row that R2E-Gym has for a task; `None` of those of SWE-bench, whose instances are rows themselves.
fn raw(task: &Task, image: Option<&str>) -> Option<Value> {
    let mut raw = task.facts.metadata.clone();
    raw.remove("sandbox");
    raw.remove("task_id");
    raw.entry(swe_bench::STATEMENT)
        .or_insert_with(|| swe_bench::statement(&task.public.issue).into());
    match (&task.gold.grader, &task.place) {
        (Some(Grader::R2eGym { expected }), _) => set(
            &mut raw,
            json!({
                "repo_name": task.public.repo,
                "docker_image": image,
                "expected_output_json": json!(expected).to_string(),
            }),
        ),
        // The patch plants the bug.
        (
            Some(grader @ (Grader::SweSmith | Grader::SweSmithLog(_))),
            Place::PatchedImage { patch, .. },
        ) => {
            raw.entry("image_name").or_insert_with(|| image.into());
            set(
                &mut raw,
                json!({
                    "instance_id": swe_bench::instance_id(task),
                    "repo": task.public.repo,
                    "base_commit": task.public.base_commit,
                    "patch": patch,
                    "FAIL_TO_PASS": task.checks.fail_to_pass,
                    "PASS_TO_PASS": task.checks.pass_to_pass,
                }),
            );
            if let Grader::SweSmithLog(profile) = grader {
                set(&mut raw, json!(profile));
            }
        }
        _ => return None,
    }
    Some(raw.into())
}

fn set(columns: &mut Map<String, Value>, values: Value) {
    if let Value::Object(values) = values {
        columns.extend(values);
    }
}
