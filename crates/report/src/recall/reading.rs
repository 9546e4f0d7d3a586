//! A few answers to read in the terminal, before and after.

use super::{
    episodes::{Candidate, candidates, grades},
    turns::is_right,
};
use crate::run_view::RunView;

/// Up to `n` questions with the answers of the evaluations that are compared: those that became right
/// first, one of a dialogue.
pub(super) fn answers_text(run: &RunView, n: usize) -> String {
    let mut told: Vec<(bool, String)> = candidates(run).iter().filter_map(text_of).collect();
    told.sort_by_key(|(became_right, _)| !became_right);
    let texts = told.into_iter().take(n).map(|(_, text)| text);
    texts.collect::<Vec<_>>().join("\n")
}

/// The most telling question of a dialogue, and whether it became right.
fn text_of(candidate: &Candidate) -> Option<(bool, String)> {
    let (_, after) = candidate.sides.last()?;
    let earlier = candidate
        .sides
        .first()
        .filter(|_| candidate.sides.len() > 1);
    let (then, now) = (
        earlier.map(|(_, notes)| grades(notes)).unwrap_or_default(),
        grades(after),
    );
    let became_right = |turn: &u32| {
        let before = then.get(turn).is_some_and(|grade| is_right(grade));
        !then.is_empty() && !before && now.get(turn).is_some_and(|grade| is_right(grade))
    };
    let turn = now
        .keys()
        .find(|turn| became_right(turn))
        .or_else(|| now.keys().next())?;
    let grade = now.get(turn)?;
    let event = after
        .events
        .iter()
        .find(|event| event.turn_id == *turn && event.grade.is_some())?;
    let gold = match grade.abstain {
        true => "(never said)",
        false => &grade.gold,
    };
    let mut text = format!(
        "{}  ({}, {})\n  asked:     {}\n  gold:      {gold}\n",
        if became_right(turn) {
            "Wrong before, right now"
        } else {
            "One answer"
        },
        candidate.task.0,
        grade.question_type,
        one_line(&event.observation),
    );
    for (evaluation, notes) in &candidate.sides {
        if let Some(grade) = grades(notes).get(turn) {
            let verdict = if is_right(grade) { "right" } else { "wrong" };
            let answer = match grade.abstained {
                true => "(abstains)".to_owned(),
                false if grade.answer.is_empty() => "(nothing)".to_owned(),
                false => one_line(&grade.answer),
            };
            text += &format!(
                "  {:<10} {answer}  ({verdict})\n",
                format!("{}:", evaluation.name)
            );
        }
    }
    Some((became_right(turn), text))
}

/// At most 100 characters on one line; what a terminal would obey is left out.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let printable = words.join(" ");
    printable
        .chars()
        .filter(|letter| !letter.is_control())
        .take(100)
        .collect()
}
