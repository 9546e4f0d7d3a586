//! A run of the critique study with plausible numbers, written through the journal; and parts for others.

use std::{collections::BTreeMap, path::Path};

use journal::{Evaluation, Metrics, RunDir, RunStarted, Step};
use record::Estimate;
use record::{Episode, EpisodeId, Fault, Group, Outcome, Reward, Seed, TaskId};
use serde_json::{Value, json};

pub(crate) const RECIPE: &str = r#"study = "critique"
seed = 7

[rl]
steps = 60
groups = 24
members = 8
learning_rate = 3e-4
kl = 0.03
"#;

pub(crate) fn begin(path: &Path) -> RunDir {
    begin_study(path, "critique", 7, RECIPE)
}

pub(crate) fn begin_study(path: &Path, study: &str, seed: u64, recipe: &str) -> RunDir {
    let started = RunStarted {
        study: study.to_owned(),
        name: "tiny".to_owned(),
        seed,
        recipe_hash: "5a1c0de4b7aa90ff".to_owned(),
        etude: "0.1.0".to_owned(),
        machine: BTreeMap::from([
            ("cores".to_owned(), "2".to_owned()),
            ("memory".to_owned(), "7.6 GiB".to_owned()),
        ]),
    };
    RunDir::create(path, recipe, started).unwrap()
}

pub(crate) fn whole_run(path: &Path) {
    let run = begin(path);
    run.note("sandbox/tier", "namespaces + seccomp + landlock")
        .unwrap();
    run.note(
        "gates/about",
        "How often the frozen reviser makes a wrong program pass, by kind of critique. It must follow \
         a right critique and must not repair programs by itself; otherwise a gain says nothing about \
         the critic.",
    )
    .unwrap();
    run.note(
        "gates/limits",
        json!({"right": {"min": 0.85}, "empty": {"max": 0.15}, "malformed": {"max": 0.15},
               "no-op": {"max": 0.15}, "correct": {"max": 0.15}}),
    )
    .unwrap();
    supervised(&run, "sft/clean", 130, 10, 4.6);
    supervised(&run, "sft/mixed", 25, 10, 0.9);
    run.phase_started("eval").unwrap();
    for (kind, rate) in [
        ("right", 0.905),
        ("empty", 0.082),
        ("malformed", 0.094),
        ("no-op", 0.128),
        ("correct", 0.171),
    ] {
        let metrics = BTreeMap::from([("fix_rate".to_owned(), around(rate, 0.03))]);
        evaluate(&run, &format!("gate/{kind}"), "reviser", 350, metrics, None);
    }
    evaluate(
        &run,
        "no-critique",
        "reviser",
        500,
        measures([0.331, 0.081, 0.041]),
        None,
    );
    let sft = [0.392, 0.219, 0.306, 0.486, 0.478, 0.391, 0.684, 0.158];
    evaluate(
        &run,
        "sft",
        "critic after SFT",
        500,
        measures(sft),
        Some(&episodes("sft")),
    );
    run.phase_ended("eval", 126_000).unwrap();
    rl(&run, 60);
    run.phase_started("eval-after").unwrap();
    let rl = [0.664, 0.546, 0.121, 0.731, 0.705, 0.744, 0.702, 0.352];
    evaluate(
        &run,
        "rl",
        "critic after RL",
        500,
        measures(rl),
        Some(&episodes("rl")),
    );
    run.phase_ended("eval-after", 64_000).unwrap();
    run.finish().unwrap();
}

pub(crate) fn supervised(run: &RunDir, phase: &str, steps: u64, stride: u64, start: f64) {
    run.phase_started(phase).unwrap();
    for step in 1..=steps {
        let decay = (-(step as f64) / 30.0).exp();
        commit(
            run,
            phase,
            step * stride,
            16 * 120 * stride,
            [
                ("sft/loss", 0.12 + start * decay + noise(phase, step, 0.03)),
                (
                    "sft/grad_norm",
                    0.4 + 1.5 * decay + noise("norm", step, 0.2),
                ),
                ("sft/lr", 2.5e-3 * (1.0 - step as f64 / steps as f64)),
            ],
            [(
                "perf/train_tokens_per_s",
                27_500.0 + noise("speed", step, 900.0),
            )],
        );
    }
    run.phase_ended(phase, 0).unwrap();
}

