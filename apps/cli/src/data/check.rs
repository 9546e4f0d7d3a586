//! `etude data check`: what is in files of tasks and of problems, and everything that is wrong with them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use clap::Args;
use critique::data::{Problem, task_of_row};
use dataset::{DatasetError, Place, Row, RowError, RowErrors, Rows};
use recall::{TurnRole, adapters::check_task};
use repair::adapters::{Adapted, Format, Options, adapt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    SHOWN_ERRORS,
    gold::{self, FoundTask, Solvable},
    judging::JudgingArgs,
    say_errors,
    solved::{Found, Solved, solve},
};
use crate::{
    failure::{Classify, Failure, Outcome},
    report::{print_json, print_text},
    screen::{Screen, count_of},
};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Files of tasks or of problems: .jsonl, .json or .parquet, or folders of Harbor's tasks; ids must be unique in
    /// all of them together
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Keep the good problems of the file here: those that one of their own solutions solves
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Problems that bring no solution are not good
    #[arg(long, requires = "to")]
    require_solution: bool,
    /// Read only, and run nothing
    #[arg(long, conflicts_with = "to")]
    no_run: bool,
    /// The interpreter of the tests of repair tasks [default: the first python3 of PATH that can run them]
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// The container engine of Harbor's tasks, unix:///PATH or tcp://HOST:PORT [default: one in the usual places]
    #[arg(long, value_name = "ADDRESS")]
    engine: Option<String>,
    #[command(flatten)]
    judging: JudgingArgs,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// What a file holds.
#[derive(Serialize)]
struct Checked {
    file: PathBuf,
    study: Option<&'static str>,
    /// Whose rows they are that are no tasks yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    tasks: u64,
    documents: usize,
    /// By what their numbers are of: turns, questions by type, …
    counts: BTreeMap<String, u64>,
    bad_rows: u64,
    /// The first of them.
    errors: Vec<String>,
    /// What running the problems' own programs told.
    #[serde(skip_serializing_if = "Option::is_none")]
    solutions: Option<Solved>,
    /// What running the tests of repair tasks told.
    #[serde(skip_serializing_if = "Option::is_none")]
    gold: Option<Solvable>,
    #[serde(skip)]
    repairs: Vec<FoundTask>,
    #[serde(skip)]
    names: BTreeSet<String>,
    #[serde(skip)]
    problems: Vec<Found>,
}

/// Fails where a row is bad.
pub(super) fn run(args: &CheckArgs, screen: Screen) -> Outcome<()> {
    let CheckArgs { files, to, .. } = args;
    if to.is_some() && files.len() > 1 {
        return Err(Failure::Asked(anyhow!(
            "--to keeps the good problems of one file, and {} files are given; check each for itself",
            files.len()
        )));
    }
    let mut ids = HashMap::new();
    let mut checked = Vec::new();
    let mut bad = 0;
    for file in files {
        let mut errors = RowErrors::new(SHOWN_ERRORS);
        let mut found = check(file, &mut ids, &mut errors).asked()?;
        say_errors(&errors, screen);
        found.errors = errors.kept().iter().map(ToString::to_string).collect();
        bad += found.bad_rows;
        checked.push(found);
    }
    for (index, first) in checked.iter().enumerate() {
        for second in &checked[index + 1..] {
            let shared = first.names.intersection(&second.names).count();
            if shared > 0 {
                screen.say(format!(
                    "note: {} in {} and in {} too; what is evaluated on must not be trained on",
                    count_of(shared, "document"),
                    first.file.display(),
                    second.file.display()
                ));
            }
        }
    }
    if bad == 0 {
        judge_problems(args, &mut checked, screen)?;
        if !args.no_run {
            solve_repairs(args, &mut checked, screen)?;
        }
    }
    if args.json {
        print_json(&json!({ "files": checked }))?;
    } else {
        print_text(&text(&checked))?;
    }
    if bad > 0 {
        let rows = if bad == 1 { "row is" } else { "rows are" };
        return Err(Failure::Failed(anyhow!("{bad} {rows} bad")));
    }
    let gold = checked.iter().filter_map(|file| file.gold.as_ref());
    let unsolvable: u64 = gold.map(|solvable| solvable.unsolved).sum();
    if unsolvable > 0 {
        return Err(Failure::Failed(anyhow!(
            "{} not solved by the gold patch or solution",
            match unsolvable {
                1 => "1 task is".to_owned(),
                n => format!("{n} tasks are"),
            }
        )));
    }
    let solutions = checked.iter().filter_map(|file| file.solutions.as_ref());
    let unsolved: u64 = solutions.map(|solved| solved.unsolved).sum();
    if unsolved > 0 && to.is_none() {
        let problems = if unsolved == 1 {
            "problem is"
        } else {
            "problems are"
        };
        return Err(Failure::Failed(anyhow!(
            "{unsolved} {problems} not solved by their own solutions; keep the others with --to FILE"
        )));
    }
    Ok(())
}

