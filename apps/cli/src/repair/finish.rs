//! What came of a repair: told, asked about, and written where it is wanted.

use std::{
    io::{IsTerminal, Write},
    time::Duration,
};

use anyhow::anyhow;
use repair::{Checkout, Task, environment::StopReason, play::Notes};
use serde_json::{Value, json};

use super::{RepairArgs, partial::Partial, tell, write::write};
use crate::{
    failure::{Failure, Outcome},
    report::{print_json, print_text},
    screen::{Screen, count_of},
};

/// Sources that cannot be edited that are named.
const UNEDITABLE: usize = 5;

/// An episode at its end.
pub(super) struct Ending<'a> {
    pub(super) args: &'a RepairArgs,
    pub(super) checkout: &'a Checkout,
    pub(super) task: &'a Task,
    pub(super) notes: &'a Notes,
    pub(super) partial: Option<Partial>,
    /// Sources that failing tests run and no patch can change, each with the reason.
    pub(super) uneditable: Vec<String>,
    pub(super) screen: Screen,
}

impl Ending<'_> {
    /// Says what came of it, and writes the patch where it is wanted.
    pub(super) async fn finish(&self) -> Outcome<()> {
        let Self {
            args,
            notes,
            screen,
            ..
        } = self;
        let fallbacks = notes.steps.iter().filter(|step| step.fallback.is_some());
        let fallbacks = fallbacks.count();
        let unread = notes.steps.iter().filter(|step| step.action.is_none());
        let refused = fallbacks + unread.count();
        if let (Some(model), true) = (&args.model, refused > 0) {
            let instead = match fallbacks {
                all if all == refused => "rules chose in their place".to_owned(),
                some => format!("rules chose in place of {some}, and had nothing left to try then"),
            };
            screen.say(format!(
                "note: {refused} of {} replies of {model} were no action and were refused; {instead}",
                notes.steps.len()
            ));
        }
        let tests = self.tests();
        if notes.resolved {
            screen.say(tell::tests(&tests));
        }
        let asks = notes.resolved && !args.apply && !args.json && is_answered();
        let wanted = asks && wanted(notes, *screen).await;
        let applied = notes.resolved && (args.apply || wanted);
        if applied {
            write(self.checkout, &notes.patch)?;
        }
        if args.json {
            print_json(&json!({
                "repo": args.repo,
                "resolved": notes.resolved,
                "applied": applied,
                "patch": notes.patch,
                "partial": self.partial,
                "steps": notes.steps.len(),
                "stop_reason": notes.ended_by(),
                "why": (!notes.resolved).then(|| self.why()),
                "fallbacks": fallbacks,
                "candidates": notes.candidates,
                "test_runs": notes.test_runs,
                "tests": tests,
                "fail_to_pass": self.task.checks.fail_to_pass,
                "pass_to_pass": self.task.checks.pass_to_pass.len(),
            }))?;
        } else if notes.resolved && !(asks && std::io::stdout().is_terminal()) {
            print_text(notes.patch.trim_end())?;
        }
        match (notes.resolved, applied) {
            (true, true) => screen.say(format!("The patch is in {}.", args.repo_name())),
            (true, false) => screen.say(format!(
                "{} is as it was; the patch is {}.",
                args.repo_name(),
                if asks { "above" } else { "on standard output" }
            )),
            (false, _) => return self.failed(),
        }
        Ok(())
    }

    /// What the tests say of the repository with the patch; without one, as it is.
    fn tests(&self) -> Value {
        let (notes, checks) = (self.notes, &self.task.checks);
        let reports = notes.steps.iter().rev().map(|step| &step.info["tests"]);
        let mut reports = reports.filter(|tests| notes.resolved && tests.is_object());
        reports.next().cloned().unwrap_or_else(|| {
            let kept = checks.pass_to_pass.len();
            json!({
                "fail_to_pass": { "passed": 0, "total": checks.fail_to_pass.len() },
                "pass_to_pass": { "passed": kept, "total": kept },
                "passed": false,
            })
        })
    }

    /// Nothing resolves it: why, and what there is in its place.
    fn failed(&self) -> Outcome<()> {
        let (args, failing) = (self.args, &self.task.checks.fail_to_pass);
        let tests = match failing.len() {
            1 => "the failing test".to_owned(),
            n => format!("all {n} failing tests"),
        };
        let mut found = format!("no patch was found that makes {tests} pass and keeps the others");
        let mut why = self.why();
        if let Some(Partial { patch, mended }) = &self.partial {
            if !args.json {
                print_text(patch.trim_end())?;
            }
            if mended.len() == failing.len() {
                found = format!(
                    "a patch was found that makes {tests} pass, and none that keeps the others each time"
                );
                why = "with the one above some of them failed in one run of all tests and passed in another; it is \
                       not written"
                    .to_owned();
            } else {
                let first = mended.first().map_or("", String::as_str);
                self.screen.say(format!(
                    "This patch mends {} of {} failing tests and breaks none; it is not written. Ask for one of these \
                     alone with --test '{first}'",
                    mended.len(),
                    failing.len(),
                ));
            }
        }
        Err(Failure::Failed(anyhow!(
            "{found}: {why}. {} and {} were tried. {} is as it was",
            count_of(self.notes.candidates, "candidate"),
            count_of(self.notes.test_runs, "test run"),
            args.repo_name()
        )))
    }

    fn why(&self) -> String {
        let ended = self.ended();
        let unnamed = self.uneditable.iter().filter(|named| {
            let path = named.split(" (").next().unwrap_or_default();
            !ended.contains(path)
        });
        let unnamed: Vec<&str> = unnamed.map(String::as_str).take(UNEDITABLE).collect();
        match unnamed.is_empty() {
            true => ended,
            false => format!(
                "{ended}; the failing tests run what no patch can change: {}",
                unnamed.join(", ")
            ),
        }
    }

    /// What ended the episode, in words.
    fn ended(&self) -> String {
        let notes = self.notes;
        match notes.stop_reason {
            Some(StopReason::MaxSteps) => format!(
                "the planner took all {} that it has (--max-steps)",
                count_of(self.args.max_steps as usize, "step")
            ),
            Some(StopReason::BudgetSpent) => self.last_detail("no candidate is left").to_owned(),
            Some(StopReason::CandidatesExhausted) => {
                let detail = self.last_detail("there are no other candidates");
                let budget = self.args.budget as usize;
                let left = budget.saturating_sub(notes.candidates);
                format!(
                    "{detail}. {left} of {budget} candidates (--budget) are left: the search knows no other edit of \
                     the lines that the failing tests run"
                )
            }
            Some(StopReason::RepositoryOperations) => {
                "the planner looked at the repository as often as it may".to_owned()
            }
            _ => "the planner had nothing left to try".to_owned(),
        }
    }

    /// What the last step that has something to say of its end says of it.
    fn last_detail<'b>(&'b self, otherwise: &'b str) -> &'b str {
        let details = self.notes.steps.iter().rev();
        let mut details = details.filter_map(|step| step.info["detail"].as_str());
        details.next().unwrap_or(otherwise)
    }
}

/// Whether somebody can be asked.
fn is_answered() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks on a terminal. Whoever waits for this can stop waiting: the thread that reads then goes with the process.
async fn wanted(notes: &Notes, screen: Screen) -> bool {
    tell::patch(&notes.patch, screen);
    // Nobody is left to ask when stderr is gone.
    let _ = write!(std::io::stderr(), "Write this to the repository? [y/N] ");
    let (answers, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        // Nobody waits any more after an interrupt.
        let _ = answers.send(read.is_ok().then_some(line));
    });
    let answer = answer.await.ok().flatten();
    // A Ctrl-C before the answer may be heard of after it; it has to win, and by now it does.
    tokio::time::sleep(Duration::from_millis(50)).await;
    answer.is_some_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes"))
}
