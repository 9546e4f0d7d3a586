//! Rewarded episodes of training that deserve a second look, as the run noted them.

use critique::suspicion::{Suspect, Suspects};
use serde::{Deserialize, Serialize};

use super::diff::{self, Line};
use crate::{run_view::RunView, words};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Section {
    /// How many were looked at, and how many are suspicious.
    pub(crate) about: String,
    pub(crate) listed: Vec<Shown>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Shown {
    /// Where the page has it: `episode-3-0-7`.
    pub(crate) anchor: String,
    /// `step 3, group 0, member 7`
    pub(crate) place: String,
    pub(crate) task: String,
    pub(crate) score: String,
    pub(crate) suspicious: bool,
    pub(crate) reasons: Vec<String>,
    pub(crate) statement: String,
    pub(crate) critique: String,
    pub(crate) revision: Vec<Line>,
}

/// `None` for runs that have noted nothing.
pub(crate) fn section(run: &RunView) -> Option<Section> {
    let noted = run.replay.note("critique/suspects")?;
    let suspects = Suspects::deserialize(noted).ok()?;
    let about = format!(
        "{} of {} are suspicious.",
        words::thousands(suspects.suspicious),
        words::count(suspects.rewarded, "rewarded episode")
    );
    Some(Section {
        about,
        listed: suspects.listed.iter().map(shown).collect(),
    })
}

fn shown(suspect: &Suspect) -> Shown {
    let id = suspect.id;
    Shown {
        anchor: format!("episode-{}-{}-{}", id.step, id.group, id.member),
        place: format!("step {}, group {}, member {}", id.step, id.group, id.member),
        task: suspect.task.0.clone(),
        score: format!("{:.1}", suspect.suspicion.score),
        suspicious: suspect.suspicion.is_suspicious(),
        reasons: suspect.suspicion.reasons.clone(),
        statement: suspect.statement.clone(),
        critique: visible(&suspect.critique),
        revision: diff::lines(&visible(&suspect.program), &visible(&suspect.revision)),
    }
}

/// With what does not print written out.
fn visible(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if critique::suspicion::is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_print_is_written_out() {
        assert_eq!(visible("a\u{200b}b\n\u{7}"), "a\\u{200b}b\n\\u{7}");
    }
}
