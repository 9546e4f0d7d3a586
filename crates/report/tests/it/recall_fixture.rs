//! A run of the recall study with plausible numbers and one dialogue, written through the journal.

use std::{collections::BTreeMap, path::Path};

use record::{Estimate, Group, Outcome, Reward};
use serde_json::{Value, json};

use crate::fixture::{around, begin_study, commit, evaluate, group};

const RECIPE: &str = "study = \"recall\"\n\n[rl]\ntrain = [\"memory\", \"answer\"]\nsteps = 6\n";

pub(crate) fn whole_run(path: &Path) {
    run_of_seed(path, 7, 0.0);
}

/// `luck` is added to F1 after reinforcement.
pub(crate) fn run_of_seed(path: &Path, seed: u64, luck: f64) {
    let run = begin_study(path, "recall", seed, RECIPE);
    run.phase_started("eval").unwrap();
    for (way, f1, tokens) in [
        ("no_memory", 0.05, 0.0),
        ("full_context", 0.40, 93.0),
        ("last_k", 0.22, 60.0),
        ("raw_chunks", 0.35, 81.0),
        ("rule_memory", 0.38, 77.0),
    ] {
        for stage in ["sft", "rl"] {
            let name = format!("{stage}/{way}");
            evaluate(&run, &name, &name, 40, measures(f1, tokens), None);
        }
    }
    evaluate(
        &run,
        "sft",
        "reader-sft",
        40,
        measures(0.31, 70.0),
        Some(&groups(false)),
    );
    run.phase_ended("eval", 9_000).unwrap();
    run.phase_started("rl").unwrap();
    for step in 1..=6 {
        let way = step as f64 / 6.0;
        let metrics = [
            ("critic/rewards/mean", 0.3 + 0.4 * way),
            ("f1", 0.3 + 0.4 * way),
            ("f1/temporal", 0.2 + 0.4 * way),
            ("exact_match", 0.2 + 0.4 * way),
            ("memory/actor/kl_loss", 0.01 * way),
            ("reader/actor/kl_loss", 0.02 * way),
            ("step_reward", 0.1 * way),
            ("step_reward/format", 0.5 * way),
            ("ops/add/done", 3.0 + way),
        ];
        commit(&run, "rl", step, 900, metrics, [("timing_s/step", 1.0)]);
    }
    run.phase_ended("rl", 0).unwrap();
    evaluate(
        &run,
        "rl",
        "reader-rl",
        40,
        measures(0.62 + luck, 66.0),
        Some(&groups(true)),
    );
    run.finish().unwrap();
}

fn measures(f1: f64, context: f64) -> BTreeMap<String, Estimate> {
    let amount = |value: f64| Estimate {
        value,
        low: value,
        high: value + 0.5,
    };
    BTreeMap::from([
        ("f1".to_owned(), around(f1, 0.06)),
        ("f1/temporal".to_owned(), around(f1, 0.12)),
        ("f1/single-session".to_owned(), around(f1, 0.11)),
        ("exact_match".to_owned(), around(f1, 0.07)),
        ("exact_match/temporal".to_owned(), around(f1, 0.13)),
        ("abstention_accuracy".to_owned(), around(0.5, 0.2)),
        ("retrieval_recall".to_owned(), around(0.7, 0.1)),
        ("context_tokens".to_owned(), amount(context)),
        ("memory_tokens".to_owned(), amount(90.0)),
        ("memory_items".to_owned(), amount(0.25)),
        ("ops/add/done".to_owned(), amount(4.0)),
        ("ops/malformed/failed".to_owned(), amount(0.25)),
    ])
}

/// Two turns of history, a question about them and one without an answer.
pub(crate) fn groups(trained: bool) -> Vec<Group> {
    let graded = Outcome::Graded {
        reward: Reward::of("f1", f64::from(u8::from(trained))),
    };
    vec![group(
        0,
        notes(trained, "Which city does Ben live in?"),
        graded,
    )]
}

