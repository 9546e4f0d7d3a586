//! Turns and rewards of the steps of an episode.

#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, sync::Arc};

use chat::{BpeOptions, Chat, Tokenizer};
use futures::future::{BoxFuture, ready};
use policy::{Policy, PolicyError, Request, ScriptedPolicy};
use record::{
    Completion, Episode, Estimate, Fault, Group, Message, Outcome, Reward, Sampling, Seed, StepKey,
    StopReason, TaskId, WeightVersion,
};
use rollout::{Cx, Options, Played, Roles, Runner, Study, TaskRow};

struct Row {
    id: TaskId,
    /// Paid to the step of this index.
    paid: Vec<(u32, f64)>,
}

impl TaskRow for Row {
    fn id(&self) -> &TaskId {
        &self.id
    }
}

/// Asks once outside any turn and once in each of turns 0, 0 and 4, and pays what the task says.
struct Turns;

impl Study for Turns {
    type Task = Row;

    async fn play<'a>(&'a self, task: &'a Row, cx: &'a mut Cx) -> Result<Played, Fault> {
        let prompt = [Message::user("?")];
        cx.ask("speaker", &prompt).await?;
        for turn in [0, 0, 4] {
            cx.at_turn(turn);
            cx.ask("speaker", &prompt).await?;
        }
        for &(step, reward) in &task.paid {
            cx.reward_step(step, reward)?;
        }
        let tokens = cx
            .chat("speaker")?
            .tokenizer()
            .encode("said")
            .map_err(Fault::grader)?
            .len();
        Ok(Played {
            reward: Reward::of("made", cx.next_step().into()),
            notes: tokens.into(),
        })
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn step_metrics(&self, _: &[Group], _: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn evaluation_metrics(&self, _: &[Group]) -> BTreeMap<String, Estimate> {
        BTreeMap::new()
    }

    fn replay(&self, _: &Episode) {}
}

fn chat() -> Chat {
    let options = BpeOptions {
        vocabulary: 261,
        special_tokens: Chat::builtin_special_tokens(),
    };
    Chat::builtin(Tokenizer::train([], &options).unwrap()).unwrap()
}

async fn play(paid: &[(u32, f64)]) -> Episode {
    let policy = Arc::new(ScriptedPolicy::always(chat(), "said"));
    let roles = Roles::default().bind("speaker", policy, Sampling::greedy(16));
    let task = Arc::new(Row {
        id: TaskId("task".to_owned()),
        paid: paid.to_vec(),
    });
    let options = Options {
        max_fault_share: 1.0,
        ..Options::default()
    };
    let groups = Runner::new(Arc::new(Turns), roles, options)
        .play(3, &[task], 1, Seed(1), |_| {})
        .await
        .unwrap();
    groups.into_iter().next().unwrap().episodes.remove(0)
}

/// Says nothing, and gives the i-th token of a prompt the log-probability -i.
struct Counting(Chat);

impl Policy for Counting {
    fn sample<'a>(&'a self, request: Request) -> BoxFuture<'a, Result<Completion, PolicyError>> {
        let n = request.prompt.len();
        assert!(request.prompt_logprobs && request.sampling == Sampling::greedy(1));
        Box::pin(ready(Ok(Completion {
            prompt: request.prompt,
            response: Vec::new(),
            logprobs: Vec::new(),
            sampled_logprobs: Vec::new(),
            top_logprobs: Vec::new(),
            prompt_logprobs: (1..n).map(|i| -(i as f32)).collect(),
            stop: StopReason::Length,
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

/// Asks how likely the task's name is as an answer.
struct Likely;

impl Study for Likely {
    type Task = Row;

    async fn play<'a>(&'a self, task: &'a Row, cx: &'a mut Cx) -> Result<Played, Fault> {
        let prompt = [Message::user("?")];
        let likelihood = cx.likelihood("speaker", &prompt, &task.id.0).await?;
        assert_eq!(cx.next_step(), 0);
        let rendered = cx.chat("speaker")?.render(&prompt, true);
        let tokens = rendered.map_err(Fault::grader)?.tokens.len();
        Ok(Played {
            reward: Reward::of("likelihood", likelihood),
            notes: tokens.into(),
        })
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn step_metrics(&self, _: &[Group], _: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn evaluation_metrics(&self, _: &[Group]) -> BTreeMap<String, Estimate> {
        BTreeMap::new()
    }

    fn replay(&self, _: &Episode) {}
}

async fn likelihood(policy: Arc<dyn Policy>, text: &str) -> Episode {
    let roles = Roles::default().bind("speaker", policy, Sampling::greedy(16));
    let task = Arc::new(Row {
        id: TaskId(text.to_owned()),
        paid: Vec::new(),
    });
    let options = Options {
        max_fault_share: 1.0,
        ..Options::default()
    };
    let groups = Runner::new(Arc::new(Likely), roles, options)
        .play(3, &[task], 1, Seed(1), |_| {})
        .await
        .unwrap();
    groups.into_iter().next().unwrap().episodes.remove(0)
}

#[tokio::test]
async fn likelihoods_are_means_over_the_tokens_of_the_text_alone() {
    let episode = likelihood(Arc::new(Counting(chat())), "said").await;
    let prompt = episode.notes.as_u64().unwrap() as f64;
    // Four bytes are four tokens, right behind the prompt.
    let expected = -(prompt + (prompt + 3.0)) / 2.0;
    assert_eq!(episode.outcome.reward().unwrap().total, expected);
    assert!(episode.calls.is_empty());
    for faulty in [
        likelihood(Arc::new(Counting(chat())), "").await,
        likelihood(Arc::new(ScriptedPolicy::always(chat(), "said")), "said").await,
    ] {
        assert!(
            matches!(faulty.outcome, Outcome::GraderFault { .. }),
            "{:?}",
            faulty.outcome
        );
    }
}

#[tokio::test]
async fn calls_know_their_turn_and_their_own_reward() {
    let episode = play(&[(2, 0.0), (3, 1.0), (3, -0.5)]).await;
    let steps: Vec<(Option<u32>, Option<f64>)> = episode
        .calls
        .iter()
        .map(|call| (call.turn, call.step_reward))
        .collect();
    let expected = [
        (None, None),
        (Some(0), None),
        (Some(0), Some(0.0)),
        (Some(4), Some(-0.5)),
    ];
    assert_eq!(steps, expected);
    assert_eq!(episode.outcome.reward().unwrap().total, 4.0);
    assert_eq!(
        episode.notes, 4,
        "a token a byte, before any pair is learnt"
    );
    let key: StepKey = episode.step_key(2);
    assert_eq!(key.to_string(), "3/0/0/2");
}

#[tokio::test]
async fn rewards_of_steps_must_be_finite_and_their_steps_made() {
    for (paid, expected) in [
        ((4, 1.0), "task task: step 4 is rewarded, but 4 were made"),
        ((0, f64::NAN), "task task: the reward of step 0 is NaN"),
    ] {
        let episode = play(&[paid]).await;
        assert_eq!(
            episode.outcome,
            Outcome::GraderFault {
                message: expected.to_owned()
            }
        );
    }
}
