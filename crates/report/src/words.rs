//! How metrics, numbers and times are said in a report.

use record::Estimate;

/// What a reader needs to know about an evaluation metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wording {
    pub(crate) label: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) better: Better,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
    Unknown,
}

/// Evaluation metrics in the order in which a table shows them; others follow in name order.
const METRICS: [(&str, Wording); 12] = [
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

const fn wording(label: &'static str, meaning: &'static str, better: Better) -> Wording {
    Wording {
        label,
        meaning,
        better,
    }
}

pub(crate) fn wording_of(metric: &str) -> Option<Wording> {
    METRICS
        .iter()
        .find(|(name, _)| *name == metric)
        .map(|(_, wording)| *wording)
}

/// Place of a metric in a table: known ones first.
pub(crate) fn rank(metric: &str) -> (usize, &str) {
    (
        METRICS
            .iter()
            .position(|(name, _)| *name == metric)
            .unwrap_or(METRICS.len()),
        metric,
    )
}

pub(crate) fn label_of(metric: &str) -> String {
    wording_of(metric).map_or_else(|| metric.replace('_', " "), |known| known.label.to_owned())
}

/// How the numbers of a metric are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Between 0 and 1, written in percent.
    Share,
    Number,
}

impl Unit {
    /// Shares when every bound lies between -1 and 1.
    pub(crate) fn of<'a>(intervals: impl Iterator<Item = &'a Estimate>) -> Self {
        let mut within =
            intervals.flat_map(|interval| [interval.value, interval.low, interval.high]);
        if within.all(|value| (-1.0..=1.0).contains(&value)) {
            Self::Share
        } else {
            Self::Number
        }
    }

    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.1}\u{a0}%", 100.0 * value),
            Self::Number => number(value),
        }
    }

    /// A 95 % interval without its middle.
    pub(crate) fn bounds(self, interval: Estimate) -> String {
        match self {
            Self::Share => format!("{:.1}–{:.1}", 100.0 * interval.low, 100.0 * interval.high),
            Self::Number => format!("{}–{}", number(interval.low), number(interval.high)),
        }
    }

    /// A difference, with its sign.
    pub(crate) fn difference(self, value: f64) -> String {
        let sign = if value < 0.0 { "−" } else { "+" };
        match self {
            Self::Share => format!("{sign}{:.1} points", 100.0 * value.abs()),
            Self::Number => format!("{sign}{}", number(value.abs())),
        }
    }
}

/// About three significant digits, without an exponent while that stays short.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size >= 1e6 {
        trimmed(format!("{:.2}", value / 1e6)) + "M"
    } else if size >= 1e4 {
        trimmed(format!("{:.1}", value / 1e3)) + "k"
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 1e-3 {
        trimmed(if size >= 10.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.3}")
        })
    } else {
        format!("{value:.1e}")
    }
}

fn trimmed(decimals: String) -> String {
    decimals
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// Seconds as `4.2 s`, `3 min 05 s` or `2 h 10 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.1}\u{a0}s"),
        60..3600 => format!("{}\u{a0}min {:02}\u{a0}s", whole / 60, whole % 60),
        _ => format!("{}\u{a0}h {:02}\u{a0}min", whole / 3600, whole % 3600 / 60),
    }
}

/// `1 step`, `2 steps`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", thousands(n))
}

/// Digits in groups of three.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let written: Vec<String> = [
            0.0,
            1.0,
            0.25,
            -0.1234,
            12.0,
            47.06,
            471.3,
            9_999.0,
            31_000.0,
            2_500_000.0,
            3e-4,
            -2e-7,
        ]
        .map(number)
        .into();
        assert_eq!(
            written,
            [
                "0", "1", "0.25", "-0.123", "12", "47.1", "471", "9999", "31k", "2.5M", "3.0e-4",
                "-2.0e-7"
            ]
        );
    }

    #[test]
    fn times_and_counts_are_said_as_people_say_them() {
        let said =
            [4.2, 59.7, 185.0, 7_800.0].map(|seconds| duration(seconds).replace('\u{a0}', " "));
        assert_eq!(said, ["4.2 s", "1 min 00 s", "3 min 05 s", "2 h 10 min"]);
        assert_eq!(
            [count(1, "step"), count(0, "step"), count(12_345, "task")],
            ["1 step", "0 steps", "12,345 tasks"]
        );
        assert_eq!(thousands(1_000_000), "1,000,000");
    }

    #[test]
    fn a_metric_is_a_share_when_all_its_bounds_are() {
        let interval = |value, low, high| Estimate { value, low, high };
        assert_eq!(
            Unit::of([&interval(0.5, -0.1, 1.0)].into_iter()),
            Unit::Share
        );
        assert_eq!(
            Unit::of([&interval(0.5, 0.1, 1.2)].into_iter()),
            Unit::Number
        );
        assert_eq!(Unit::Share.difference(-0.123), "−12.3 points");
        assert_eq!(Unit::Number.difference(2.0), "+2");
    }
}
