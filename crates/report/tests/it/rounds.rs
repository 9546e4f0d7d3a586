//! Rounds of critique and revision: their section, their table, and several seeds of them.

use std::{collections::BTreeMap, path::Path};

use record::Estimate;
use report::{RunView, Seeds, render_html, summary_text};
use tempfile::TempDir;

use crate::{
    fixture::{RECIPE, around, begin, begin_study, evaluate, measures},
    render::{check_well_formed, view_of},
};

/// Shares that are right at the start and after every round.
const CONTENDERS: [(&str, [f64; 3]); 4] = [
    ("no-critique", [0.2, 0.2, 0.2]),
    ("oracle", [0.2, 0.9, 0.9]),
    ("sft", [0.2, 0.4, 0.38]),
    ("rl", [0.2, 0.6, 0.7]),
];

fn over_rounds(passes: [f64; 3], shift: f64) -> BTreeMap<String, Estimate> {
    let mut metrics = BTreeMap::new();
    for (round, pass) in passes.into_iter().enumerate() {
        metrics.insert(
            format!("pass_at_1/round-{round}"),
            around(pass + shift, 0.04),
        );
        for difficulty in ["easy", "<hard>"] {
            let name = format!("pass_at_1/round-{round}/difficulty/{difficulty}");
            metrics.insert(name, around(pass, 0.1));
        }
        if round > 0 {
            metrics.insert(format!("regression_rate/round-{round}"), around(0.03, 0.01));
            metrics.insert(format!("judgment_f1/round-{round}"), around(0.6, 0.05));
        }
    }
    let gain = passes[2] / 0.2 - 1.0;
    let interval = Estimate {
        value: gain,
        low: gain - 0.3,
        high: gain + 0.3,
    };
    metrics.insert("gain_over_no_critique/round-2".to_owned(), interval);
    metrics
}

fn write(path: &Path, seed: u64) {
    let run = begin_study(path, "critique", seed, RECIPE);
    for (name, passes) in CONTENDERS {
        let first = measures([passes[1], 0.3, 0.02, 0.7, 0.6, 0.6, 0.8, 0.2]);
        evaluate(&run, name, name, 400, first, None);
        let shift = seed as f64 / 100.0;
        evaluate(
            &run,
            &format!("{name}/rounds"),
            name,
            400,
            over_rounds(passes, shift),
            None,
        );
    }
}

#[test]
fn rounds_are_drawn_compared_and_said() {
    let view = view_of(|path| write(path, 0));
    let html = render_html(&view).unwrap();
    check_well_formed(&html);
    assert!(html.contains("<h2>Rounds of critique and revision</h2>"));
    assert!(html.contains("pass@1 by round"));
    // An interval around every line.
    assert!(html.matches("class=\"area\"").count() >= 3);
    assert!(html.contains("By difficulty") && html.contains("&lt;hard&gt;"));
    assert!(html.contains(
        "After 2 rounds pass@1 is 20.0\u{a0}% (16.0–24.0) with no-critique, 38.0\u{a0}% (34.0–42.0) with sft, \
         70.0\u{a0}% (66.0–74.0) with rl; rl is +250\u{a0}% (+220 to +280) over no critique."
    ));
    // Its own table has it, that of before and after has not.
    assert_eq!(html.matches("<th>oracle<").count(), 3);
    let text = summary_text(&view);
    assert!(text.contains("pass@1 by round"), "{text}");
}

#[test]
fn runs_without_rounds_have_no_section_of_them() {
    let view = view_of(|path| {
        let run = begin(path);
        let metrics = measures([0.4, 0.3, 0.02, 0.7, 0.6, 0.6, 0.8, 0.2]);
        evaluate(&run, "sft", "sft", 400, metrics, None);
    });
    let html = render_html(&view).unwrap();
    assert!(!html.contains("Rounds of critique"));
}

#[test]
fn seeds_of_rounds_are_compared_in_every_round() {
    let directory = TempDir::new().unwrap();
    let runs: Vec<RunView> = (0..3)
        .map(|seed| {
            let path = directory.path().join(seed.to_string());
            write(&path, seed);
            RunView::load(&path).unwrap()
        })
        .collect();
    let seeds = Seeds::of(&runs).unwrap();
    let change = |metric: &str| seeds.changes.iter().find(|one| one.metric == metric);
    let last = change("pass_at_1/round-2").unwrap();
    assert!((last.before.value - 0.39).abs() < 1e-9 && (last.after.value - 0.71).abs() < 1e-9);
    let gain = change("gain_over_no_critique/round-2").map(|one| one.after.value);
    assert!((gain.unwrap() - 2.5).abs() < 1e-9);
    assert!(change("pass_at_1/round-5").is_none() && seeds.beside.is_empty());
}
