//! Programs and critiques with what became of them, as rows: pairs that a critic is reinforced on, and critiques that
//! it is supervised on. Whoever makes rows, from files or from samples, makes them here.

use std::{collections::HashMap, path::PathBuf};

use dataset::Place;
use serde_json::{Map, Value};
use thiserror::Error;

use super::{
    attempt::{Attempt, fit_columns},
    lessons::LessonRow,
    problem::Problem,
};
use crate::format::Gate;

/// An attempt, its problem, and how it did.
#[derive(Clone, Debug)]
pub struct Tried<'a> {
    pub attempt: Attempt,
    pub problem: &'a Problem,
    /// The name of the problem's file: ids of pairs begin with it.
    pub file: &'a str,
    /// Every test passes.
    pub success: bool,
    /// The share of tests that pass, where that is known; else 0 or 1.
    pub share: f64,
}

/// A critique whose program cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StrayCritique {
    #[error(
        "{}, {place}, field `prev_hash`: no program has the hash `{hash}` that the critique is of",
        file.display()
    )]
    NoProgram {
        file: PathBuf,
        place: Place,
        hash: String,
    },
    #[error(
        "{}, {place}, field `prev_hash`: `{hash}` is a program for problem `{of}`, and the critique is about `{about}`",
        file.display()
    )]
    OtherProblem {
        file: PathBuf,
        place: Place,
        hash: String,
        of: String,
        about: String,
    },
}

/// A row for each first program, under the id `FILE/NUMBER`, with the columns of one file.
pub fn pair_rows<'a>(tried: impl Iterator<Item = &'a Tried<'a>>) -> Vec<Map<String, Value>> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let first = tried.filter(|tried| tried.attempt.is_first());
    let mut rows: Vec<Map<String, Value>> = first
        .map(|tried| {
            let number = numbers.entry(tried.file).or_default();
            let id = format!("{}/{number}", tried.file);
            *number += 1;
            let Tried { success, share, .. } = *tried;
            tried.problem.pair(&tried.attempt, &id, success, share)
        })
        .collect();
    fit_columns(&mut rows);
    rows
}

/// A row for each critique, read by `gate`, with the program that it is of.
///
/// # Errors
/// The first critique whose `prev_hash` names no program, or one for another problem.
pub fn lesson_rows(tried: &[Tried<'_>], gate: Gate) -> Result<Vec<LessonRow>, StrayCritique> {
    let by_hash: HashMap<&str, &Tried<'_>> = tried
        .iter()
        .filter_map(|tried| Some((tried.attempt.hash.as_deref()?, tried)))
        .collect();
    let critiques = tried
        .iter()
        .filter(|tried| tried.attempt.critique.is_some());
    critiques
        .map(|critic| {
            let attempt = &critic.attempt;
            let (file, place) = (attempt.file.clone(), attempt.place);
            let hash = attempt.prev_hash.clone().unwrap_or_default();
            let Some(of) = by_hash.get(hash.as_str()) else {
                return Err(StrayCritique::NoProgram { file, place, hash });
            };
            if !std::ptr::eq(of.problem, critic.problem) {
                return Err(StrayCritique::OtherProblem {
                    file,
                    place,
                    hash,
                    of: of.problem.task_id.clone(),
                    about: critic.problem.task_id.clone(),
                });
            }
            Ok(LessonRow::of(of, critic, gate))
        })
        .collect()
}
