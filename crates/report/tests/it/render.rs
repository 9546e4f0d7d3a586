//! What is in the page and in the terminal.

use std::{fs, path::Path};

use record::Estimate;
use record::{Outcome, Reward};
use report::{RunView, render_html, summary_text};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture;

pub(crate) fn view_of(write: impl FnOnce(&Path)) -> RunView {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    write(&path);
    RunView::load(&path).unwrap()
}

/// Every tag that is opened is closed, in order; attributes are quoted.
pub(crate) fn check_well_formed(html: &str) {
    const VOID: [&str; 3] = ["meta", "link", "br"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let tag = &rest[start + 1..];
        let end = tag.find('>').unwrap();
        let (tag, after) = (&tag[..end], &tag[end + 1..]);
        rest = after;
        if tag.starts_with('!') || tag.ends_with('/') {
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(
                open.pop(),
                Some(name),
                "...{}",
                &rest[..rest.len().min(200)]
            );
        } else {
            let name = tag.split_whitespace().next().unwrap();
            if name == "style" {
                rest = &rest[rest.find("</style>").unwrap() + "</style>".len()..];
            } else if !VOID.contains(&name) {
                open.push(name);
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn a_whole_run_has_every_section() {
    let view = view_of(fixture::whole_run);
    let html = render_html(&view).unwrap();
    // For a person to look at.
    fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html"),
        &html,
    )
    .unwrap();
    check_well_formed(&html);
    for heading in [
        "Before and after",
        "Gates",
        "Curves",
        "Critiques to read",
        "Time",
        "Machinery",
        "Recipe",
    ] {
        assert!(html.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    assert!(html.contains(
        "pass@1 rose from 39.2\u{a0}% (35.0–43.4) with sft to 66.4\u{a0}% (62.2–70.6) with rl on \
         500 held-out tasks: +27.2 points, and the 95 % intervals do not overlap."
    ));
    assert!(html.contains("A gate does not hold (correct)"));
    assert!(html.contains("namespaces + seccomp + landlock"));
    assert!(html.contains("2 of 14 episodes"));
    for title in [
        "Reward",
        "KL to the start",
        "pass@1 while training",
        "Made right, broken",
        "Judgment",
        "Exactly right critiques",
        "Groups without contrast",
        "Supervised loss",
    ] {
        assert!(html.contains(&format!("<h3>{title}</h3>")), "{title}");
    }
    assert!(html.contains("Repaired only after the second critique"));
    assert!(html.contains("<span class=\"removed\">− "));
}

#[test]
fn the_page_loads_nothing() {
    let html = render_html(&view_of(fixture::whole_run)).unwrap();
    for reach in [
        "http:",
        "https:",
        "//",
        "src=",
        "@import",
        "url(",
        "<script",
        "<iframe",
        "@font-face",
    ] {
        assert!(!html.contains(reach), "{reach}");
    }
}

#[test]
fn the_same_run_makes_the_same_page() {
    let view = view_of(fixture::whole_run);
    assert_eq!(render_html(&view).unwrap(), render_html(&view).unwrap());
}

#[test]
fn the_terminal_summary_says_the_result() {
    let text = summary_text(&view_of(fixture::whole_run));
    for part in [
        "critique · tiny (finished)",
        "sft → rl",
        "66.4\u{a0}% (62.2–70.6)",
        "+27.2 points, intervals apart",
        "gate correct",
        "NOT MET",
        "sft/clean",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_run_that_stopped_early_is_shown_as_far_as_it_got() {
    type Writing = fn(&Path);
    let stopped: [(&str, Writing); 4] = [
        ("not finished: no phase has begun", |path| {
            drop(fixture::begin(path))
        }),
        ("not finished: in phase rl", |path| {
            fixture::begin(path).phase_started("rl").unwrap()
        }),
        ("not finished: after phase sft/clean, step 50", |path| {
            fixture::supervised(&fixture::begin(path), "sft/clean", 5, 10, 4.0);
        }),
        ("not finished: after phase rl, step 1", |path| {
            let run = fixture::begin(path);
            fixture::rl(&run, 1);
            let metrics = fixture::measures([0.4]);
            fixture::evaluate(
                &run,
                "sft",
                "critic",
                1,
                metrics,
                Some(&fixture::episodes("sft")),
            );
        }),
    ];
    for (status, write) in stopped {
        let view = view_of(write);
        let html = render_html(&view).unwrap();
        check_well_formed(&html);
        assert!(html.contains(&status.replace('/', "&#x2f;")), "{status}");
        assert!(summary_text(&view).contains(status), "{status}");
    }
    let html = render_html(&RunView::default()).unwrap();
    check_well_formed(&html);
    assert!(summary_text(&RunView::default()).contains("no result"));
}

#[test]
fn what_cannot_be_read_is_said_and_the_rest_is_shown() {
    let view = view_of(|path| {
        fixture::whole_run(path);
        fs::remove_file(path.join("recipe.toml")).unwrap();
        fs::write(
            path.join("episodes/evaluations/rl.jsonl.zst"),
            "other bytes",
        )
        .unwrap();
    });
    assert_eq!(view.problems.len(), 2);
    let html = render_html(&view).unwrap();
    check_well_formed(&html);
    assert!(html.contains("rl.jsonl.zst is not what the journal committed"));
    assert!(html.contains("<h2>Before and after</h2>") && html.contains("One critique"));
    assert!(!html.contains("<h2>Recipe</h2>"));
}

/// Two suspects, all of whose texts are `text`.
fn suspects(text: &str) -> Value {
    let suspect = |member: u32, score: f64| {
        json!({"id": {"step": 3, "group": 0, "member": member}, "task": "t",
               "suspicion": {"score": score, "reasons": [text]}, "statement": text, "program": text,
               "critique": text, "revision": text})
    };
    json!({"rewarded": 1200, "suspicious": 1, "listed": [suspect(7, 3.5), suspect(2, 0.5)]})
}

#[test]
fn suspicious_rewards_are_listed_with_their_reasons() {
    let view = view_of(|path| {
        let run = fixture::begin(path);
        let noted = suspects("mentions os\u{200b}");
        run.note("critique/suspects", noted).unwrap();
        run.note("summary/rewarded_episodes", json!({"suspicious": 1}))
            .unwrap();
    });
    let html = render_html(&view).unwrap();
    check_well_formed(&html);
    assert!(html.contains("1 of 1,200 rewarded episodes are suspicious"));
    assert!(html.contains("href=\"#episode-3-0-7\"") && html.contains("id=\"episode-3-0-7\""));
    assert!(html.contains("mentions os"));
    assert!(
        html.contains("os\\u{200b}"),
        "what does not print is written out"
    );
    let noted = &view.replay.summary().noted;
    assert_eq!(noted["rewarded_episodes"], json!({"suspicious": 1}));
}

#[test]
fn what_hides_behind_decoding_is_said() {
    let view = view_of(|path| {
        let run = fixture::begin(path);
        run.phase_started("rl").unwrap();
        for step in 1..=2 {
            let timings = [
                ("decoding", 8.0),
                ("sandbox", 4.0),
                ("both", 3.0),
                ("sandbox_alone", 1.0),
            ];
            let timings = timings.map(|(name, seconds)| (format!("overlap_s/{name}"), seconds));
            let done = journal::Step {
                phase: "rl".to_owned(),
                step,
                timings: timings.into(),
                ..journal::Step::default()
            };
            run.commit_step(done, None).unwrap();
        }
    });
    let html = render_html(&view).unwrap();
    assert!(html.contains("sandbox behind decoding") && html.contains("75.0"));
    assert_eq!(view.replay.summary().overlap["rl"]["sandbox_alone"], 2.0);
}

#[test]
fn text_of_models_cannot_become_markup() {
    let attack = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
    let view = view_of(|path| {
        let run = fixture::begin(path);
        let notes = json!({"statement": attack, "program": attack, "critique": attack,
            "judgment": attack, "revision": format!("{attack}\nmore"), "passed": false,
            "status": attack, "family": attack, "bug": attack, "initially_right": false});
        let graded = Outcome::Graded {
            reward: Reward::of("passed", 0.0),
        };
        let groups = [fixture::group(0, notes, graded)];
        let metrics = [(attack.to_owned(), Estimate::default())].into();
        fixture::evaluate(&run, "sft", attack, 1, metrics, Some(&groups));
        run.note("sandbox/tier", attack).unwrap();
        run.note("critique/suspects", suspects(attack)).unwrap();
    });
    let html = render_html(&RunView {
        recipe: attack.to_owned(),
        ..view
    })
    .unwrap();
    check_well_formed(&html);
    assert!(!html.contains("<script") && !html.contains("<img"));
    assert!(html.contains("&lt;script&gt;"));
}

#[test]
fn notes_of_another_study_make_no_samples_and_no_error() {
    for notes in [
        json!(null),
        json!("text"),
        json!({"steps": 4}),
        json!({"critique": 4}),
        json!([]),
    ] {
        let view = view_of(|path| {
            let run = fixture::begin(path);
            let graded = Outcome::Graded {
                reward: Reward::of("solved", 1.0),
            };
            let groups = [fixture::group(0, notes.clone(), graded)];
            fixture::evaluate(
                &run,
                "after",
                "planner",
                1,
                fixture::measures([1.0]),
                Some(&groups),
            );
        });
        let html = render_html(&view).unwrap();
        assert!(!html.contains("Critiques to read"), "{notes}");
        assert!(html.contains("<h2>Evaluation</h2>") && !html.contains("Before and after"));
    }
}

#[test]
fn words_follow_the_numbers() {
    let sentence = |before: Estimate, after: Estimate, metric: &str| {
        let view = view_of(|path| {
            let run = fixture::begin(path);
            for (name, interval) in [("sft", before), ("rl", after)] {
                let metrics = [(metric.to_owned(), interval)].into();
                fixture::evaluate(&run, name, name, 100, metrics, None);
            }
        });
        (summary_text(&view), render_html(&view).unwrap())
    };
    let interval = |value, low, high| Estimate { value, low, high };
    let (text, html) = sentence(
        interval(0.5, 0.4, 0.6),
        interval(0.55, 0.45, 0.65),
        "pass_at_1",
    );
    assert!(
        text.contains("rose") && text.contains("does not settle it"),
        "{text}"
    );
    assert!(html.contains("even-text"));
    let (text, html) = sentence(
        interval(0.5, 0.4, 0.6),
        interval(0.2, 0.1, 0.3),
        "pass_at_1",
    );
    assert!(
        text.contains("fell") && text.contains("do not overlap"),
        "{text}"
    );
    assert!(html.contains("bad-text") && html.contains("−30.0 points"));
    let (_, html) = sentence(
        interval(0.5, 0.4, 0.6),
        interval(0.2, 0.1, 0.3),
        "delta_down",
    );
    assert!(
        html.contains("good-text"),
        "a fall of a measure that should fall is good"
    );
    // Bounds that touch have a point in common.
    let (text, _) = sentence(
        interval(0.5, 0.4, 0.6),
        interval(0.7, 0.6, 0.8),
        "pass_at_1",
    );
    assert!(text.contains("does not settle it"), "{text}");
    let (text, _) = sentence(
        interval(12.0, 11.0, 13.0),
        interval(20.5, 19.0, 22.0),
        "turns",
    );
    assert!(
        text.contains("turns rose from 12 (11–13)") && text.contains("+8.5"),
        "{text}"
    );
}

#[test]
fn a_written_report_lies_in_the_run() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    fixture::whole_run(&path);
    let written = report::write(&path).unwrap();
    assert_eq!(written, path.join("report.html"));
    let html = render_html(&RunView::load(&path).unwrap()).unwrap();
    assert_eq!(fs::read_to_string(written).unwrap(), html);
    assert!(report::write(dir.path()).is_err());
}

#[test]
fn a_gate_is_met_narrowly_met_or_broken() {
    let interval = |value, low, high| Estimate { value, low, high };
    let view = view_of(|path| {
        let run = fixture::begin(path);
        let limits = json!({"a": {"max": 0.15}, "b": {"max": 0.15}, "c": {"max": 0.15},
            "d": {"min": 0.85}, "e": {"metric": "turns", "max": 9}});
        run.note("gates/limits", limits).unwrap();
        for (gate, metric, interval) in [
            ("a", "fix_rate", interval(0.1, 0.05, 0.15)),
            ("b", "fix_rate", interval(0.15, 0.1, 0.2)),
            ("c", "fix_rate", interval(0.151, 0.1, 0.2)),
            ("d", "fix_rate", interval(0.84, 0.8, 0.9)),
            ("e", "turns", interval(7.5, 7.0, 8.0)),
            ("f", "fix_rate", interval(0.5, 0.4, 0.6)),
        ] {
            let metrics = [(metric.to_owned(), interval)].into();
            fixture::evaluate(&run, &format!("gate/{gate}"), "reviser", 100, metrics, None);
        }
    });
    let text = summary_text(&view);
    let line = |gate: &str| {
        text.lines()
            .find(|line| line.starts_with(gate))
            .unwrap()
            .to_owned()
    };
    assert!(
        line("gate a").ends_with("at most 15.0\u{a0}%   met"),
        "{text}"
    );
    assert!(line("gate b").ends_with("met, its interval reaches beyond"));
    assert!(line("gate c").ends_with("NOT MET"));
    assert!(line("gate d").ends_with("at least 85.0\u{a0}%  NOT MET"));
    assert!(line("gate e").contains("turns 7.5 (7–8)") && line("gate e").ends_with("met"));
    assert!(
        line("gate f").ends_with("(40.0–60.0)"),
        "no limit, no verdict"
    );
    assert!(text.contains("Gates do not hold (c, d)"), "{text}");
    assert!(
        render_html(&view)
            .unwrap()
            .contains("Gates do not hold (c, d)")
    );
}
