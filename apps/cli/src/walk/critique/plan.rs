//! What a critique recipe would do, in numbers.

use critique::{
    CRITIC, GENERATOR, REVISER,
    tiny::{CriticMix, GeneratorMix, ReviserMix},
};

use super::{
    lessons::{critic_rows, critic_stage_rows, generator_rows, reviser_rows},
    recipe::Recipe,
    role::RoleModel,
    vocabulary::chats,
};
use crate::{
    failure::Outcome,
    plan::{DECODED_PER_THREAD, EpisodePlan, PhasePlan, Plan, TRIAL_ROWS, length},
    walk::{Common, vocabulary::Chats},
};

/// Sandbox runs a second and slot, that the time is estimated with: what the benchmark beside `judge`
/// prints on a small machine.
const RUNS_PER_SLOT: f64 = 80.0;
/// About half of a critic's row and of a generator's, and a third of a reviser's are sampled.
const OF_CRITIC: f64 = 0.45;
const OF_REVISER: f64 = 0.3;
const OF_GENERATOR: f64 = 0.5;

pub(super) fn add(recipe: &Recipe, plan: &mut Plan) -> Outcome<()> {
    let (common, chats) = (recipe.common(), chats(recipe)?);
    plan.sandbox_tier = Some(tier());
    for policy in &common.policies {
        plan.model(policy, chats.of(policy.name)?)?;
    }
    plan.phase(tasks_phase(recipe));
    let critic = match recipe.critic.model.here() {
        Some(_) => Some(critic(recipe, &common, &chats, plan)?),
        None => None,
    };
    let reviser_row = match recipe.reviser.model.here() {
        Some(_) => Some(reviser(recipe, &common, &chats, plan)?),
        None => None,
    };
    let generated = recipe.generator.as_ref();
    let generated = match generated.and_then(|role| role.model.here()) {
        Some(_) => generator(recipe, &common, &chats, plan)?,
        None => 0.0,
    };
    // Of who is played elsewhere, what it says costs this machine nothing.
    let critic_row = critic.map_or(0.0, |(row, _)| row);
    let revised = match recipe.reviser.model {
        RoleModel::Critic => critic_row,
        _ => reviser_row.unwrap_or(0.0),
    };
    if let Some((critic_row, speed)) = critic {
        let episode = EpisodePlan {
            sampled: OF_CRITIC * critic_row + OF_REVISER * revised,
            read: 0.0,
            trained: critic_row,
            sandbox_runs: 1.0,
        };
        plan.reinforcement(&common, &episode, speed);
    }
    plan.phase(evaluation_phase(recipe, (critic_row, revised, generated)));
    Ok(())
}

/// Adds the critic's supervised stages; the length of its rows and the speed of training on them.
fn critic(
    recipe: &Recipe,
    common: &Common<'_>,
    chats: &Chats,
    plan: &mut Plan,
) -> Outcome<(f64, f64)> {
    let mut speeds = Vec::new();
    let (policy, chat) = (common.policy(CRITIC)?, chats.of(CRITIC)?);
    for (index, stage) in recipe.sft.critic.iter().enumerate() {
        let rows = critic_stage_rows(recipe, chat, stage, index as u64, TRIAL_ROWS)?;
        let speed = plan.training_speed(common, policy, index, chat, &rows)?;
        speeds.push(speed);
        plan.supervised(CRITIC, index, &stage.size(), &rows, speed);
    }
    // As they are supervised, or might be.
    let rows = match recipe.sft.critic.first() {
        Some(stage) => critic_stage_rows(recipe, chat, stage, 0, TRIAL_ROWS)?,
        None => critic_rows(recipe, chat, &CriticMix::default(), 0, TRIAL_ROWS)?,
    };
    let speed = match speeds.first() {
        Some(speed) => *speed,
        None => plan.training_speed(common, policy, 0, chat, &rows)?,
    };
    Ok((length(&rows), speed))
}

/// Adds the reviser's supervised stages; the length of its rows.
fn reviser(recipe: &Recipe, common: &Common<'_>, chats: &Chats, plan: &mut Plan) -> Outcome<f64> {
    let (policy, chat) = (common.policy(REVISER)?, chats.of(REVISER)?);
    for (index, stage) in recipe.sft.reviser.iter().enumerate() {
        let rows = reviser_rows(recipe, chat, &stage.mix, index as u64, TRIAL_ROWS)?;
        let speed = plan.training_speed(common, policy, index, chat, &rows)?;
        plan.supervised(REVISER, index, &stage.size(), &rows, speed);
    }
    let mix = recipe.sft.reviser.first();
    let mix = mix.map_or_else(ReviserMix::default, |stage| stage.mix.clone());
    Ok(length(&reviser_rows(recipe, chat, &mix, 0, TRIAL_ROWS)?))
}

/// Adds the generator's supervised stages; the length of its rows.
fn generator(recipe: &Recipe, common: &Common<'_>, chats: &Chats, plan: &mut Plan) -> Outcome<f64> {
    let (policy, chat) = (common.policy(GENERATOR)?, chats.of(GENERATOR)?);
    for (index, stage) in recipe.sft.generator.iter().enumerate() {
        let rows = generator_rows(recipe, chat, &stage.mix, index as u64, TRIAL_ROWS)?;
        let speed = plan.training_speed(common, policy, index, chat, &rows)?;
        plan.supervised(GENERATOR, index, &stage.size(), &rows, speed);
    }
    let mix = GeneratorMix::default();
    Ok(length(&generator_rows(recipe, chat, &mix, 0, TRIAL_ROWS)?))
}

