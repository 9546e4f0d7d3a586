//! Who criticises in the rounds of an evaluation: critics that are models, and the baselines that they are
//! compared with, which have as many rounds and the same reviser.

use critique::Task;
use judge::{Verdict, VerdictStatus};
use record::Sampling;
use rollout::Answers;

use super::recipe::Recipe;

/// What a program is told in a round.
pub(super) enum Voice {
    /// What a model says of it.
    Model {
        answers: Answers,
        sampling: Sampling,
    },
    /// Nothing, and it is revised all the same.
    Silence,
    /// What running it gave: how many tests passed, and how the first that did not ended.
    ExecutionFeedback,
    /// What a model says of it that is told what running it gave, inputs and expected values included.
    Hinted {
        answers: Answers,
        sampling: Sampling,
    },
    /// The critique that is known to be right, and nothing where none is known: bounds what a reviser can be
    /// told.
    Oracle,
}

impl Voice {
    /// What is said of a program that the tests found to be `verdict`; `None` leaves it as it is.
    pub(super) fn text(&self, task: &Task, verdict: Option<&Verdict>) -> Option<String> {
        match self {
            Self::Model { .. } | Self::Hinted { .. } => None,
            Self::Silence => Some(String::new()),
            Self::ExecutionFeedback => verdict.map(feedback),
            Self::Oracle => task.right_critique().map(ToOwned::to_owned),
        }
    }

    /// Critiques of every program: fixed texts would only repeat themselves.
    pub(super) fn votes(&self, recipe: &Recipe) -> u32 {
        match self {
            Self::Model { .. } | Self::Hinted { .. } => recipe.eval.votes,
            _ => 1,
        }
    }
}

/// The report of a test run, raw. Nothing of what was expected is in a verdict.
fn feedback(verdict: &Verdict) -> String {
    let counted = format!("{} of {} tests passed.", verdict.n_passed, verdict.n_tests);
    let ended = match verdict.status {
        VerdictStatus::Passed => return counted,
        VerdictStatus::Wrong => "Wrong answer".to_owned(),
        status if status.is_timeout() => "Time limit exceeded".to_owned(),
        status => format!("Failed: {status}"),
    };
    let message = verdict.message.as_deref().unwrap_or_default();
    format!("{counted}\n{ended}\n{message}")
        .trim_end()
        .to_owned()
}
