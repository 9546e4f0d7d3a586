//! Episodes to read: the same dialogue under the two evaluations that are compared.

use std::collections::BTreeMap;

use journal::Evaluation;
use recall::{Grade, Notes};
use record::{Group, TaskId};
use serde::Serialize;

use super::{
    facts::FactView,
    turns::{GradeView, Operation, TurnView, is_right, turns_of},
};
use crate::{comparison, run_view::RunView, words};

/// Histories of more turns are folded up.
const MOST_OPEN: usize = 8;

/// One dialogue, walked through by the later policies, with what the earlier ones did differently.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct EpisodeView {
    /// What the episode shows.
    pub(super) heading: &'static str,
    pub(super) task: String,
    /// `4 of 6 questions answered rightly with rl, 2 with sft`
    pub(super) about: String,
    /// Of the evaluation that is shown.
    pub(super) name: String,
    pub(super) stretches: Vec<Stretch>,
    pub(super) facts: Vec<FactView>,
    pub(super) core: String,
    pub(super) summary: String,
}

/// Turns of one role in a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Stretch {
    pub(super) question: bool,
    /// `turns 0 to 14: 15 turns of history`
    pub(super) title: String,
    pub(super) folded: bool,
    pub(super) turns: Vec<Told>,
}

/// A turn, and what the earlier policies did in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Told {
    pub(super) turn: TurnView,
    pub(super) earlier: Option<Earlier>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Earlier {
    pub(super) name: String,
    pub(super) grade: Option<GradeView>,
    /// Whether the memory was written otherwise.
    pub(super) differently: bool,
    /// What was written then.
    pub(super) operations: Vec<Operation>,
}

/// How often each kind of episode is shown, most telling first.
const SHOWN: [(Kind, usize); 5] = [
    (Kind::Gained, 1),
    (Kind::Lost, 1),
    (Kind::StillWrong, 1),
    (Kind::AllRight, 1),
    (Kind::Single, 2),
];

/// Episodes to show at most.
const MOST_SHOWN: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A wrong answer became right.
    Gained,
    /// A right one became wrong.
    Lost,
    StillWrong,
    AllRight,
    /// There is nothing to compare with.
    Single,
}

/// A task of the evaluations that are compared.
pub(super) struct Candidate<'a> {
    pub(super) task: &'a TaskId,
    /// Earlier first.
    pub(super) sides: Vec<(&'a Evaluation, Notes)>,
}

/// A few episodes, the same for the same run.
pub(super) fn episodes(run: &RunView) -> Vec<EpisodeView> {
    let candidates = candidates(run);
    let mut shown: Vec<EpisodeView> = Vec::new();
    for (kind, wanted) in SHOWN {
        let mut of_kind: Vec<&Candidate> = candidates
            .iter()
            .filter(|candidate| candidate.shows(kind) > 0)
            .filter(|candidate| shown.iter().all(|one| one.task != candidate.task.0))
            .collect();
        // The most telling one first; of equals the first of the evaluation.
        of_kind.sort_by_key(|candidate| std::cmp::Reverse(candidate.shows(kind)));
        for candidate in of_kind.into_iter().take(wanted) {
            if shown.len() < MOST_SHOWN {
                shown.extend(candidate.view(kind));
            }
        }
    }
    shown
}

/// Tasks whose episodes left notes of this study.
pub(super) fn candidates(run: &RunView) -> Vec<Candidate<'_>> {
    let evaluations = comparison::with_episodes(run);
    let by_task: Vec<BTreeMap<&TaskId, Notes>> = evaluations
        .iter()
        .map(|(_, groups)| notes_by_task(groups))
        .collect();
    let Some((_, last)) = evaluations.last() else {
        return Vec::new();
    };
    let candidates = last.iter().map(|group| Candidate {
        task: &group.task,
        sides: evaluations
            .iter()
            .zip(&by_task)
            .filter_map(|((one, _), notes)| Some((*one, notes.get(&group.task)?.clone())))
            .collect(),
    });
    candidates
        .filter(|candidate| !candidate.sides.is_empty())
        .collect()
}

/// Of the first episode of each task that reached its verdict.
fn notes_by_task(groups: &[Group]) -> BTreeMap<&TaskId, Notes> {
    let notes = groups.iter().filter_map(|group| {
        let notes = group.episodes.iter().find_map(Notes::of)?;
        (!notes.events.is_empty()).then_some((&group.task, notes))
    });
    notes.collect()
}

