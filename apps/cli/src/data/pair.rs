//! `etude data pair`: problems and programs for them to the rows that the critique study is trained on.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::Args;
use critique::data::{
    Attempt, CountTokens, LessonOptions, LessonRow, Problem, Step, filter_lessons, fit_columns,
    read_attempts, read_problems,
};
use dataset::{JsonlWriter, Place, write_parquet};
use record::Seed;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{SHOWN_ERRORS, judging::JudgingArgs, load_tokenizer};
use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::{Screen, count_of},
};

#[derive(Debug, Args)]
pub(super) struct PairArgs {
    /// A problem file, as `etude data prepare taco` and its like write it
    problems: PathBuf,
    /// Programs: `task_id` and `solution`, or the nodes of a forest; may be given again
    #[arg(long, value_name = "FILE", required_unless_present = "own")]
    solutions: Vec<PathBuf>,
    /// Pair problems also with the programs that came with them, the right and the wrong ones
    #[arg(long)]
    own: bool,
    /// Who wrote the programs of files that do not say
    #[arg(long, value_name = "NAME")]
    generator: Option<String>,
    /// Judge all programs anew [default: those that the file says nothing of]
    #[arg(long)]
    judge_all: bool,
    /// The folder that rl.parquet, sft.jsonl and pair.manifest.json are written to
    #[arg(long, alias = "to", value_name = "DIR")]
    out: PathBuf,
    /// Of critiques: count tokens with this tokenizer.json, or that of this folder [default: no filter by length]
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// Of critiques: keep those whose prompt has fewer tokens
    #[arg(long, value_name = "N", default_value_t = 2048)]
    max_tokens: usize,
    /// Of critiques: keep those that led to a passing program alone
    #[arg(long)]
    only_successful: bool,
    /// Of critiques: keep as many `Correct` for each `Incorrect` as there are passing programs for each failing one
    #[arg(long)]
    balance: bool,
    /// Of critiques: keep all rows of a problem, not the first alone
    #[arg(long)]
    all_of_a_problem: bool,
    /// Draws what balancing leaves out
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    judging: JudgingArgs,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// What was made.
#[derive(Serialize)]
struct Paired {
    problems: PathBuf,
    solutions: Vec<PathBuf>,
    pairs: usize,
    passing: usize,
    judged: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rl: Option<PathBuf>,
    critiques: usize,
    /// What became of the critiques.
    steps: Vec<Step>,
    lessons: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    sft: Option<PathBuf>,
}

/// A program, its problem, and how it did.
struct Tried<'a> {
    attempt: Attempt,
    problem: &'a Problem,
    success: bool,
    /// The share of tests that it passes, where it was judged.
    share: f64,
}

pub(super) fn run(args: &PairArgs, screen: Screen) -> Outcome<()> {
    let problems = read_problems(&args.problems, SHOWN_ERRORS).asked()?;
    let attempts = attempts(args, &problems)?;
    let (tried, judged) = try_all(args, &problems, attempts, screen)?;
    let name = args.problems.file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let mut rows: Vec<Map<String, Value>> = Vec::new();
    for tried in tried.iter().filter(|tried| tried.attempt.is_first()) {
        let id = format!("{name}/{}", rows.len());
        let Tried { success, share, .. } = *tried;
        rows.push(tried.problem.pair(&tried.attempt, &id, success, share));
    }
    let lessons = lessons(&tried)?;
    if rows.is_empty() && lessons.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "there is no first program and no critique among the solutions, so nothing was written"
        )));
    }
    let tokenizer = match &args.tokenizer {
        Some(path) => Some(load_tokenizer(path).asked()?),
        None => None,
    };
    let count = tokenizer.as_ref().map(|tokenizer| {
        move |text: &str| {
            let tokens = tokenizer.encode(text);
            tokens.map_or(text.len(), |tokens| tokens.len())
        }
    });
    let critiques = lessons.len();
    let options = LessonOptions {
        count_tokens: count.as_ref().map(|count| count as &CountTokens<'_>),
        max_tokens: args.max_tokens,
        only_successful: args.only_successful,
        balance: args.balance,
        one_per_problem: !args.all_of_a_problem,
        seed: Seed(args.seed),
    };
    let (lessons, steps) = filter_lessons(lessons, &options);
    fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {}", args.out.display()))
        .asked()?;
    fit_columns(&mut rows);
    let passing = tried
        .iter()
        .filter(|tried| tried.attempt.is_first() && tried.success);
    let paired = Paired {
        problems: args.problems.clone(),
        solutions: args.solutions.clone(),
        pairs: rows.len(),
        passing: passing.count(),
        judged,
        rl: write_rl(&args.out, &rows)?,
        critiques,
        steps: if critiques == 0 { Vec::new() } else { steps },
        lessons: lessons.len(),
        sft: write_sft(&args.out, &lessons)?,
    };
    let path = args.out.join("pair.manifest.json");
    let manifest = serde_json::to_string_pretty(&paired).failed()? + "\n";
    fs::write(&path, manifest)
        .with_context(|| format!("cannot write {}", path.display()))
        .failed()?;
    if args.json {
        print_json(&paired)
    } else {
        print_text(&text(&paired))
    }
}

