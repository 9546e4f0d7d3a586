//! The step reward `info_gain`, played: the gold answer is scored with the memory and without it.

use std::sync::Arc;

use chat::Chat;
use futures::future::{BoxFuture, ready};
use policy::{Policy, PolicyError, Request};
use recall::{Granularity, MEMORY, Notes, Recall};
use record::{Completion, Outcome, Sampling, Seed, StopReason, WeightVersion};
use rollout::{Options, Roles, Runner};
use serde_json::json;

use crate::fixture::{chat, config, study, tasks};

/// Notes every line that it is shown, answers with all of them, and is surer of any text behind a longer prompt.
struct Surer(Chat);

impl Policy for Surer {
    fn sample<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<Completion, PolicyError>> {
        let shown = self.0.tokenizer().decode(&request.prompt).unwrap();
        let lines = shown.lines().filter(|line| !line.trim().is_empty());
        let text: Vec<String> = match request.role.as_str() {
            MEMORY => lines.map(|line| format!("add: {line}")).collect(),
            _ => lines.map(str::to_owned).collect(),
        };
        let mut response = self.0.tokenizer().encode(&text.join("\n")).unwrap();
        response.extend(self.0.stop_tokens().first());
        let n = request.prompt.len();
        let each = -1000.0 / n as f32;
        Box::pin(ready(Ok(Completion {
            logprobs: vec![0.0; response.len()],
            prompt_logprobs: vec![each; if request.prompt_logprobs { n - 1 } else { 0 }],
            prompt: request.prompt,
            response,
            sampled_logprobs: Vec::new(),
            top_logprobs: Vec::new(),
            stop: StopReason::Stop,
            sampling: request.sampling,
            weights: WeightVersion(0),
        })))
    }

    fn chat(&self) -> &Chat {
        &self.0
    }

    fn weights(&self) -> WeightVersion {
        WeightVersion(0)
    }
}

fn played(study: &Arc<Recall>) -> Notes {
    let policy = Arc::new(Surer(chat()));
    let roles = study.config().roles();
    let roles = roles.iter().fold(Roles::default(), |roles, role| {
        roles.bind(role, policy.clone(), Sampling::greedy(1 << 16))
    });
    let tasks = tasks(1, Granularity::Sample);
    let runner = Runner::new(study.clone(), roles, Options::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let play = runner.play(1, &tasks, 1, Seed(5), |_| {});
    let episode = &runtime.block_on(play).unwrap()[0].episodes[0];
    assert!(
        matches!(episode.outcome, Outcome::Graded { .. }),
        "{:?}",
        episode.outcome
    );
    for (call, paid) in episode.calls.iter().zip(Notes::of(episode).unwrap().events) {
        assert_eq!(call.step_reward, paid.step_reward);
    }
    Notes::of(episode).unwrap()
}

#[test]
fn gains_are_made_of_two_likelihoods_of_the_gold_answer() {
    // What was noted somewhere is in the answer somewhere.
    let settings = |rewards| {
        json!({
            "memory": {"extraction": "policy"},
            "reward": {"metric": "substring_exact_match"},
            "step_rewards": rewards,
        })
    };
    let paid = played(&study(config(settings(
        json!({"info_gain": {"weight": 2.0}}),
    ))));
    let mut gains = Vec::new();
    for event in &paid.events {
        let Some(grade) = &event.grade else { continue };
        let scored = grade.score > 0.0 && !grade.abstain;
        assert_eq!(grade.likelihoods.is_some(), scored, "{grade:?}");
        if let Some(found) = grade.likelihoods {
            assert!(found.without_memory < found.with_memory && found.with_memory < 0.0);
            gains.push(1.0 - found.with_memory / found.without_memory);
        }
    }
    assert!(!gains.is_empty());
    let expected = gains.iter().sum::<f64>() / gains.len() as f64;
    for event in paid
        .events
        .iter()
        .filter(|event| event.agent_role == MEMORY)
    {
        assert!((event.step_rewards["info_gain"] - expected).abs() < 1e-12);
        assert!((event.step_reward.unwrap() - 2.0 * expected).abs() < 1e-12);
    }
    let unpaid = played(&study(config(settings(json!({})))));
    let grades = unpaid
        .events
        .iter()
        .filter_map(|event| event.grade.as_ref());
    assert!(
        grades
            .map(|grade| grade.likelihoods)
            .all(|found| found.is_none())
    );
}
