//! Evaluations of the critic: before and after reinforcement, and again for `etude eval`.

use std::{path::Path, sync::Arc};

use chat::Chat;
use critique::{
    CRITIC, Critique, Purpose, REVISER, Task, forest::Round, metrics::rounds::Trajectory,
};
use engine::Model;
use eval::Evaluated;
use policy::{Policy, ScriptedPolicy};
use record::{Group, Sampling, Seed};
use rollout::{Answers, Roles};

use super::{
    CritiqueRun,
    contenders::Voice,
    instruments::Instruments,
    lessons::{CRITIC_SFT, REVISER as REVISER_CHECKPOINT},
    recipe::Recipe,
    reinforce::CRITIC_RL,
    rounds::{Contender, Rounds, evaluated, said},
};
use crate::{
    failure::{Classify, Failure, Outcome},
    walk::{
        Again,
        evaluate::{Played, faults, share},
        tasks::TaskSets,
        vocabulary::Chats,
    },
};

/// Who is evaluated, on what.
pub(super) struct Criticised<'a> {
    pub(super) name: &'a str,
    /// What is evaluated, for people.
    pub(super) policy: &'a str,
    pub(super) critic: Arc<dyn Policy>,
    pub(super) sampling: Sampling,
    pub(super) reviser: Arc<dyn Policy>,
    pub(super) tasks: &'a [Arc<Task>],
    pub(super) samples: u32,
    pub(super) seed: Seed,
}

impl<'a> Criticised<'a> {
    pub(super) fn suite(
        self,
        instruments: &Instruments,
        recipe: &'a Recipe,
    ) -> Played<'a, Critique> {
        Played {
            name: self.name,
            policy: self.policy,
            study: instruments.study(recipe, Purpose::Measuring),
            roles: Roles::default()
                .bind(CRITIC, self.critic, self.sampling)
                .bind(REVISER, self.reviser, recipe.reviser.sampling()),
            tasks: self.tasks,
            samples: self.samples,
            seed: self.seed,
            rollout: &recipe.rollout,
            keeps: false,
        }
    }
}

