//! `etude data mutate`: repair tasks out of a Python repository with tests.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use record::Seed;
use repair::{
    SourceStore, TestFramework,
    mutate::{
        LeftOut, MutateError, Mutated, Options, Progress, Style, Tally, framework_of, mutate,
        notes_beside,
    },
    workplace::Testbed,
    write_tasks,
};
use serde::Serialize;
use session::Image;

use crate::{
    failure::{Classify, Failure, Outcome},
    machine,
    report::{print_json, print_text},
    sandboxes::SandboxSettings,
    screen::{Screen, count_of},
};

#[derive(Debug, Args)]
pub(crate) struct MutateArgs {
    /// The repository: a folder with a package and its tests
    path: PathBuf,
    /// The file of tasks to write, JSON Lines; the sources are kept beside it, in FILE.sources
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Tasks to make
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// Draws the bugs that are tried, and the words of the issues
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Who runs the tests [default: as the tests and their configuration say]
    #[arg(long, value_enum, default_value = "auto", hide_default_value = true)]
    framework: FrameworkArg,
    /// The interpreter of the tests, with what they need installed, such as that of a virtual environment
    /// [default: the first python3 of PATH that can run them]
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// How much the issues say
    #[arg(long, value_enum, default_value = "normal")]
    style: StyleArg,
    /// What the repository is called; a part of every task's id [default: its folder's name]
    #[arg(long, value_name = "NAME", value_parser = name_of_a_repository)]
    name: Option<String>,
    /// Runs of tests at the same time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FrameworkArg {
    Auto,
    Pytest,
    Unittest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StyleArg {
    Terse,
    Normal,
    Detailed,
}

impl From<StyleArg> for Style {
    fn from(style: StyleArg) -> Self {
        match style {
            StyleArg::Terse => Self::Terse,
            StyleArg::Normal => Self::Normal,
            StyleArg::Detailed => Self::Detailed,
        }
    }
}

/// What was made.
#[derive(Serialize)]
struct Made<'a> {
    file: &'a Path,
    sources: &'a Path,
    name: &'a str,
    framework: TestFramework,
    tasks: usize,
    /// Tests that pass every time without bugs.
    tests: usize,
    tests_left_out: usize,
    left_out: &'a [LeftOut],
    functions: usize,
    files: usize,
    by_family: BTreeMap<String, usize>,
    tally: &'a Tally,
    seconds: f64,
}

/// Tests that are left out of the tasks and named; all are in the report of `--json`.
const SHOWN_TESTS: usize = 10;
/// Between two lines where there is no bar.
const EVERY: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &MutateArgs, screen: Screen) -> Outcome<()> {
    let out = &args.out;
    if out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(Failure::Asked(anyhow!(
            "--out {} is a folder, and the tasks are written to a file: give one such as {}",
            out.display(),
            out.join("tasks.jsonl").display()
        )));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .failed()?;
    let sources = args.out.with_extension("sources");
    let was_there = sources.exists();
    let folders = out.ancestors().skip(1);
    let folders = folders.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let new_folders: Vec<&Path> = folders.collect();
    let made = runtime.block_on(async {
        tokio::select! {
            done = make(args, screen) => done,
            () = crate::stop::asked_to_stop() => Err(Failure::Stopped),
        }
    });
    // Where something was measured the same command goes on; a refusal leaves nothing behind.
    let notes = notes_beside(&args.out);
    let goes_on = notes.exists() || args.out.exists();
    if made.is_err() && !was_there && !goes_on && sources.is_dir() {
        fs::remove_dir_all(sources).failed()?;
        // One that something else was put into stays.
        for folder in new_folders {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
    if matches!(made, Err(Failure::Stopped)) && notes.exists() {
        screen.say(format!(
            "What was measured is kept in {}; the same command goes on from there.",
            notes.display()
        ));
    }
    made
}

async fn make(args: &MutateArgs, screen: Screen) -> Outcome<()> {
    let begun = Instant::now();
    if !args.path.is_dir() {
        return Err(Failure::Asked(anyhow!(
            "{} is no folder; give that of a repository, an archive unpacked",
            args.path.display()
        )));
    }
    let name = name(args)?;
    if args.out.exists() {
        screen.say(format!(
            "note: {} is there already; the tasks that are made replace what is in it",
            args.out.display()
        ));
    }
    if let Some(folder) = args
        .out
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))
            .asked()?;
    }
    measured(args, &name, begun, screen).await
}

