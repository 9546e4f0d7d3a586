//! `etude grade`: predicted patches against the tests of their tasks, with the reports of SWE-bench.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow};
use clap::Args;
use futures::{StreamExt, stream};
use repair::{
    Place, Task,
    adapters::{Format, Options, adapt, instance_id, instance_of},
    evaluation::{Evaluated, evaluate, evaluate_gold},
    grading::{
        Expected, Grader, InstanceOutcome, InstanceReport, PATCH_FAILED, Prediction, Resolution,
        RunReport, read_log, read_predictions, smith_expected, verdicts,
    },
    read_tasks,
    workplace::Testbed,
};
use session::Image;

use crate::{
    args,
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    sandboxes::{BackendName, SandboxSettings, Sandboxes},
    screen::Screen,
};

#[derive(Debug, Args)]
pub(crate) struct GradeArgs {
    /// Predictions, .json or .jsonl: `instance_id`, `model_name_or_path`, `model_patch`; or the word gold
    predictions: String,
    /// The tasks: our own file of them, or a file of --format
    #[arg(long, value_name = "FILE")]
    tasks: PathBuf,
    /// What the file of tasks is, where it is not our own: swe-bench, r2e-gym, harbor, graph-planner
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Names the folder of logs and the report
    #[arg(long, value_name = "NAME", default_value = "run")]
    run_id: String,
    /// Grade these instances alone
    #[arg(short = 'i', long = "instance", value_name = "ID")]
    instances: Vec<String>,
    /// Where logs/run_evaluation and the report are written
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Instances that are graded at the same time
    #[arg(short = 'j', long, value_name = "N", default_value_t = 4, value_parser = args::places())]
    workers: usize,
    /// Seconds that the tests of one instance may take
    #[arg(long, value_name = "SECONDS", default_value = "1800", allow_negative_numbers = true, value_parser = args::seconds)]
    timeout: Duration,
    /// MiB of memory of one instance
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    memory: u64,
    /// The container engine, unix:///PATH or tcp://HOST:PORT [default: one in the usual places]
    #[arg(long, value_name = "ADDRESS")]
    engine: Option<String>,
    /// The Python that runs the tests of tasks in folders [default: found by searching]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Run nothing: make the reports anew from the logs of an earlier run
    #[arg(long)]
    regrade: bool,
    /// Print the run's report as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

impl GradeArgs {
    /// Whether what grades a task is the solution that it brings, which is no patch.
    fn runs_solution(&self, task: &Task) -> bool {
        let has_one =
            |grader: &Grader| matches!(grader, Grader::Harbor(grader) if grader.has_solution());
        self.predictions == "gold" && task.gold.grader.as_ref().is_some_and(has_one)
    }
}

pub(crate) fn run(args: &GradeArgs, screen: Screen) -> Outcome<()> {
    if args.run_id.is_empty() || args.run_id.contains('/') {
        return Err(Failure::Asked(anyhow!(
            "--run-id must be a name without `/`"
        )));
    }
    let tasks = tasks(args, screen)?;
    let predictions = predictions(args, &tasks)?;
    let unknown: Vec<&str> = predictions
        .keys()
        .filter(|id| !tasks.contains_key(*id))
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() && args.instances.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "no task is called {}; the predictions belong to other tasks",
            unknown.join(", ")
        )));
    }
    check_predictions(&predictions).asked()?;
    fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {} (--out)", args.out.display()))
        .asked()?;
    let runtime = tokio::runtime::Runtime::new().failed()?;
    let (outcomes, faulted) = runtime.block_on(async {
        tokio::select! {
            done = all(args, &tasks, &predictions, screen) => done,
            () = crate::stop::asked_to_stop() => Err(Failure::Stopped),
        }
    })?;
    let submitted = predictions.keys().cloned();
    let report = RunReport::of(&outcomes, submitted);
    let model = predictions
        .values()
        .next()
        .map_or("None".to_owned(), model_folder);
    let file = args.out.join(format!("{model}.{}.json", args.run_id));
    let text = serde_json::to_string_pretty(&report).failed()?;
    write(&file, &(text + "\n")).failed()?;
    if args.json {
        print_json(&report)?;
    } else {
        print_text(&lines(&report, partial(&outcomes), &file))?;
    }
    match faulted.as_slice() {
        [] => Ok(()),
        ids => Err(Failure::Failed(anyhow!(
            "{} could not be graded; {}/ID/run_instance.log says why",
            ids.join(", "),
            folder(args, &model).display()
        ))),
    }
}

