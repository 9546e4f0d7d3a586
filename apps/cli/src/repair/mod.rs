//! `etude repair`: one issue of one repository, told as it goes. The repository stays as it is unless the
//! patch is wanted.

mod survey;
mod tell;

use std::{
    fs,
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, anyhow};
use clap::Args;
use code::{Patch, patch::FileChange, patch::Mode};
use record::{Outcome as Graded, Sampling, Seed, TaskId};
use repair::{
    Checkout, Checks, Facts, Gold, Issue, Place, Public, Repair, RepairConfig, Task, TestFramework,
    environment::{EndConfig, EnvironmentConfig},
    metrics::notes_of,
    mutate::framework_of,
    patch_model::{ChatPatcher, PATCHER},
    planner::{PLANNER, PlannerConfig, PlannerKind},
    play::Notes,
    repair_loop::{LoopSettings, RepairLoop},
    search::SearchSettings,
};
use rollout::{Options as RolloutOptions, Roles, Runner};
use serde_json::json;

use crate::{
    data::mutate::FrameworkArg,
    failure::{Classify, Failure, Outcome},
    machine,
    report::{print_json, print_text},
    sandboxes::SandboxSettings,
    screen::Screen,
    walk::{
        endpoint::NamedEndpoint,
        repair::{Patcher, patch_model, testbeds},
    },
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
    /// A test that must pass, by its id; several are several [default: all that fail now]
    #[arg(long = "test", value_name = "ID")]
    tests: Vec<String>,
    /// Who plans: openai:http://HOST:PORT/v1#MODEL [default: rules]
    #[arg(long, value_name = "ENDPOINT")]
    model: Option<String>,
    /// Who writes patches: openai:http://HOST:PORT/v1#MODEL [default: a search that needs no model]
    #[arg(long, value_name = "ENDPOINT")]
    patch_model: Option<String>,
    /// The environment variable that holds the key of the endpoints
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// Candidate patches that the search runs at most
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    budget: u32,
    /// Steps of the planner at most
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_steps: u32,
    /// Who runs the tests [default: as the tests and their configuration say]
    #[arg(long, value_enum, default_value = "auto", hide_default_value = true)]
    framework: FrameworkArg,
    /// The interpreter of the tests, with what they need installed [default: the system's]
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
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

pub(crate) fn run(args: &RepairArgs, screen: Screen) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .failed()?;
    runtime.block_on(async {
        tokio::select! {
            done = repair(args, screen) => done,
            _ = tokio::signal::ctrl_c() => Err(Failure::Stopped),
        }
    })
}

