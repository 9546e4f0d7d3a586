//! What the measures of the repair study mean.

use crate::words::{Better, Wording, amount, wording};

pub(super) const METRICS: [(&str, Wording); 12] = [
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
            "resolved in vain",
            "said to be resolved, and a fresh checkout with the patch fails its tests",
            Better::Lower,
        ),
    ),
    (
        "repaired",
        wording(
            "repaired",
            "a patch was found whose tests pass",
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
            "patches that were tried, a task",
            Better::Lower,
        ),
    ),
    (
        "test_runs",
        amount("test runs", "runs of tests, a task", Better::Lower),
    ),
    (
        "steps",
        amount("steps", "actions of the planner", Better::Unknown),
    ),
    (
        "faults",
        wording(
            "faults",
            "steps that were refused or malformed",
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
        amount("seconds", "wall seconds, a task", Better::Lower),
    ),
    ("reward", amount("reward", "by component", Better::Higher)),
];
