//! What the measures of the repair study mean.

use crate::words::{Better, Wording, amount, wording};

pub(super) const METRICS: [(&str, Wording); 14] = [
    (
        "resolved",
        wording(
            "resolved",
            "all tests that decide pass at the end: those that failed, and those that passed before",
            Better::Higher,
        ),
    ),
    (
        "false_resolved",
        wording(
            "falsely resolved",
            "the episode ended with passing tests, and in a fresh checkout the patch does not pass them; not among the resolved",
            Better::Lower,
        ),
    ),
    (
        "same_as_gold",
        wording(
            "same as gold",
            "resolved by a patch that makes the same program as the task's own patch, layout apart; of the other resolved ones only the tests say that they are right",
            Better::Higher,
        ),
    ),
    (
        "repaired",
        wording(
            "repaired",
            "a patch was found and kept whose tests passed in the planner's own work tree; resolved is what also passes at the end and in a fresh checkout",
            Better::Higher,
        ),
    ),
    (
        "submitted",
        wording(
            "submitted",
            "the planner ended the episode itself",
            Better::Unknown,
        ),
    ),
    (
        "gave_up",
        wording(
            "gave up",
            "the planner had nothing left to try",
            Better::Lower,
        ),
    ),
    (
        "candidates",
        amount(
            "candidates",
            "changes that were made and whose tests were run, a task",
            Better::Lower,
        ),
    ),
    (
        "test_runs",
        amount(
            "test runs",
            "runs of tests, a task: those of candidates, and those of the checkout before and after",
            Better::Lower,
        ),
    ),
    (
        "steps",
        amount("steps", "actions of the planner", Better::Unknown),
    ),
    (
        "faults",
        wording(
            "refused steps",
            "steps of the planner that were refused, malformed or came to nothing; not those of the machinery",
            Better::Lower,
        ),
    ),
    (
        "observation_tokens",
        amount(
            "observation",
            "tokens that the planner sees in a step",
            Better::Unknown,
        ),
    ),
    (
        "seconds",
        amount(
            "seconds",
            "wall seconds of an episode with its grade, waiting for others that run at the same time included",
            Better::Lower,
        ),
    ),
    (
        "ended",
        wording("ended by", "what ended episodes", Better::Unknown),
    ),
    ("reward", amount("reward", "by component", Better::Higher)),
];
