//! Problems judged by their own programs: one that its own solution does not solve has wrong tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use critique::data::Problem;
use dataset::{JsonlWriter, Place};
use serde::Serialize;

use super::judging::{JudgingArgs, told};
use crate::{
    failure::{Classify, Failure, Outcome},
    screen::{Screen, count_of},
};

/// A problem and where it stands.
pub(super) struct Found {
    pub(super) file: PathBuf,
    pub(super) place: Place,
    pub(super) problem: Problem,
}

/// What running programs of their own told of problems.
#[derive(Debug, Default, Serialize)]
pub(super) struct Solved {
    /// Problems that one of their own programs solves.
    pub(super) solved: u64,
    /// Problems that none of their own programs solves.
    pub(super) unsolved: u64,
    /// Problems that bring no program, of which nothing is known.
    pub(super) without_solution: u64,
    /// Programs that should pass and do not, those of solved problems too.
    pub(super) failing_solutions: u64,
    /// Programs that should fail and pass.
    pub(super) passing_incorrect: u64,
    /// The unsolved ones, each with what became of its first program.
    pub(super) failures: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<Kept>,
}

/// The file of problems that are not known to be bad.
#[derive(Debug, Serialize)]
pub(super) struct Kept {
    pub(super) file: PathBuf,
    pub(super) rows: u64,
}

/// The file of good problems on its way, in a folder that is made for it.
fn writer(path: &Path) -> Outcome<JsonlWriter> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))
            .asked()?;
    }
    JsonlWriter::create(path).asked()
}

/// Judges every program of every problem. The good ones go to a file, where one is named: those that are solved, and
/// those of which nothing is known unless a solution is `required`.
pub(super) fn solve(
    found: &[Found],
    judging: &JudgingArgs,
    (to, required): (Option<&Path>, bool),
    screen: Screen,
) -> Outcome<Solved> {
    let programs: Vec<(&Problem, &str)> = found
        .iter()
        .flat_map(|Found { problem, .. }| {
            let all = problem.solutions.iter().chain(&problem.incorrect_solutions);
            all.map(move |program| (problem, program.as_str()))
        })
        .collect();
    // Before anything is judged, which may take hours.
    let mut kept = match to {
        Some(path) => Some((path, writer(path)?)),
        None => None,
    };
    let verdicts = judging.verdicts(&programs, "own programs", screen)?;
    let mut verdicts = verdicts.into_iter();
    let mut solved = Solved::default();
    let mut good = Vec::new();
    for found in found {
        let problem = &found.problem;
        let own: Vec<_> = verdicts.by_ref().take(problem.solutions.len()).collect();
        let wrong = verdicts.by_ref().take(problem.incorrect_solutions.len());
        solved.passing_incorrect += wrong.filter(|verdict| verdict.passed).count() as u64;
        let passing = own.iter().filter(|verdict| verdict.passed).count();
        solved.failing_solutions += (own.len() - passing) as u64;
        let is_good = match own.first() {
            None => {
                solved.without_solution += 1;
                !required
            }
            Some(_) if passing > 0 => {
                solved.solved += 1;
                true
            }
            Some(first) => {
                solved.unsolved += 1;
                solved.failures.push(format!(
                    "{}, {}, problem `{}`: its own solution does not pass: {}",
                    found.file.display(),
                    found.place,
                    problem.task_id,
                    told(first)
                ));
                false
            }
        };
        if is_good {
            good.push(problem);
        }
    }
    if let Some((path, mut file)) = kept.take() {
        if good.is_empty() {
            return Err(Failure::Failed(anyhow!(
                "none of {} is good, so {} was not written: {} not solved by their own programs, {} without one",
                count_of(found.len(), "problem"),
                path.display(),
                solved.unsolved,
                solved.without_solution
            )));
        }
        for problem in good {
            file.write(problem.columns()).failed()?;
        }
        solved.kept = Some(Kept {
            file: path.to_owned(),
            rows: file.finish().failed()?,
        });
    }
    Ok(solved)
}
