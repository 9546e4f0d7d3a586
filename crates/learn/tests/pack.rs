//! Packing: what is packed comes out again, masks tell where tokens came from, events stay with their steps.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use learn::{
    AlgorithmConfig, PolicyLoss, batch_of_groups,
    pack::{AlignmentError, Layout, PackOptions, Packed, Row, Sidecar, concat, pack, rows_of},
};
use proptest::prelude::*;
use record::{
    Batch, Call, Completion, Datum, Episode, EpisodeId, Fault, Group, Outcome, Reward, Sampling,
    StepKey, StopReason, TaskId, WeightVersion,
};
use serde_json::json;

/// Stands in padding and ends responses.
const EOS: u32 = 2;

fn options(layout: Layout, rows_divisible_by: usize) -> PackOptions {
    PackOptions {
        layout,
        pad_id: EOS,
        rows_divisible_by,
    }
}

/// A token, whether it was sampled, its log-prob and advantage.
type Sampled = (u32, bool, f32, f32);

/// Prompts of 1 to 5 tokens and responses of 0 to 6, pads among the tokens of both.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    let token = || 0u32..4;
    let sampled = (token(), any::<bool>(), -3.0f32..-0.01, -2.0f32..2.0);
    let row = (
        prop::collection::vec(token(), 1..6),
        prop::collection::vec(sampled, 0..7),
        0u32..3,
        -1.0f32..1.0,
    );
    prop::collection::vec(row, 0..9).prop_map(|rows| {
        let row = |(index, (prompt, response, group, reward)): (
            usize,
            (Vec<u32>, Vec<Sampled>, u32, f32),
        )| {
            let masked = |of: &dyn Fn(&Sampled) -> f32| -> Vec<f32> {
                response
                    .iter()
                    .map(|token| if token.1 { of(token) } else { 0.0 })
                    .collect()
            };
            Row {
                key: StepKey {
                    episode: EpisodeId {
                        step: 7,
                        group,
                        member: index as u32,
                    },
                    step: index as u32 % 2,
                },
                uid: format!("7/{group}"),
                agent_role: ["memory", "answer"][index % 2].to_owned(),
                turn: (index % 3 > 0).then_some(index as u32),
                data_source: "made".to_owned(),
                prompt,
                response: response.iter().map(|token| token.0).collect(),
                mask: response.iter().map(|token| token.1).collect(),
                logprobs: masked(&|token| token.2),
                advantages: masked(&|token| token.3),
                reward,
            }
        };
        rows.into_iter().enumerate().map(row).collect()
    })
}

/// The loss of the packed matrices read one by one: minus the advantage over the tokens of a row, averaged
/// over rows that have any.
fn loss(packed: &Packed) -> f64 {
    let mut losses = Vec::new();
    for (row, info) in packed.rows.iter().enumerate() {
        let mask = packed.response_mask.row(row);
        let count: i64 = mask.iter().sum();
        if info.is_pad() || count == 0 {
            continue;
        }
        let pairs = packed.advantages.row(row).iter().zip(mask);
        let sum: f64 = pairs.map(|(a, mask)| -f64::from(*a) * *mask as f64).sum();
        losses.push(sum / count as f64);
    }
    losses.iter().sum::<f64>() / losses.len().max(1) as f64
}

/// The loss of the same rows by [`PolicyLoss`] at the log-probs of sampling.
fn loss_of_rows(rows: &[Row]) -> f64 {
    let datum = |row: &Row| {
        let mut datum = Datum::supervised(&row.prompt, &row.response);
        let start = row.prompt.len();
        datum.mask[start..].copy_from_slice(&row.mask);
        datum.logprobs[start..].copy_from_slice(&row.logprobs);
        datum.advantages[start..].copy_from_slice(&row.advantages);
        datum
    };
    let batch = Batch {
        data: rows.iter().map(datum).collect(),
    };
    let mut config = AlgorithmConfig::default();
    config.kl.coefficient = 0.0;
    let policy = PolicyLoss::new(&batch, &config);
    let scores = |datum: &Datum| -> Vec<f32> {
        let pairs = datum.logprobs.iter().zip(&datum.mask);
        pairs
            .filter(|(_, mask)| **mask)
            .map(|(logprob, _)| *logprob)
            .collect()
    };
    let rows = batch.data.iter().enumerate();
    rows.map(|(row, datum)| {
        let logprobs = scores(datum);
        let scores = engine::RowScores {
            entropies: vec![0.0; logprobs.len()],
            logprobs,
        };
        let (mut one, mut other) = (scores.logprobs.clone(), scores.logprobs.clone());
        engine::TokenLoss::row(&policy, row, &scores, &mut one, &mut other)
    })
    .sum()
}

