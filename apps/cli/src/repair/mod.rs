//! `etude repair`: one issue of one repository, told as it goes. The repository stays as it is unless the
//! patch is wanted.

mod finish;
mod issue;
mod partial;
mod readable;
mod survey;
mod tell;
mod uneditable;
mod waiting;
mod write;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use code::RelativePath;
use record::{Outcome as Graded, Sampling, Seed, TaskId};
use repair::{
    Checkout, Checks, Facts, Gold, Place, Public, Repair, RepairConfig, Task, TestFramework,
    Testbeds,
    environment::{EndConfig, EnvironmentConfig},
    metrics::notes_of,
    mutate::framework_of,
    patch_model::{ChatPatcher, PATCHER, PatchModel},
    planner::{PLANNER, PlannerConfig, PlannerKind},
    repair_loop::{LoopSettings, RepairLoop},
    search::{Search, SearchSettings},
    wire::WireFormat,
    workplace::Testbed,
};
use rollout::{Options as RolloutOptions, Roles, Runner};

use self::{
    finish::Ending,
    tell::{Candidates, Told},
    uneditable::uneditable,
    waiting::Waiting,
};
use crate::{
    args,
    data::mutate::FrameworkArg,
    failure::{Classify, Failure, Outcome},
    machine,
    sandboxes::SandboxSettings,
    screen::Screen,
    walk::{endpoint::NamedEndpoint, repair::testbeds},
};

/// How much more suspicious lines are that rules point at: they go by words and tracebacks alone.
const RULES_FACTOR: f64 = 1.5;

#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// The repository: a folder with a Python package and its tests
    #[arg(long, value_name = "PATH")]
    repo: PathBuf,
    /// What is wrong: a text, or a file of one
    #[arg(long, value_name = "TEXT|FILE")]
    issue: String,
    /// A test that must pass, by its id, or all that fail of a function, class or file; several are several [default:
    /// those that fail and that the issue speaks of; all that fail where it speaks of none]
    #[arg(long = "test", value_name = "ID")]
    tests: Vec<String>,
    /// Who plans: openai:http://HOST:PORT/v1#MODEL [default: rules]
    #[arg(long, value_name = "ENDPOINT")]
    model: Option<String>,
    /// How the model says what it does: text, or tools, which are OpenAI's tool calls
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        requires = "model"
    )]
    model_format: ModelFormat,
    /// Who writes patches: openai:http://HOST:PORT/v1#MODEL [default: a search that needs no model]
    #[arg(long, value_name = "ENDPOINT")]
    patch_model: Option<String>,
    /// The environment variable that holds the key of the endpoints
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// Seconds that one answer of a model may take
    #[arg(long, value_name = "SECONDS", default_value = "600", allow_negative_numbers = true, value_parser = args::seconds)]
    model_timeout: Duration,
    /// Candidate patches that the search runs at most
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    budget: u32,
    /// Steps of the planner at most
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_steps: u32,
    /// Who runs the tests [default: as the tests and their configuration say]
    #[arg(long, value_enum, default_value = "auto", hide_default_value = true)]
    framework: FrameworkArg,
    /// The interpreter of the tests, with what they need installed [default: the first python3 of PATH that can run them]
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// Seconds that one run of all tests may take
    #[arg(long, value_name = "SECONDS", default_value = "600", allow_negative_numbers = true, value_parser = args::seconds)]
    test_timeout: Duration,
    /// Seconds that one single test may take: one that has not ended by then fails where it is
    #[arg(long, value_name = "SECONDS", default_value = "60", allow_negative_numbers = true, value_parser = args::seconds)]
    single_test_timeout: Duration,
    /// Write both graphs after every step to this folder: <issue>.step_NNNN.{working,memory}.json
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// Write the patch to the repository without asking
    #[arg(long)]
    apply: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModelFormat {
    Text,
    Tools,
}

impl RepairArgs {
    /// The repository as it is spoken of: by a path that ends in its name.
    fn repo_name(&self) -> String {
        let path = match self.repo.file_name() {
            Some(_) => self.repo.clone(),
            None => self
                .repo
                .canonicalize()
                .unwrap_or_else(|_| self.repo.clone()),
        };
        path.display().to_string()
    }
}

pub(crate) fn run(args: &RepairArgs, screen: Screen) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .failed()?;
    runtime.block_on(async {
        tokio::select! {
            biased;
            () = crate::stop::asked_to_stop() => Err(Failure::Stopped),
            done = repair(args, screen) => done,
        }
    })
}

/// `testbeds` that give single tests this long, and load plugins where the run of all tests did.
fn as_surveyed(testbeds: Testbeds, limit: Duration, with_plugins: bool) -> Testbeds {
    Arc::new(move |task: &Task| {
        let testbed = testbeds(task)?;
        Ok(Testbed {
            test_limit: Some(limit),
            with_plugins,
            ..testbed
        })
    })
}

