//! The geometry of a line chart: pure numbers and path strings, which the template draws.

use serde::Serialize;

use crate::words::{self, Unit};

pub(crate) const WIDTH: f64 = 340.0;
pub(crate) const HEIGHT: f64 = 176.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;

/// From this many points on the line is smoothed and the raw one drawn faintly behind it.
const SMOOTH_FROM: usize = 24;

/// More points than this get no hover text each; every n-th does.
const MOST_HOVERS: usize = 120;

/// What the horizontal axis counts unless a chart says otherwise.
const STEP: &str = "step";

/// A named line. Points are in order of `x`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// The 95 % interval around each point; empty where there are none.
    pub(crate) bounds: Vec<(f64, f64)>,
}

/// A chart ready to be drawn in a box of [`WIDTH`] by [`HEIGHT`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) meaning: String,
    /// What the horizontal axis counts.
    pub(crate) x_name: &'static str,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Left, right, top and bottom of the plot itself.
    pub(crate) plot: [f64; 4],
    pub(crate) lines: Vec<Line>,
    pub(crate) x_ticks: Vec<Tick>,
    pub(crate) y_ticks: Vec<Tick>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Line {
    pub(crate) label: String,
    /// SVG path of the line to read.
    pub(crate) path: String,
    /// SVG path of the raw values behind a smoothed line.
    pub(crate) raw: Option<String>,
    /// SVG path of the area between the bounds.
    pub(crate) band: Option<String>,
    /// Means of the first and of the last few values.
    pub(crate) first: String,
    pub(crate) last: String,
    pub(crate) hovers: Vec<Hover>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Hover {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) text: String,
}

impl Chart {
    /// By step; `None` when no series has a point.
    pub(crate) fn of(title: &str, meaning: &str, unit: Unit, series: &[Series]) -> Option<Self> {
        Self::over(STEP, title, meaning, unit, series)
    }

    /// By what `x_name` counts; `None` when no series has a point.
    pub(crate) fn over(
        x_name: &'static str,
        title: &str,
        meaning: &str,
        unit: Unit,
        series: &[Series],
    ) -> Option<Self> {
        let points = || series.iter().flat_map(|one| &one.points);
        points().next()?;
        let x_range = range(points().map(|point| point.0));
        let bounds = series.iter().flat_map(|one| &one.bounds);
        let bounds = bounds.flat_map(|(low, high)| [*low, *high]);
        let y_range = padded(range(points().map(|point| point.1).chain(bounds)), unit);
        let axes = Axes { x_range, y_range };
        let y_ticks = ticks(y_range, 5).into_iter().map(|value| {
            let label = match unit {
                Unit::Share => format!("{}%", words::number(100.0 * value)),
                Unit::Number => words::number(value),
            };
            Tick {
                at: axes.y(value),
                label,
            }
        });
        let x_ticks = ticks(x_range, 4)
            .into_iter()
            .filter(|value| value.fract() == 0.0)
            .map(|value| Tick {
                at: axes.x(value),
                label: words::number(value),
            });
        Some(Self {
            title: title.to_owned(),
            meaning: meaning.to_owned(),
            x_name,
            width: WIDTH,
            height: HEIGHT,
            plot: [LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM],
            lines: series
                .iter()
                .filter(|one| !one.points.is_empty())
                .map(|one| Line::of(one, x_name, unit, &axes))
                .collect(),
            x_ticks: x_ticks.collect(),
            y_ticks: y_ticks.collect(),
        })
    }
}

struct Axes {
    x_range: (f64, f64),
    y_range: (f64, f64),
}

impl Axes {
    fn x(&self, value: f64) -> f64 {
        tenths(LEFT + share(value, self.x_range) * (WIDTH - LEFT - RIGHT))
    }
    fn y(&self, value: f64) -> f64 {
        tenths(HEIGHT - BOTTOM - share(value, self.y_range) * (HEIGHT - TOP - BOTTOM))
    }
    /// Along the lower bounds and back along the upper ones.
    fn band(&self, points: &[(f64, f64)], bounds: &[(f64, f64)]) -> String {
        let places = points.iter().map(|point| point.0).zip(bounds);
        let low = places.clone().map(|(x, bounds)| (x, bounds.0));
        let high = places.rev().map(|(x, bounds)| (x, bounds.1));
        let around: Vec<(f64, f64)> = low.chain(high).collect();
        format!("{}Z", self.path(&around))
    }
    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            path.push_str(&format!("{command}{} {}", self.x(*x), self.y(*y)));
        }
        if points.len() == 1 {
            // A line of no length with round ends is drawn as a dot.
            path.push_str("h0");
        }
        path
    }
}

