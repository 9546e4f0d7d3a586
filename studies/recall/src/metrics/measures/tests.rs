//! Hand-computed values and properties of the measures.

use proptest::prelude::*;
use record::{Episode, EpisodeId, Outcome, Reward, TaskId};

use super::*;
use crate::{
    event::Retrieved,
    memory::{FactKind, Store, Write},
    metrics::Metric,
    task::TurnRole,
};

fn event(turn_id: u32, turn_role: TurnRole) -> Event {
    Event {
        turn_id,
        turn_role,
        agent_role: "answer".to_owned(),
        step_id: None,
        observation: String::new(),
        timestamp: None,
        response: None,
        memory_ops: Vec::new(),
        retrieved: Vec::new(),
        budget: BTreeMap::new(),
        observation_tokens: 10,
        memory_tokens: 0,
        memory_items: 0,
        grade: None,
        step_rewards: BTreeMap::new(),
        step_reward: None,
    }
}

fn grade(question_type: &str, exact_match: f64, f1: f64) -> Grade {
    Grade {
        question_type: question_type.to_owned(),
        answer: String::new(),
        gold: String::new(),
        abstain: false,
        abstained: false,
        metric: Metric::F1,
        score: f1,
        exact_match,
        f1,
        evidence: Vec::new(),
        judged: None,
        likelihoods: None,
    }
}

fn fact(id: u32, writes: &[(u32, &str)]) -> Fact {
    let write = |&(turn_id, source): &(u32, &str)| Write {
        op_id: 0,
        turn_id,
        step_id: None,
        source_ids: vec![source.to_owned()],
    };
    Fact {
        id: FactId(id),
        text: String::new(),
        kind: FactKind::Semantic,
        importance: None,
        timestamp: None,
        written: writes.iter().map(write).collect(),
        superseded_by: None,
        deleted: false,
        content_hash: String::new(),
        tokens: 1,
    }
}

fn op(kind: OpKind, status: OpStatus, item: u32) -> OpRecord {
    OpRecord {
        op_id: 0,
        kind,
        store: Store::Semantic,
        item_id: Some(FactId(item)),
        replaced: None,
        before_hash: None,
        before_text: None,
        after_text: None,
        turn_id: 0,
        agent_role: "rule".to_owned(),
        step_id: None,
        status,
        error: None,
        tokens: 0,
        compressed: None,
    }
}

fn notes(document: &str, events: Vec<Event>) -> Notes {
    Notes {
        document: document.to_owned(),
        events,
        ..Notes::default()
    }
}

fn group(all: &[Notes]) -> Group {
    let task = TaskId("task".to_owned());
    let episode = |(member, notes): (usize, &Notes)| Episode {
        id: EpisodeId {
            step: 0,
            group: 0,
            member: member as u32,
        },
        task: task.clone(),
        calls: Vec::new(),
        outcome: Outcome::Graded {
            reward: Reward::of("answer", 0.0),
        },
        retries: 0,
        notes: serde_json::to_value(notes).unwrap(),
    };
    Group {
        episodes: all.iter().enumerate().map(episode).collect(),
        task: task.clone(),
    }
}

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-12
}

#[test]
fn answers_are_measured_by_type() {
    let answer = |grade: Grade| Event {
        grade: Some(grade),
        step_id: Some(0),
        budget: BTreeMap::from([("facts".to_owned(), 30), ("query".to_owned(), 12)]),
        ..event(1, TurnRole::Target)
    };
    let abstaining = |abstained| Grade {
        abstain: true,
        abstained,
        ..grade("absent", f64::from(abstained), f64::from(abstained))
    };
    let wrongly = Grade {
        abstained: true,
        ..grade("place", 0.0, 0.0)
    };
    let mut first = notes("a", vec![answer(grade("place", 1.0, 1.0)), answer(wrongly)]);
    first.truncated = 1;
    let second = notes(
        "b",
        vec![
            answer(grade("time", 0.0, 0.5)),
            answer(abstaining(true)),
            answer(abstaining(true)),
            answer(abstaining(false)),
        ],
    );
    let groups = [group(&[first]), group(&[second])];
    let step = of_step(&groups);
    for (name, expected) in [
        ("exact_match", 3.0 / 6.0),
        ("exact_match/place", 0.5),
        ("exact_match/time", 0.0),
        ("f1", 3.5 / 6.0),
        ("f1/time", 0.5),
        ("score/place", 0.5),
        ("abstention_accuracy", 2.0 / 3.0),
        ("false_abstention_rate", 1.0 / 3.0),
        ("false_abstention_rate/place", 0.5),
        ("context_tokens", 42.0),
        ("truncated_share", 1.0 / 6.0),
    ] {
        assert!(close(step[name], expected), "{name}: {}", step[name]);
    }
    // Without evidence, writes and step rewards there is nothing to say of them.
    for absent in [
        "retrieval_recall",
        "evidence_remembered",
        "ops_failed_rate",
        "step_reward",
    ] {
        assert!(!step.contains_key(absent), "{absent}");
    }
    let found = of_evaluation(&groups);
    assert!(found.keys().eq(step.keys()));
}

