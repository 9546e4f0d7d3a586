//! Whether both sides did the same work: the peer's first steps, done again by Etude on its tokens.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use chat::Chat;
use engine::{Engine, LearnerOptions, Model, TrainRow};
use learn::{EngineTrainer, Loss, Trainer, batch_of_groups};
use record::{
    Call, Completion, Datum, Episode, EpisodeId, Group, Outcome, Reward, Sampling, StopReason,
    TaskId, TokenId, WeightVersion,
};

use crate::{
    job::{self, Arguments, Size},
    peer::{Answer, Row, Step},
    study::{self, WRITER},
};

/// Of any token's log-prob under weights that are the same to the bit.
const LOGPROB: f64 = 1e-4;
/// Of log-probs after updates: their mean difference, as a share of how far the updates have moved
/// them. Adam divides each weight's gradient by its own size, so rounding alone turns the sign of a
/// few updates, and the largest difference says little.
const MOVED: f64 = 2e-3;
/// Of the norm of the gradient, relative, and of the loss, which is near 0.
const NORM: f64 = 1e-3;
/// Of advantages: TRL adds 1e-4 to a group's deviation where Etude adds 1e-6.
const ADVANTAGE: f64 = 1e-3;

/// Does the steps that the peer kept, on the peer's tokens, from the same checkpoint, and prints how
/// far log-probs, advantages, losses and gradients are apart; whether that is rounding.
pub(crate) fn replay(
    arguments: &Arguments,
    size: &Size,
    checkpoint: &Path,
    chat: &Chat,
    answer: &Answer,
) -> bool {
    let versions: Vec<String> = answer
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    println!("peer: {}", versions.join(", "));
    let engine = Engine::new(arguments.threads).unwrap();
    let model = Arc::new(Model::load(checkpoint).unwrap());
    let options = LearnerOptions::default();
    let mut trainer = EngineTrainer::new(&engine, model.clone(), Some(model), options);
    let mut equal = true;
    for (index, step) in answer.compare.iter().enumerate() {
        assert_eq!(step.rows.len(), size.rows(), "the peer kept whole steps");
        let found = step_again(&engine, &mut trainer, chat, step);
        let same_weights = index == 0;
        let logprobs = if same_weights {
            found.logprob.most <= LOGPROB
        } else {
            found.logprob.mean() <= MOVED * found.moved.mean()
        };
        let holds = logprobs
            && found.reference.most <= LOGPROB
            && found.advantage.most <= ADVANTAGE
            && found.loss <= NORM
            && (found.norm / step.grad_norm - 1.0).abs() <= NORM;
        println!(
            "same work, step {}: {}; log-probs, moved by {:.2} so far, {:.1e} apart on average, {:.1e} \
             at most; of the reference {:.1e}; advantages {:.1e}; losses {:.1e}; gradient norms \
             {:.5} and {:.5}",
            index + 1,
            if holds { "yes" } else { "NO" },
            found.moved.mean(),
            found.logprob.mean(),
            found.logprob.most,
            found.reference.most,
            found.advantage.most,
            found.loss,
            found.norm,
            step.grad_norm,
        );
        equal &= holds;
    }
    equal
}

/// What a step came to, beside what the peer made of it.
struct Found {
    logprob: Apart,
    reference: Apart,
    advantage: Apart,
    /// How far the peer's log-probs are from its reference.
    moved: Apart,
    loss: f64,
    /// Etude's.
    norm: f64,
}

/// Absolute differences.
#[derive(Default)]
struct Apart {
    most: f64,
    sum: f64,
    n: usize,
}

impl Apart {
    fn add(&mut self, ours: &[f32], theirs: &[f32]) {
        assert_eq!(ours.len(), theirs.len(), "one number a token");
        for (ours, theirs) in ours.iter().zip(theirs) {
            let apart = f64::from((ours - theirs).abs());
            self.most = self.most.max(apart);
            self.sum += apart;
            self.n += 1;
        }
    }

    fn mean(&self) -> f64 {
        self.sum / self.n as f64
    }
}

fn step_again(engine: &Engine, trainer: &mut EngineTrainer, chat: &Chat, step: &Step) -> Found {
    let groups = groups(engine, trainer.model(), chat, step);
    let algorithm = job::algorithm();
    let (mut batch, _) = batch_of_groups(&groups, &[WRITER], &algorithm).unwrap();
    trainer.score_reference(&mut batch).unwrap();
    let own: BTreeMap<Vec<TokenId>, &Datum> = batch
        .data
        .iter()
        .map(|datum| (datum.tokens.clone(), datum))
        .collect();
    let [mut logprob, mut reference, mut advantage, mut moved] = [(); 4].map(|()| Apart::default());
    for row in &step.rows {
        let datum = own[&[row.prompt.as_slice(), &row.response].concat()];
        let start = row.prompt.len();
        logprob.add(&datum.logprobs[start..], &row.logprobs);
        reference.add(&datum.ref_logprobs[start..], &row.reference);
        advantage.add(&datum.advantages[start..=start], &[row.advantage]);
        moved.add(&row.logprobs, &row.reference);
    }
    let pass = trainer
        .forward_backward(&batch, &Loss::Policy(Box::new(algorithm)))
        .unwrap();
    let optimizer = job::optimizer();
    let update = trainer.optim_step(&optimizer, optimizer.lr).unwrap();
    Found {
        logprob,
        reference,
        advantage,
        moved,
        loss: (pass.loss - step.loss).abs(),
        norm: update.grad_norm,
    }
}

/// The peer's rows as graded groups: rewards from their text, log-probs from Etude's scoring, which
/// are those that its sampler would have recorded.
fn groups(engine: &Engine, model: &Model, chat: &Chat, step: &Step) -> Vec<Group> {
    let mut by_prompt: BTreeMap<&[TokenId], Vec<&Row>> = BTreeMap::new();
    for row in &step.rows {
        by_prompt.entry(&row.prompt).or_default().push(row);
    }
    let group = |(index, rows): (usize, Vec<&Row>)| {
        let task = TaskId(format!("prompt-{index}"));
        let episodes = rows.iter().enumerate().map(|(member, row)| {
            let text = chat.response_text(&row.response).unwrap();
            Episode {
                id: EpisodeId {
                    step: 0,
                    group: index as u32,
                    member: member as u32,
                },
                task: task.clone(),
                calls: vec![Call::new(WRITER, completion(engine, model, row))],
                outcome: Outcome::Graded {
                    reward: Reward::of("spaces", study::reward(&text)),
                },
                retries: 0,
                notes: serde_json::Value::Null,
            }
        });
        Group {
            task: task.clone(),
            episodes: episodes.collect(),
        }
    };
    by_prompt.into_values().enumerate().map(group).collect()
}

fn completion(engine: &Engine, model: &Model, row: &Row) -> Completion {
    let datum = Datum::supervised(&row.prompt, &row.response);
    let scored = engine.score(
        model,
        &[TrainRow {
            tokens: &datum.tokens,
            mask: &datum.mask,
        }],
    );
    Completion {
        prompt: row.prompt.clone(),
        response: row.response.clone(),
        logprobs: scored.unwrap().remove(0).logprobs,
        sampled_logprobs: Vec::new(),
        top_logprobs: Vec::new(),
        prompt_logprobs: Vec::new(),
        stop: StopReason::Length,
        sampling: Sampling::at(1.0, row.response.len()),
        weights: WeightVersion(0),
    }
}