/// Runs the tests of the repair tasks of every file without and with their gold patches.
fn solve_repairs(args: &CheckArgs, checked: &mut [Checked], screen: Screen) -> Outcome<()> {
    for file in checked.iter_mut().filter(|file| !file.repairs.is_empty()) {
        let places = (args.python.as_deref(), args.engine.as_deref());
        let solvable = gold::solve(&file.repairs, places, screen)?;
        let shown = solvable.failures.iter().take(SHOWN_ERRORS);
        shown.for_each(|failure| screen.say(failure));
        file.gold = Some(solvable);
    }
    Ok(())
}

/// Judges the problems of every file by their own programs.
fn judge_problems(args: &CheckArgs, checked: &mut [Checked], screen: Screen) -> Outcome<()> {
    for file in checked {
        if file.problems.is_empty() {
            if let Some(to) = &args.to {
                return Err(Failure::Asked(anyhow!(
                    "{} holds tasks and no problems, so nothing can be kept in {}",
                    file.file.display(),
                    to.display()
                )));
            }
            continue;
        }
        if args.no_run {
            continue;
        }
        let kept = (args.to.as_deref(), args.require_solution);
        let solved = solve(&file.problems, &args.judging, kept, screen)?;
        let shown = solved.failures.iter().take(SHOWN_ERRORS);
        shown.for_each(|failure| screen.say(failure));
        let more = solved.failures.len().saturating_sub(SHOWN_ERRORS);
        if more > 0 {
            screen.say(format!(
                "and {more} more that their own solutions do not solve"
            ));
        }
        file.solutions = Some(solved);
    }
    Ok(())
}

/// Where each id was first.
type Ids = HashMap<String, (PathBuf, Place)>;

fn check(file: &Path, ids: &mut Ids, errors: &mut RowErrors) -> Result<Checked, DatasetError> {
    let mut checked = Checked {
        file: file.to_owned(),
        study: None,
        format: None,
        tasks: 0,
        documents: 0,
        counts: BTreeMap::new(),
        bad_rows: 0,
        errors: Vec::new(),
        solutions: None,
        gold: None,
        repairs: Vec::new(),
        names: BTreeSet::new(),
        problems: Vec::new(),
    };
    if file.is_dir() {
        checked.take_harbor(file, ids, errors)?;
        return Ok(checked);
    }
    for row in Rows::open(file)? {
        let row = row?;
        checked.tasks += 1;
        let found = checked.take(&row, ids);
        checked.bad_rows += u64::from(!found.is_empty());
        found.into_iter().for_each(|error| errors.push(error));
    }
    if checked.tasks == 0 {
        return Err(DatasetError::Empty {
            path: file.to_owned(),
        });
    }
    checked.documents = checked.names.len();
    Ok(checked)
}

impl Checked {
    /// Everything that is wrong with a row.
    fn take(&mut self, row: &Row, ids: &mut Ids) -> Vec<RowError> {
        let mut errors = Vec::new();
        match self.typed(row, &mut errors) {
            Err(error) => errors.push(error),
            Ok(id) => match ids.get(&id) {
                Some((file, place)) => errors.push(row.error(
                    "id",
                    format!("`{id}` is the id of {}, {place} too", file.display()),
                )),
                None => {
                    ids.insert(id, (row.path().to_owned(), row.place()));
                }
            },
        }
        errors
    }

