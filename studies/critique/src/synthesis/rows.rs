//! From samples to what the study's rows are made of: nodes of a forest, and programs and critiques with what became
//! of them.

use std::path::Path;

use dataset::Place;
use record::{Group, TaskId};

use super::study::{Assignment, SynthesisNotes, is_over_long, notes_of};
use crate::{
    data::{Attempt, GENERATION, REVISION, Tried},
    forest::Line,
};

/// The samples that reached their verdicts.
#[derive(Clone, Debug)]
pub struct Samples<'a> {
    /// Problems, their solutions, and the revisions of those with the critiques that led to them: one layer after the
    /// other.
    pub lines: Vec<Line>,
    /// Solutions and revisions, each with the place of its line.
    pub tried: Vec<Tried<'a>>,
    /// Samples that have none.
    pub without_verdict: usize,
    /// Samples with a prompt that leaves its model no room for an answer; they are left out.
    pub over_long: usize,
}

/// Every sample of `groups`, in their order; `assignment` says what problem a group is of. `file` is the file that the
/// lines are for, and `generator` who wrote the solutions.
pub fn samples<'a>(
    groups: &[Group],
    assignment: impl Fn(&TaskId) -> Option<&'a Assignment>,
    file: &Path,
    generator: &str,
) -> Samples<'a> {
    let mut made = Samples {
        lines: Vec::new(),
        tried: Vec::new(),
        without_verdict: 0,
        over_long: 0,
    };
    let mut found: Vec<(&'a Assignment, Line, Vec<SynthesisNotes>)> = Vec::new();
    for group in groups {
        let Some(assignment) = assignment(&group.task) else {
            continue;
        };
        let notes: Vec<SynthesisNotes> = group.episodes.iter().filter_map(notes_of).collect();
        let over_long = group.episodes.iter().filter(|one| is_over_long(one));
        let over_long = over_long.count();
        made.over_long += over_long;
        made.without_verdict += group.episodes.len() - notes.len() - over_long;
        if notes.is_empty() {
            continue;
        }
        let root = Line::root(&assignment.problem.task_id, &assignment.id.0);
        made.lines.push(root.clone());
        found.push((assignment, root, notes));
    }
    let mut solutions = Vec::new();
    for (assignment, root, notes) in &found {
        for (number, one) in notes.iter().enumerate() {
            let answer = (one.solution.as_str(), one.program.as_str());
            let verdict = Some(&one.verdict);
            let line = Line::below(root, number, answer, None, one.success, verdict);
            solutions.push(line.clone());
            let share = one.success_float;
            let attempt = attempt(&line, file, made.lines.len(), GENERATION);
            made.lines.push(line);
            let attempt = Attempt {
                generator: Some(generator.to_owned()),
                ..attempt
            };
            made.tried
                .push(tried(assignment, attempt, (one.success, share)));
        }
    }
    let notes = found
        .iter()
        .flat_map(|(assignment, _, notes)| notes.iter().map(move |one| (*assignment, one)));
    for ((assignment, one), solution) in notes.zip(&solutions) {
        let answer = (one.revision.as_str(), one.revised_program.as_str());
        let (critique, right) = (Some(one.critique.as_str()), one.revised_success);
        let verdict = &one.revised_verdict;
        let line = Line::below(solution, 0, answer, critique, right, Some(verdict));
        let attempt = Attempt {
            critique: line.critique.clone(),
            cut_off: !one.critique_finished,
            ..attempt(&line, file, made.lines.len(), REVISION)
        };
        made.lines.push(line);
        let share = verdict.n_passed as f64 / verdict.n_tests.max(1) as f64;
        made.tried.push(tried(assignment, attempt, (right, share)));
    }
    made
}

/// A line as the attempt that reading it gives.
fn attempt(line: &Line, file: &Path, index: usize, node_type: &str) -> Attempt {
    Attempt {
        task_id: line.task_id.clone(),
        data_source: None,
        solution: line.solution.clone().unwrap_or_default(),
        hash: Some(line.hash.clone()),
        prev_hash: line.prev_hash.clone(),
        node_type: node_type.to_owned(),
        critique: None,
        cut_off: false,
        success: line.success.map(|success| success == 1.0),
        generator: None,
        file: file.to_owned(),
        place: Place::Line(index as u64 + 1),
    }
}

fn tried<'a>(
    assignment: &'a Assignment,
    attempt: Attempt,
    (success, share): (bool, f64),
) -> Tried<'a> {
    Tried {
        attempt,
        problem: &assignment.problem,
        file: &assignment.file,
        success,
        share,
    }
}

#[cfg(test)]
mod tests;
