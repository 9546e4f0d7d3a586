//! Rows of the critique study on their way to files, whoever made them: pairs and critiques, counted.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use critique::{
    data::{
        LessonOptions, LessonRow, Problem, Step, StrayCritique, Tried, filter_lessons, lesson_rows,
        pair_rows,
    },
    format::Gate,
};
use dataset::{JsonlWriter, RowErrors, Rows, write_parquet};
use record::Seed;
use serde::Serialize;
use serde_json::{Map, Value};

use super::SHOWN_ERRORS;
use crate::{
    failure::{Classify, Failure, Outcome},
    screen::count_of,
};

/// The rows that reinforcement reads, and those that supervision reads.
const PAIRS: &str = "rl.parquet";
const LESSONS: &str = "sft.jsonl";

/// What was written.
#[derive(Debug, Serialize)]
pub(crate) struct MadeRows {
    pub(crate) pairs: usize,
    /// Of the pairs, those whose program passes.
    pub(crate) passing: usize,
    /// First programs whose problem is kept for supervision.
    #[serde(skip_serializing_if = "is_none")]
    pub(crate) pairs_left_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rl: Option<PathBuf>,
    pub(crate) critiques: usize,
    /// What became of the critiques.
    pub(crate) steps: Vec<Step>,
    pub(crate) lessons: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sft: Option<PathBuf>,
}

/// Which problems make pairs and which make lessons; all make both by default.
#[derive(Debug, Default)]
pub(crate) struct Division {
    /// Problems by name, each with its data source where the file says it, that make no pairs.
    supervised: HashMap<String, Vec<Option<String>>>,
    /// This share of the problems makes lessons alone, and the others make pairs alone.
    share: Option<(f64, Seed)>,
}

impl Division {
    /// `share` of the problems for supervision, drawn from `seed`, and the others for reinforcement.
    pub(crate) fn by_share(share: Option<f64>, seed: u64) -> Self {
        Self {
            share: share.map(|share| (share, Seed(seed).stream("division", 0))),
            ..Self::default()
        }
    }

    /// Takes every problem of a file of supervised rows out of the pairs.
    pub(crate) fn leave_out(&mut self, file: &Path) -> Outcome<()> {
        let mut errors = RowErrors::new(SHOWN_ERRORS);
        for row in Rows::open(file).asked()? {
            let row = row.asked()?;
            let columns = row.object().asked()?;
            let name = match columns.get("task_id") {
                Some(Value::String(name)) => name.clone(),
                Some(Value::Number(name)) => name.to_string(),
                _ => {
                    errors
                        .push(row.error("task_id", "missing; it says which problem the row is of"));
                    continue;
                }
            };
            let source = columns.get("data_source").and_then(Value::as_str);
            let sources = self.supervised.entry(name).or_default();
            sources.push(source.map(str::to_owned));
        }
        errors.or(()).asked()
    }

    fn is_pairs(&self, problem: &Problem) -> bool {
        let source = &problem.data_source;
        let named = self.supervised.get(&problem.task_id);
        let supervised = named.is_some_and(|sources| {
            let same =
                |other: &Option<String>| other.is_none() || source.is_none() || other == source;
            sources.iter().any(same)
        });
        !supervised
            && !self
                .drawn(source.as_deref(), &problem.task_id)
                .unwrap_or(false)
    }

    fn is_lesson(&self, row: &LessonRow) -> bool {
        self.drawn(row.data_source.as_deref(), &row.task_id)
            .unwrap_or(true)
    }

    /// Whether a problem is one of the share for supervision, where there is a share. It depends on the problem's
    /// name alone, so that the same problem is drawn alike from every file.
    fn drawn(&self, source: Option<&str>, task_id: &str) -> Option<bool> {
        let (share, seed) = self.share?;
        let name = format!("{}/{task_id}", source.unwrap_or_default());
        let drawn = seed.stream(&name, 0).0 as f64 / u64::MAX as f64;
        Some(drawn < share)
    }
}

/// A share that may be drawn by.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a share from 0 to 1".to_owned()),
    }
}