    /// The id of a row that is a task of a study; what is wrong with the task goes to `errors`.
    fn typed(&mut self, row: &Row, errors: &mut Vec<RowError>) -> Result<String, RowError> {
        let object = row.object()?;
        match object.get("public") {
            Some(Value::Object(public)) if public.contains_key("turns") => {
                self.is_of("recall", row)?;
                self.take_recall(row, errors)
            }
            Some(Value::Object(public)) if public.contains_key("program") => {
                self.is_of("critique", row)?;
                self.take_critique(row)
            }
            Some(Value::Object(public)) if public.contains_key("issue") => {
                self.is_of("repair", row)?;
                self.take_repair(row)
            }
            None if is_pair(&object) => {
                self.is_of("critique", row)?;
                self.count_critique(task_of_row(row)?)
            }
            None if is_problem(&object) => {
                self.is_of("critique", row)?;
                self.take_problem(row)
            }
            None if let Some(format) = Format::of_columns(&object) => {
                self.format = Some(format.name());
                Err(row.error(
                    "",
                    format!(
                        "no task but a row of {format}; `etude data prepare repair --format {format} {} --out DIR` \
                         makes tasks of the file",
                        row.path().display()
                    ),
                ))
            }
            _ => Err(row.error(
                "public",
                "no task of a study: none of `public.turns` (recall), `public.program` (critique) and `public.issue` \
                 (repair) is there, nor a `problem` or `content` with tests (critique)",
            )),
        }
    }

    /// Takes the tasks of a folder of Harbor's.
    fn take_harbor(
        &mut self,
        folder: &Path,
        ids: &mut Ids,
        errors: &mut RowErrors,
    ) -> Result<(), DatasetError> {
        let adapted = repair_tasks(folder)?;
        self.study = Some("repair");
        self.bad_rows = adapted.rejected.count();
        self.tasks = adapted.tasks.len() as u64 + self.bad_rows;
        for error in adapted.rejected.kept() {
            errors.push(error.clone());
        }
        for (number, task) in (1..).zip(adapted.tasks) {
            let place = Place::Row(number);
            if let Some((file, _)) = ids.insert(task.id.0.clone(), (folder.to_owned(), place)) {
                self.bad_rows += 1;
                errors.push(RowError {
                    path: folder.to_owned(),
                    place,
                    field: "task.name".to_owned(),
                    message: format!("`{}` is a task of {} too", task.id, file.display()),
                });
                continue;
            }
            self.names.insert(task.public.repo.clone());
            self.count("tasks of Harbor");
            self.repairs.push(FoundTask::of_harbor(folder, place, task));
        }
        Ok(())
    }

    fn is_of(&mut self, study: &'static str, row: &Row) -> Result<(), RowError> {
        let known = *self.study.get_or_insert(study);
        if known == study {
            Ok(())
        } else {
            Err(row.error("", format!("a task of {study} among tasks of {known}")))
        }
    }

    fn take_recall(&mut self, row: &Row, errors: &mut Vec<RowError>) -> Result<String, RowError> {
        let task: recall::Task = row.parse()?;
        let found = check_task(row, &task);
        if !found.is_empty() {
            errors.extend(found);
            return Ok(task.id.0);
        }
        self.names.insert(format!(
            "{}/{}",
            task.facts.data_source, task.facts.document
        ));
        for turn in &task.public.turns {
            match turn.turn_role {
                TurnRole::History => self.count("history turns"),
                TurnRole::Target => self.count("target turns"),
            }
        }
        for question in task.facts.questions.values() {
            self.count(&format!("questions of type {}", question.question_type));
        }
        Ok(task.id.0)
    }

    fn take_critique(&mut self, row: &Row) -> Result<String, RowError> {
        self.count_critique(row.parse()?)
    }

    fn count_critique(&mut self, task: critique::Task) -> Result<String, RowError> {
        self.names.insert(task.facts.function.clone());
        self.count(if task.facts.initially_right {
            "right programs"
        } else {
            "wrong programs"
        });
        self.count(&format!("tasks of family {}", task.facts.family));
        Ok(task.id.0)
    }