fn invariants(packed: &Packed, rows: &[Row], divisor: usize) {
    assert_eq!(
        packed.rows.len(),
        rows.len().next_multiple_of(divisor.max(1))
    );
    for index in 0..packed.rows.len() {
        let attention = packed.attention_mask.row(index);
        let behind = packed.prompt_width;
        let mask = packed.response_mask.row(index);
        for (place, &sampled) in mask.iter().enumerate() {
            assert!(
                sampled <= attention[behind + place],
                "masks lie within attention"
            );
            for values in [
                &packed.rollout_log_probs,
                &packed.advantages,
                &packed.token_level_scores,
            ] {
                assert!(sampled == 1 || values.row(index)[place] == 0.0);
            }
        }
        let mut seen = 0;
        for (&attended, &position) in attention.iter().zip(packed.position_ids.row(index)) {
            assert_eq!(position, if attended == 1 { seen } else { 0 });
            seen += attended;
        }
        let expected = rows.get(index).map_or((1, 0), |row| {
            let sampled = row.mask.iter().filter(|mask| **mask).count();
            (row.prompt.len() + row.response.len(), sampled)
        });
        assert_eq!((seen as usize, mask.iter().sum::<i64>() as usize), expected);
        let scored: f32 = packed.token_level_scores.row(index).iter().sum();
        let paid = rows
            .get(index)
            .filter(|_| expected.1 > 0)
            .map_or(0.0, |row| row.reward);
        assert_eq!(scored, paid);
        assert_eq!(packed.rows[index].is_pad(), index >= rows.len());
    }
}

proptest! {
    #[test]
    fn what_is_packed_comes_out_again(rows in rows(), divisor in 0usize..5) {
        let mut losses = vec![loss_of_rows(&rows)];
        for layout in [Layout::RightPadded, Layout::VerlSplit] {
            let packed = pack(&rows, options(layout, divisor));
            invariants(&packed, &rows, divisor);
            prop_assert_eq!(&packed.unpad(), &rows);
            losses.push(loss(&packed));
        }
        prop_assert!((losses[0] - losses[1]).abs() < 1e-6, "{:?}", losses);
        prop_assert_eq!(losses[1], losses[2]);
    }

    #[test]
    fn rows_keep_what_is_theirs_wherever_they_go(
        rows in rows(), divisor in 1usize..4, picks in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        for layout in [Layout::RightPadded, Layout::VerlSplit] {
            let packed = pack(&rows, options(layout, divisor));
            let count = packed.rows.len();
            let chosen: Vec<usize> = match count {
                0 => Vec::new(),
                _ => picks.iter().map(|pick| pick.index(count)).collect(),
            };
            let moved = packed.select(&chosen);
            let expected: Vec<Row> = chosen.iter().filter_map(|&row| rows.get(row).cloned()).collect();
            prop_assert_eq!(moved.unpad(), expected);
            let (one, other) = rows.split_at(rows.len() / 2);
            let parts = [one, other].map(|rows| pack(rows, options(layout, divisor)));
            prop_assert_eq!(concat(&parts, options(layout, divisor)), packed);
        }
    }
}

fn completion(prompt: &[u32], response: &[u32]) -> Completion {
    Completion {
        prompt: prompt.to_vec(),
        response: response.to_vec(),
        logprobs: response.iter().map(|&id| -0.1 - id as f32).collect(),
        sampled_logprobs: Vec::new(),
        top_logprobs: Vec::new(),
        prompt_logprobs: Vec::new(),
        stop: StopReason::Stop,
        sampling: Sampling::at(1.0, 8),
        weights: WeightVersion(0),
    }
}

/// Two dialogues by two members: a history turn by rule, one by a call, a question; one member has a fault.
fn groups() -> Vec<Group> {
    let episode = |group: u32, member: u32| {
        let call = |role: &str, turn, step_reward, length: u32| Call {
            turn: Some(turn),
            step_reward,
            ..Call::new(role, completion(&[5, 6, turn], &vec![EOS; length as usize]))
        };
        let calls = vec![
            call(
                "memory",
                1,
                (member == 0).then_some(0.0),
                group + member + 1,
            ),
            call("answer", 2, None, 2),
        ];
        let event = |turn: u32,
                     turn_role: &str,
                     agent_role: &str,
                     step: Option<u32>,
                     reward: Option<f64>| {
            json!({
                "turn_id": turn, "turn_role": turn_role, "agent_role": agent_role, "step_id": step,
                "memory_ops": [{"kind": "add", "item": turn}], "step_reward": reward, "of_the_study": 1,
            })
        };
        let events = json!([
            event(0, "history", "rule", None, Some(0.25)),
            event(1, "history", "memory", Some(0), None),
        ]);
        Episode {
            id: EpisodeId {
                step: 3,
                group,
                member,
            },
            task: TaskId(format!("task-{group}")),
            calls,
            outcome: match (group, member) {
                (1, 1) => Fault::infra("no engine").into(),
                _ => Outcome::Graded {
                    reward: Reward::of("em", f64::from(member)),
                },
            },
            retries: 0,
            notes: json!({ "events": events, "data_source": "tiny" }),
        }
    };
    let group = |group: u32| Group {
        task: TaskId(format!("task-{group}")),
        episodes: (0..3).map(|member| episode(group, member)).collect(),
    };
    vec![group(0), group(1)]
}