async fn repair(args: &RepairArgs, screen: Screen) -> Outcome<()> {
    // What is asked wrongly is said before the tests have run.
    let issue = issue::read(&args.issue)?;
    let folder = folder(&args.repo)?;
    if let Some(traces) = &args.traces {
        if traces.exists() && !traces.is_dir() {
            return Err(Failure::Asked(anyhow!(
                "--traces {}: it is no folder; give one, which need not be there yet",
                traces.display()
            )));
        }
        fs::create_dir_all(traces)
            .with_context(|| format!("--traces {}", traces.display()))
            .asked()?;
    }
    let roles = roles(args, screen).await?;
    let seconds = args.test_timeout.as_secs_f64();
    let settings = SandboxSettings {
        python: args.python.clone(),
        python_setting: "--python",
        slots: machine::cores(),
        wall_s: seconds,
        // Of tests that use several cores the wall time decides.
        cpu_s: 2.0 * seconds,
        ..SandboxSettings::default()
    };
    let sandboxes = settings.open().await?;
    let checkout = Checkout::of(&Place::Folder(folder)).asked()?;
    let framework = match args.framework {
        FrameworkArg::Pytest => TestFramework::Pytest,
        FrameworkArg::Unittest => TestFramework::Unittest,
        FrameworkArg::Auto => framework_of(&checkout.files().asked()?, |path| {
            let content = checkout.read(path).ok().flatten()?;
            String::from_utf8(content).ok()
        }),
    };
    let named: Vec<String> = args.tests.iter().map(|id| named(&checkout, id)).collect();
    for id in &named {
        is_there(&checkout, id)?;
    }
    let python = sandboxes.python(framework).asked()?;
    if let Ok(first) = sandboxes.python(TestFramework::Unittest)
        && first != python
    {
        screen.say(format!(
            "note: {first}, the first python3 of PATH, has no pytest, and {python} has; name the one that you mean with \
             --python"
        ));
    }
    let mut task = Task {
        id: TaskId(name(&args.repo)),
        public: Public {
            repo: name(&args.repo),
            base_commit: None,
            issue,
            framework,
            max_steps: Some(args.max_steps),
        },
        place: Place::Folder(checkout.folder().to_owned()),
        checks: Checks::default(),
        facts: Facts::default(),
        gold: Gold::default(),
    };
    let testbeds = testbeds(&settings, &sandboxes);
    let survey = survey::survey(&task, &testbeds, args, screen).await?;
    let testbeds = as_surveyed(testbeds, survey.test_limit, survey.run.with_plugins);
    survey.tell(args, screen)?;
    task.checks = survey.checks(&named)?;
    survey.check_readable(&task.checks, args, screen)?;
    let issue = task.public.issue.clone();
    let candidates = Arc::new(Candidates::new(screen));
    let (model, observed) = match args.patch_model {
        Some(_) => (
            Arc::new(ChatPatcher::default()) as Arc<dyn PatchModel>,
            None,
        ),
        None => {
            let settings = search_settings(args, settings.slots);
            let observing = survey.observed(&task, (args, &issue), &testbeds, &settings, screen);
            let observed = Arc::new(observing.await?);
            survey.narrow(&mut task, &observed, &issue, args, screen);
            (search(settings, &candidates)?, Some(observed))
        }
    };
    task.public.issue = survey.completed(&task, issue.clone());
    let suspected = observed.clone();
    let repairer = RepairLoop {
        model: Arc::new(Told {
            model,
            candidates: candidates.clone(),
            observed: observed.map(|observed| (issue, observed)),
        }),
        settings: LoopSettings {
            within_plan: args.patch_model.is_some(),
            // The lists were made from a run of all.
            all_tests: true,
            ..LoopSettings::default()
        },
    };
    let count = Arc::new(|text: &str| text.len().div_ceil(4));
    let told = candidates.clone();
    let study = Repair::new(config(args), testbeds.clone(), Arc::new(repairer), count).watched(
        Arc::new(move |_, step| {
            let is_planned = told.end(step);
            tell::step(step, is_planned, screen);
        }),
    );
    let options = RolloutOptions {
        deadline_s: 86_400.0,
        retries: 0,
        max_fault_share: 1.0,
        ..RolloutOptions::default()
    };
    let runner = Runner::new(Arc::new(study), roles, options);
    let task = Arc::new(task);
    let groups = runner
        .play(0, std::slice::from_ref(&task), 1, Seed(0), |_| {})
        .await
        .failed()?;
    let episode = groups.iter().flat_map(|group| &group.episodes).next();
    let episode = episode.context("nothing was played").failed()?;
    let notes = match &episode.outcome {
        Graded::Graded { .. } => notes_of(episode)
            .context("the episode left no notes")
            .failed()?,
        Graded::InfraFault { message }
        | Graded::GraderFault { message }
        | Graded::Timeout { message } => {
            return Err(Failure::Failed(anyhow!("{message}")));
        }
    };
    let partial = match notes.resolved {
        true => None,
        false => partial::find(&notes, &task, &testbeds, args.test_timeout).await?,
    };
    let suspected = suspected.as_ref().filter(|_| !notes.resolved);
    let suspected = suspected.map(|observed| observed.suspected_files());
    let ending = Ending {
        args,
        checkout: &checkout,
        task: &task,
        notes: &notes,
        partial,
        uneditable: uneditable(&checkout, suspected.into_iter().flatten()),
        screen,
    };
    ending.finish().await
}