    fn take_repair(&mut self, row: &Row) -> Result<String, RowError> {
        let found = FoundTask::read(row)?;
        let task = &found.task;
        self.names.insert(task.public.repo.clone());
        let family = task.facts.family.as_deref();
        let (id, family) = (task.id.0.clone(), family.unwrap_or("unknown").to_owned());
        for (what, tests) in [
            ("tests that must begin to pass", &task.checks.fail_to_pass),
            ("tests that must go on passing", &task.checks.pass_to_pass),
        ] {
            *self.counts.entry(what.to_owned()).or_default() += tests.len() as u64;
        }
        self.count(&format!("bugs of kind {family}"));
        self.repairs.push(found);
        Ok(id)
    }

    fn take_problem(&mut self, row: &Row) -> Result<String, RowError> {
        let problem = Problem::of_row(row)?;
        let (id, kind) = (problem.task_id.clone(), problem.prompter.name());
        self.count(&format!("problems of kind {kind}"));
        *self.counts.entry("tests".to_owned()).or_default() += problem.test_count() as u64;
        let source = problem.data_source.as_deref().unwrap_or_default();
        self.names.insert(format!("{source}/{id}"));
        self.problems.push(Found {
            file: row.path().to_owned(),
            place: row.place(),
            problem,
        });
        Ok(id)
    }

    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }
}

/// The tasks of Harbor's in a folder: itself, or those in it.
fn repair_tasks(folder: &Path) -> Result<Adapted, DatasetError> {
    let options = Options {
        split: "test".to_owned(),
        data_source: None,
        image_namespace: None,
        rejections: SHOWN_ERRORS,
    };
    adapt(Format::Harbor, folder, &options)
}

/// Whether a row is a problem with a program, as reinforcement reads it.
fn is_pair(row: &Map<String, Value>) -> bool {
    let programs = ["sanitized_solution", "solution"];
    is_problem(row) && programs.iter().any(|name| row.contains_key(*name))
}

fn is_problem(row: &Map<String, Value>) -> bool {
    ["problem", "content"]
        .iter()
        .any(|name| row.contains_key(*name))
}

fn text(checked: &[Checked]) -> String {
    let mut lines = Vec::new();
    for file in checked {
        let what = match (file.problems.is_empty(), file.study, file.format) {
            (false, ..) => "problem",
            (_, None, Some(_)) => "row",
            _ => "task",
        };
        // Several tasks of critique may be about one problem.
        let about = match file.study {
            _ if what == "problem" => String::new(),
            Some("critique") => format!(", {}", count_of(file.documents, "problem")),
            None => String::new(),
            Some("repair") => format!(", {}", count_of(file.documents, "package")),
            _ => format!(", {}", count_of(file.documents, "document")),
        };
        lines.push(format!(
            "{}: {} of {}{about}, {}",
            file.file.display(),
            count_of(file.tasks as usize, what),
            file.study.or(file.format).unwrap_or("no study"),
            count_of(file.bad_rows as usize, "bad row")
        ));
        for (what, number) in &file.counts {
            lines.push(format!("  {what:<46} {number:>9}"));
        }
        if let Some(gold) = &file.gold {
            for (what, number) in [
                ("tasks that their gold solves", gold.solved),
                ("tasks that it does not", gold.unsolved),
                ("tasks that were only read", gold.not_run),
            ] {
                lines.push(format!("  {what:<46} {number:>9}"));
            }
        }
        let Some(solved) = &file.solutions else {
            continue;
        };
        for (what, number) in [
            ("problems solved by a program of their own", solved.solved),
            ("problems not solved by their own programs", solved.unsolved),
            ("problems without a program", solved.without_solution),
            ("solutions that do not pass", solved.failing_solutions),
            ("incorrect solutions that pass", solved.passing_incorrect),
        ] {
            lines.push(format!("  {what:<46} {number:>9}"));
        }
        if let Some(kept) = &solved.kept {
            let rows = count_of(kept.rows as usize, "problem");
            lines.push(format!("{}: {rows} kept", kept.file.display()));
        }
    }
    lines.join("\n")
}