impl CritiqueRun<'_> {
    /// The reviser's gates, no critique, and the supervised critic.
    pub(super) fn evaluate_before(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        critic: &Arc<Model>,
        reviser: &Arc<Model>,
    ) -> Outcome<Option<Vec<Trajectory>>> {
        self.frame
            .screen
            .headline("Evaluation before reinforcement, on held-out tasks");
        let reviser = self.reviser(chats, reviser)?;
        let chat = chats.of(CRITIC)?;
        if self.recipe.eval.gates {
            self.gates(&sets.eval, chat, &reviser)?;
        }
        if self.recipe.eval.in_rounds() {
            let rounds = self.rounds(&sets.eval);
            let reviser = Answers::Tokens(reviser);
            self.begin(&rounds)?;
            let no_critique = self.baselines(&rounds, &reviser)?;
            let contender = self.contender("sft", CRITIC_SFT, (chat, critic), reviser)?;
            self.contend(&rounds, &contender, Some(&no_critique))?;
            self.pairs("sft", &contender.critic, &sets.eval)?;
            return Ok(Some(no_critique));
        }
        self.suite(Criticised {
            name: "no-critique",
            policy: "an empty critique",
            critic: Arc::new(ScriptedPolicy::always(chat.clone(), "")),
            sampling: self.recipe.scripted(),
            reviser: reviser.clone(),
            tasks: &sets.eval,
            samples: 1,
            seed: self.frame.seed,
        })?;
        self.critic("sft", CRITIC_SFT, (chat, critic), reviser, &sets.eval)?;
        Ok(None)
    }

    /// Who is not trained, on equal terms; returns what becomes of programs without a critique.
    fn baselines(&self, rounds: &Rounds<'_>, reviser: &Answers) -> Outcome<Vec<Trajectory>> {
        let contend = |name, policy, critic, no_critique| {
            let contender = Contender {
                name,
                policy,
                critic,
                reviser: reviser.clone(),
            };
            self.contend(rounds, &contender, no_critique)
        };
        let none = contend("no-critique", "an empty critique", Voice::Silence, None)?;
        if !self.recipe.eval.baselines {
            return Ok(none);
        }
        let itself = Voice::Model {
            answers: reviser.clone(),
            sampling: self.recipe.critic.sampling(),
        };
        for (name, policy, critic) in [
            ("self-critique", "the reviser as its own critic", itself),
            (
                "execution-feedback",
                "the report of the test run",
                Voice::ExecutionFeedback,
            ),
            (
                "oracle",
                "the right critique, where it is known",
                Voice::Oracle,
            ),
        ] {
            contend(name, policy, critic, Some(&none))?;
        }
        Ok(none)
    }

    fn rounds<'a>(&'a self, tasks: &'a [Arc<Task>]) -> Rounds<'a> {
        Rounds {
            instruments: self.instruments,
            recipe: self.recipe,
            tasks,
            seed: self.frame.seed,
            branches: self.recipe.eval.branches(),
        }
    }

    fn contender<'a>(
        &self,
        name: &'a str,
        checkpoint: &'a str,
        (chat, model): (&Chat, &Arc<Model>),
        reviser: Answers,
    ) -> Outcome<Contender<'a>> {
        let critic = self.frame.engines.policy(checkpoint, chat, model.clone())?;
        Ok(Contender {
            name,
            policy: checkpoint,
            critic: Voice::Model {
                answers: Answers::Tokens(Arc::new(critic)),
                sampling: self.recipe.critic.sampling(),
            },
            reviser,
        })
    }

    /// The trained critic, on the same tasks.
    pub(super) fn evaluate_after(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        critic: &Arc<Model>,
        reviser: &Arc<Model>,
        no_critique: Option<&[Trajectory]>,
    ) -> Outcome<()> {
        self.frame
            .screen
            .headline("Evaluation after reinforcement, on the same held-out tasks");
        let reviser = self.reviser(chats, reviser)?;
        let critic = (chats.of(CRITIC)?, critic);
        if self.recipe.eval.in_rounds() {
            let contender = self.contender("rl", CRITIC_RL, critic, Answers::Tokens(reviser))?;
            self.contend(&self.rounds(&sets.eval), &contender, no_critique)?;
            return self.pairs("rl", &contender.critic, &sets.eval);
        }
        self.critic("rl", CRITIC_RL, critic, reviser, &sets.eval)
    }

    fn critic(
        &self,
        name: &str,
        checkpoint: &str,
        (chat, model): (&Chat, &Arc<Model>),
        reviser: Arc<dyn Policy>,
        tasks: &[Arc<Task>],
    ) -> Outcome<()> {
        let engines = self.frame.engines;
        let critic = Arc::new(engines.policy(checkpoint, chat, model.clone())?);
        let sampling = self.recipe.critic.sampling();
        let voice = Voice::Model {
            answers: Answers::Tokens(critic.clone()),
            sampling: sampling.clone(),
        };
        self.suite(Criticised {
            name,
            policy: checkpoint,
            critic,
            sampling,
            reviser,
            tasks,
            samples: self.recipe.eval.samples,
            seed: self.frame.seed,
        })?;
        self.pairs(name, &voice, tasks)
    }

    fn reviser(&self, chats: &Chats, model: &Arc<Model>) -> Outcome<Arc<dyn Policy>> {
        let engines = self.frame.engines;
        Ok(Arc::new(engines.policy(
            REVISER,
            chats.of(REVISER)?,
            model.clone(),
        )?))
    }

    pub(super) fn suite(&self, criticised: Criticised<'_>) -> Outcome<()> {
        let suite = criticised.suite(self.instruments, self.recipe);
        self.frame.suite(&suite, line)
    }
}