/// Logs are kept by instance and model, and the report is of one model.
fn check_predictions(predictions: &BTreeMap<String, Prediction>) -> anyhow::Result<()> {
    let leads_out = |name: &str| name.split('/').any(|part| matches!(part, "" | "." | ".."));
    let models: BTreeSet<String> = predictions.values().map(model_folder).collect();
    let mut named = predictions.keys().chain(&models);
    if let Some(name) = named.find(|name| leads_out(name)) {
        anyhow::bail!("`{name}` cannot name a folder, and logs are kept by instance and model");
    }
    if models.len() > 1 {
        let models: Vec<&str> = models.iter().map(String::as_str).collect();
        anyhow::bail!(
            "the predictions are of {} models, {}, and a report is of one: grade them apart",
            models.len(),
            models.join(", ")
        );
    }
    Ok(())
}

/// By the name that predictions have for them.
fn tasks(args: &GradeArgs, screen: Screen) -> Outcome<BTreeMap<String, Task>> {
    let tasks = match args.format {
        None => read_tasks(&args.tasks).asked()?,
        Some(format) => {
            let options = Options {
                split: "test".to_owned(),
                data_source: None,
                image_namespace: None,
                rejections: 50,
            };
            let adapted = adapt(format, &args.tasks, &options).asked()?;
            if !adapted.rejected.is_empty() {
                screen.say(adapted.rejected.to_string());
                let bad = adapted.rejected.count();
                return Err(Failure::Asked(anyhow!("{bad} rows of the tasks are bad")));
            }
            adapted.tasks
        }
    };
    let mut named = BTreeMap::new();
    for task in tasks {
        let id = instance_id(&task);
        if !args.instances.is_empty() && !args.instances.contains(&id) {
            continue;
        }
        if named.insert(id.clone(), task).is_some() {
            return Err(Failure::Asked(anyhow!("two tasks are called `{id}`")));
        }
    }
    let missing = args.instances.iter().find(|id| !named.contains_key(*id));
    match missing {
        Some(id) => Err(Failure::Asked(anyhow!("no task is called `{id}`"))),
        None => Ok(named),
    }
}

fn predictions(
    args: &GradeArgs,
    tasks: &BTreeMap<String, Task>,
) -> Outcome<BTreeMap<String, Prediction>> {
    if args.predictions != "gold" {
        return read_predictions(Path::new(&args.predictions)).asked();
    }
    let gold = |(id, task): (&String, &Task)| {
        let prediction = Prediction {
            instance_id: id.clone(),
            model_name_or_path: "gold".to_owned(),
            model_patch: Some(task.gold.patch.clone()),
            ..Prediction::default()
        };
        (id.clone(), prediction)
    };
    Ok(tasks.iter().map(gold).collect())
}

