//! What a reader needs to know about the metrics of the critique study.

use crate::words::{Better, Wording, amount, wording};

/// Evaluation metrics in the order in which a table shows them.
pub(super) const METRICS: [(&str, Wording); 26] = [
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
    (
        "delta_up_from_start",
        wording(
            "Δ↑ since the start",
            "programs that were wrong at the start and are right",
            Better::Higher,
        ),
    ),
    (
        "delta_down_from_start",
        wording(
            "Δ↓ since the start",
            "programs that were right at the start and are wrong",
            Better::Lower,
        ),
    ),
    (
        "regression_rate",
        wording(
            "regression rate",
            "right programs that the round broke, of all",
            Better::Lower,
        ),
    ),
    (
        "gain_over_no_critique",
        amount(
            "gain over no critique",
            "how far pass@1 is above that without critiques, as a share of it: 1 is twice as much",
            Better::Higher,
        ),
    ),
    (
        "gain_over_start",
        amount(
            "gain over the start",
            "how far pass@1 is above that of the start, as a share of it: 1 is twice as much",
            Better::Higher,
        ),
    ),
    (
        "pass_at_k",
        wording(
            "pass@k",
            "problems of whose first k programs one passes",
            Better::Higher,
        ),
    ),
    (
        "judgment_f1_correct",
        wording("F1 of Correct", "of the judgment Correct", Better::Higher),
    ),
    (
        "judgment_f1_incorrect",
        wording(
            "F1 of Incorrect",
            "of the judgment Incorrect",
            Better::Higher,
        ),
    ),
    (
        "timeout_rate",
        wording(
            "timeouts",
            "programs whose tests ran out of time",
            Better::Lower,
        ),
    ),
    (
        "similarity",
        wording(
            "similarity",
            "of programs before and after their revision, as difflib measures it",
            Better::Unknown,
        ),
    ),
    (
        "criticised",
        wording(
            "criticised",
            "programs that had a critique in the round",
            Better::Unknown,
        ),
    ),
    (
        "pair_accuracy",
        wording(
            "pairs told apart",
            "pairs whose right answer is found correct more often than the wrong one",
            Better::Higher,
        ),
    ),
    (
        "pair_ties",
        wording(
            "pairs tied",
            "pairs whose answers are found correct equally often",
            Better::Lower,
        ),
    ),
    (
        "pair_errors",
        wording(
            "pairs mistaken",
            "pairs whose wrong answer is found correct more often",
            Better::Lower,
        ),
    ),
];