pub(crate) fn rl(run: &RunDir, steps: u64) {
    run.phase_started("rl").unwrap();
    for step in 1..=steps {
        let way = 1.0 - (-(step as f64) / 22.0).exp();
        let mut metrics = vec![
            (
                "critic/rewards/mean",
                0.39 + 0.31 * way + noise("reward", step, 0.05),
            ),
            (
                "critic/score/mean",
                0.39 + 0.31 * way + noise("reward", step, 0.05),
            ),
            (
                "actor/kl_loss",
                0.068 * way + noise("kl", step, 0.004).abs(),
            ),
            (
                "actor/entropy",
                0.55 - 0.27 * way + noise("entropy", step, 0.02),
            ),
            (
                "actor/grad_norm",
                0.9 - 0.4 * way + noise("grad", step, 0.1),
            ),
            ("actor/pg_loss", noise("pg", step, 0.02)),
            ("actor/lr", 3e-4),
            (
                "response_length/mean",
                47.0 - 3.0 * way + noise("length", step, 0.8),
            ),
            ("prompt_length/mean", 61.0 + noise("prompt", step, 1.0)),
            (
                "judgment_accuracy_on_wrong",
                0.49 + 0.25 * way + noise("accuracy", step, 0.04),
            ),
            ("judgment_f1", 0.48 + 0.23 * way + noise("f1", step, 0.04)),
            ("delta_up", 0.22 + 0.33 * way + noise("up", step, 0.04)),
            ("delta_down", 0.30 - 0.18 * way + noise("down", step, 0.03)),
            (
                "exact_on_wrong",
                0.16 + 0.2 * way + noise("exact", step, 0.03),
            ),
            (
                "gate_fail_rate",
                0.07 * (1.0 - way) + noise("gate", step, 0.01).abs(),
            ),
            (
                "rollout/zero_variance_share",
                0.26 + 0.2 * way + noise("flat", step, 0.06),
            ),
            ("sandbox/errors", if step % 23 == 0 { 1.0 } else { 0.0 }),
            ("sandbox/timeouts", if step % 7 == 0 { 2.0 } else { 0.0 }),
            (
                "cache/hit_rate",
                0.2 + 0.3 * way + noise("cache", step, 0.02),
            ),
        ];
        if step % 10 == 0 {
            metrics.push(("pass_at_1", 0.39 + 0.27 * way + noise("val", step, 0.02)));
        }
        let timings = [
            ("timing_s/gen", 0.92 + noise("gen", step, 0.1)),
            ("timing_s/ref", 0.11),
            ("timing_s/testing", 0.24 + noise("testing", step, 0.04)),
            ("timing_s/update_actor", 0.52),
            ("timing_s/step", 1.82),
            (
                "perf/sample_tokens_per_s",
                31_000.0 + noise("sampling", step, 2000.0),
            ),
            (
                "perf/train_tokens_per_s",
                27_000.0 + noise("training", step, 1500.0),
            ),
        ];
        commit(run, "rl", step, 38_000, metrics, timings);
    }
    run.phase_ended("rl", 0).unwrap();
}

pub(crate) fn evaluate(
    run: &RunDir,
    name: &str,
    policy: &str,
    n_tasks: u64,
    metrics: BTreeMap<String, Estimate>,
    groups: Option<&[Group]>,
) {
    let (name, policy) = (name.to_owned(), policy.to_owned());
    let evaluation = Evaluation {
        name,
        policy,
        n_tasks,
        metrics,
        ..Evaluation::default()
    };
    run.commit_evaluation(evaluation, groups).unwrap();
}

pub(crate) fn measures<const N: usize>(values: [f64; N]) -> BTreeMap<String, Estimate> {
    let names = [
        "pass_at_1",
        "delta_up",
        "delta_down",
        "judgment_accuracy",
        "judgment_f1",
        "judgment_accuracy_on_wrong",
        "judgment_accuracy_on_right",
        "exact_on_wrong",
    ];
    let named = names.into_iter().zip(values);
    named
        .map(|(name, value)| (name.to_owned(), around(value, 0.042)))
        .collect()
}

pub(crate) fn around(value: f64, reach: f64) -> Estimate {
    Estimate {
        value,
        low: (value - reach).max(0.0),
        high: (value + reach).min(1.0),
    }
}