/// What came of every instance, and those for which the machinery failed.
async fn all(
    args: &GradeArgs,
    tasks: &BTreeMap<String, Task>,
    predictions: &BTreeMap<String, Prediction>,
    screen: Screen,
) -> Outcome<(BTreeMap<String, InstanceOutcome>, Vec<String>)> {
    let (mut outcomes, mut faulted) = (BTreeMap::new(), Vec::new());
    let mut wanted = Vec::new();
    for (id, task) in tasks {
        match predictions.get(id) {
            None => drop(outcomes.insert(id.clone(), InstanceOutcome::Incomplete)),
            Some(prediction) if prediction.is_empty() && !args.runs_solution(task) => {
                outcomes.insert(id.clone(), InstanceOutcome::EmptyPatch);
            }
            Some(prediction) => wanted.push((id, task, prediction)),
        }
    }
    let places = Places::open(args, &wanted).await?;
    let work = screen.work("grade", wanted.len() as u64);
    let (work, places) = (&work, &places);
    let graded = stream::iter(wanted)
        .map(|(id, task, prediction)| async move {
            let logs = Logs {
                folder: folder(args, &model_folder(prediction)).join(id),
            };
            let outcome = one(args, task, prediction, &logs, places).await;
            outcome.map(|outcome| (id.clone(), outcome))
        })
        .buffer_unordered(args.workers);
    let mut graded = std::pin::pin!(graded);
    let mut done = 0;
    while let Some(one) = graded.next().await {
        let (id, one) = one.failed()?;
        let outcome = one.outcome;
        done += 1;
        if one.faulted {
            faulted.push(id.clone());
        }
        work.at(done);
        let why = one.why.or_else(|| shortfall(&outcome));
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        screen.say(format!("{id}: {}{why}", said(&outcome)));
        outcomes.insert(id, outcome);
    }
    faulted.sort_unstable();
    Ok((outcomes, faulted))
}

fn said(outcome: &InstanceOutcome) -> &'static str {
    match outcome {
        InstanceOutcome::Completed { report, .. } if report.resolved => "resolved",
        InstanceOutcome::Completed { report, .. } if report.infra_failure => {
            "unresolved; the environment may have failed"
        }
        InstanceOutcome::Completed { report, .. } if is_partial(report) => "unresolved (partial)",
        InstanceOutcome::Completed { .. } => "unresolved",
        InstanceOutcome::Error { .. } => "error",
        InstanceOutcome::EmptyPatch => "empty patch",
        InstanceOutcome::Incomplete => "no prediction",
    }
}

/// Whether some of what had to begin to pass does, and all that passed still does.
fn is_partial(report: &InstanceReport) -> bool {
    let tests = report.tests_status.as_ref();
    tests.is_some_and(|tests| tests.resolution() == Resolution::Partial)
}

/// Instances that are resolved in part.
fn partial(outcomes: &BTreeMap<String, InstanceOutcome>) -> usize {
    let partial = |outcome: &&InstanceOutcome| matches!(outcome, InstanceOutcome::Completed { report, .. } if is_partial(report));
    outcomes.values().filter(partial).count()
}