fn config(args: &RepairArgs) -> RepairConfig {
    RepairConfig {
        planner: PlannerConfig {
            kind: if args.model.is_some() {
                PlannerKind::Model
            } else {
                PlannerKind::Rules
            },
            format: match args.model_format {
                ModelFormat::Text => WireFormat::Text,
                ModelFormat::Tools => WireFormat::Tools,
            },
            rule_fallback: true,
            ..PlannerConfig::default()
        },
        environment: EnvironmentConfig {
            end: EndConfig {
                verified_repair: true,
                ..EndConfig::default()
            },
            traces: args.traces.clone(),
            ..EnvironmentConfig::default()
        },
    }
}

fn search_settings(args: &RepairArgs, slots: usize) -> SearchSettings {
    SearchSettings {
        budget: args.budget as usize,
        slots,
        suite_seconds: args.test_timeout.as_secs_f64(),
        target_factor: match args.model {
            Some(_) => SearchSettings::default().target_factor,
            None => RULES_FACTOR,
        },
        ..SearchSettings::default()
    }
}

fn search(settings: SearchSettings, candidates: &Arc<Candidates>) -> Outcome<Arc<dyn PatchModel>> {
    let search = Search::new(settings).map_err(|error| Failure::Asked(anyhow!("{error}")))?;
    let told = candidates.clone();
    Ok(Arc::new(
        search.watched(Arc::new(move |tried| told.tell(tried))),
    ))
}

/// Models bound to the roles that are asked.
async fn roles(args: &RepairArgs, screen: Screen) -> Outcome<Roles> {
    let named = [
        ("--model", PLANNER, &args.model),
        ("--patch-model", PATCHER, &args.patch_model),
    ];
    let endpoint = |model| NamedEndpoint {
        model,
        api_key_env: args.api_key_env.as_deref(),
        timeout_s: args.model_timeout.as_secs_f64(),
    };
    if args.api_key_env.is_some() && named.iter().all(|(_, _, model)| model.is_none()) {
        return Err(Failure::Asked(anyhow!(
            "--api-key-env names the key of an endpoint, and none is asked; give --model or --patch-model too"
        )));
    }
    for (flag, _, model) in &named {
        if let Some(model) = model {
            endpoint(model).check(flag).asked()?;
        }
    }
    let mut roles = Roles::default();
    for (flag, role, model) in named {
        if let Some(model) = model {
            let opened = endpoint(model).opened().await?;
            let waiting = Waiting::new(opened, flag, screen);
            roles = roles.bind_messages(role, Arc::new(waiting), Sampling::greedy(4096));
        }
    }
    Ok(roles)
}

/// A test as ids begin: its file by the path below the repository.
fn named(checkout: &Checkout, test: &str) -> String {
    let folder = checkout.folder();
    let within = Path::new(test).strip_prefix(folder).ok();
    let within = within.and_then(Path::to_str).unwrap_or(test);
    within.strip_prefix("./").unwrap_or(within).to_owned()
}

/// Refuses an id of pytest's whose file is not there.
fn is_there(checkout: &Checkout, id: &str) -> Outcome<()> {
    if id.trim().is_empty() {
        return Err(Failure::Asked(anyhow!(
            "--test is empty: give a test, or a function, class or file of tests, or leave it out"
        )));
    }
    let Some((file, _)) = id.split_once("::") else {
        return Ok(());
    };
    let path = RelativePath::new(file);
    match path.is_ok_and(|path| checkout.folder().join(path.as_str()).is_file()) {
        true => Ok(()),
        false => Err(Failure::Asked(anyhow!(
            "--test {id}: there is no file {file} in {}",
            checkout.folder().display()
        ))),
    }
}

fn folder(path: &Path) -> Outcome<PathBuf> {
    if !path.is_dir() {
        return Err(Failure::Asked(anyhow!(
            "{} is no folder; give that of a repository",
            path.display()
        )));
    }
    path.canonicalize().asked()
}

fn name(path: &Path) -> String {
    let folder = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    folder.file_name().map_or_else(
        || "repository".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