async fn measured(args: &MutateArgs, name: &str, begun: Instant, screen: Screen) -> Outcome<()> {
    let sources = SourceStore::beside(&args.out)
        .keep(&args.path, name)
        .asked()?;
    if !sources
        .files
        .iter()
        .any(|file| file.as_str().ends_with(".py"))
    {
        return Err(Failure::Asked(anyhow!(
            "no tests were found in {}: it has no file of Python; give the folder that has both the package and its tests",
            args.path.display()
        )));
    }
    let framework = match args.framework {
        FrameworkArg::Pytest => TestFramework::Pytest,
        FrameworkArg::Unittest => TestFramework::Unittest,
        FrameworkArg::Auto => framework_of(&sources.files, |path| {
            fs::read_to_string(sources.folder.join(path.as_str())).ok()
        }),
    };
    let settings = SandboxSettings {
        python: args.python.clone(),
        python_setting: "--python",
        // Traced runs are bounded by their wall time.
        cpu_s: 3600.0,
        ..SandboxSettings::default()
    };
    let sandboxes = settings.open().await?;
    let testbed = Testbed {
        python: sandboxes.python(framework).asked()?,
        backend: sandboxes.backend,
        image: Image::checkout(std::path::absolute(&sources.folder).asked()?),
        framework,
        limits: settings.limits(),
        test_limit: None,
        with_plugins: false,
        slots: args.workers.map_or_else(machine::cores, usize::from),
    };
    let options = Options {
        count: args.count as usize,
        seed: Seed(args.seed),
        style: args.style.into(),
        name: name.to_owned(),
        notes: notes_beside(&args.out),
    };
    screen.say(format!(
        "{name}: running its tests twice, and once traced …"
    ));
    let work = screen.work("tasks", u64::from(args.count));
    let far = RefCell::new((0, "the tests run without bugs".to_owned()));
    let made = mutate(&testbed, &sources, &options, |progress| match progress {
        Progress::Surveyed {
            tests,
            left_out,
            seconds,
            candidates,
            known,
        } => {
            let aside = match left_out.len() {
                0 => String::new(),
                1 => ", 1 other is left out".to_owned(),
                more => format!(", {more} others are left out"),
            };
            screen.say(format!(
                "{name}: {tests} tests pass in {seconds:.1} s{aside}; {candidates} places for a bug"
            ));
            for one in left_out.iter().take(SHOWN_TESTS) {
                screen.say(format!("  left out: {}: {}", one.test, one.why));
            }
            if left_out.len() > SHOWN_TESTS {
                let more = left_out.len() - SHOWN_TESTS;
                screen.say(format!("  and {more} more; --json names all"));
            }
            if known > 0 {
                screen.say(format!(
                    "{name}: going on; {} measured before",
                    match known {
                        1 => "1 bug was".to_owned(),
                        more => format!("{more} bugs were"),
                    }
                ));
            }
            far.borrow_mut().1 = "no bug is measured yet".to_owned();
        }
        Progress::Tried { tally } => {
            let message = format!("{} tasks of {} bugs", tally.kept, tally.tried);
            work.note(tally.kept as u64, &message, false);
            *far.borrow_mut() = (tally.kept as u64, message);
        }
    });
    let mut made = std::pin::pin!(made);
    let made = loop {
        tokio::select! {
            made = &mut made => break made,
            () = tokio::time::sleep(EVERY) => {
                let (kept, message) = &*far.borrow();
                let seconds = begun.elapsed().as_secs();
                work.note(*kept, &format!("{message}, {seconds} s"), true);
            }
        }
    };
    let made = made.map_err(failure)?;
    if made.tasks.is_empty() {
        return Err(Failure::Failed(anyhow!(
            "no task was made: {}; nothing was written",
            fates(&made.tally)
        )));
    }
    write_tasks(&args.out, &made.tasks).failed()?;
    say(args, name, framework, &sources.folder, &made, begun, screen)
}