const ROLES: [&str; 2] = ["memory", "answer"];

fn packed(layout: Layout, divisor: usize) -> (Packed, Sidecar) {
    let (batch, _) = batch_of_groups(&groups(), &ROLES, &AlgorithmConfig::default()).unwrap();
    let rows = rows_of(&groups(), &batch, "elsewhere");
    assert_eq!(rows.len(), batch.data.len());
    let sidecar = Sidecar::of(&groups()).unwrap();
    (pack(&rows, options(layout, divisor)), sidecar)
}

#[test]
fn events_cover_what_has_no_row_and_none_is_not_zero() {
    let (packed, sidecar) = packed(Layout::VerlSplit, 4);
    assert_eq!(packed.rows.len(), 12, "ten rows and two of padding");
    let paid: Vec<(Option<u32>, Option<f32>)> = sidecar.step_meta[..3]
        .iter()
        .map(|event| (event.step_id, event.step_reward))
        .collect();
    // The rule's event, the call's that the study paid 0, and the answer that no event speaks of.
    assert_eq!(
        paid,
        [(None, Some(0.25)), (Some(0), Some(0.0)), (Some(1), None)]
    );
    assert_eq!(
        sidecar.step_meta.len(),
        18,
        "of the episode without a verdict too"
    );
    sidecar.check_alignment(&packed).unwrap();
    let moved = packed.select(&[9, 0, 0, 11, 4]);
    sidecar.check_alignment(&moved).unwrap();
    let events = sidecar.by_step().unwrap();
    let reward = |row: usize| events[&moved.rows[row].key.unwrap()].step_reward;
    assert_eq!(
        (reward(0), reward(1), reward(2)),
        (None, Some(0.0), Some(0.0))
    );
    let text = serde_json::to_string(&sidecar).unwrap();
    assert_eq!(serde_json::from_str::<Sidecar>(&text).unwrap(), sidecar);
    assert!(text.contains(r#""step_reward":null"#) && text.contains(r#""step_reward":0.0"#));
}

#[test]
fn rows_and_events_that_disagree_are_named() {
    let (packed, sidecar) = packed(Layout::RightPadded, 1);
    let mut missing = sidecar.clone();
    missing.step_meta.retain(|event| event.step_id != Some(1));
    let error = missing.check_alignment(&packed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "row 1 is of step 3/0/0/1, which no event speaks of"
    );
    let mut twice = sidecar.clone();
    twice.step_meta.push(sidecar.step_meta[1].clone());
    let error = twice.check_alignment(&packed).unwrap_err();
    assert!(matches!(error, AlignmentError::TwoEvents { .. }));
    let mut moved = packed.clone();
    moved.rows.swap(0, 1);
    moved.rows[0].turn = Some(9);
    let error = sidecar.check_alignment(&moved).unwrap_err();
    assert!(
        matches!(error, AlignmentError::OtherTurn { row: 0, .. }),
        "{error}"
    );
    let mut other = packed;
    other.rows[0].agent_role = "answer".to_owned();
    let error = sidecar.check_alignment(&other).unwrap_err();
    assert!(
        matches!(error, AlignmentError::OtherRole { row: 0, .. }),
        "{error}"
    );
    let mut broken = groups();
    broken[0].episodes[2].notes["events"][1]["step_id"] = json!("second");
    let error = Sidecar::of(&broken).unwrap_err().to_string();
    assert!(
        error.starts_with("episode 3/0/2: entry 1 of notes.events is no event"),
        "{error}"
    );
}

#[test]
fn rows_of_a_batch_have_its_loss() {
    let (batch, _) = batch_of_groups(&groups(), &ROLES, &AlgorithmConfig::default()).unwrap();
    let rows = rows_of(&groups(), &batch, "elsewhere");
    assert!((loss_of_rows(&rows) - loss(&pack(&rows, options(Layout::VerlSplit, 8)))).abs() < 1e-9);
    assert!(rows.iter().all(|row| row.data_source == "tiny"));
}