/// One wrong and one right program in several families, critiqued as the policy would.
pub(crate) fn episodes(policy: &str) -> Vec<Group> {
    let trained = policy == "rl";
    let wrong = "def f(xs):\n    s = 0\n    for x in xs:\n        if x >= 4:\n            s += x * x\n    return s\n";
    let fixed = wrong.replace("x >= 4", "x > 4");
    let off = wrong.replace("s = 0", "s = 1");
    let exact = "Analysis: `s = 0` ok, `x >= 4` want `x > 4`, `s += x * x` ok, `return s` ok\nImprovement suggestions: use `x > 4`.\nOverall judgment: Incorrect";
    let vague = "Analysis: `s = 0` want `s = 1`, `x >= 4` ok, `s += x * x` ok, `return s` ok\nImprovement suggestions: use `s = 1`.\nOverall judgment: Incorrect";
    let pleased = "Analysis: `s = 0` ok, `x > 4` ok, `s += x * x` ok, `return s` ok\nImprovement suggestions: none.\nOverall judgment: Correct";
    let cut = "Analysis: `s = 0` ok, `x >= 4` ok, `s += x";
    let statement = "Write a function f(xs) that returns the sum of the squares of the items that are greater than 4.";
    // Program, critique, judgment, revision, passed; for the two policies.
    type Play<'a> = (&'a str, Option<&'a str>, &'a str, bool);
    let tasks: [(&str, &str, bool, [Play; 2]); 6] = [
        (
            "fold",
            "cmp",
            false,
            [
                (vague, Some("incorrect"), &off, false),
                (exact, Some("incorrect"), &fixed, true),
            ],
        ),
        (
            "digits",
            "cond",
            false,
            [
                (pleased, Some("correct"), wrong, false),
                (exact, Some("incorrect"), &fixed, true),
            ],
        ),
        (
            "range",
            "cmp",
            false,
            [
                (cut, None, wrong, false),
                (exact, Some("incorrect"), &fixed, true),
            ],
        ),
        (
            "fold",
            "",
            true,
            [
                (vague, Some("incorrect"), &off, false),
                (pleased, Some("correct"), &fixed, true),
            ],
        ),
        (
            "pairs",
            "cmp",
            false,
            [
                (exact, Some("incorrect"), &fixed, true),
                (vague, Some("incorrect"), &off, false),
            ],
        ),
        (
            "build",
            "cmp",
            false,
            [
                (exact, Some("incorrect"), &fixed, true),
                (exact, Some("incorrect"), &fixed, true),
            ],
        ),
    ];
    let groups = tasks.iter().enumerate().map(|(index, (family, bug, right, plays))| {
        let (critique, judgment, revision, passed) = plays[usize::from(trained)];
        let notes = json!({
            "arm": policy, "statement": statement, "program": if *right { &fixed } else { wrong },
            "initially_right": right, "critique": critique, "judgment": judgment,
            "gate_ok": judgment.is_some(), "exact": critique == exact, "revision": revision,
            "passed": passed, "status": if passed { "passed" } else { "wrong answer" },
            "family": family, "bug": bug,
        });
        group(index, notes, Outcome::Graded { reward: Reward::of("passed", f64::from(u8::from(passed))) })
    });
    let lost = group(
        9,
        Value::Null,
        Outcome::from(Fault::infra("the sandbox went away")),
    );
    groups.chain([lost]).collect()
}

pub(crate) fn group(index: usize, notes: Value, outcome: Outcome) -> Group {
    let task = TaskId(format!("held-out/{index:04}"));
    let id = EpisodeId {
        step: 0,
        group: index as u32,
        member: 0,
    };
    let episode = Episode {
        id,
        task: task.clone(),
        calls: Vec::new(),
        outcome,
        retries: 0,
        notes,
    };
    Group {
        task,
        episodes: vec![episode],
    }
}

pub(crate) fn commit<'a>(
    run: &RunDir,
    phase: &str,
    step: u64,
    tokens: u64,
    metrics: impl IntoIterator<Item = (&'a str, f64)>,
    timings: impl IntoIterator<Item = (&'a str, f64)>,
) {
    fn named<'a>(values: impl IntoIterator<Item = (&'a str, f64)>) -> Metrics {
        values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
    let (metrics, timings) = (named(metrics), named(timings));
    let phase = phase.to_owned();
    run.commit_step(
        Step {
            phase,
            step,
            tokens,
            metrics,
            timings,
            episodes: None,
        },
        None,
    )
    .unwrap();
}

/// Noise between plus and minus `reach`, the same in every test run.
fn noise(name: &str, step: u64, reach: f64) -> f64 {
    let draw = Seed(1).stream(name, step).0 as f64 / u64::MAX as f64;
    reach * (2.0 * draw - 1.0)
}