/// The critics of a run again, before and after reinforcement.
pub(super) fn again(again: &Again<'_>, recipe: &Recipe) -> Outcome<Vec<Evaluated>> {
    let Again { args, reader, .. } = *again;
    if args.format.is_some() {
        return Err(Failure::Asked(anyhow::anyhow!(
            "--format is for runs of the recall study; tasks of critique have one format"
        )));
    }
    let tasks = super::tasks::read(&again.tasks)?;
    let tasks: Vec<Arc<Task>> = tasks.into_iter().map(Arc::new).collect();
    let reviser_directory = reader.checkpoint_path(REVISER_CHECKPOINT).asked()?;
    let chat = Chat::load(&reviser_directory).asked()?;
    let instruments = Instruments::start(recipe)?;
    let engines = &instruments.engines;
    let reviser = Arc::new(engines.policy(REVISER, &chat, load(&reviser_directory)?)?);
    let rounds = rounds_again(again, recipe, &instruments, &tasks)?;
    let mut results = Vec::new();
    for (name, checkpoint) in [("sft", CRITIC_SFT), ("rl", CRITIC_RL)] {
        if reader.replay().checkpoint(checkpoint).is_none() {
            continue;
        }
        let directory = reader.checkpoint_path(checkpoint).asked()?;
        let samples = args.samples.unwrap_or(recipe.eval.samples);
        let critic = engines.policy(
            checkpoint,
            &Chat::load(&directory).asked()?,
            load(&directory)?,
        )?;
        if let Some((rounds, start)) = &rounds {
            let contender = Contender {
                name,
                policy: checkpoint,
                critic: Voice::Model {
                    answers: Answers::Tokens(Arc::new(critic)),
                    sampling: recipe.critic.sampling(),
                },
                reviser: Answers::Tokens(reviser.clone()),
            };
            results.extend(forest_again(again, rounds, &contender, start)?);
            continue;
        }
        let criticised = Criticised {
            name,
            policy: checkpoint,
            critic: Arc::new(critic),
            sampling: recipe.critic.sampling(),
            reviser: reviser.clone(),
            tasks: &tasks,
            samples,
            seed: Seed(args.seed.unwrap_or(recipe.seed)),
        };
        let suite = criticised.suite(&instruments, recipe);
        results.push(again.play(&suite, engines, || {
            format!("{name}: {} tasks, {samples} critiques each", tasks.len())
        })?);
    }
    if results.is_empty() {
        return Err(Failure::Asked(anyhow::anyhow!(
            "{} has no trained critic yet; let it go on with `etude train --resume`",
            args.run.display()
        )));
    }
    Ok(results)
}

/// What forests of a recipe that has them begin with: the initial programs, judged.
fn rounds_again<'a>(
    again: &Again<'_>,
    recipe: &'a Recipe,
    instruments: &'a Instruments,
    tasks: &'a [Arc<Task>],
) -> Outcome<Option<(Rounds<'a>, Vec<Group>)>> {
    if !recipe.eval.in_rounds() {
        return Ok(None);
    }
    let mut branches = recipe.eval.branches();
    if let (Some(first), Some(samples)) = (branches.first_mut(), again.args.samples) {
        *first = samples;
    }
    let rounds = Rounds {
        instruments,
        recipe,
        tasks,
        seed: Seed(again.args.seed.unwrap_or(recipe.seed)),
        branches,
    };
    let start = again.play(&rounds.start(), &instruments.engines, || {
        format!("{} initial programs", tasks.len())
    })?;
    Ok(Some((rounds, start.groups)))
}

/// Every round of a contender, and what is measured over all of them.
fn forest_again(
    again: &Again<'_>,
    rounds: &Rounds<'_>,
    contender: &Contender<'_>,
    start: &[Group],
) -> Outcome<Vec<Evaluated>> {
    let mut results = Vec::new();
    let mut play = |suite: &Played<'_, Round>| {
        let name = suite.name.to_owned();
        let played = again.play(suite, &rounds.instruments.engines, || name)?;
        let groups = played.groups.clone();
        results.push(played);
        Ok(groups)
    };
    let forest = rounds.forest(contender, start, &mut play)?;
    let measures = rounds.measures(&forest.trajectories(), None);
    results.push(evaluated(contender, rounds.tasks.len(), measures));
    Ok(results)
}

fn load(directory: &Path) -> Outcome<Arc<Model>> {
    Ok(Arc::new(Model::load(directory).asked()?))
}

/// An evaluation in one line.
pub(super) fn line(evaluated: &Evaluated) -> String {
    let (faults, share) = (faults(evaluated), |name: &str| share(evaluated, name));
    if evaluated.name.ends_with("/rounds") {
        return said(&evaluated.name, &evaluated.metrics);
    }
    if evaluated.name.starts_with("gate/") {
        return format!(
            "{:<22} fixes {} of wrong programs{faults}",
            evaluated.name,
            share("fix_rate")
        );
    }
    format!(
        "{:<12} pass@1 {}, wrong → right {}, right → wrong {}, judged right {}{faults}",
        evaluated.name,
        share("pass_at_1"),
        share("delta_up"),
        share("delta_down"),
        share("judgment_accuracy"),
    )
}
