//! What of a critique run is drawn over the steps of training.

use crate::{curves::Panel, words::Unit};

/// After the reward.
pub(super) const PANELS: [Panel; 5] = [
    Panel {
        title: "pass@1 while training",
        meaning: "revisions of the step's own tasks that pass; initial: before revision",
        unit: Unit::Share,
        metrics: &[
            ("pass_at_1", "after revision"),
            ("initial_pass_at_1", "before"),
        ],
    },
    Panel {
        title: "Made right, broken",
        meaning: "wrong programs made right, right ones broken",
        unit: Unit::Share,
        metrics: &[("delta_up", "Δ↑"), ("delta_down", "Δ↓")],
    },
    Panel {
        title: "Judgment",
        meaning: "verdicts of the critiques against the truth",
        unit: Unit::Share,
        metrics: &[
            ("judgment_accuracy_on_wrong", "wrong programs"),
            ("judgment_accuracy_on_right", "right programs"),
            ("judgment_f1", "macro F1"),
        ],
    },
    Panel {
        title: "Exactly right critiques",
        meaning: "the true defect and its true repair are named",
        unit: Unit::Share,
        metrics: &[("exact_on_wrong", "wrong programs")],
    },
    Panel {
        title: "No judgment line",
        meaning: "critiques that the reward's gate turns away",
        unit: Unit::Share,
        metrics: &[("gate_fail_rate", "gate fails")],
    },
];
