//! What a reader needs to know about the metrics of the recall study.

use crate::words::{Better, Wording, amount, wording};

/// Evaluation metrics in the order in which a table shows them. Those of a question type, as `f1/temporal`,
/// have the words of the whole.
pub(super) const METRICS: [(&str, Wording); 19] = [
    (
        "f1",
        wording(
            "F1",
            "words shared by answer and gold answer",
            Better::Higher,
        ),
    ),
    (
        "exact_match",
        wording(
            "exact match",
            "answers that are the gold answer",
            Better::Higher,
        ),
    ),
    (
        "score",
        wording(
            "score",
            "by the metric that each question names",
            Better::Higher,
        ),
    ),
    (
        "abstention_accuracy",
        wording(
            "abstention accuracy",
            "questions without an answer that are not answered",
            Better::Higher,
        ),
    ),
    (
        "false_abstention_rate",
        wording(
            "false abstention",
            "questions with an answer that are not answered",
            Better::Lower,
        ),
    ),
    (
        "evidence_remembered",
        wording(
            "evidence remembered",
            "share of what answers follow from that is in live facts",
            Better::Higher,
        ),
    ),
    (
        "retrieval_recall",
        wording(
            "retrieval recall",
            "share of what answers follow from that is retrieved",
            Better::Higher,
        ),
    ),
    (
        "retrieval_recall_shown",
        wording(
            "retrieval recall, shown",
            "the same, of what fitted into the prompt",
            Better::Higher,
        ),
    ),
    (
        "retrieval_recall_any",
        wording(
            "some evidence retrieved",
            "questions for which a part of it is",
            Better::Higher,
        ),
    ),
    (
        "retrieval_recall_all",
        wording(
            "all evidence retrieved",
            "questions for which all of it is",
            Better::Higher,
        ),
    ),
    (
        "context_tokens",
        amount(
            "context tokens",
            "tokens of memory in the prompt of an answer",
            Better::Unknown,
        ),
    ),
    (
        "memory_tokens",
        amount(
            "memory tokens",
            "of the whole memory at the end of an episode",
            Better::Unknown,
        ),
    ),
    (
        "memory_tokens_peak",
        amount(
            "memory tokens, peak",
            "of the whole memory at its largest",
            Better::Unknown,
        ),
    ),
    (
        "memory_items",
        amount(
            "live facts",
            "in the memory at the end of an episode",
            Better::Unknown,
        ),
    ),
    (
        "truncated_share",
        wording(
            "cut prompts",
            "calls whose prompt left out a part of the memory",
            Better::Unknown,
        ),
    ),
    (
        "ops_failed_rate",
        wording(
            "failed operations",
            "memory operations that were refused",
            Better::Lower,
        ),
    ),
    (
        "ops_skipped_rate",
        wording(
            "skipped operations",
            "memory operations with nothing to do, as duplicates",
            Better::Unknown,
        ),
    ),
    (
        "ops",
        amount("operations", "in an episode", Better::Unknown),
    ),
    (
        "step_reward",
        amount(
            "step reward",
            "weighted sum, over the calls that it scored",
            Better::Higher,
        ),
    ),
];