pub(crate) fn notes(trained: bool, question: &str) -> Value {
    let op = |id: u32, kind: &str, status: &str, rest: Value| {
        let mut op = json!({"op_id": id, "kind": kind, "store": "semantic", "turn_id": u32::from(id > 2),
            "agent_role": "memory", "step_id": 0, "status": status, "tokens": 0});
        for (key, value) in rest.as_object().unwrap() {
            op[key] = value.clone();
        }
        op
    };
    let fact = |id: &str, text: &str, turn: u32, source: &str, rest: Value| {
        let mut fact = json!({"id": id, "text": text, "kind": "semantic", "content_hash": "00", "tokens": 6,
            "written": [{"turn_id": turn, "op_id": 0, "step_id": 0, "source_ids": [source]}]});
        for (key, value) in rest.as_object().unwrap() {
            fact[key] = value.clone();
        }
        fact
    };
    let mut first = json!({"turn_id": 0, "turn_role": "history", "agent_role": "memory", "step_id": 0,
        "observation": "Ben: I live in Lima.\nHugo: I slept badly.", "timestamp": "March",
        "response": "add: Ben lives in Lima.", "observation_tokens": 20,
        "memory_ops": [
            op(0, "add", "done", json!({"item_id": "f000000", "after_text": "Ben lives in Lima."})),
            op(1, "malformed", "failed", json!({"after_text": "ad Hugo", "error": "this is no operation"})),
            op(2, "duplicate_skipped", "skipped", json!({"item_id": "f000000", "after_text": "Ben lives in Lima"})),
        ],
        "memory_tokens": 6, "memory_items": 1});
    if trained {
        first["step_rewards"] = json!({"format": 0.5, "duplicate": -0.25});
        first["step_reward"] = json!(0.25);
    }
    let second_ops = if trained {
        vec![
            op(
                3,
                "add",
                "done",
                json!({"item_id": "f000001", "replaced": "f000000",
                "before_text": "Ben lives in Lima.", "after_text": "Ben lives in Oslo."}),
            ),
            op(
                4,
                "add",
                "done",
                json!({"item_id": "f000002", "after_text": "Hugo plays golf."}),
            ),
            op(
                5,
                "evict",
                "done",
                json!({"item_id": "f000002", "before_text": "Hugo plays golf."}),
            ),
        ]
    } else {
        vec![]
    };
    let second = json!({"turn_id": 1, "turn_role": "history", "agent_role": "memory", "step_id": 1,
        "observation": "Ben: I moved to Oslo.\nHugo: I took up golf.", "observation_tokens": 20,
        "memory_ops": second_ops, "memory_tokens": 6, "memory_items": 1});
    let answer = if trained { "Oslo" } else { "Lima" };
    let right = f64::from(u8::from(trained));
    let retrieved = if trained {
        json!([{"item_id": "f000001", "score": 1.5, "shown": true}])
    } else {
        json!([{"item_id": "f000000", "score": 1.25, "shown": false}])
    };
    let asked = json!({"turn_id": 2, "turn_role": "target", "agent_role": "answer", "step_id": 2,
        "observation": question, "response": format!("Answer: {answer}"), "observation_tokens": 7,
        "retrieved": retrieved, "budget": {"facts": 6, "window": 12},
        "memory_tokens": 6, "memory_items": 1,
        "grade": {"question_type": "temporal", "answer": answer, "gold": "Oslo", "abstain": false,
            "abstained": false, "metric": "f1", "score": right, "exact_match": right, "f1": right,
            "evidence": [{"turn_id": 1, "source_id": "l2"}, {"turn_id": 1, "source_id": "l3"}]}});
    let never = json!({"turn_id": 3, "turn_role": "target", "agent_role": "answer", "step_id": 3,
        "observation": "Which pet does Ida have?", "response": "It was never said.", "observation_tokens": 7,
        "memory_tokens": 6, "memory_items": 1,
        "grade": {"question_type": "abstention", "answer": "It was never said.", "gold": "", "abstain": true,
            "abstained": true, "metric": "f1", "score": 1.0, "exact_match": 1.0, "f1": 1.0}});
    let facts = if trained {
        vec![
            fact(
                "f000000",
                "Ben lives in Lima.",
                0,
                "l0",
                json!({"superseded_by": "f000001"}),
            ),
            fact("f000001", "Ben lives in Oslo.", 1, "l2", json!({})),
            fact(
                "f000002",
                "Hugo plays golf.",
                1,
                "l3",
                json!({"deleted": true}),
            ),
        ]
    } else {
        vec![fact("f000000", "Ben lives in Lima.", 0, "l0", json!({}))]
    };
    json!({"data_source": "tiny", "document": "held-out/0", "events": [first, second, asked, never],
        "facts": facts, "core": "", "summary": "", "truncated": 0})
}
