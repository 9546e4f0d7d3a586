//! Hand-computed step rewards: episodes in `tests/cases/step_rewards`, and properties of all of them.

use std::{fs, path::Path};

use proptest::prelude::*;

use super::*;
use crate::play::FACT_SPLIT;

/// What a case's file holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What is computed by hand, and how.
    about: String,
    rewards: StepRewards,
    notes: Notes,
    #[serde(default)]
    given: Given,
    /// For every event: its step rewards.
    expected: Vec<BTreeMap<String, f64>>,
    /// For every event: their weighted sum.
    sums: Vec<Option<f64>>,
}

fn cases() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/step_rewards");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let case = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path.join("case.json")).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let case = serde_json::from_str(&text);
        (
            name.clone(),
            case.unwrap_or_else(|error| panic!("{name}: {error}")),
        )
    };
    paths.iter().map(case).collect()
}

#[test]
fn cases_score_as_computed_by_hand() {
    let mut seen = std::collections::BTreeSet::new();
    for (name, case) in cases() {
        case.rewards.check().unwrap();
        let mut notes = case.notes;
        score(&case.rewards, &mut notes, &case.given);
        assert_eq!(notes.events.len(), case.expected.len(), "{name}");
        assert_eq!(notes.events.len(), case.sums.len(), "{name}");
        for (i, event) in notes.events.iter().enumerate() {
            let found = &event.step_rewards;
            let expected = &case.expected[i];
            let close = found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|((name, value), (other, wanted))| {
                        name == other && (value - wanted).abs() < 1e-9
                    });
            let about = &case.about;
            assert!(
                close,
                "{name}, event {i}: {found:?}, not {expected:?} ({about})"
            );
            let sum = (event.step_reward, case.sums[i]);
            let same = match sum {
                (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
                (found, expected) => found == expected,
            };
            assert!(same, "{name}, event {i}: sums {sum:?}");
            seen.extend(found.keys().cloned());
        }
    }
    let all = every_reward();
    let missing: Vec<&str> = all
        .chosen()
        .map(|(name, _)| name)
        .filter(|name| !seen.contains(*name))
        .collect();
    assert!(missing.is_empty(), "no case scores {missing:?}");
}

#[test]
fn scoring_again_changes_nothing_and_nothing_chosen_clears() {
    for (name, case) in cases() {
        let mut once = case.notes.clone();
        score(&case.rewards, &mut once, &case.given);
        let mut twice = once.clone();
        score(&case.rewards, &mut twice, &case.given);
        assert_eq!(once, twice, "{name}");
        score(&StepRewards::default(), &mut twice, &case.given);
        assert!(
            twice.events.iter().all(|event| event.step_reward.is_none()),
            "{name}"
        );
        let text = serde_json::to_string(&once).unwrap();
        assert_eq!(
            serde_json::from_str::<Notes>(&text).unwrap(),
            once,
            "{name}"
        );
    }
}

#[test]
fn questions_about_one_turn_are_its_chunk_questions() {
    let (_, case) = cases()
        .into_iter()
        .find(|(name, _)| name.ends_with("_retrievability"))
        .unwrap();
    let mut notes = case.notes;
    let mut answers = notes
        .events
        .iter_mut()
        .filter_map(|event| event.grade.as_mut());
    // The first follows from turn 0 alone; the second from two turns once it is asked to.
    answers.next().unwrap().score = 0.25;
    assert_eq!(
        Given::of_notes(&StepRewards::default(), &notes).chunk_qa,
        BTreeMap::from([(0, vec![0.25]), (1, vec![0.0])])
    );
    let mut grades = notes
        .events
        .iter_mut()
        .filter_map(|event| event.grade.as_mut());
    let second = grades.nth(1).unwrap();
    second.evidence.push(crate::Evidence {
        turn_id: 0,
        source_id: None,
    });
    assert_eq!(
        Given::of_notes(&StepRewards::default(), &notes).chunk_qa,
        BTreeMap::from([(0, vec![0.25])])
    );
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let read = |text: &str| serde_json::from_str::<StepRewards>(text);
    let unknown = read(r#"{"fromat": {"weight": 1}}"#)
        .unwrap_err()
        .to_string();
    assert!(
        unknown.starts_with("unknown field `fromat`, expected one of `format`"),
        "{unknown}"
    );
    assert!(read(r#"{"format": {"weight": 1, "wieght": 2}}"#).is_err());
    let check = |text: &str| read(text).unwrap().check();
    assert_eq!(
        check(r#"{"format": {"weight": 1, "clip": [-1, 1]}}"#),
        Ok(())
    );
    assert_eq!(
        check(r#"{"evidence": {"weight": 1, "clip": [1, -1]}}"#),
        Err(BadStepReward::Clip {
            name: "evidence",
            low: 1.0,
            high: -1.0
        })
    );
    assert_eq!(
        check(r#"{"length": {"weight": 1, "words": 0}}"#),
        Err(BadStepReward::Words)
    );
    let nan = StepRewards {
        answer: Some(Weighing {
            weight: f64::NAN,
            clip: None,
        }),
        ..StepRewards::default()
    };
    assert!(matches!(
        nan.check(),
        Err(BadStepReward::Weight { name: "answer", .. })
    ));
}

fn every_reward() -> StepRewards {
    let weighing = Some(Weighing {
        weight: 1.0,
        clip: None,
    });
    StepRewards {
        format: weighing,
        duplicate: weighing,
        compression: weighing,
        content: weighing,
        chunk_qa: Some(ChunkQa {
            weight: 1.0,
            clip: None,
            ask: false,
        }),
        evidence: weighing,
        info_gain: weighing,
        retrievability: weighing,
        noop_feedback: weighing,
        faithfulness: weighing,
        length: Some(Length {
            weight: 1.0,
            clip: None,
            words: 5,
        }),
        answer: weighing,
    }
}

proptest! {
    /// Grades, sizes and hits of the cases' episodes changed at will.
    #[test]
    fn scores_are_finite_and_bounded_and_credit_is_not_made_up(
        which in 0usize..100,
        grades in prop::collection::vec(0u8..5, 8),
        shown in prop::collection::vec(any::<bool>(), 32),
        tokens in 0u32..2000,
    ) {
        let mut cases = cases();
        let at = which % cases.len();
        let (_, case) = cases.swap_remove(at);
        let mut notes = case.notes;
        let (mut grades, mut shown) = (grades.iter().cycle(), shown.iter().cycle());
        for event in &mut notes.events {
            if let Some(grade) = &mut event.grade {
                grade.score = f64::from(*grades.next().unwrap()) / 4.0;
            }
            for hit in &mut event.retrieved {
                hit.shown = *shown.next().unwrap();
            }
            event.memory_tokens = tokens;
        }
        score(&every_reward(), &mut notes, &case.given);
        let answers: Vec<f64> = notes.events.iter().filter_map(|event| Some(event.grade.as_ref()?.score)).collect();
        let earned = answers.iter().sum::<f64>() / answers.len().max(1) as f64;
        let mut credit = 0.0;
        for event in &notes.events {
            prop_assert_eq!(event.step_reward.is_some(), !event.step_rewards.is_empty());
            prop_assert!(event.response.is_some() || event.step_rewards.is_empty());
            for (name, value) in &event.step_rewards {
                prop_assert!((-1.0..=1.0).contains(value), "{} {}", name, value);
            }
            if event.agent_role != FACT_SPLIT {
                credit += event.step_rewards.get("evidence").copied().unwrap_or(0.0);
            }
        }
        prop_assert!(credit <= earned + 1e-9, "{} {}", credit, earned);
    }
}