fn name(args: &MutateArgs) -> Outcome<String> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }
    let folder = args.path.canonicalize().asked()?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name_of_a_repository(&name).map_err(|error| {
        Failure::Asked(anyhow!(
            "the folder's name is no name of a repository ({error}); give one with --name"
        ))
    })
}

/// Ids are `name__family-digits`, and sources lie in a folder of the name.
fn name_of_a_repository(text: &str) -> Result<String, String> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if text.is_empty() || text.starts_with('.') || !text.chars().all(fits) {
        Err("expected letters, digits, `-`, `_` and `.`".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// What is wrong with the repository or with what was asked, and what failed on the way.
fn failure(error: MutateError) -> Failure {
    match &error {
        MutateError::Fault(fault) if fault.kind == record::FaultKind::Infra => {
            Failure::Failed(error.into())
        }
        _ => Failure::Asked(error.into()),
    }
}

fn say(
    args: &MutateArgs,
    name: &str,
    framework: TestFramework,
    sources: &Path,
    made: &Mutated,
    begun: Instant,
    screen: Screen,
) -> Outcome<()> {
    let mut by_family = BTreeMap::new();
    let mut functions = BTreeSet::new();
    let mut files = BTreeSet::new();
    for task in &made.tasks {
        *by_family
            .entry(task.facts.family.clone().unwrap_or_default())
            .or_default() += 1;
        let fact = |key: &str| task.facts.metadata.get(key).map(ToString::to_string);
        functions.insert((fact("file"), fact("function")));
        files.insert(fact("file"));
    }
    let report = Made {
        file: &args.out,
        sources,
        name,
        framework,
        tasks: made.tasks.len(),
        tests: made.tests,
        tests_left_out: made.left_out.len(),
        left_out: &made.left_out,
        functions: functions.len(),
        files: files.len(),
        by_family,
        tally: &made.tally,
        seconds: begun.elapsed().as_secs_f64(),
    };
    if report.tasks < args.count as usize {
        screen.say(format!(
            "note: every place was tried; {} of {} tasks could be made",
            report.tasks, args.count
        ));
    }
    if args.json {
        return print_json(&report);
    }
    print_text(&text(&report))?;
    // What tests need is installed for the interpreter that they ran with.
    let python = match &args.python {
        Some(python) => format!(
            " --set sandbox.python={}",
            std::path::absolute(python).asked()?.display()
        ),
        None => String::new(),
    };
    screen.say(format!(
        "In etude's repository this has them repaired: etude eval recipes/repair/mutants.toml --set tasks.eval={}{python}",
        std::path::absolute(&args.out).asked()?.display()
    ));
    Ok(())
}

fn text(made: &Made<'_>) -> String {
    let mut lines = vec![
        format!(
            "{}: {} in {} of {}, {:.0} s",
            made.file.display(),
            count_of(made.tasks, "task"),
            count_of(made.functions, "function"),
            count_of(made.files, "file"),
            made.seconds
        ),
        format!("  {}", fates(made.tally)),
    ];
    for (family, tasks) in &made.by_family {
        lines.push(format!("  {family:<20} {tasks:>4}"));
    }
    lines.join("\n")
}

/// What became of all bugs that were tried.
fn fates(tally: &Tally) -> String {
    let Tally {
        tried,
        unnoticed,
        timed_out,
        crashed,
        too_much,
        unsteady,
        ..
    } = tally;
    format!(
        "of {tried} bugs {unnoticed} were not noticed, {timed_out} did not end, {crashed} ended the interpreter, \
         {too_much} broke more than half of the tests, {unsteady} were unsteady"
    )
}