fn tier() -> String {
    sandbox::probe(&crate::machine::sandbox_config(1))
        .best()
        .map_or_else(
            || "none: programs cannot be run here, see `etude doctor`".to_owned(),
            |tier| tier.to_string(),
        )
}

fn tasks_phase(recipe: &Recipe) -> PhasePlan {
    let tasks = (recipe.tasks.train + recipe.tasks.eval) as f64;
    PhasePlan {
        phase: "tasks".to_owned(),
        steps: 0,
        tokens: 0.0,
        // Three evaluations a draft, many drafts a jail run.
        sandbox_runs: (tasks * 3.0 / 250.0).ceil(),
        seconds: 1.0 + tasks / 1000.0,
    }
}

/// What all evaluations of a recipe ask of its roles and of the sandbox, at most.
pub(super) struct Evaluations {
    /// Critiques of critics that are models, and judgments of pairs.
    pub(super) critiques: f64,
    pub(super) revisions: f64,
    /// Programs to begin with, run before anybody is asked.
    pub(super) started: f64,
    /// Those of them that a generator writes.
    pub(super) generated: f64,
}

impl Evaluations {
    pub(super) fn of(recipe: &Recipe) -> Self {
        let (eval, tasks) = (&recipe.eval, recipe.tasks.eval as f64);
        let programs = tasks * f64::from(eval.programs());
        let wrong = tasks * (1.0 - recipe.tasks.share_right);
        let gates = if eval.gates { 7.0 * wrong } else { 0.0 };
        // Programs that are revised in all rounds of one critic or baseline.
        let layers = eval
            .branches()
            .into_iter()
            .scan(programs, |programs, width| {
                *programs *= f64::from(width);
                Some(*programs)
            });
        let revised: f64 = layers.sum();
        // The critic before and after reinforcement, no critique, and the baselines. Of those the reviser is asked as
        // its own critic, and where nobody knows the right critique once more, with hints.
        let critics = if recipe.rl.is_some() { 2.0 } else { 1.0 };
        let hinted = f64::from(u8::from(recipe.tasks.eval_file.is_some()));
        let (asked, played) = if eval.baselines {
            (critics + 1.0 + hinted, critics + 4.0)
        } else {
            (critics, critics + 1.0)
        };
        let judged = eval
            .pairs
            .as_ref()
            .map_or(0.0, |pairs| 2.0 * f64::from(pairs.votes) * tasks);
        let started = if eval.in_rounds() { programs } else { 0.0 };
        Self {
            critiques: asked * revised * f64::from(eval.votes) + judged,
            revisions: gates + played * revised,
            started,
            generated: if recipe.generator.is_some() {
                started
            } else {
                0.0
            },
        }
    }

    pub(super) fn sandbox_runs(&self) -> f64 {
        self.revisions + self.started
    }
}

fn evaluation_phase(recipe: &Recipe, (critic, reviser, generator): (f64, f64, f64)) -> PhasePlan {
    let asked = Evaluations::of(recipe);
    let tokens = asked.critiques * OF_CRITIC * critic
        + asked.revisions * OF_REVISER * reviser
        + asked.generated * OF_GENERATOR * generator;
    let runs = asked.sandbox_runs();
    let threads = recipe.threads as f64;
    PhasePlan {
        phase: "eval".to_owned(),
        steps: 0,
        tokens,
        sandbox_runs: runs,
        seconds: (tokens / (DECODED_PER_THREAD * threads)).max(runs / (RUNS_PER_SLOT * threads)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Evaluations {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../recipes/critique/ctrl-32b.toml");
        let recipe = std::fs::read_to_string(path).unwrap();
        let sets: Vec<String> = text.lines().map(str::to_owned).collect();
        Evaluations::of(
            &recipe::resolve::<Recipe>(&recipe, "here", &sets)
                .unwrap()
                .value,
        )
    }

    #[test]
    fn rounds_votes_baselines_and_pairs_are_in_a_plan() {
        let plain = asked("eval.samples=1\neval.rounds=1\neval.gates=false\ntasks.eval=100");
        // Before, after and without a critique.
        assert_eq!((plain.critiques, plain.revisions), (200.0, 300.0));
        let rounds = asked("eval.samples=2\neval.rounds=3\neval.gates=false\ntasks.eval=100");
        assert_eq!(
            (rounds.critiques, rounds.revisions, rounds.started),
            (1200.0, 1800.0, 100.0)
        );
        let more = asked(
            "eval.samples=1\neval.rounds=1\neval.votes=4\neval.baselines=true\neval.gates=false\ntasks.eval=100\n\
             eval.pairs.votes=8",
        );
        // Four are asked: two critics, the reviser, and the reviser with hints.
        assert_eq!((more.critiques, more.revisions), (1600.0 + 1600.0, 600.0));
    }
}