async fn repair(args: &RepairArgs, screen: Screen) -> Outcome<()> {
    let issue = issue(&args.issue)?;
    if let Some(python) = &args.python
        && python.components().count() > 1
        && !python.is_file()
    {
        return Err(Failure::Asked(anyhow!(
            "--python {}: there is no such program",
            python.display()
        )));
    }
    let settings = SandboxSettings {
        python: args.python.clone(),
        slots: machine::cores(),
        ..SandboxSettings::default()
    };
    let sandboxes = settings.open().await?;
    let checkout = Checkout::of(&Place::Folder(folder(&args.repo)?)).asked()?;
    let framework = match args.framework {
        FrameworkArg::Pytest => TestFramework::Pytest,
        FrameworkArg::Unittest => TestFramework::Unittest,
        FrameworkArg::Auto => framework_of(&checkout.files().asked()?, |path| {
            let content = checkout.read(path).ok().flatten()?;
            String::from_utf8(content).ok()
        }),
    };
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
    let survey = survey::survey(&task, &testbeds).await?;
    survey.tell(args, screen)?;
    task.checks = survey.checks(&args.tests)?;
    task.public.issue = survey.completed(&task, task.public.issue.clone());
    let config = RepairConfig {
        planner: PlannerConfig {
            kind: if args.model.is_some() {
                PlannerKind::Model
            } else {
                PlannerKind::Rules
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
    };
    let patcher = match args.patch_model {
        Some(_) => Patcher::Model(ChatPatcher::default()),
        None => Patcher::Search(SearchSettings {
            budget: args.budget as usize,
            slots: settings.slots,
            target_factor: match config.planner.kind {
                PlannerKind::Rules => RULES_FACTOR,
                _ => SearchSettings::default().target_factor,
            },
            ..SearchSettings::default()
        }),
    };
    let repairer = RepairLoop {
        model: patch_model(&patcher)?,
        settings: LoopSettings {
            within_plan: args.patch_model.is_some(),
            ..LoopSettings::default()
        },
    };
    let count = Arc::new(|text: &str| text.len().div_ceil(4));
    let study = Repair::new(config, testbeds, Arc::new(repairer), count)
        .watched(Arc::new(move |_, step| tell::step(step, screen)));
    let roles = roles(args).await?;
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
    finish(args, &checkout, &task, &notes, screen)
}

/// Says what came of it, and writes the patch where it is wanted.
fn finish(
    args: &RepairArgs,
    checkout: &Checkout,
    task: &Task,
    notes: &Notes,
    screen: Screen,
) -> Outcome<()> {
    let applied = notes.resolved && (args.apply || (!args.json && wanted(notes, screen)));
    if applied {
        write(checkout, &notes.patch)?;
    }
    if args.json {
        print_json(&json!({
            "repo": args.repo,
            "resolved": notes.resolved,
            "applied": applied,
            "patch": notes.patch,
            "steps": notes.steps.len(),
            "candidates": notes.candidates,
            "test_runs": notes.test_runs,
            "fail_to_pass": task.checks.fail_to_pass,
            "pass_to_pass": task.checks.pass_to_pass.len(),
        }))?;
    } else if notes.resolved && !applied {
        print_text(notes.patch.trim_end())?;
    }
    match (notes.resolved, applied) {
        (true, true) => screen.say(format!("The patch is in {}.", args.repo.display())),
        (true, false) => screen.say(format!(
            "{} is as it was; the patch is on standard output.",
            args.repo.display()
        )),
        (false, _) => {
            return Err(Failure::Failed(anyhow!(
                "no patch was found that makes the failing tests pass and keeps the others: {} candidates and \
                 {} runs of tests were tried. {} is as it was",
                notes.candidates,
                notes.test_runs,
                args.repo.display()
            )));
        }
    }
    Ok(())
}

/// Asks on a terminal; elsewhere nobody can say yes.
fn wanted(notes: &Notes, screen: Screen) -> bool {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return false;
    }
    tell::patch(&notes.patch, screen);
    // Nobody is left to ask when stderr is gone.
    let _ = write!(std::io::stderr(), "Write this to the repository? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Writes the patch to the user's own files, all of it or nothing that could be foreseen to fail.
fn write(checkout: &Checkout, patch: &str) -> Outcome<()> {
    let patch = Patch::parse(patch.as_bytes()).failed()?;
    let mut files = std::collections::BTreeMap::new();
    for path in patch.paths() {
        let content = checkout.read(&path).failed()?;
        files.insert(path, content);
    }
    let root = checkout.folder();
    for change in patch.apply(&files).failed()?.changes {
        match change {
            FileChange::Write {
                path,
                content,
                mode,
            } => {
                let path = root.join(path.as_str());
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder).failed()?;
                }
                // Written in place, so that permissions and links of a file stay.
                fs::write(&path, content)
                    .with_context(|| path.display().to_string())
                    .failed()?;
                if let Mode::Bits(bits) = mode {
                    use std::os::unix::fs::PermissionsExt;
                    fs::set_permissions(&path, fs::Permissions::from_mode(bits)).failed()?;
                }
            }
            FileChange::Remove { path } => fs::remove_file(root.join(path.as_str())).failed()?,
        }
    }
    Ok(())
}

/// Models bound to the roles that are asked.
async fn roles(args: &RepairArgs) -> Outcome<Roles> {
    let mut roles = Roles::default();
    for (role, model) in [(PLANNER, &args.model), (PATCHER, &args.patch_model)] {
        if let Some(model) = model {
            let endpoint = NamedEndpoint {
                model,
                api_key_env: args.api_key_env.as_deref(),
                timeout_s: 600.0,
            };
            endpoint.check("--model").asked()?;
            roles = roles.bind_messages(role, endpoint.open().await?, Sampling::greedy(4096));
        }
    }
    Ok(roles)
}

/// The text itself, or that of the file of this name.
fn issue(text: &str) -> Outcome<Issue> {
    let path = Path::new(text);
    let text = match text.len() < 4096 && path.is_file() {
        true => fs::read_to_string(path)
            .with_context(|| text.to_owned())
            .asked()?,
        // One word with a folder or an ending is meant to be a file: an issue has more than that to say.
        false
            if !text.trim().contains(char::is_whitespace)
                && (text.contains('/') || path.extension().is_some()) =>
        {
            return Err(Failure::Asked(anyhow!(
                "there is no file {text}; give --issue one that is there, or a text of several words"
            )));
        }
        false => text.to_owned(),
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "the issue is empty; say what is wrong"
        )));
    }
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    Ok(Issue {
        title: title.trim_start_matches('#').trim().to_owned(),
        body: body.trim().to_owned(),
        ..Issue::default()
    })
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
