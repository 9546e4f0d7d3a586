//! Groups to training rows: who is in, who is out, and that everybody is counted.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use learn::{AlgorithmConfig, BatchError, BatchStats, ZeroVariance, batch_of_groups, metrics};
use record::{
    Call, Completion, Episode, EpisodeId, Fault, Group, Outcome, Reward, Sampling, StopReason,
    TaskId, WeightVersion,
};

fn call(role: &str, prompt: &[u32], response: &[u32]) -> Call {
    let completion = Completion {
        prompt: prompt.to_vec(),
        response: response.to_vec(),
        logprobs: response.iter().map(|&id| -(id as f32)).collect(),
        sampled_logprobs: Vec::new(),
        top_logprobs: Vec::new(),
        prompt_logprobs: Vec::new(),
        stop: StopReason::Stop,
        sampling: Sampling::at(1.0, 8),
        weights: WeightVersion(0),
    };
    Call::new(role, completion)
}

fn graded(total: f64) -> Outcome {
    Outcome::Graded {
        reward: Reward::of("pass", total),
    }
}

fn group(index: u32, outcomes: Vec<Outcome>) -> Group {
    let task = TaskId(format!("task-{index}"));
    let episodes = (0..)
        .zip(outcomes)
        .map(|(member, outcome)| Episode {
            id: EpisodeId {
                step: 4,
                group: index,
                member,
            },
            task: task.clone(),
            calls: vec![
                call("critic", &[1, 2], &[3 + member, 9]),
                call("reviser", &[5], &[6]),
            ],
            outcome,
            retries: 0,
            notes: serde_json::Value::Null,
        })
        .collect();
    Group { task, episodes }
}

#[test]
fn rows_carry_what_was_sampled() {
    let groups = [group(
        0,
        vec![graded(1.0), graded(0.0), graded(0.0), graded(0.0)],
    )];
    let (batch, stats) =
        batch_of_groups(&groups, &["critic"], &AlgorithmConfig::default()).unwrap();
    assert_eq!(batch.data.len(), 4);
    let row = &batch.data[1];
    assert_eq!(
        row.episode,
        Some(EpisodeId {
            step: 4,
            group: 0,
            member: 1
        })
    );
    assert_eq!(row.tokens, [1, 2, 4, 9]);
    assert_eq!(row.mask, [false, false, true, true]);
    assert_eq!(row.logprobs, [0.0, 0.0, -4.0, -9.0]);
    assert_eq!(row.advantages[..2], [0.0, 0.0]);
    for advantage in &row.advantages[2..] {
        assert!((advantage + 0.499999).abs() < 1e-6);
    }
    assert_eq!((stats.rows, stats.trained_tokens, stats.graded), (4, 8, 4));
    assert_eq!(stats.zero_variance_share(), 0.0);
}

#[test]
fn faults_leave_the_statistics_and_the_batch_and_are_counted() {
    let faults = vec![
        graded(1.0),
        Fault::infra("sandbox died").into(),
        graded(0.0),
        Fault::timeout("too slow").into(),
        Fault::grader("no tests").into(),
    ];
    let groups = [group(0, faults)];
    let (batch, stats) =
        batch_of_groups(&groups, &["critic"], &AlgorithmConfig::default()).unwrap();
    let members: Vec<u32> = batch
        .data
        .iter()
        .map(|row| row.episode.unwrap().member)
        .collect();
    assert_eq!(members, [0, 2]);
    // The baseline of [1, 0], as if the others had never been asked.
    assert!((batch.data[0].advantages[2] - 0.5f32.sqrt()).abs() < 1e-4);
    let expected = BatchStats {
        groups: 1,
        comparable_groups: 1,
        group_sizes: [(2, 1)].into(),
        graded: 2,
        infra_faults: 1,
        grader_faults: 1,
        timeouts: 1,
        rows: 2,
        trained_tokens: 4,
        ..BatchStats::default()
    };
    assert_eq!(stats, expected);
    let found = metrics::groups(&groups, &["critic"], &stats);
    assert_eq!(found["critic/score/mean"], 0.5);
    assert_eq!(found["rollout/infra_faults"], 1.0);
    assert_eq!(found["response_length/mean"], 2.0);
    assert_eq!(found["response_length/clip_ratio"], 0.0);
}

#[test]
fn groups_without_variance_are_kept_or_dropped_as_told() {
    let groups = [
        group(0, vec![graded(0.1); 3]),
        group(1, vec![graded(1.0), graded(0.0), graded(0.0)]),
    ];
    let run = |zero_variance| {
        let config = AlgorithmConfig {
            zero_variance,
            ..AlgorithmConfig::default()
        };
        batch_of_groups(&groups, &["critic"], &config).unwrap()
    };
    let (kept, stats) = run(ZeroVariance::Keep);
    assert_eq!(kept.data.len(), 6);
    assert!(
        kept.data[..3]
            .iter()
            .all(|row| row.advantages.iter().all(|a| *a == 0.0))
    );
    assert_eq!((stats.zero_variance_groups, stats.dropped), (1, 0));
    let (dropped, stats) = run(ZeroVariance::Drop);
    assert_eq!(dropped.data[..], kept.data[3..]);
    assert_eq!(
        (stats.zero_variance_groups, stats.dropped, stats.graded),
        (1, 3, 6)
    );
    assert_eq!(stats.zero_variance_share(), 0.5);
}

#[test]
fn every_call_of_the_role_is_a_row_with_the_advantage_of_its_episode() {
    let mut groups = [group(0, vec![graded(1.0), graded(0.0)])];
    groups[0].episodes[0]
        .calls
        .push(call("critic", &[1, 2, 3, 9], &[7]));
    groups[0].episodes[1].calls.clear();
    let (batch, _) = batch_of_groups(&groups, &["critic"], &AlgorithmConfig::default()).unwrap();
    assert_eq!(batch.data.len(), 2);
    assert_eq!(batch.data[1].tokens, [1, 2, 3, 9, 7]);
    assert_eq!(batch.data[0].advantages[3], batch.data[1].advantages[4]);
    let (batch, stats) =
        batch_of_groups(&groups, &["nobody"], &AlgorithmConfig::default()).unwrap();
    assert_eq!((batch.data.len(), stats.graded), (0, 2));
}

#[test]
fn poison_is_refused_by_name() {
    let run = |change: &dyn Fn(&mut Episode)| {
        let mut groups = [group(0, vec![graded(1.0), graded(0.0)])];
        change(&mut groups[0].episodes[1]);
        batch_of_groups(&groups, &["critic"], &AlgorithmConfig::default()).unwrap_err()
    };
    for reward in [f64::NAN, f64::INFINITY] {
        let error = run(&|episode| episode.outcome = graded(reward));
        assert!(matches!(error, BatchError::RewardNotFinite { .. }));
        assert!(
            error.to_string().contains("episode 4/0/1 of task task-0"),
            "{error}"
        );
    }
    let error = run(&|episode| episode.calls[0].completion.logprobs.clear());
    assert!(matches!(
        error,
        BatchError::LogprobsMissing {
            tokens: 2,
            logprobs: 0,
            ..
        }
    ));
    let error = run(&|episode| episode.calls[0].completion.logprobs[1] = f32::NAN);
    assert!(matches!(error, BatchError::LogprobNotFinite { .. }));
    let error = run(&|episode| episode.calls[0].completion.prompt.clear());
    assert!(matches!(error, BatchError::EmptyPrompt { .. }));
}
