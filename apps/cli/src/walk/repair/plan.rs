//! What a repair recipe would do, in numbers.

use record::{Datum, Message, Seed};
use repair::{
    Task,
    planner::PLANNER,
    tiny::{Lessons, Mix},
};

use super::{
    evaluate::n_evaluations,
    lessons::{chats, rows},
    players::counter_of,
    recipe::{Patcher, Recipe},
    tasks::tasks_of,
};
use crate::{
    failure::{Classify, Outcome},
    plan::{EpisodePlan, PhasePlan, Plan, TRIAL_ROWS},
    walk::{settings::prompt_tokens, vocabulary::Chats},
};

/// Seconds of a patch that a model proposes, about: an interpreter, a framework, and a package of some thousand lines.
const PROPOSED: f64 = 0.5;
/// Seconds of a search, about: a look at the tests, workplaces, and interpreters; and of each of its candidates, which
/// share an interpreter.
const SEARCH: f64 = 0.5;
const CANDIDATE: f64 = 0.04;
/// What responses take of `max_tokens`, about.
const OF_RESPONSE: f64 = 0.5;
/// Lessons that are looked at to learn how long a planner's prompt is.
const TRIAL_LESSONS: u64 = 24;

pub(super) fn add(recipe: &Recipe, plan: &mut Plan) -> Outcome<()> {
    let tasks = tasks_of(recipe, |package| Ok(package.name.into()))?;
    let common = recipe.common();
    let chats = chats(recipe, &tasks.train)?;
    let tier = recipe.sandbox.backend;
    plan.sandbox_tier = Some(format!("{tier:?}").to_lowercase());
    let mut slowest = f64::INFINITY;
    for policy in &common.policies {
        let chat = chats.of(policy.name)?;
        plan.model(policy, chat)?;
        let mut speed = None;
        for (index, stage) in recipe.policies[policy.name].sft.iter().enumerate() {
            let count = counter_of(recipe, &chats)?;
            let trial = rows(recipe, &count, chat, (index, &stage.mix), TRIAL_ROWS)?;
            let tried = plan.training_speed(&common, policy, index, chat, &trial)?;
            plan.supervised(policy.name, index, &stage.size(), &trial, tried);
            speed = Some(tried);
        }
        if policy.reinforced && speed.is_none() {
            let context = policy.config(common.tokenizer).asked()?.context;
            let row = Datum::supervised(&vec![0; context / 2], &vec![0; context / 4]);
            speed = Some(plan.training_speed(&common, policy, 0, chat, &[row])?);
        }
        slowest = slowest.min(speed.unwrap_or(f64::INFINITY));
    }
    if recipe.rl.is_some() {
        let episode = episode(recipe, &chats)?;
        plan.reinforcement(&common, &episode, slowest);
        let repairs = repairs(recipe, &tasks.train, episodes_of_training(recipe));
        plan.phase(tests(recipe, "rl, tests at most", repairs));
    }
    let episodes = tasks.eval.len() as f64 * f64::from(recipe.eval.samples);
    let repairs = repairs(recipe, &tasks.eval, n_evaluations(recipe) as f64 * episodes);
    plan.phase(tests(recipe, "eval, at most", repairs));
    Ok(())
}

/// Repairs that so many episodes of these tasks ask for at most: where they are remembered, one of every task with
/// every suspect.
fn repairs(recipe: &Recipe, tasks: &[Task], episodes: f64) -> f64 {
    let suspects = recipe.environment.observation.suspects;
    match recipe.repair.remember && suspects > 0 {
        true => episodes.min((tasks.len() * suspects) as f64),
        false => episodes,
    }
}

/// The tests of so many repairs.
fn tests(recipe: &Recipe, phase: &str, repairs: f64) -> PhasePlan {
    let (runs, seconds) = match &recipe.patcher {
        Patcher::Search(settings) => {
            let candidates = settings.budget as f64;
            (candidates, SEARCH + candidates * CANDIDATE)
        }
        // Every repair proposes one patch, or a few.
        Patcher::Model(_) | Patcher::Generate(_) => (4.0, 4.0 * PROPOSED),
    };
    let seats = match recipe.repair.remember {
        true => recipe.threads,
        false => recipe.rollout.concurrency,
    };
    let at_once = seats.min(crate::machine::cores()).max(1);
    PhasePlan {
        phase: phase.to_owned(),
        steps: 0,
        tokens: 0.0,
        sandbox_runs: repairs * runs,
        seconds: repairs * seconds / at_once as f64,
    }
}

fn episodes_of_training(recipe: &Recipe) -> f64 {
    recipe.rl.as_ref().map_or(0.0, |rl| {
        rl.steps as f64 * rl.tasks_per_step as f64 * f64::from(rl.group_size)
    })
}

/// What an episode takes of the planner: one reply for each step that it may make, as long as lessons are where there
/// are suspects to point at, and as a whole observation otherwise.
fn episode(recipe: &Recipe, chats: &Chats) -> Outcome<EpisodePlan> {
    let mut episode = EpisodePlan {
        sampled: 0.0,
        read: 0.0,
        trained: 0.0,
        sandbox_runs: 0.0,
    };
    let common = recipe.common();
    let steps = f64::from(recipe.environment.end.max_steps.unwrap_or(40));
    for policy in common.policies.iter().filter(|policy| policy.reinforced) {
        let chat = chats.of(policy.name)?;
        let observed = recipe.environment.observation;
        let asked = match observed.suspects {
            0 => observed.tokens as f64,
            _ => {
                let count = counter_of(recipe, chats)?;
                let seed = Seed(recipe.seed).stream("plan", 0);
                let lessons = Lessons::new(&recipe.config(), count, Mix::default(), seed);
                let tokens = |prompt: &[Message]| prompt_tokens(chat, prompt).asked();
                let prompts = (0..TRIAL_LESSONS).map(|index| lessons.lesson(index).prompt);
                let all: Vec<usize> = prompts
                    .map(|prompt| tokens(&prompt))
                    .collect::<Outcome<_>>()?;
                all.iter().sum::<usize>() as f64 / all.len().max(1) as f64
            }
        };
        let own = &recipe.policies[policy.name];
        let said = own.roles.get(PLANNER);
        let said = said.map_or(0.0, |sampling| OF_RESPONSE * sampling.max_tokens as f64);
        episode.read += steps * asked;
        episode.sampled += steps * said;
        episode.trained += steps * (asked + said);
    }
    Ok(episode)
}
