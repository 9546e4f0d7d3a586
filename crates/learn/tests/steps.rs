//! Episodes of several steps: baselines, step parts, singletons, whatever the number of rows.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use learn::{AlgorithmConfig, BatchError, batch_of_groups, metrics, tells_apart};
use record::{
    Batch, Call, Completion, Episode, EpisodeId, Fault, Group, Outcome, Reward, Sampling,
    StopReason, TaskId, WeightVersion,
};

fn completion(prompt: &[u32], tokens: usize) -> Completion {
    Completion {
        prompt: prompt.to_vec(),
        response: vec![9; tokens],
        logprobs: vec![-1.0; tokens],
        sampled_logprobs: Vec::new(),
        top_logprobs: Vec::new(),
        prompt_logprobs: Vec::new(),
        stop: StopReason::Stop,
        sampling: Sampling::at(1.0, 8),
        weights: WeightVersion(0),
    }
}

/// A call of two tokens: its role, its turn, what it alone was paid.
fn call(role: &str, turn: u32, step_reward: Option<f64>) -> Call {
    Call {
        turn: Some(turn),
        step_reward,
        ..Call::new(role, completion(&[turn], 2))
    }
}

fn graded(total: f64) -> Outcome {
    Outcome::Graded {
        reward: Reward::of("em", total),
    }
}

fn group(index: u32, members: Vec<(Outcome, Vec<Call>)>) -> Group {
    let task = TaskId(format!("task-{index}"));
    let episode = |(member, (outcome, calls))| Episode {
        id: EpisodeId {
            step: 1,
            group: index,
            member,
        },
        task: task.clone(),
        calls,
        outcome,
        retries: 0,
        notes: serde_json::Value::Null,
    };
    Group {
        task: task.clone(),
        episodes: (0..).zip(members).map(episode).collect(),
    }
}

fn config(text: &str) -> AlgorithmConfig {
    let config: AlgorithmConfig = toml::from_str(text).unwrap();
    config.check().unwrap();
    config
}

/// The advantage of each row, and that all trained tokens of a row have it.
fn rows(batch: &Batch) -> Vec<f32> {
    let row = |datum: &record::Datum| {
        let trained = datum.advantages.iter().zip(&datum.mask);
        let trained: Vec<f32> = trained
            .filter(|(_, mask)| **mask)
            .map(|(a, _)| *a)
            .collect();
        assert!(trained.iter().all(|advantage| *advantage == trained[0]));
        trained[0]
    };
    batch.data.iter().map(row).collect()
}

#[track_caller]
fn near(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (f64::from(*found) - expected).abs() < 1e-5,
            "{found} for {expected}"
        );
    }
}

#[test]
fn an_episode_of_nine_steps_weighs_no_more_in_the_baseline_than_one_of_one() {
    let steps = |n: u32| (0..n).map(|turn| call("memory", turn, None)).collect();
    let groups = [group(
        0,
        vec![(graded(1.0), steps(1)), (graded(0.0), steps(9))],
    )];
    let (batch, stats) =
        batch_of_groups(&groups, &["memory"], &config("advantage = 'dr-grpo'")).unwrap();
    // Over episodes the mean is 0.5; over rows it would be 0.1.
    let mut expected = vec![0.5];
    expected.extend([-0.5; 9]);
    near(&rows(&batch), &expected);
    assert_eq!((stats.rows, stats.graded), (10, 2));
    let (batch, _) = batch_of_groups(&groups, &["memory"], &config("")).unwrap();
    let whole = 0.5 / (0.5_f64.sqrt() + 1e-6);
    let mut expected = vec![whole];
    expected.extend([-whole; 9]);
    near(&rows(&batch), &expected);
}

/// Two members of a dialogue of two history turns and a question.
fn dialogue() -> Vec<Group> {
    let first = vec![
        call("memory", 0, Some(1.0)),
        call("memory", 1, Some(0.5)),
        call("answer", 2, None),
    ];
    let second = vec![
        call("memory", 0, Some(0.0)),
        call("memory", 1, Some(0.5)),
        call("answer", 2, Some(3.0)),
    ];
    let third = vec![
        call("memory", 0, None),
        call("memory", 1, Some(2.0)),
        call("answer", 2, None),
    ];
    vec![group(
        0,
        vec![
            (graded(1.0), first),
            (graded(0.0), second),
            (graded(0.5), third),
        ],
    )]
}

const ROLES: [&str; 2] = ["memory", "answer"];