/// The programs of all files, and the problems' own.
fn attempts(args: &PairArgs, problems: &[Problem]) -> Outcome<Vec<Attempt>> {
    let mut attempts = Vec::new();
    for file in &args.solutions {
        let mut found = read_attempts(file, SHOWN_ERRORS).asked()?;
        for attempt in &mut found {
            if attempt.generator.is_none() {
                attempt.generator.clone_from(&args.generator);
            }
        }
        attempts.extend(found);
    }
    if args.own {
        for (index, problem) in problems.iter().enumerate() {
            let place = Place::Row(index as u64 + 1);
            attempts.extend(problem.own_attempts(&args.problems, place));
        }
    }
    Ok(attempts)
}

/// Every program with its problem, judged where nobody says how it does; and how many were.
fn try_all<'a>(
    args: &PairArgs,
    problems: &'a [Problem],
    attempts: Vec<Attempt>,
    screen: Screen,
) -> Outcome<(Vec<Tried<'a>>, usize)> {
    let by_name: HashMap<&str, &Problem> = problems
        .iter()
        .map(|problem| (problem.task_id.as_str(), problem))
        .collect();
    let mut found = Vec::new();
    for attempt in attempts {
        let at = || format!("{}, {}", attempt.file.display(), attempt.place);
        let Some(problem) = by_name.get(attempt.task_id.as_str()) else {
            return Err(Failure::Asked(anyhow!(
                "{}, field `task_id`: {} has no problem `{}`",
                at(),
                args.problems.display(),
                attempt.task_id
            )));
        };
        if attempt.program().trim().is_empty() && attempt.is_first() {
            return Err(Failure::Asked(anyhow!(
                "{}, field `solution`: the program is empty",
                at()
            )));
        }
        found.push((attempt, *problem));
    }
    let unknown = |attempt: &Attempt| args.judge_all || attempt.success.is_none();
    let programs: Vec<(&Problem, &str)> = found
        .iter()
        .filter(|(attempt, _)| unknown(attempt))
        .map(|(attempt, problem)| (*problem, attempt.program()))
        .collect();
    let judged = programs.len();
    let mut verdicts = args
        .judging
        .verdicts(&programs, "programs", screen)?
        .into_iter();
    let tried = found.into_iter().map(|(attempt, problem)| {
        let verdict = unknown(&attempt).then(|| verdicts.next()).flatten();
        let (success, share) = match (&verdict, attempt.success) {
            (Some(verdict), _) => {
                let share = verdict.n_passed as f64 / verdict.n_tests.max(1) as f64;
                (verdict.passed, share)
            }
            (None, success) => {
                let success = success.unwrap_or_default();
                (success, f64::from(success))
            }
        };
        Tried {
            attempt,
            problem,
            success,
            share,
        }
    });
    Ok((tried.collect(), judged))
}

/// The critiques, each with the program that it is of.
fn lessons(tried: &[Tried<'_>]) -> Outcome<Vec<LessonRow>> {
    let by_hash: HashMap<&str, &Tried<'_>> = tried
        .iter()
        .filter_map(|tried| Some((tried.attempt.hash.as_deref()?, tried)))
        .collect();
    let mut rows = Vec::new();
    for critic in tried
        .iter()
        .filter(|tried| tried.attempt.critique.is_some())
    {
        let hash = critic.attempt.prev_hash.as_deref().unwrap_or_default();
        let Some(of) = by_hash.get(hash) else {
            return Err(Failure::Asked(anyhow!(
                "{}, {}, field `prev_hash`: no program has the hash `{hash}` that the critique is of",
                critic.attempt.file.display(),
                critic.attempt.place
            )));
        };
        if of.problem.task_id != critic.problem.task_id {
            return Err(Failure::Asked(anyhow!(
                "{}, {}, field `prev_hash`: `{hash}` is a program for problem `{}`, and the critique is about `{}`",
                critic.attempt.file.display(),
                critic.attempt.place,
                of.problem.task_id,
                critic.problem.task_id
            )));
        }
        let led_to = (&critic.attempt, of.success, critic.success);
        rows.push(critic.problem.lesson(&of.attempt, led_to));
    }
    Ok(rows)
}

fn write_rl(folder: &Path, rows: &[Map<String, Value>]) -> Outcome<Option<PathBuf>> {
    if rows.is_empty() {
        return Ok(None);
    }
    let path = folder.join("rl.parquet");
    write_parquet(&path, rows, &[]).failed()?;
    Ok(Some(path))
}

fn write_sft(folder: &Path, rows: &[LessonRow]) -> Outcome<Option<PathBuf>> {
    if rows.is_empty() {
        return Ok(None);
    }
    let path = folder.join("sft.jsonl");
    let mut file = JsonlWriter::create(&path).failed()?;
    for row in rows {
        file.write(row).failed()?;
    }
    file.finish().failed()?;
    Ok(Some(path))
}

fn text(paired: &Paired) -> String {
    let line = |what: &str, number: usize| format!("  {what:<46} {number:>9}");
    let mut lines = Vec::new();
    if let Some(file) = &paired.rl {
        let pairs = count_of(paired.pairs, "pair");
        lines.push(format!("{}: {pairs}", file.display()));
        lines.push(line("programs that pass", paired.passing));
        lines.push(line("programs judged", paired.judged));
    }
    if paired.critiques > 0 {
        if let Some(file) = &paired.sft {
            let rows = count_of(paired.lessons, "critique");
            lines.push(format!("{}: {rows}", file.display()));
        }
        lines.push(line("critiques in", paired.critiques));
        for step in &paired.steps {
            let name = format!("− {}", step.step);
            lines.push(match &step.not_applied {
                None => line(&name, step.dropped as usize),
                Some(why) => format!("  {name:<46} not applied: {why}"),
            });
        }
        lines.push(line("critiques out", paired.lessons));
    }
    lines.join("\n")
}