/// Grades of an episode by the turn of the question.
pub(super) fn grades(notes: &Notes) -> BTreeMap<u32, &Grade> {
    let events = notes.events.iter();
    events
        .filter_map(|event| Some((event.turn_id, event.grade.as_ref()?)))
        .collect()
}

impl Candidate<'_> {
    /// How many questions make the episode one of this kind.
    fn shows(&self, kind: Kind) -> usize {
        let [(_, before), (_, after)] = self.sides.as_slice() else {
            return usize::from(kind == Kind::Single);
        };
        let (before, after) = (grades(before), grades(after));
        let pairs = after.iter().map(|(turn, grade)| {
            let earlier = before.get(turn).is_some_and(|grade| is_right(grade));
            (earlier, is_right(grade))
        });
        let count = |wanted: (bool, bool)| pairs.clone().filter(|pair| *pair == wanted).count();
        match kind {
            Kind::Gained => count((false, true)),
            Kind::Lost => count((true, false)),
            Kind::StillWrong => count((false, false)),
            Kind::AllRight if pairs.clone().all(|(_, right)| right) => count((true, true)),
            Kind::AllRight | Kind::Single => 0,
        }
    }

    fn view(&self, kind: Kind) -> Option<EpisodeView> {
        let (evaluation, notes) = self.sides.last()?;
        let earlier = self.sides.first().filter(|_| self.sides.len() > 1);
        let (turns, facts) = turns_of(notes);
        let earlier_turns = earlier.map(|(evaluation, notes)| (evaluation, turns_of(notes).0));
        let told = turns.into_iter().map(|turn| {
            let earlier = earlier_turns.as_ref().and_then(|(evaluation, turns)| {
                let then = turns.iter().find(|then| then.turn == turn.turn)?;
                Earlier::of(&evaluation.name, then, &turn)
            });
            Told { turn, earlier }
        });
        let told: Vec<Told> = told.collect();
        let stretches = told.chunk_by(|left, right| left.turn.question == right.turn.question);
        Some(EpisodeView {
            heading: match kind {
                Kind::Gained => "Wrong before, right now",
                Kind::Lost => "Right before, wrong now",
                Kind::StillWrong => "Wrong with both",
                Kind::AllRight => "Right with both",
                Kind::Single => "One episode",
            },
            task: self.task.0.clone(),
            about: self.about(),
            name: evaluation.name.clone(),
            stretches: stretches.map(Stretch::of).collect(),
            facts,
            core: notes.core.clone(),
            summary: notes.summary.clone(),
        })
    }

    fn about(&self) -> String {
        let said = self.sides.iter().rev().map(|(evaluation, notes)| {
            let grades = grades(notes);
            let right = grades.values().filter(|grade| is_right(grade)).count();
            format!("{right} of {} right with {}", grades.len(), evaluation.name)
        });
        format!("questions: {}", said.collect::<Vec<_>>().join(", "))
    }
}

impl Stretch {
    fn of(turns: &[Told]) -> Self {
        let question = turns.first().is_some_and(|told| told.turn.question);
        let title = match turns {
            _ if question => String::new(),
            [only] => format!("History: turn {}", only.turn.turn),
            [first, .., last] => format!(
                "History: {}, {} to {}",
                words::count(turns.len() as u64, "turn"),
                first.turn.turn,
                last.turn.turn
            ),
            [] => String::new(),
        };
        Self {
            question,
            title,
            folded: !question && turns.len() > MOST_OPEN,
            turns: turns.to_vec(),
        }
    }
}

impl Earlier {
    /// `None` where nothing was different and no question was asked.
    fn of(name: &str, then: &TurnView, now: &TurnView) -> Option<Self> {
        let operations = |turn: &TurnView| -> Vec<Operation> {
            let acts = turn.acts.iter();
            acts.flat_map(|act| act.operations.iter().cloned())
                .collect()
        };
        let written = operations(then);
        let asked = then.acts.iter().find(|act| act.grade.is_some());
        let differently = written != operations(now);
        (asked.is_some() || differently).then(|| Self {
            name: name.to_owned(),
            grade: asked.and_then(|act| act.grade.clone()),
            differently,
            operations: written,
        })
    }
}
