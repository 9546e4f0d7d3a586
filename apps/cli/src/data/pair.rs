//! `etude data pair`: problems and programs for them to the rows that the critique study is trained on.

use std::{collections::HashMap, fs, path::PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use critique::{
    data::{Attempt, CountTokens, LessonOptions, Problem, Tried, read_attempts, read_problems},
    format::Gate,
};
use dataset::Place;
use record::Seed;
use serde::Serialize;

use super::{
    SHOWN_ERRORS,
    judging::JudgingArgs,
    load_tokenizer,
    made::{self, Division, MadeRows, file_names, write_rows},
};
use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::{Screen, count_of},
};

#[derive(Debug, Args)]
pub(super) struct PairArgs {
    /// Problem files, as `etude data prepare taco` and its like write them
    #[arg(required = true)]
    problems: Vec<PathBuf>,
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
    /// Make no pairs of the problems of this file of critiques, an sft.jsonl that is supervised on; may be given again
    #[arg(long, value_name = "FILE")]
    leave_out: Vec<PathBuf>,
    /// Keep this share of the problems for supervision, drawn by --seed: critiques of them alone, and pairs of the
    /// others alone [default: both of all]
    #[arg(long, value_name = "SHARE", value_parser = made::share)]
    sft_share: Option<f64>,
    /// The folder that rl.parquet, sft.jsonl and pair.manifest.json are written to
    #[arg(long, alias = "to", value_name = "DIR")]
    out: PathBuf,
    /// Of critiques: count tokens with this tokenizer.json, or that of this folder [default: no filter by length]
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// Of critiques: keep those whose prompt has fewer tokens
    #[arg(long, value_name = "N", default_value_t = 2048, requires = "tokenizer")]
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
    /// Draws what balancing leaves out, and problems for --sft-share
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
    problems: Vec<PathBuf>,
    solutions: Vec<PathBuf>,
    judged: usize,
    #[serde(flatten)]
    made: MadeRows,
}

/// A problem and the name of its file.
#[derive(Clone, Copy)]
struct Known<'a> {
    problem: &'a Problem,
    file: &'a str,
    path: &'a PathBuf,
}

pub(super) fn run(args: &PairArgs, screen: Screen) -> Outcome<()> {
    let names = file_names(&args.problems)?;
    let mut files = Vec::new();
    for path in &args.problems {
        files.push(read_problems(path, SHOWN_ERRORS).asked()?);
    }
    let places = args.problems.iter().zip(&names).zip(&files);
    let known: Vec<Known<'_>> = places
        .flat_map(|((path, file), problems)| {
            let of_file = problems.iter();
            of_file.map(move |problem| Known {
                problem,
                file,
                path,
            })
        })
        .collect();
    let mut division = Division::by_share(args.sft_share, args.seed);
    for file in &args.leave_out {
        division.leave_out(file)?;
    }
    let attempts = attempts(args)?;
    let tokenizer = match &args.tokenizer {
        Some(path) => Some(load_tokenizer(path).asked()?),
        None => None,
    };
    filters_something(args, &attempts)?;
    // Before anything is judged, which may take hours.
    let found = joined(args, &known, attempts)?;
    fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the folder {}", args.out.display()))
        .asked()?;
    let (tried, judged) = try_all(args, found, screen)?;
    let count = tokenizer.as_ref().map(|tokenizer| {
        move |text: &str| {
            let tokens = tokenizer.encode(text);
            tokens.map_or(text.len(), |tokens| tokens.len())
        }
    });
    let options = LessonOptions {
        count_tokens: count.as_ref().map(|count| count as &CountTokens<'_>),
        max_tokens: args.max_tokens,
        only_successful: args.only_successful,
        only_judged: false,
        balance: args.balance,
        one_per_problem: !args.all_of_a_problem,
        seed: Seed(args.seed),
    };
    let paired = Paired {
        problems: args.problems.clone(),
        solutions: args.solutions.clone(),
        judged,
        made: write_rows(&args.out, &tried, (Gate::Substring, &options), &division)?,
    };
    let path = args.out.join("pair.manifest.json");
    let manifest = serde_json::to_string_pretty(&paired).failed()? + "\n";
    fs::write(&path, manifest)
        .with_context(|| format!("cannot write {}", path.display()))
        .failed()?;
    if args.json {
        print_json(&paired)
    } else {
        let more = [("programs judged", judged)];
        print_text(&paired.made.lines(&more).join("\n"))
    }?;
    let chosen = args.balance || args.only_successful;
    if chosen && paired.made.lessons == 0 {
        return Err(Failure::Failed(anyhow!(
            "of {} none is left, so there is no sft.jsonl; the steps above say what dropped them",
            count_of(paired.made.critiques, "critique")
        )));
    }
    Ok(())
}

/// Filters of critiques are a mistake where there are no critiques.
fn filters_something(args: &PairArgs, attempts: &[Attempt]) -> Outcome<()> {
    if attempts.iter().any(|attempt| attempt.critique.is_some()) {
        return Ok(());
    }
    let options = [
        ("--balance", args.balance),
        ("--only-successful", args.only_successful),
        ("--tokenizer", args.tokenizer.is_some()),
        ("--all-of-a-problem", args.all_of_a_problem),
    ];
    match options.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::Asked(anyhow!(
            "{option} chooses critiques, and there is none in the files of --solutions; leave it out, or name a file \
             with a column `critique`"
        ))),
    }
}