#[test]
fn evidence_is_followed_through_the_memory() {
    let evidence = |turn_id, source: Option<&str>| Evidence {
        turn_id,
        source_id: source.map(str::to_owned),
    };
    let hit = |item, shown| Retrieved {
        item_id: FactId(item),
        score: 1.0,
        shown,
    };
    let asked = |turn, retrieved: Vec<Retrieved>, evidence: Vec<Evidence>| Event {
        grade: Some(Grade {
            evidence,
            ..grade("place", 1.0, 1.0)
        }),
        retrieved,
        ..event(turn, TurnRole::Target)
    };
    let read = |turn, memory_ops| Event {
        memory_ops,
        ..event(turn, TurnRole::History)
    };
    let done = |kind, item| op(kind, OpStatus::Done, item);
    let superseding = OpRecord {
        replaced: Some(FactId(2)),
        ..done(OpKind::Update, 3)
    };
    let mut episode = notes(
        "a",
        vec![
            read(0, vec![done(OpKind::Add, 0), done(OpKind::Add, 1)]),
            read(1, vec![done(OpKind::Add, 2), done(OpKind::Delete, 1)]),
            read(
                2,
                vec![superseding, op(OpKind::Delete, OpStatus::Failed, 0)],
            ),
            // s1 lives and is shown, s2 was deleted, s3 lives on in fact 3, which is retrieved and not shown.
            asked(
                3,
                vec![hit(0, true), hit(3, false)],
                vec![
                    evidence(0, Some("s1")),
                    evidence(0, Some("s2")),
                    evidence(1, None),
                ],
            ),
            // Of turn 2 something is remembered, of what was said in it as s9 nothing.
            asked(4, vec![hit(0, true)], vec![evidence(2, Some("s9"))]),
            asked(5, vec![], vec![evidence(2, None)]),
        ],
    );
    episode.facts = vec![
        fact(0, &[(0, "s1")]),
        fact(1, &[(0, "s2")]),
        fact(2, &[(1, "s3")]),
        fact(3, &[(1, "s3"), (2, "s4")]),
    ];
    let found = of_step(&[group(&[episode])]);
    for (name, expected) in [
        ("evidence_remembered", (2.0 / 3.0 + 0.0 + 1.0) / 3.0),
        ("retrieval_recall", (2.0 / 3.0) / 3.0),
        ("retrieval_recall/place", (2.0 / 3.0) / 3.0),
        ("retrieval_recall_any", 1.0 / 3.0),
        ("retrieval_recall_all", 0.0),
        ("retrieval_recall_shown", (1.0 / 3.0) / 3.0),
        ("ops/add/done", 3.0),
        ("ops/delete/failed", 1.0),
        ("ops_failed_rate", 1.0 / 6.0),
    ] {
        assert!(close(found[name], expected), "{name}: {}", found[name]);
    }
}

#[test]
fn memory_is_measured_at_the_end_and_over_turns() {
    let sized = |turn, tokens, items| Event {
        memory_tokens: tokens,
        memory_items: items,
        ..event(turn, TurnRole::History)
    };
    let mut rewarded = sized(0, 10, 1);
    rewarded.step_rewards = BTreeMap::from([("format".to_owned(), 0.0)]);
    rewarded.step_reward = Some(0.5);
    // Turn 1 of the first left no trace; the second ends a turn sooner.
    let groups = [group(&[
        notes("a", vec![rewarded, sized(2, 30, 4), sized(2, 20, 3)]),
        notes("b", vec![sized(0, 20, 2), sized(1, 40, 4)]),
    ])];
    let step = of_step(&groups);
    for (name, expected) in [
        ("memory_tokens", 30.0),
        ("memory_items", 3.5),
        ("memory_tokens_peak", 35.0),
        ("step_reward/format", 0.0),
        ("step_reward", 0.5),
    ] {
        assert!(close(step[name], expected), "{name}: {}", step[name]);
    }
    let sizes: Vec<(u32, f64, f64)> = memory_over_turns(&groups)
        .iter()
        .map(|size| (size.turn_id, size.tokens.value, size.items.value))
        .collect();
    assert_eq!(sizes, [(0, 15.0, 1.5), (1, 25.0, 2.5), (2, 20.0, 3.0)]);
    assert!(memory_over_turns(&[]).is_empty() && of_evaluation(&[]).is_empty());
}

#[test]
fn questions_about_one_document_narrow_nothing_when_they_agree() {
    let episode = |document: usize, questions: usize| {
        let right = f64::from(document as u32 % 2);
        let answer = Event {
            grade: Some(grade("place", right, right)),
            ..event(0, TurnRole::Target)
        };
        notes(&document.to_string(), vec![answer; questions])
    };
    let suite = |questions| {
        let all: Vec<Notes> = (0..40)
            .map(|document| episode(document, questions))
            .collect();
        of_evaluation(&[group(&all)])
    };
    let (one, eight) = (suite(1), suite(8));
    for name in ["exact_match", "f1", "f1/place"] {
        let width = |found: &BTreeMap<String, Estimate>| found[name].high - found[name].low;
        assert!((width(&one) - width(&eight)).abs() < 0.01, "{name}");
        assert!(width(&one) > 0.25 && one[name].value == 0.5, "{name}");
    }
}