impl Line {
    fn of(series: &Series, x_name: &str, unit: Unit, axes: &Axes) -> Self {
        let points = &series.points;
        let smooth = points.len() >= SMOOTH_FROM && !mostly_one_value(points);
        let few = (points.len() / 10).clamp(1, 5);
        let mean = |values: &[(f64, f64)]| {
            unit.write(values.iter().map(|point| point.1).sum::<f64>() / values.len() as f64)
        };
        let hovers = points
            .iter()
            .step_by(points.len().div_ceil(MOST_HOVERS))
            .map(|&(x, y)| Hover {
                x: axes.x(x),
                y: axes.y(y),
                text: format!("{}, {x_name} {x}: {}", series.label, unit.write(y)),
            });
        Self {
            label: series.label.clone(),
            path: axes.path(&if smooth {
                smoothed(points)
            } else {
                points.clone()
            }),
            raw: smooth.then(|| axes.path(points)),
            band: (series.bounds.len() == points.len()).then(|| axes.band(points, &series.bounds)),
            first: mean(&points[..few]),
            last: mean(&points[points.len() - few..]),
            hovers: hovers.collect(),
        }
    }
}

/// Centred moving mean over about a tenth of the points; at the ends, over those that there are.
fn smoothed(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let reach = points.len() / 20;
    let mean_around = |index: usize| {
        let window = &points[index.saturating_sub(reach)..(index + reach + 1).min(points.len())];
        window.iter().map(|point| point.1).sum::<f64>() / window.len() as f64
    };
    points
        .iter()
        .enumerate()
        .map(|(index, point)| (point.0, mean_around(index)))
        .collect()
}

/// Rare events, which a mean would smear into something that never was.
fn mostly_one_value(points: &[(f64, f64)]) -> bool {
    points.iter().filter(|point| point.1 == points[0].1).count() * 2 > points.len()
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, greatest), value| (least.min(value), greatest.max(value)),
    )
}

/// Room above and below, zero included when it is near, shares kept between 0 and 1.
fn padded((least, greatest): (f64, f64), unit: Unit) -> (f64, f64) {
    let span = greatest - least;
    let room = if span > 0.0 {
        0.06 * span
    } else {
        (0.1 * greatest.abs()).max(0.05)
    };
    let mut low = least - room;
    let mut high = greatest + room;
    if least >= 0.0 && (low < 0.0 || least < 0.4 * greatest) {
        low = 0.0;
    }
    if unit == Unit::Share && greatest <= 1.0 {
        high = high.min(1.0);
    }
    (low, high)
}

/// Round values inside a range, about `wanted` of them, at steps of 1, 2 or 5 times a power of ten.
fn ticks((low, high): (f64, f64), wanted: usize) -> Vec<f64> {
    let span = high - low;
    if span <= 0.0 {
        return vec![low];
    }
    let rough = span / wanted as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|unit| unit * power)
        .find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    // A product of a whole number and the step, so that no error adds up along the axis.
    (first..=last)
        .map(|index| index as f64 * step)
        .map(clean)
        .collect()
}

/// Drops the last binary digits that `3 * 0.1` leaves behind.
fn clean(value: f64) -> f64 {
    format!("{value:.12e}").parse().unwrap_or(value)
}

fn share(value: f64, (low, high): (f64, f64)) -> f64 {
    if high > low {
        (value - low) / (high - low)
    } else {
        0.5
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks((0.0, 1.0), 5), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(ticks((0.13, 0.58), 4), [0.2, 0.4]);
        assert_eq!(ticks((1.0, 60.0), 4), [20.0, 40.0, 60.0]);
        assert_eq!(ticks((-3e-5, 1e-4), 4), [0.0, 5e-5, 1e-4]);
        assert_eq!(ticks((3.0, 3.0), 4), [3.0]);
    }

    #[test]
    fn every_line_stays_inside_its_box() {
        let wild: Vec<(f64, f64)> = (0..200)
            .map(|i| (f64::from(i), f64::from(i * i % 37) - 18.0))
            .collect();
        for points in [wild, vec![(5.0, 0.25)], vec![(0.0, 0.0), (1.0, 0.0)]] {
            let series = [Series {
                label: "a".to_owned(),
                bounds: points.iter().map(|(_, y)| (y - 1.0, y + 1.0)).collect(),
                points,
            }];
            let chart = Chart::of("t", "", Unit::Number, &series).unwrap();
            let line = &chart.lines[0];
            let paths = [Some(&line.path), line.raw.as_ref(), line.band.as_ref()];
            for path in paths.into_iter().flatten() {
                let numbers: Vec<f64> = path
                    .trim_end_matches("h0")
                    .trim_end_matches('Z')
                    .split(['M', 'L', ' '])
                    .filter(|text| !text.is_empty())
                    .map(|text| text.parse().unwrap())
                    .collect();
                for pair in numbers.chunks(2) {
                    assert!((LEFT..=WIDTH - RIGHT).contains(&pair[0]), "{path}");
                    assert!((TOP..=HEIGHT - BOTTOM).contains(&pair[1]), "{path}");
                }
            }
        }
        assert_eq!(Chart::of("t", "", Unit::Number, &[]), None);
    }

    #[test]
    fn smoothing_keeps_straight_lines_and_levels_spikes() {
        let line: Vec<(f64, f64)> = (0..60).map(|i| (f64::from(i), f64::from(2 * i))).collect();
        assert_eq!(smoothed(&line)[3..57], line[3..57]);
        let mut spike = vec![(0.0, 0.0); 60];
        spike[59].1 = 4.0;
        assert_eq!(
            smoothed(&spike)[59].1,
            1.0,
            "the last point stands for the last few"
        );
    }
}