#[test]
fn steps_are_compared_within_their_role_and_turn() {
    let text = "advantage = 'dr-grpo'\nstep = { weight = 0.1, std = false }";
    let (batch, stats) = batch_of_groups(&dialogue(), &ROLES, &config(text)).unwrap();
    // Episodes: 0.5, -0.5, 0. Turn 0: mean 0.5 of two. Turn 1: mean 1 of three. Turn 2: one alone.
    let expected = [
        0.5 + 0.05,
        0.5 - 0.05,
        0.5,
        -0.5 - 0.05,
        -0.5 - 0.05,
        -0.5,
        0.0,
        0.1,
        0.0,
    ];
    near(&rows(&batch), &expected);
    let told = metrics::steps(stats.steps.as_ref().unwrap());
    let expected = [
        ("step/advantage/max", 1.0),
        ("step/advantage/mean", 0.0),
        ("step/advantage/min", -0.5),
        ("step/cells", 3.0),
        ("step/scored_share", 6.0 / 9.0),
        ("step/singleton_cells", 1.0),
        ("step/value/max", 3.0),
        ("step/value/mean", 7.0 / 6.0),
        ("step/value/min", 0.0),
        ("step/zero_variance_share", 0.0),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(told, expected.into());
    // With deviations: turn 0 has sqrt(1/2), turn 1 sqrt(3)/2; the answer of the episode is left out.
    let text = "step = { weight = 1.0, weight_episode = 0.0 }";
    let (batch, _) = batch_of_groups(&dialogue(), &["memory"], &config(text)).unwrap();
    let (one, other) = (0.5 / 0.5_f64.sqrt(), 0.5 / 0.75_f64.sqrt());
    near(
        &rows(&batch),
        &[one, -other, -one, -other, 0.0, 2.0 * other],
    );
}

#[test]
fn pooled_steps_have_one_baseline_for_all_rows_of_a_task() {
    let text = "step = { weight = 1.0, weight_episode = 0.0, baseline = 'pooled', std = false }";
    let (batch, _) = batch_of_groups(&dialogue(), &ROLES, &config(text)).unwrap();
    // Worth with the episode's reward: 2, 1.5 | 0, 0.5, 3 | 2.5; mean 9.5 / 6.
    let mean = 9.5 / 6.0;
    let expected = [
        2.0 - mean,
        1.5 - mean,
        0.0,
        -mean,
        0.5 - mean,
        3.0 - mean,
        0.0,
        2.5 - mean,
        0.0,
    ];
    near(&rows(&batch), &expected);
}

#[test]
fn anchors_compare_equal_prompts_by_discounted_returns() {
    let text = "step = { weight = 1.0, weight_episode = 0.0, baseline = 'anchor', gamma = 0.5, std = false }";
    let mut groups = dialogue();
    // The third member saw another prompt in turn 1.
    groups[0].episodes[2].calls[1].completion.prompt = vec![77];
    let (batch, stats) = batch_of_groups(&groups, &ROLES, &config(text)).unwrap();
    // Returns: 1.5, 1, 1 | 1, 2, 3 | 1.125, 2.25, 0.5.
    let (first, last) = (3.625 / 3.0, 4.5 / 3.0);
    let expected = [
        1.5 - first,
        -0.5,
        1.0 - last,
        1.0 - first,
        0.5,
        3.0 - last,
        1.125 - first,
        0.0,
        0.5 - last,
    ];
    near(&rows(&batch), &expected);
    assert_eq!(stats.steps.unwrap().singleton_cells, 1);
}

#[test]
fn returns_to_go_pay_a_step_for_what_follows() {
    let text = "step = { weight = 1.0, weight_episode = 0.0, baseline = 'return-to-go', gamma = 0.5, std = false }";
    let (batch, _) = batch_of_groups(&dialogue(), &ROLES, &config(text)).unwrap();
    // 1.25, 0.5, unscored | 1, 2, 3 | 1, 2, unscored.
    let (first, second) = (3.25 / 3.0, 4.5 / 3.0);
    let expected = [
        1.25 - first,
        0.5 - second,
        0.0,
        1.0 - first,
        2.0 - second,
        0.0,
        1.0 - first,
        2.0 - second,
        0.0,
    ];
    near(&rows(&batch), &expected);
}

#[test]
fn step_rewards_change_nothing_where_the_recipe_has_no_step_part() {
    let mut other = dialogue();
    for call in other[0]
        .episodes
        .iter_mut()
        .flat_map(|episode| &mut episode.calls)
    {
        call.step_reward = call.step_reward.is_none().then_some(-4.0);
    }
    let plain = config("");
    let one = batch_of_groups(&dialogue(), &ROLES, &plain).unwrap();
    assert_eq!(one, batch_of_groups(&other, &ROLES, &plain).unwrap());
    let text = toml::to_string(&plain).unwrap();
    assert!(
        !text.contains("step") && !text.contains("singleton"),
        "{text}"
    );
}

#[test]
fn an_episode_alone_is_kept_or_zero() {
    let infra = || Outcome::from(Fault::infra("no sandbox"));
    let steps = || vec![call("answer", 0, None)];
    let groups = [
        group(0, vec![(graded(0.7), steps())]),
        group(1, vec![(graded(0.4), steps()), (infra(), Vec::new())]),
        group(2, vec![(graded(1.0), steps()), (graded(0.0), steps())]),
        group(3, vec![(infra(), Vec::new()), (infra(), Vec::new())]),
    ];
    let keep = config("advantage = 'dr-grpo'");
    let (batch, stats) = batch_of_groups(&groups, &["answer"], &keep).unwrap();
    near(&rows(&batch), &[0.7, 0.5, -0.5]);
    assert_eq!((stats.singleton_groups, stats.dropped), (2, 1));
    for advantage in ["grpo", "dr-grpo", "rloo", "opo", "gpg"] {
        let zero = config(&format!("advantage = '{advantage}'\nsingleton = 'zero'"));
        let (batch, stats) = batch_of_groups(&groups, &["answer"], &zero).unwrap();
        let found = rows(&batch);
        assert_eq!(
            (found.len(), found[0], found[1]),
            (4, 0.0, 0.0),
            "{advantage}"
        );
        assert!(found[2] > 0.0 && found[3] < 0.0, "{advantage}: {found:?}");
        assert_eq!((stats.singleton_groups, stats.dropped), (2, 0));
        let told = metrics::group_sizes(&stats);
        let expected = [
            ("rollout/group_size/0", 1.0),
            ("rollout/group_size/1", 2.0),
            ("rollout/group_size/2", 1.0),
            ("rollout/singleton_groups", 2.0),
        ];
        assert_eq!(told, expected.map(|(name, n)| (name.to_owned(), n)).into());
    }
}

#[test]
fn equal_episodes_are_not_dropped_while_their_steps_differ() {
    let member = |reward| (graded(1.0), vec![call("memory", 0, Some(reward))]);
    let groups = [
        group(0, vec![member(1.0), member(0.0)]),
        group(1, vec![member(0.5), member(0.5)]),
    ];
    let text = "zero_variance = 'drop'\nstep = { weight = 1.0, std = false }";
    let (batch, stats) = batch_of_groups(&groups, &["memory"], &config(text)).unwrap();
    near(&rows(&batch), &[0.5, -0.5]);
    assert_eq!((stats.zero_variance_groups, stats.dropped), (2, 2));
    let telling = |index: usize, text| tells_apart(&groups[index], &["memory"], &config(text));
    assert_eq!((telling(0, text), telling(1, text)), (Ok(true), Ok(false)));
    assert_eq!(telling(0, ""), Ok(false));
}

#[test]
fn several_roles_of_one_policy_are_rows_of_one_batch() {
    let (both, stats) = batch_of_groups(&dialogue(), &ROLES, &config("")).unwrap();
    let keys: Vec<String> = both
        .data
        .iter()
        .map(|row| row.key().unwrap().to_string())
        .collect();
    assert_eq!(keys[..4], ["1/0/0/0", "1/0/0/1", "1/0/0/2", "1/0/1/0"]);
    let (answers, _) = batch_of_groups(&dialogue(), &["answer"], &config("")).unwrap();
    let of_answers = both.data.iter().filter(|row| row.step == Some(2)).cloned();
    assert_eq!(answers.data, of_answers.collect::<Vec<_>>());
    let told = metrics::groups(&dialogue(), &ROLES, &stats);
    assert_eq!((told["memory/calls"], told["answer/calls"]), (6.0, 3.0));
    assert_eq!(told["answer/prompt_length/mean"], 1.0);
    assert_eq!(told["response_length/mean"], 2.0);
    let alone = metrics::groups(&dialogue(), &["memory"], &stats);
    assert!(!alone.contains_key("memory/calls"), "one role has no name");
}

#[test]
fn a_step_reward_that_is_not_finite_is_named() {
    let mut groups = dialogue();
    groups[0].episodes[1].calls[1].step_reward = Some(f64::NAN);
    let found = batch_of_groups(&groups, &ROLES, &config("step = { weight = 1.0 }"));
    let error = found.unwrap_err();
    assert!(matches!(error, BatchError::StepRewardNotFinite { .. }));
    assert_eq!(
        error.to_string(),
        "step 1/0/1/1 of task task-0: the step reward is NaN; step rewards must be finite"
    );
}