#[test]
fn a_single_document_is_one_item() {
    let answer = Event {
        grade: Some(grade("place", 1.0, 0.5)),
        ..event(0, TurnRole::Target)
    };
    let found = of_evaluation(&[group(&[notes("a", vec![answer; 20])])]);
    assert!(
        found["f1"].high - found["f1"].low > 0.5,
        "{:?}",
        found["f1"]
    );
    assert!(found["exact_match"].low < 0.3);
}

#[test]
fn episodes_without_a_verdict_are_in_no_measure() {
    let answer = Event {
        grade: Some(grade("place", 1.0, 1.0)),
        ..event(0, TurnRole::Target)
    };
    let mut groups = [group(&[
        notes("a", vec![answer.clone()]),
        notes("b", vec![answer]),
    ])];
    groups[0].episodes[1].outcome = Outcome::InfraFault {
        message: "gone".to_owned(),
    };
    assert_eq!(of_step(&groups)["memory_items"], 0.0);
    assert_eq!(notes_of(&groups).len(), 1);
}

/// One answer about each of `f1s` documents.
fn answered(f1s: &[f64]) -> Group {
    let answer = |(document, f1): (usize, &f64)| {
        let graded = Event {
            grade: Some(grade("", 0.0, *f1)),
            memory_tokens: 7,
            ..event(0, TurnRole::Target)
        };
        notes(&document.to_string(), vec![graded])
    };
    let all: Vec<Notes> = f1s.iter().enumerate().map(answer).collect();
    group(&all)
}

#[test]
fn documents_that_are_all_alike_prove_nothing() {
    let of = |f1s: &[f64]| of_evaluation(&[answered(f1s)])["f1"];
    // Wilson's bounds of 0 and 8 of 8: 1 / (1 + n / z²).
    let far = 3.8415 / (8.0 + 3.8415);
    let none = of(&[0.0; 8]);
    assert!(
        none.low == 0.0 && (none.high - far).abs() < 1e-4,
        "{none:?}"
    );
    let all = of(&[1.0; 8]);
    assert!(
        all.high == 1.0 && (all.low - 1.0 + far).abs() < 1e-4,
        "{all:?}"
    );
    assert_eq!(none.overlaps(&all), Some(false));
    let half = of(&[0.5; 8]);
    assert!(half.low < 0.5 && half.high > 0.5, "{half:?}");
    // A single document against another result for it.
    assert_eq!(of(&[0.0]).overlaps(&of(&[1.0])), Some(true));
    let one = of_evaluation(&[answered(&[0.0])])["memory_tokens"];
    assert!(!one.has_interval(), "{one:?}");
}

#[test]
fn gains_are_paired_by_document() {
    let gain =
        |before: &[f64], after: &[f64]| paired_gain(&[answered(before)], &[answered(after)], "f1");
    // Easy and hard documents, all of which gained about a tenth.
    let before: Vec<f64> = (0..20).map(|i| f64::from(i % 2) * 0.8).collect();
    let after: Vec<f64> = (0..20)
        .map(|i| before[i] + if i % 4 < 2 { 0.08 } else { 0.12 })
        .collect();
    let found = gain(&before, &after).unwrap();
    assert!((found.value - 0.1).abs() < 1e-12);
    // Standard error 0.02 / sqrt(20) = 0.0045.
    assert!((0.088..0.096).contains(&found.low), "{found:?}");
    assert!((0.104..0.112).contains(&found.high), "{found:?}");
    let apart = of_evaluation(&[answered(&before)])["f1"]
        .overlaps(&of_evaluation(&[answered(&after)])["f1"]);
    assert_eq!(apart, Some(true));
    assert_eq!(gain(&[0.0; 3], &[1.0; 3]), None);
    assert_eq!(gain(&[0.0], &[1.0]), None);
    assert_eq!(
        paired_gain(&[answered(&before)], &[answered(&after)], "none"),
        None
    );
}

prop_compose! {
    fn any_answer()(document in 0u8..6, kind in 0u8..3, f1 in 0u8..5, abstained: bool) -> Notes {
        let f1 = f64::from(f1) / 4.0;
        let exact = f64::from(f1 == 1.0);
        let grade = Grade {
            abstained,
            ..grade(["place", "time", ""][kind as usize], exact, f1)
        };
        let answer = Event { grade: Some(grade), ..event(0, TurnRole::Target) };
        notes(&document.to_string(), vec![answer])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn intervals_hold_their_values_and_order_does_not_matter(
        all in prop::collection::vec(any_answer(), 1..30)
    ) {
        let found = of_evaluation(&[group(&all)]);
        let point = of_step(&[group(&all)]);
        prop_assert!(found.keys().eq(point.keys()));
        for (name, estimate) in &found {
            prop_assert!((estimate.value - point[name]).abs() < 1e-9, "{}", name);
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
        }
        let mut backwards = all;
        backwards.reverse();
        prop_assert_eq!(of_evaluation(&[group(&backwards)]), found);
    }
}
