//! `etude data prepare repair`: issues in the datasets of others to tasks of the repair study; and
//! `etude data register`: tasks to the file that verl trains from.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser};
use dataset::JsonlWriter;
use repair::{
    Task,
    adapters::{
        Format, Options, adapt, graph_planner_id, graph_planner_instance, graph_planner_row,
        image_manifest, safe_id, verl_row,
    },
    read_tasks, write_tasks,
};
use serde::Serialize;

use super::{SHOWN_ERRORS, say_errors};
use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::{Screen, count_of},
};

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// The dataset's files: .jsonl, .json or .parquet; of Harbor, folders of task directories
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How the files write their tasks (docs/repair-grading.md)
    #[arg(long, value_parser = formats())]
    format: Format,
    /// The folder that SPLIT.jsonl and the lists of images are written to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What the dataset calls this part of itself; a part of every task's id
    #[arg(long, value_name = "NAME", default_value = "test", value_parser = super::part_of_an_id)]
    split: String,
    /// Name the dataset in place of what its rows say
    #[arg(long, value_name = "NAME", value_parser = super::part_of_an_id)]
    source: Option<String>,
    /// Whose images of SWE-bench are meant where rows name none [default: those that are built here]
    #[arg(long, value_name = "NAME")]
    image_namespace: Option<String>,
    /// Take at most so many tasks
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Also write Graph Planner's rows and instances, below graph_planner/
    #[arg(long)]
    graph_planner: bool,
    /// Leave bad rows out and say so [default: a bad row fails the command]
    #[arg(long)]
    skip_rejected: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RegisterArgs {
    /// Tasks, as `etude data prepare repair` writes them
    tasks: PathBuf,
    /// The dataset's name: a folder below --out
    #[arg(long, value_name = "NAME", default_value = "graph_planner_repoenv", value_parser = super::part_of_an_id)]
    name: String,
    /// Which part of the dataset the tasks are; `test` is stored as `val`
    #[arg(long, value_name = "NAME", default_value = "train", value_parser = super::part_of_an_id)]
    split: String,
    /// Where registered datasets are kept; in a checkout of rLLM, rllm/data/datasets
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// What was made.
#[derive(Serialize)]
struct Prepared {
    format: &'static str,
    file: PathBuf,
    images: PathBuf,
    tasks: usize,
    by_repo: BTreeMap<String, usize>,
    counts: BTreeMap<String, u64>,
    /// The first of the rejected rows.
    rejected: Vec<String>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    let mut names = Format::ALL.map(Format::name).to_vec();
    names.push("swebench");
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

pub(crate) fn prepare(args: &RepairArgs, screen: Screen) -> Outcome<()> {
    let options = Options {
        split: args.split.clone(),
        data_source: args.source.clone(),
        image_namespace: args.image_namespace.clone(),
        rejections: SHOWN_ERRORS,
    };
    let mut tasks: Vec<Task> = Vec::new();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut rejected = Vec::new();
    for file in &args.files {
        let adapted = adapt(args.format, file, &options).asked()?;
        say_errors(&adapted.rejected, screen);
        if let Some(hint) = &adapted.hint {
            screen.say(format!("{}: {hint}", file.display()));
        }
        rejected.extend(adapted.rejected.kept().iter().map(ToString::to_string));
        for (what, number) in adapted.counts {
            *counts.entry(what).or_default() += number;
        }
        tasks.extend(adapted.tasks);
    }
    let bad = counts.get("rejected rows").copied().unwrap_or_default();
    if bad > 0 && !args.skip_rejected {
        return Err(Failure::Asked(anyhow!(
            "{} rejected and nothing was written; mend {}, or leave {} out with --skip-rejected",
            match bad {
                1 => "1 row was".to_owned(),
                more => format!("{more} rows were"),
            },
            if bad == 1 { "it" } else { "them" },
            if bad == 1 { "it" } else { "them" },
        )));
    }
    tasks.truncate(args.limit.unwrap_or(usize::MAX));
    if tasks.is_empty() {
        return Err(Failure::Asked(anyhow!("no row is left to make tasks of")));
    }
    let mut ids = BTreeSet::new();
    if let Some(twice) = tasks.iter().find(|task| !ids.insert(&task.id.0)) {
        return Err(Failure::Asked(anyhow!(
            "two files have a task with the id `{}`; prepare each with its own --split or --source",
            twice.id.0
        )));
    }
    let prepared = write(args, &tasks, counts, rejected).failed()?;
    if args.json {
        return print_json(&prepared);
    }
    let mut lines = vec![
        format!(
            "{}: {}",
            prepared.file.display(),
            count_of(prepared.tasks, "task")
        ),
        format!("{}", prepared.images.display()),
    ];
    let numbers = prepared
        .by_repo
        .iter()
        .map(|(what, number)| (what, *number as u64));
    for (what, number) in
        numbers.chain(prepared.counts.iter().map(|(what, number)| (what, *number)))
    {
        lines.push(format!("  {what:<46} {number:>9}"));
    }
    print_text(&lines.join("\n"))
}

fn write(
    args: &RepairArgs,
    tasks: &[Task],
    counts: BTreeMap<String, u64>,
    rejected: Vec<String>,
) -> anyhow::Result<Prepared> {
    make_folder(&args.out)?;
    let file = args.out.join(format!("{}.jsonl", args.split));
    write_tasks(&file, tasks)?;
    let images: String = image_manifest(tasks)
        .iter()
        .map(|image| format!("{image}\n"))
        .collect();
    let of_split = args.out.join(format!("docker_images_{}.txt", args.split));
    for path in [&of_split, &args.out.join("docker_images.txt")] {
        fs::write(path, &images).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.graph_planner {
        write_graph_planner(&args.out.join("graph_planner"), &args.split, tasks)?;
    }
    let mut by_repo: BTreeMap<String, usize> = BTreeMap::new();
    for task in tasks {
        *by_repo.entry(task.public.repo.clone()).or_default() += 1;
    }
    Ok(Prepared {
        format: args.format.name(),
        file,
        images: of_split,
        tasks: tasks.len(),
        by_repo,
        counts,
        rejected,
    })
}

/// Graph Planner's files for the tasks; those that are in no container have none.
fn write_graph_planner(folder: &Path, split: &str, tasks: &[Task]) -> anyhow::Result<()> {
    let instances = folder.join("instances");
    make_folder(&instances)?;
    let mut rows = JsonlWriter::create(&folder.join(format!("{split}.jsonl")))?;
    for task in tasks {
        let Some(row) = graph_planner_row(task) else {
            continue;
        };
        write_instance(&instances, task)?;
        rows.write(&row)?;
    }
    rows.finish()?;
    Ok(())
}

fn write_instance(folder: &Path, task: &Task) -> anyhow::Result<()> {
    let path = folder.join(format!("{}.json", safe_id(&graph_planner_id(task))));
    let instance = serde_json::to_string_pretty(&graph_planner_instance(task))?;
    fs::write(&path, instance).with_context(|| format!("cannot write {}", path.display()))
}

pub(crate) fn register(args: &RegisterArgs) -> Outcome<()> {
    let tasks = read_tasks(&args.tasks).asked()?;
    let rows: Vec<_> = tasks.iter().filter_map(verl_row).collect();
    if rows.len() < tasks.len() {
        return Err(Failure::Asked(anyhow!(
            "{} of the tasks are in folders of this machine; only tasks in container images can be registered",
            tasks.len() - rows.len()
        )));
    }
    let folder = args.out.join(&args.name);
    let instances = folder.join("instances");
    make_folder(&instances).asked()?;
    for task in &tasks {
        write_instance(&instances, task).asked()?;
    }
    let split = if args.split == "test" {
        "val"
    } else {
        &args.split
    };
    let file = folder.join(format!("{split}_verl.parquet"));
    dataset::write_parquet(&file, &rows, &[]).failed()?;
    if args.json {
        let registered = serde_json::json!({ "file": file, "rows": rows.len() });
        return print_json(&registered);
    }
    print_text(&format!("{}: {} rows", file.display(), rows.len()))
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))
}