/// The programs of all files.
fn attempts(args: &PairArgs) -> Outcome<Vec<Attempt>> {
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
    Ok(attempts)
}

/// Every attempt with its problem.
fn joined<'a>(
    args: &PairArgs,
    known: &[Known<'a>],
    attempts: Vec<Attempt>,
) -> Outcome<Vec<(Attempt, Known<'a>)>> {
    let mut by_name: HashMap<String, Vec<Known<'a>>> = HashMap::new();
    for one in known {
        let named = by_name.entry(one.problem.task_id.clone()).or_default();
        named.push(*one);
    }
    // Nodes of forests that evaluations write name the dataset too.
    for one in known {
        let full = one.problem.full_name();
        let others = by_name.entry(full).or_default();
        if others
            .iter()
            .all(|other| !std::ptr::eq(other.problem, one.problem))
        {
            others.push(*one);
        }
    }
    let mut found = Vec::new();
    for attempt in attempts {
        let at = || format!("{}, {}", attempt.file.display(), attempt.place);
        let named = by_name.get(attempt.task_id.as_str());
        let mut fitting = named.into_iter().flatten().filter(|known| {
            let (ours, theirs) = (&known.problem.data_source, &attempt.data_source);
            theirs.is_none() || ours == theirs
        });
        let asked = match (fitting.next(), fitting.next()) {
            (Some(one), None) => Ok(*one),
            (None, _) => Err(format!(
                "no problem file has a problem `{}`",
                attempt.task_id
            )),
            (Some(one), Some(other)) => Err(format!(
                "`{}` is a problem of {} and of {}; say which by a column `data_source`, or pair one file at a time",
                attempt.task_id, one.file, other.file
            )),
        };
        let known =
            asked.map_err(|why| Failure::Asked(anyhow!("{}, field `task_id`: {why}", at())))?;
        found.push((attempt, known));
    }
    if args.own {
        let mut index = 0;
        let mut path = None;
        for one in known {
            index = if path == Some(one.path) { index + 1 } else { 1 };
            path = Some(one.path);
            let own = one.problem.own_attempts(one.path, Place::Row(index));
            found.extend(own.into_iter().map(|own| (own, *one)));
        }
    }
    let empty = found
        .iter()
        .find(|(attempt, _)| attempt.is_first() && attempt.program().trim().is_empty());
    if let Some((attempt, _)) = empty {
        return Err(Failure::Asked(anyhow!(
            "{}, {}, field `solution`: the program is empty",
            attempt.file.display(),
            attempt.place
        )));
    }
    Ok(found)
}

/// Every program with its problem, judged where nobody says how it does; and how many were.
fn try_all<'a>(
    args: &PairArgs,
    found: Vec<(Attempt, Known<'a>)>,
    screen: Screen,
) -> Outcome<(Vec<Tried<'a>>, usize)> {
    let unknown = |attempt: &Attempt| args.judge_all || attempt.success.is_none();
    let programs: Vec<(&Problem, &str)> = found
        .iter()
        .filter(|(attempt, _)| unknown(attempt))
        .map(|(attempt, known)| (known.problem, attempt.program()))
        .collect();
    let judged = programs.len();
    let verdicts = args.judging.verdicts(&programs, "programs", screen)?;
    let mut verdicts = verdicts.into_iter();
    let tried = found.into_iter().map(|(attempt, known)| {
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
            problem: known.problem,
            file: known.file,
            success,
            share,
        }
    });
    Ok((tried.collect(), judged))
}