/// Writes what was tried into `folder`. Judgments of critiques are read by `gate`.
pub(crate) fn write_rows(
    folder: &Path,
    tried: &[Tried<'_>],
    (gate, options): (Gate, &LessonOptions<'_>),
    division: &Division,
) -> Outcome<MadeRows> {
    let first = tried.iter().filter(|tried| tried.attempt.is_first());
    let n_first = first.clone().count();
    let paired = first.filter(|tried| division.is_pairs(tried.problem));
    let passing = paired.clone().filter(|tried| tried.success).count();
    let pairs = pair_rows(paired);
    let mut lessons =
        lesson_rows(tried, gate).map_err(|stray: StrayCritique| Failure::Asked(anyhow!(stray)))?;
    let critiques = lessons.len();
    lessons.retain(|row| division.is_lesson(row));
    let kept = critiques - lessons.len();
    let (lessons, steps) = filter_lessons(lessons, options);
    let mut all = vec![Step {
        step: "problem kept for reinforcement",
        dropped: kept as u64,
        not_applied: division.share.is_none().then(|| "not asked for".to_owned()),
    }];
    all.extend(steps);
    Ok(MadeRows {
        pairs: pairs.len(),
        passing,
        pairs_left_out: n_first - pairs.len(),
        rl: write_pairs(folder, &pairs)?,
        critiques,
        steps: if critiques == 0 { Vec::new() } else { all },
        lessons: lessons.len(),
        sft: write_lessons(folder, &lessons)?,
    })
}

fn write_pairs(folder: &Path, rows: &[Map<String, Value>]) -> Outcome<Option<PathBuf>> {
    let path = folder.join(PAIRS);
    if rows.is_empty() {
        remove_older(&path)?;
        return Ok(None);
    }
    write_parquet(&path, rows, &[]).failed()?;
    Ok(Some(path))
}

/// What an earlier command wrote would be taken for rows of this one.
fn remove_older(path: &Path) -> Outcome<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let what = format!(
                "cannot remove {}, which is of an earlier command",
                path.display()
            );
            Err(error).context(what).failed()
        }
        _ => Ok(()),
    }
}

fn write_lessons(folder: &Path, rows: &[LessonRow]) -> Outcome<Option<PathBuf>> {
    let path = folder.join(LESSONS);
    if rows.is_empty() {
        remove_older(&path)?;
        return Ok(None);
    }
    let mut file = JsonlWriter::create(&path).failed()?;
    for row in rows {
        file.write(row).failed()?;
    }
    file.finish().failed()?;
    Ok(Some(path))
}

impl MadeRows {
    /// The same with the names that the files have inside of `folder`.
    pub(crate) fn named_in(mut self, folder: &Path) -> Self {
        for path in [&mut self.rl, &mut self.sft].into_iter().flatten() {
            if let Ok(inside) = path.strip_prefix(folder) {
                *path = inside.to_owned();
            }
        }
        self
    }

    /// For people: the files, then `more` of the pairs, then what became of the critiques.
    pub(crate) fn lines(&self, more: &[(&str, usize)]) -> Vec<String> {
        let line = |what: &str, number: usize| format!("  {what:<46} {number:>9}");
        let mut lines = Vec::new();
        if let Some(file) = &self.rl {
            let pairs = count_of(self.pairs, "pair");
            lines.push(format!("{}: {pairs}", file.display()));
            lines.push(line("programs that pass", self.passing));
            if self.pairs_left_out > 0 {
                let what = "programs of problems kept for supervision";
                lines.push(line(what, self.pairs_left_out));
            }
        }
        lines.extend(more.iter().map(|(what, number)| line(what, *number)));
        if self.critiques > 0 {
            if let Some(file) = &self.sft {
                let rows = count_of(self.lessons, "critique");
                lines.push(format!("{}: {rows}", file.display()));
            }
            lines.push(line("critiques in", self.critiques));
            for step in &self.steps {
                let name = format!("− {}", step.step);
                lines.push(match &step.not_applied {
                    None => line(&name, step.dropped as usize),
                    Some(why) => format!("  {name:<46} not applied: {why}"),
                });
            }
            lines.push(line("critiques out", self.lessons));
        }
        lines
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_none(number: &usize) -> bool {
    *number == 0
}

/// The names of problem files, which the ids of their pairs begin with; two of one name are refused.
pub(crate) fn file_names(files: &[PathBuf]) -> Outcome<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if names.contains(&name) {
            return Err(Failure::Asked(anyhow!(
                "two of the files are called {name}, and ids are FILE/NUMBER; rename one of them"
            )));
        }
        names.push(name);
    }
    Ok(names)
}
