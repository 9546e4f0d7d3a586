//! What of a recall run is drawn over the steps of training.

use crate::{curves::Panel, words::Unit};

/// After the reward.
pub(super) const PANELS: [Panel; 8] = [
    Panel {
        title: "Answers while training",
        meaning: "to the step's own questions, sampled as in training",
        unit: Unit::Share,
        metrics: &[("f1", "F1"), ("exact_match", "exact match")],
    },
    Panel {
        title: "F1 by question type",
        meaning: "of the step's own questions",
        unit: Unit::Share,
        metrics: &[("f1/", "")],
    },
    Panel {
        title: "Abstention",
        meaning: "answers that abstain, rightly and wrongly",
        unit: Unit::Share,
        metrics: &[
            ("abstention_accuracy", "without an answer"),
            ("false_abstention_rate", "with an answer"),
        ],
    },
    Panel {
        title: "Evidence",
        meaning: "share of what answers follow from",
        unit: Unit::Share,
        metrics: &[
            ("evidence_remembered", "in live facts"),
            ("retrieval_recall", "retrieved"),
            ("retrieval_recall_shown", "in the prompt"),
        ],
    },
    Panel {
        title: "Step rewards",
        meaning: "mean over the calls that each scored",
        unit: Unit::Number,
        metrics: &[("step_reward", "weighted sum"), ("step_reward/", "")],
    },
    Panel {
        title: "Memory size",
        meaning: "tokens at the end of an episode, and in the prompt of an answer",
        unit: Unit::Number,
        metrics: &[
            ("memory_tokens", "memory"),
            ("context_tokens", "in the prompt"),
        ],
    },
    Panel {
        title: "Memory operations",
        meaning: "in an episode, by kind and outcome",
        unit: Unit::Number,
        metrics: &[("ops/", "")],
    },
    Panel {
        title: "Failed and skipped operations",
        meaning: "share of all memory operations",
        unit: Unit::Share,
        metrics: &[
            ("ops_failed_rate", "failed"),
            ("ops_skipped_rate", "skipped"),
        ],
    },
];
