//! How metrics, numbers and times are said in a report.

use record::Estimate;

use crate::study;

/// What a reader needs to know about an evaluation metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wording {
    pub(crate) label: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) better: Better,
    /// Whether its values are no shares although they may lie between 0 and 1.
    pub(crate) amount: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
    Unknown,
}

pub(crate) const fn wording(label: &'static str, meaning: &'static str, better: Better) -> Wording {
    Wording {
        label,
        meaning,
        better,
        amount: false,
    }
}

/// Of a metric that is no share, however small it is.
pub(crate) const fn amount(label: &'static str, meaning: &'static str, better: Better) -> Wording {
    Wording {
        amount: true,
        ..wording(label, meaning, better)
    }
}

/// Of the metric, or of the one that it is a part of, as `f1/when` is of `f1`.
pub(crate) fn wording_of(metric: &str) -> Option<Wording> {
    let place = place_of(metric)?;
    study::metrics().nth(place).map(|(_, wording)| *wording)
}

/// Place of a metric in a table: known ones first, others in name order.
pub(crate) fn rank(metric: &str) -> (usize, &str) {
    (place_of(metric).unwrap_or(usize::MAX), metric)
}

fn place_of(metric: &str) -> Option<usize> {
    let place = |wanted: &str| study::metrics().position(|(name, _)| *name == wanted);
    place(metric).or_else(|| place(metric.split_once('/')?.0))
}

pub(crate) fn label_of(metric: &str) -> String {
    let Some(known) = wording_of(metric) else {
        return metric.replace('_', " ");
    };
    let whole = study::metrics().any(|(name, _)| *name == metric);
    match metric.split_once('/') {
        Some((_, part)) if !whole => {
            format!("{}: {}", known.label, part.replace(['_', '/'], " "))
        }
        _ => known.label.to_owned(),
    }
}

/// How the numbers of a metric are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Between 0 and 1, written in percent.
    Share,
    Number,
}

impl Unit {
    /// Of a metric with these intervals.
    pub(crate) fn of_metric<'a>(
        metric: &str,
        intervals: impl Iterator<Item = &'a Estimate>,
    ) -> Self {
        match wording_of(metric) {
            Some(known) if known.amount => Self::Number,
            _ => Self::of(intervals),
        }
    }

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

    /// With its bounds, where there are any.
    pub(crate) fn write_with_bounds(self, found: Estimate) -> String {
        let value = self.write(found.value);
        match self.bounds(found).as_str() {
            "" => value,
            bounds => format!("{value} ({bounds})"),
        }
    }

    /// The same, saying what the bounds are.
    pub(crate) fn write_named(self, found: Estimate) -> String {
        let value = self.write(found.value);
        match self.bounds(found).as_str() {
            "" => value,
            bounds => format!("{value} (95 % interval {bounds})"),
        }
    }

    /// A 95 % interval without its middle; empty where there is none.
    pub(crate) fn bounds(self, interval: Estimate) -> String {
        match self {
            _ if !interval.has_interval() => String::new(),
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
