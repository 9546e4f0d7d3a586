//! What a reader needs to know about the metrics of the critique study.

use crate::words::{Better, Wording, wording};

/// Evaluation metrics in the order in which a table shows them.
pub(super) const METRICS: [(&str, Wording); 12] = [
    (
        "pass_at_1",
        wording(
            "pass@1",
            "revisions that pass all hidden tests",
            Better::Higher,
        ),
    ),
    (
        "delta_up",
        wording(
            "Δ↑ wrong → right",
            "wrong programs that were made right",
            Better::Higher,
        ),
    ),
    (
        "delta_down",
        wording(
            "Δ↓ right → wrong",
            "right programs that were broken",
            Better::Lower,
        ),
    ),
    (
        "judgment_accuracy",
        wording(
            "judgment accuracy",
            "critiques whose verdict on the program is true",
            Better::Higher,
        ),
    ),
    (
        "judgment_f1",
        wording(
            "judgment macro F1",
            "mean F1 of the two verdicts; a constant verdict scores low",
            Better::Higher,
        ),
    ),
    (
        "judgment_accuracy_on_wrong",
        wording(
            "judged rightly, wrong programs",
            "wrong programs called incorrect",
            Better::Higher,
        ),
    ),
    (
        "judgment_accuracy_on_right",
        wording(
            "judged rightly, right programs",
            "right programs called correct",
            Better::Higher,
        ),
    ),
    (
        "exact",
        wording(
            "exactly right critiques",
            "critiques that name the true defect and its true repair",
            Better::Higher,
        ),
    ),
    (
        "exact_on_wrong",
        wording(
            "exactly right on wrong programs",
            "wrong programs whose defect and repair are named",
            Better::Higher,
        ),
    ),
    (
        "gate_fail_rate",
        wording(
            "no judgment line",
            "critiques without the line that the reward asks for",
            Better::Lower,
        ),
    ),
    (
        "fix_rate",
        wording(
            "fix rate",
            "wrong programs that pass after revision",
            Better::Unknown,
        ),
    ),
    (
        "break_rate",
        wording(
            "break rate",
            "right programs that fail after revision",
            Better::Lower,
        ),
    ),
];
