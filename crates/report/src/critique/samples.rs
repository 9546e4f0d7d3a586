//! Critiques to read: the same tasks under the two policies that are compared.

use std::collections::{BTreeMap, BTreeSet};

use journal::Evaluation;
use record::{Episode, Group, Outcome, TaskId};
use serde::{Deserialize, Serialize};

use super::diff::{self, Line};
use crate::{comparison, run_view::RunView};

/// What an episode of the critique study notes. Whatever is missing is shown as missing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Notes {
    statement: Option<String>,
    program: Option<String>,
    initially_right: Option<bool>,
    critique: Option<String>,
    judgment: Option<String>,
    gate_ok: Option<bool>,
    exact: Option<bool>,
    revision: Option<String>,
    passed: Option<bool>,
    status: Option<String>,
    family: Option<String>,
    bug: Option<String>,
}

/// One task and what came of it under each policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sample {
    pub(crate) task: String,
    /// What the pair shows.
    pub(crate) heading: &'static str,
    pub(crate) family: String,
    pub(crate) bug: String,
    pub(crate) initially_right: Option<bool>,
    pub(crate) statement: String,
    pub(crate) program: String,
    pub(crate) sides: Vec<Side>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Side {
    /// Name of the evaluation.
    pub(crate) name: String,
    pub(crate) critique: String,
    pub(crate) judgment: Option<String>,
    /// Whether the judgment is true; `None` without one.
    pub(crate) judged_rightly: Option<bool>,
    pub(crate) gate_ok: Option<bool>,
    pub(crate) exact: bool,
    /// From the task's program to the revision; `None` without a revision.
    pub(crate) revision: Option<Vec<Line>>,
    pub(crate) unchanged: bool,
    pub(crate) passed: Option<bool>,
    pub(crate) status: String,
}

/// How often each kind of pair is shown, most telling first.
const SHOWN: [(Kind, usize); 6] = [
    (Kind::Repaired, 3),
    (Kind::Kept, 1),
    (Kind::Lost, 1),
    (Kind::BothPass, 1),
    (Kind::BothFail, 1),
    (Kind::Single, 4),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Wrong at first, still wrong after the first policy's critique, right after the second's.
    Repaired,
    /// Right at first, broken by the first policy, not by the second.
    Kept,
    /// The second policy does worse.
    Lost,
    BothPass,
    BothFail,
    /// Only one policy has an episode.
    Single,
}

impl Kind {
    fn of(sides: &[(&Evaluation, Notes)]) -> Self {
        match sides {
            [(_, before), (_, after)] => match (before.passed, after.passed) {
                (Some(true), Some(true)) => Self::BothPass,
                (Some(true), _) => Self::Lost,
                (_, Some(true)) if after.initially_right == Some(true) => Self::Kept,
                (_, Some(true)) => Self::Repaired,
                _ => Self::BothFail,
            },
            _ => Self::Single,
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Repaired => "Repaired only after the second critique",
            Self::Kept => "A right program, broken before and kept now",
            Self::Lost => "Lost: passed before, fails now",
            Self::BothPass => "Passes with both",
            Self::BothFail => "Fails with both",
            Self::Single => "One critique",
        }
    }
}

/// A task of the first evaluation and its episodes in those that have it.
struct Candidate<'a> {
    task: &'a TaskId,
    kind: Kind,
    sides: Vec<(&'a Evaluation, Notes)>,
}

/// A few tasks of the evaluations that are compared, the same for the same run.
pub(crate) fn samples(run: &RunView) -> Vec<Sample> {
    let candidates = candidates(&comparison::with_episodes(run));
    let mut families = BTreeSet::new();
    let mut samples = Vec::new();
    for (kind, wanted) in SHOWN {
        let mut left: Vec<&Candidate> = candidates
            .iter()
            .filter(|candidate| candidate.kind == kind)
            .collect();
        for _ in 0..wanted.min(left.len()) {
            // Another family than those shown so far, if there is one.
            let place = left
                .iter()
                .position(|candidate| !families.contains(&candidate.family()));
            let candidate = left.remove(place.unwrap_or(0));
            families.insert(candidate.family());
            samples.push(Sample::of(candidate));
        }
    }
    samples
}

fn candidates<'a>(evaluations: &[(&'a Evaluation, &'a Vec<Group>)]) -> Vec<Candidate<'a>> {
    let by_task: Vec<BTreeMap<&TaskId, Notes>> = evaluations
        .iter()
        .map(|(_, groups)| notes_by_task(groups))
        .collect();
    let sides_of = |task: &TaskId| {
        let sides = evaluations.iter().zip(&by_task);
        sides
            .filter_map(|((evaluation, _), notes)| Some((*evaluation, notes.get(task)?.clone())))
            .collect()
    };
    let tasks = evaluations
        .first()
        .into_iter()
        .flat_map(|(_, groups)| groups.iter());
    tasks
        .map(|group| {
            let sides: Vec<(&Evaluation, Notes)> = sides_of(&group.task);
            Candidate {
                task: &group.task,
                kind: Kind::of(&sides),
                sides,
            }
        })
        .filter(|candidate| !candidate.sides.is_empty())
        .collect()
}

/// The notes of the first graded episode of each task that has a critique.
fn notes_by_task(groups: &[Group]) -> BTreeMap<&TaskId, Notes> {
    let graded = |episode: &&Episode| matches!(episode.outcome, Outcome::Graded { .. });
    let notes = groups.iter().filter_map(|group| {
        let episode = group.episodes.iter().find(graded)?;
        let notes = Notes::deserialize(&episode.notes).ok()?;
        notes.critique.is_some().then_some((&group.task, notes))
    });
    notes.collect()
}

impl Candidate<'_> {
    fn family(&self) -> Option<String> {
        self.sides
            .first()
            .and_then(|(_, notes)| notes.family.clone())
    }
}

impl Sample {
    fn of(candidate: &Candidate) -> Self {
        let notes = candidate
            .sides
            .first()
            .map(|(_, notes)| notes.clone())
            .unwrap_or_default();
        Self {
            task: candidate.task.0.clone(),
            heading: candidate.kind.heading(),
            family: notes.family.unwrap_or_default(),
            bug: notes.bug.unwrap_or_default(),
            initially_right: notes.initially_right,
            statement: notes.statement.unwrap_or_default(),
            program: notes.program.unwrap_or_default(),
            sides: candidate
                .sides
                .iter()
                .map(|(one, notes)| Side::of(one, notes))
                .collect(),
        }
    }
}

impl Side {
    fn of(evaluation: &Evaluation, notes: &Notes) -> Self {
        let program = notes.program.as_deref().unwrap_or_default();
        let revision = notes.revision.as_deref();
        let judged_rightly = notes.judgment.as_deref().zip(notes.initially_right);
        Self {
            name: evaluation.name.clone(),
            critique: notes.critique.clone().unwrap_or_default(),
            judgment: notes.judgment.clone(),
            judged_rightly: judged_rightly
                .map(|(judgment, right)| (judgment == "correct") == right),
            gate_ok: notes.gate_ok,
            exact: notes.exact.unwrap_or_default(),
            revision: revision.map(|revision| diff::lines(program, revision)),
            unchanged: revision.is_some_and(|revision| revision.trim_end() == program.trim_end()),
            passed: notes.passed,
            status: notes.status.clone().unwrap_or_default(),
        }
    }
}