/// Which tests an unresolved instance failed by: how many, and the first.
fn shortfall(outcome: &InstanceOutcome) -> Option<String> {
    let InstanceOutcome::Completed { report, .. } = outcome else {
        return None;
    };
    let tests = report.tests_status.as_ref()?;
    let kinds = [
        (&tests.fail_to_pass, "fail-to-pass", "did not pass"),
        (&tests.pass_to_pass, "pass-to-pass", "broke"),
    ];
    let told: Vec<String> = kinds
        .into_iter()
        .filter_map(|(split, kind, what)| {
            let (first, more) = split.failure.split_first()?;
            let (failed, all) = (
                split.failure.len(),
                split.success.len() + split.failure.len(),
            );
            let named = match more.is_empty() {
                true => format!(": {first}"),
                false => format!(", first {first}"),
            };
            Some(format!("{failed} of {all} {kind} tests {what}{named}"))
        })
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// What came of one instance.
struct Graded {
    outcome: InstanceOutcome,
    /// Whether the machinery failed.
    faulted: bool,
    /// Why there is no verdict on its tests.
    why: Option<String>,
}

/// Grades one instance, or finds that it was graded before.
async fn one(
    args: &GradeArgs,
    task: &Task,
    prediction: &Prediction,
    logs: &Logs,
    places: &Places,
) -> anyhow::Result<Graded> {
    let mut faulted = false;
    let id = &prediction.instance_id;
    let patch = prediction.model_patch.as_deref().unwrap_or_default();
    let report = if args.regrade {
        logs.regraded(task).or_else(|| logs.report(id))
    } else if let Some(report) = logs.report(id) {
        Some(report)
    } else {
        let testbed = places.testbed(task)?;
        let evaluated = match args.runs_solution(task) {
            true => evaluate_gold(task, &testbed).await,
            false => evaluate(task, patch, &testbed).await,
        };
        let evaluated = match evaluated {
            Ok(evaluated) => evaluated,
            Err(fault) => {
                faulted = true;
                Evaluated {
                    run_log: format!("{fault}\n"),
                    ..Evaluated::default()
                }
            }
        };
        logs.write(patch, &evaluated)?;
        evaluated.report
    };
    let logs_text = logs.text();
    let why = logs.why(task, report.as_ref());
    let outcome = match report {
        Some(report) => {
            // Last, so that an instance with a report is one that is done.
            let named = BTreeMap::from([(id, &report)]);
            let text = serde_json::to_string_pretty(&named)?;
            write(&logs.folder.join("report.json"), &text)?;
            InstanceOutcome::Completed {
                report: Box::new(report),
                logs: logs_text,
            }
        }
        None => InstanceOutcome::Error { logs: logs_text },
    };
    Ok(Graded {
        outcome,
        faulted,
        why,
    })
}

/// What a log of the task's own grader is graded by; `None` where no log decides.
fn expected(task: &Task) -> Option<Expected> {
    match &task.gold.grader {
        Some(Grader::SweSmithLog(profile)) => {
            Some(profile.expected(&instance_id(task), &task.checks))
        }
        // A log of its own harness; what is run by ids here ends with its verdicts.
        Some(Grader::SweSmith) => Some(smith_expected(&instance_id(task), &task.checks)),
        _ => instance_of(task)?.expected().ok(),
    }
}

/// The files of one instance.
struct Logs {
    folder: PathBuf,
}

impl Logs {
    fn read(&self, name: &str) -> Option<String> {
        let bytes = fs::read(self.folder.join(name)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What the run before this one found.
    fn report(&self, id: &str) -> Option<InstanceReport> {
        let text = self.read("report.json")?;
        let mut named: BTreeMap<String, InstanceReport> = serde_json::from_str(&text).ok()?;
        named.remove(id)
    }

    /// A verdict on the output that is kept, for graders that read nothing else.
    fn regraded(&self, task: &Task) -> Option<InstanceReport> {
        let log = self.read("test_output.txt")?;
        if matches!(task.gold.grader, None | Some(Grader::SweSmith)) {
            if let Some(tests) = verdicts(&log, &task.checks) {
                return Some(InstanceReport::of_tests(tests));
            }
            if log.is_empty() {
                return None;
            }
        }
        Some(InstanceReport::of_log(&expected(task)?, &log))
    }

    /// Why no test has a verdict, in a line: what grading noted, or what the log lacks.
    fn why(&self, task: &Task, report: Option<&InstanceReport>) -> Option<String> {
        let Some(report) = report else {
            let notes = self.read("run_instance.log").unwrap_or_default();
            let lines = notes.lines().filter(|line| !line.trim().is_empty());
            let failed: Vec<&str> = lines
                .skip_while(|line| !line.starts_with(PATCH_FAILED))
                .collect();
            if let [_, said @ ..] = failed.as_slice() {
                let error = said.iter().find(|line| line.starts_with("error"));
                let first = error.or(said.first()).copied().unwrap_or_default();
                return Some(format!("the patch does not apply: {}", first.trim()));
            }
            let last = notes.lines().rev().find(|line| !line.trim().is_empty());
            return Some(last.unwrap_or("no log says why").trim().to_owned());
        };
        if report.tests_status.is_some() {
            return None;
        }
        let expected = expected(task)?;
        let log = self.read("test_output.txt")?;
        let read = read_log(expected.log_parser, &expected.instance_id, &log);
        let sign = report.infra_failure_reason.as_deref();
        let sign = sign.map_or(String::new(), |sign| format!(" ({sign})"));
        read.err().map(|invalid| format!("{invalid}{sign}"))
    }

    fn text(&self) -> String {
        let logs = ["test_output.txt", "run_instance.log"];
        logs.into_iter()
            .filter_map(|name| self.read(name))
            .collect()
    }

    fn write(&self, patch: &str, evaluated: &Evaluated) -> anyhow::Result<()> {
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot make the folder {}", self.folder.display()))?;
        write(&self.folder.join("patch.diff"), patch)?;
        if let Some(script) = &evaluated.eval_script {
            write(&self.folder.join("eval.sh"), script)?;
        }
        write(&self.folder.join("test_output.txt"), &evaluated.test_output)?;
        write(&self.folder.join("run_instance.log"), &evaluated.run_log)
    }
}

/// Where the tasks' checkouts are tested.
struct Places {
    containers: Option<Sandboxes>,
    jails: Option<Sandboxes>,
    settings: SandboxSettings,
}

impl Places {
    /// Opens what the tasks need and nothing else.
    async fn open(args: &GradeArgs, wanted: &[(&String, &Task, &Prediction)]) -> Outcome<Self> {
        let seconds = args.timeout.as_secs_f64();
        let settings = SandboxSettings {
            python: args.python.clone(),
            python_setting: "--python",
            wall_s: seconds,
            cpu_s: seconds * 4.0,
            memory_mb: args.memory,
            slots: 1,
            ..SandboxSettings::default()
        };
        let kinds: BTreeSet<bool> = match args.regrade {
            true => BTreeSet::new(),
            false => wanted.iter().map(|(_, task, _)| in_image(task)).collect(),
        };
        let containers = SandboxSettings {
            backend: BackendName::Docker,
            engine: args.engine.clone(),
            ..settings.clone()
        };
        Ok(Self {
            containers: match kinds.contains(&true) {
                true => Some(containers.open().await?),
                false => None,
            },
            jails: match kinds.contains(&false) {
                true => Some(settings.open().await?),
                false => None,
            },
            settings,
        })
    }

    fn testbed(&self, task: &Task) -> anyhow::Result<Testbed> {
        let (sandboxes, image) = match &task.place {
            Place::Image { name, work_tree }
            | Place::PatchedImage {
                name, work_tree, ..
            } => {
                let image = Image {
                    work_tree: Some(work_tree.clone()),
                    ..Image::container(name)
                };
                (&self.containers, image)
            }
            Place::Folder(folder) | Place::Patched { folder, .. } => {
                (&self.jails, Image::checkout(folder))
            }
        };
        let sandboxes = sandboxes.as_ref().context("no sandbox for the task")?;
        let framework = task.public.framework;
        let python = sandboxes.python(framework)?;
        Ok(Testbed {
            backend: sandboxes.backend.clone(),
            image,
            framework,
            python,
            limits: self.settings.limits(),
            test_limit: None,
            with_plugins: false,
            slots: 1,
        })
    }
}

fn in_image(task: &Task) -> bool {
    matches!(task.place, Place::Image { .. } | Place::PatchedImage { .. })
}

fn model_folder(prediction: &Prediction) -> String {
    prediction.model_name_or_path.replace('/', "__")
}

/// Where the logs of a model's instances are.
fn folder(args: &GradeArgs, model: &str) -> PathBuf {
    let logs = args.out.join("logs/run_evaluation");
    logs.join(&args.run_id).join(model)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn lines(report: &RunReport, partial: usize, file: &Path) -> String {
    let share = match report.total_instances {
        0 => 0.0,
        all => 100.0 * report.resolved_instances as f64 / all as f64,
    };
    let numbers = [
        ("instances", report.total_instances),
        ("submitted", report.submitted_instances),
        ("completed", report.completed_instances),
        ("resolved", report.resolved_instances),
        ("unresolved", report.unresolved_instances),
        ("  of them partially", partial),
        ("empty patches", report.empty_patch_instances),
        ("errors", report.error_instances),
        (
            "likely failed by their environment",
            report.infra_failure_instances,
        ),
        (
            "perhaps failed by their environment",
            report.ambiguous_failure_instances,
        ),
    ];
    let mut lines = vec![format!("resolved {share:.1} % of all instances")];
    lines.extend(numbers.map(|(what, number)| format!("  {what:<36} {number:>7}")));
    lines.push(format!("report: {}", file.display()));
    lines.join("\n")
}
