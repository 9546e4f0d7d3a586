//! What a recall recipe would do, in numbers.

use recall::{Recall, Task};
use record::Datum;

use super::{
    evaluate::n_evaluations,
    lessons::{chats, rows, teacher},
    players::{counter_of, study},
    recipe::Recipe,
    tasks::tasks_of,
};
use crate::{
    failure::{Classify, Outcome},
    plan::{EpisodePlan, PhasePlan, Plan, TRIAL_ROWS},
    walk::{settings::prompt_tokens, vocabulary::Chats},
};

/// Tasks that are looked at to learn how long episodes are.
const TRIAL_TASKS: usize = 24;
/// What responses take of `max_tokens`, about.
const OF_RESPONSE: f64 = 0.5;

pub(super) fn add(recipe: &Recipe, plan: &mut Plan) -> Outcome<()> {
    let (common, chats) = (recipe.common(), chats(recipe)?);
    let count = counter_of(recipe, &chats)?;
    let study = study(recipe.config(), &chats, recipe)?;
    let (train, held_out) = tasks_of(recipe)?;
    let mut slowest = f64::INFINITY;
    for policy in &common.policies {
        let chat = chats.of(policy.name)?;
        plan.model(policy, chat)?;
        let mut speed = None;
        for (index, stage) in recipe.policies[policy.name].sft.iter().enumerate() {
            let teacher = teacher(recipe, &count, policy.name, (index, &stage.mix))?;
            let trial = rows(recipe, &teacher, policy.name, chat, TRIAL_ROWS)?;
            let tried = plan.training_speed(&common, policy, index, chat, &trial)?;
            plan.supervised(policy.name, index, &stage.size(), &trial, tried);
            speed = Some(tried);
        }
        let speed = match speed {
            Some(speed) => speed,
            None => {
                let context = policy.config(common.tokenizer).asked()?.context;
                let row = Datum::supervised(&vec![0; context / 2], &vec![0; context / 4]);
                plan.training_speed(&common, policy, 0, chat, &[row])?
            }
        };
        slowest = slowest.min(speed);
    }
    plan.reinforcement(&common, &episode(recipe, &study, &chats, &train)?, slowest);
    let played = episode(recipe, &study, &chats, &held_out)?;
    let episodes = (n_evaluations(recipe) * held_out.len()) as f64 * f64::from(recipe.eval.samples);
    plan.phase(PhasePlan {
        phase: "eval".to_owned(),
        steps: 0,
        tokens: episodes * played.sampled,
        sandbox_runs: 0.0,
        seconds: episodes * played.seconds(&common, slowest),
    });
    Ok(())
}

/// What an episode of these tasks takes, every memory full.
fn episode(recipe: &Recipe, study: &Recall, chats: &Chats, tasks: &[Task]) -> Outcome<EpisodePlan> {
    let looked_at = &tasks[..tasks.len().min(TRIAL_TASKS)];
    let mut episode = EpisodePlan {
        sampled: 0.0,
        read: 0.0,
        trained: 0.0,
        sandbox_runs: 0.0,
    };
    for name in recipe.policies.keys() {
        let chat = chats.of(name)?;
        for (role, sampling) in recipe.samplings(name) {
            let trained = recipe.rl.train.iter().any(|trained| trained == role);
            let turns = looked_at
                .iter()
                .flat_map(|task| task.public.turns.iter().map(move |turn| (task, turn)));
            for (task, turn) in turns {
                let Some(bare) = study.bare_prompt(role, &task.public, turn) else {
                    continue;
                };
                let asked = prompt_tokens(chat, &bare.messages).asked()? + bare.shown_tokens;
                let said = OF_RESPONSE * sampling.max_tokens as f64;
                episode.read += asked as f64;
                episode.sampled += said;
                if trained {
                    episode.trained += asked as f64 + said;
                }
            }
        }
    }
    let n = looked_at.len().max(1) as f64;
    Ok(EpisodePlan {
        sampled: episode.sampled / n,
        read: episode.read / n,
        trained: episode.trained / n,
        sandbox_runs: 0.0,
    })
}
