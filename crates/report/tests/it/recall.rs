//! What reports say of runs of the recall study.

use std::{fs, path::Path};

use record::{Outcome, Reward};
use report::{RunView, Seeds, SeedsError, render_html, samples_text, summary_text};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    fixture,
    recall_fixture::{groups, notes, run_of_seed, whole_run},
    render::{check_well_formed, view_of},
};

#[test]
fn a_whole_run_has_every_section() {
    let html = render_html(&view_of(whole_run)).unwrap();
    // For a person to look at.
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recall-report.html");
    fs::write(place, &html).unwrap();
    check_well_formed(&html);
    for heading in [
        "Before and after",
        "Against memories that nobody learnt to write",
        "By question type",
        "Memory over turns",
        "Curves",
        "Episodes to read",
    ] {
        assert!(html.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    for title in [
        "Answers while training",
        "F1 by question type",
        "Step rewards",
        "KL to the start",
        "Live facts",
    ] {
        assert!(html.contains(&format!("<h3>{title}</h3>")), "{title}");
    }
    for part in [
        "KL, memory",
        "KL, reader",
        "the question alone",
        "abstention accuracy",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("Critiques to read"));
}

#[test]
fn the_result_is_said_in_one_sentence() {
    let text = summary_text(&view_of(whole_run));
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = words.join(" ");
    for part in [
        "F1 rose from 31.0 % (25.0–37.0) with sft to 62.0 % (56.0–68.0) with rl (trained: memory, \
         answer) on 40 held-out tasks: +31.0 points, and the 95 % intervals do not overlap; exact \
         match rose from",
        "The best baseline at equal token budget, full context, has 40.0 % (34.0–46.0): rl is 22.0 \
         points above it, and the intervals are apart.",
        "full context 40.0 % (34.0–46.0) +22.0 points, intervals apart",
        "F1: temporal",
        // An amount, although it lies between 0 and 1.
        "live facts 0.25 (0.25–0.75)",
    ] {
        assert!(said.contains(part), "{part}\n{text}");
    }
}

/// One task before and after: nothing is known of chance, so nothing is called real.
#[test]
fn bounds_that_meet_are_called_neither_apart_nor_overlapping() {
    let view = view_of(|path| {
        let run = fixture::begin_study(path, "recall", 1, "");
        for (name, f1) in [("sft/last_k", 0.5), ("sft", 0.0), ("rl", 1.0)] {
            let metrics = [("f1".to_owned(), fixture::around(f1, 0.0))].into();
            fixture::evaluate(&run, name, "reader", 1, metrics, None);
        }
    });
    let text = summary_text(&view);
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = words.join(" ");
    for part in [
        "F1 rose from 0.0 % with sft to 100.0 % with rl on 1 held-out task: +100.0 points, and without \
         intervals this run alone does not settle it.",
        "rl is 50.0 points above it, and without intervals that may be chance.",
        "+100.0 points, no interval",
    ] {
        assert!(said.contains(part), "{part}\n{text}");
    }
    assert!(
        !text.contains("apart") && !text.contains("(0.0–0.0)"),
        "{text}"
    );
}

/// Where another metric than F1 scores answers, results speak of it.
#[test]
fn results_are_judged_by_the_metric_that_answers_are_scored_by() {
    let view = view_of(|path| {
        let run = fixture::begin_study(path, "recall", 1, "");
        for (name, score, f1) in [("sft", 0.2, 0.5), ("rl", 0.6, 0.4), ("rl/last_k", 0.3, 0.9)] {
            let metrics = [("score", score), ("f1", f1), ("score/when", score)];
            let metrics =
                metrics.map(|(name, value)| (name.to_owned(), fixture::around(value, 0.05)));
            fixture::evaluate(&run, name, "reader", 8, metrics.into(), None);
        }
    });
    let text = summary_text(&view);
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = words.join(" ");
    for part in [
        "The score rose from 20.0 %",
        "The best baseline at equal token budget, last k, has 30.0 %",
        "ahead in score",
        "+30.0 points, intervals apart",
        "score: when",
    ] {
        assert!(said.contains(part), "{part}\n{text}");
    }
    check_well_formed(&render_html(&view).unwrap());
}

#[test]
fn groups_with_a_single_verdict_are_among_the_problems() {
    let view = view_of(|path| {
        let run = fixture::begin_study(path, "recall", 1, "");
        run.phase_started("rl").unwrap();
        for (step, alone) in [(1, 2.0), (2, 0.0), (3, 1.0)] {
            let metrics = [("rollout/singleton_groups", alone)];
            fixture::commit(&run, "rl", step, 9, metrics, [("timing_s/step", 1.0)]);
        }
    });
    let problem = "3 groups in 2 steps had a single episode with a verdict";
    assert!(summary_text(&view).contains(problem));
    assert!(render_html(&view).unwrap().contains(problem));
    let none = "had a single episode";
    assert!(!summary_text(&view_of(whole_run)).contains(none));
}

#[test]
fn an_episode_is_told_turn_by_turn() {
    let view = view_of(whole_run);
    let html = render_html(&view).unwrap();
    for part in [
        "Wrong before, right now",
        "2 of 2 right with rl, 1 of 2 right with sft",
        // What was refused and what was known.
        "this is no operation",
        "knows already",
        // What was superseded, what was evicted and what therefore is struck out.
        "<del>Ben lives in Lima.</del>",
        "superseded by f000001 in turn 1",
        "<del>Hugo plays golf.</del>",
        "evicted in turn 1: the memory was full",
        "forgotten: f000002 was evicted in turn 1",
        "in the prompt",
        "format 0.5",
        "duplicate -0.25",
        "18 tokens of memory in the prompt (facts 6, window 12)",
        "sft wrote nothing here",
        "the right answer is to abstain",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let text = samples_text(&view, 2);
    for part in ["Wrong before, right now", "Lima  (wrong)", "Oslo  (right)"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_run_without_reinforcement_is_shown_as_far_as_it_got() {
    let view = view_of(|path| {
        let run = fixture::begin_study(path, "recall", 1, "not a recipe");
        let metrics = [("f1".to_owned(), fixture::around(0.3, 0.1))].into();
        fixture::evaluate(&run, "sft", "reader-sft", 8, metrics, Some(&groups(false)));
    });
    let html = render_html(&view).unwrap();
    check_well_formed(&html);
    assert!(html.contains("One episode") && html.contains(">did not fit<"));
    assert!(html.contains("never written"));
    assert!(summary_text(&view).contains("F1 is 30.0"));
    let begun = view_of(|path| drop(fixture::begin_study(path, "recall", 1, "")));
    check_well_formed(&render_html(&begun).unwrap());
    assert_eq!(samples_text(&begun, 2), "");
}

#[test]
fn text_of_dialogues_cannot_become_markup() {
    let attack = "</pre><script>alert(1)</script>\"'&";
    let view = view_of(|path| {
        let run = fixture::begin_study(path, "recall", 1, "");
        let graded = Outcome::Graded {
            reward: Reward::of("f1", 0.0),
        };
        let mut hostile = notes(true, attack);
        hostile["core"] = json!(attack);
        hostile["facts"][0]["text"] = json!(attack);
        hostile["events"][0]["memory_ops"][1]["error"] = json!(attack);
        let groups = [fixture::group(0, hostile, graded)];
        let metrics = [(format!("f1/{attack}"), fixture::around(0.3, 0.1))].into();
        fixture::evaluate(&run, "rl/full_context", attack, 8, metrics, None);
        fixture::evaluate(
            &run,
            "rl",
            attack,
            8,
            fixture::measures([0.5]),
            Some(&groups),
        );
    });
    let html = render_html(&view).unwrap();
    check_well_formed(&html);
    assert!(!html.contains("<script") && !html.contains("<b>\""));
    assert!(html.contains("Episodes to read"));
}

#[test]
fn seeds_are_compared_with_intervals_over_seeds() {
    let dir = TempDir::new().unwrap();
    let runs: Vec<RunView> = [(1, 0.0), (2, 0.02), (3, -0.02)]
        .iter()
        .map(|(seed, luck)| {
            let path = dir.path().join(format!("seed-{seed}"));
            run_of_seed(&path, *seed, *luck);
            RunView::load(&path).unwrap()
        })
        .collect();
    let seeds = Seeds::of(&runs).unwrap();
    assert_eq!((seeds.metric, seeds.apart), ("f1", 3));
    let change = seeds.changes.iter().find(|one| one.metric == "f1").unwrap();
    assert!((change.gain.value - 0.31).abs() < 1e-9);
    // 4.3027 (t of two degrees) times a standard deviation of 0.02 over the root of 3.
    let half = 4.3027 * 0.02 / 3.0_f64.sqrt();
    assert!((change.gain.high - 0.31 - half).abs() < 1e-4);
    let full = seeds
        .beside
        .iter()
        .find(|one| one.evaluation == "rl/full_context")
        .unwrap();
    assert!((full.ahead.value - 0.22).abs() < 1e-9 && full.seeds == 3);
    let text = seeds.text();
    for part in [
        "F1 in %",
        "F1: temporal",
        "context tokens",
        "rl: +22.0 points",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let other = view_of(fixture::whole_run);
    let error = Seeds::of(&[runs[0].clone(), other]).unwrap_err();
    assert!(matches!(error, SeedsError::OtherStudy { .. }), "{error}");
}
