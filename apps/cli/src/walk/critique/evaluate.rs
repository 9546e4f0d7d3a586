//! Evaluations of the critic: before and after reinforcement, and again for `etude eval`.

use std::{path::Path, sync::Arc};

use chat::Chat;
use critique::{
    CRITIC, Critique, GENERATOR, Purpose, REVISER, Task, forest::Round, metrics::rounds::Trajectory,
};
use engine::Model;
use eval::Evaluated;
use policy::ScriptedPolicy;
use record::{Group, Sampling, Seed};
use rollout::{Answers, Roles};

use super::{
    CritiqueRun,
    contenders::Voice,
    instruments::Instruments,
    lessons::{CRITIC_SFT, REVISER as REVISER_CHECKPOINT},
    players::{Weights, generating, player, revising, spoken},
    prompts::fitting,
    recipe::Recipe,
    reinforce::CRITIC_RL,
    rounds::{Contender, Rounds, evaluated, initial, said},
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
    pub(super) critic: Answers,
    pub(super) sampling: Sampling,
    pub(super) reviser: Answers,
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
                .bind_answers(CRITIC, self.critic, self.sampling)
                .bind_answers(REVISER, self.reviser, recipe.reviser.sampling()),
            tasks: self.tasks,
            samples: self.samples,
            seed: self.seed,
            rollout: &recipe.rollout,
            // Answers from elsewhere cost more than the disk does.
            keeps: !instruments.endpoints.is_empty(),
        }
    }
}

impl CritiqueRun<'_> {
    /// The reviser's gates, no critique, and the critic as it is before reinforcement.
    pub(super) fn evaluate_before(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        (critic, reviser): (&Weights, &Weights),
        generator: &Weights,
    ) -> Outcome<Option<Vec<Trajectory>>> {
        self.frame.screen.headline(match self.recipe.rl {
            Some(_) => "Evaluation before reinforcement, on held-out tasks",
            None => "Evaluation, on held-out tasks",
        });
        let reviser = self.reviser(chats, reviser, critic)?;
        let critic = self.critic(CRITIC_SFT, chats, critic)?;
        let (name, policy) = match self.recipe.critic.endpoint() {
            Some(endpoint) => (CRITIC, endpoint.model),
            None => ("sft", CRITIC_SFT),
        };
        let chat = spoken(chats)?;
        if self.recipe.eval.gates {
            self.gates(&sets.eval, &chat, &reviser)?;
        }
        if self.recipe.eval.in_rounds() {
            let tasks = initial(self.recipe, &sets.eval)?;
            let generator = generating(self.recipe, self.instruments, chats, generator)?;
            let rounds = self.rounds(&tasks, generator);
            self.begin(&rounds)?;
            let no_critique = self.baselines(&rounds, &reviser)?;
            let contender = self.contender(name, policy, critic, reviser);
            self.contend(&rounds, &contender, Some(&no_critique))?;
            self.pairs(name, &contender.critic, &sets.eval)?;
            return Ok(Some(no_critique));
        }
        self.suite(Criticised {
            name: "no-critique",
            policy: "an empty critique",
            critic: Answers::Tokens(Arc::new(ScriptedPolicy::always(chat, ""))),
            sampling: self.recipe.scripted(),
            reviser: reviser.clone(),
            tasks: &sets.eval,
            samples: 1,
            seed: self.frame.seed,
        })?;
        self.criticise(name, policy, critic, reviser, &sets.eval)?;
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
        let sampling = self.recipe.critic.sampling();
        let itself = Voice::Model {
            answers: reviser.clone(),
            sampling: sampling.clone(),
        };
        let hinted = Voice::Hinted {
            answers: reviser.clone(),
            sampling,
        };
        let is_known =
            |task: &Arc<Task>| self.recipe.generator.is_none() && task.right_critique().is_some();
        let known = rounds.tasks.iter().filter(|task| is_known(task)).count();
        for (name, policy, critic, applies) in [
            (
                "self-critique",
                "the reviser as its own critic",
                itself,
                true,
            ),
            (
                "execution-feedback",
                "the report of the test run",
                Voice::ExecutionFeedback,
                true,
            ),
            (
                "hinted-critique",
                "the reviser as its own critic, told what running the program gave",
                hinted,
                known < rounds.tasks.len(),
            ),
            (
                "oracle",
                "the right critique, where it is known",
                Voice::Oracle,
                known > 0,
            ),
        ] {
            if applies {
                contend(name, policy, critic, Some(&none))?;
            }
        }
        Ok(none)
    }

    fn rounds<'a>(&'a self, tasks: &'a [Arc<Task>], generator: Option<Answers>) -> Rounds<'a> {
        Rounds {
            instruments: self.instruments,
            recipe: self.recipe,
            tasks,
            seed: self.frame.seed,
            branches: self.recipe.eval.branches(),
            generator,
        }
    }

    fn contender<'a>(
        &self,
        name: &'a str,
        policy: &'a str,
        critic: Answers,
        reviser: Answers,
    ) -> Contender<'a> {
        Contender {
            name,
            policy,
            critic: Voice::Model {
                answers: critic,
                sampling: self.recipe.critic.sampling(),
            },
            reviser,
        }
    }

    /// The trained critic, on the same tasks.
    pub(super) fn evaluate_after(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        critic: &Arc<Model>,
        reviser: &Weights,
        no_critique: Option<&[Trajectory]>,
    ) -> Outcome<()> {
        self.frame
            .screen
            .headline("Evaluation after reinforcement, on the same held-out tasks");
        let critic = Some(critic.clone());
        let reviser = self.reviser(chats, reviser, &critic)?;
        let critic = self.critic(CRITIC_RL, chats, &critic)?;
        if self.recipe.eval.in_rounds() {
            let contender = self.contender("rl", CRITIC_RL, critic, reviser);
            let tasks = initial(self.recipe, &sets.eval)?;
            // Its programs are there since the evaluation before.
            self.contend(&self.rounds(&tasks, None), &contender, no_critique)?;
            return self.pairs("rl", &contender.critic, &sets.eval);
        }
        self.criticise("rl", CRITIC_RL, critic, reviser, &sets.eval)
    }

    fn criticise(
        &self,
        name: &str,
        policy: &str,
        critic: Answers,
        reviser: Answers,
        tasks: &[Arc<Task>],
    ) -> Outcome<()> {
        let sampling = self.recipe.critic.sampling();
        let voice = Voice::Model {
            answers: critic.clone(),
            sampling: sampling.clone(),
        };
        self.suite(Criticised {
            name,
            policy,
            critic,
            sampling,
            reviser,
            tasks,
            samples: self.recipe.eval.samples,
            seed: self.frame.seed,
        })?;
        self.pairs(name, &voice, tasks)
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
    let instruments = Instruments::start(recipe)?;
    let engines = &instruments.engines;
    let mut chat = None;
    let mut critics = Vec::new();
    if let Some(endpoint) = recipe.critic.endpoint() {
        critics.push((CRITIC, endpoint.model, None));
    }
    for (name, checkpoint) in [("sft", CRITIC_SFT), ("rl", CRITIC_RL)] {
        if reader.replay().checkpoint(checkpoint).is_some() {
            let directory = reader.checkpoint_path(checkpoint).asked()?;
            chat = Some(Chat::load(&directory).asked()?);
            critics.push((name, checkpoint, Some(load(&directory)?)));
        }
    }
    if critics.is_empty() {
        return Err(Failure::Asked(anyhow::anyhow!(
            "{} has no trained critic yet; let it go on with `etude train --resume`",
            again.reader.path().display()
        )));
    }
    let (reviser_chat, reviser) = match recipe.reviser.model.here() {
        Some(_) => {
            let directory = reader.checkpoint_path(REVISER_CHECKPOINT).asked()?;
            let chat = Chat::load(&directory).asked()?;
            (Some(chat), Some(load(&directory)?))
        }
        None => (None, None),
    };
    let writes = recipe.generator.as_ref();
    let (generator_chat, generator) = match writes.and_then(|role| role.model.here()) {
        Some(_) => {
            let directory = reader.checkpoint_path(GENERATOR).asked()?;
            let chat = Chat::load(&directory).asked()?;
            (Some(chat), Some(load(&directory)?))
        }
        None => (None, None),
    };
    let chats: Chats = [
        (CRITIC, chat),
        (REVISER, reviser_chat),
        (GENERATOR, generator_chat),
    ]
    .into_iter()
    .filter_map(|(role, chat)| Some((role.to_owned(), chat?)))
    .collect();
    let (tasks, _) = fitting(recipe, &chats, &tasks)?;
    let tasks = initial(recipe, &tasks)?;
    let generator = generating(recipe, &instruments, &chats, &generator)?;
    let rounds = rounds_again(again, recipe, &instruments, (&tasks, generator))?;
    let mut results = Vec::new();
    for (name, policy, weights) in critics {
        let critic = player(&instruments, CRITIC, policy, &chats, &weights)?;
        let reviser = revising(recipe, &instruments, &chats, &reviser, &weights)?;
        let samples = args.samples.unwrap_or(recipe.eval.samples);
        if let Some((rounds, start)) = &rounds {
            let contender = Contender {
                name,
                policy,
                critic: Voice::Model {
                    answers: critic,
                    sampling: recipe.critic.sampling(),
                },
                reviser,
            };
            results.extend(forest_again(again, rounds, &contender, start)?);
            continue;
        }
        let criticised = Criticised {
            name,
            policy,
            critic,
            sampling: recipe.critic.sampling(),
            reviser,
            tasks: &tasks,
            samples,
            seed: Seed(args.seed.unwrap_or(recipe.seed)),
        };
        let suite = criticised.suite(&instruments, recipe);
        results.push(again.play(&suite, engines, || {
            format!("{name}: {} tasks, {samples} critiques each", tasks.len())
        })?);
    }
    Ok(results)
}

/// What forests of a recipe that has them begin with: the initial programs, judged.
fn rounds_again<'a>(
    again: &Again<'_>,
    recipe: &'a Recipe,
    instruments: &'a Instruments,
    (tasks, generator): (&'a [Arc<Task>], Option<Answers>),
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
        generator,
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
    let judged = match share("judgment_accuracy") {
        none if none.is_empty() => none,
        judged => format!(", judged right {judged}"),
    };
    // Later rounds have only those programs that are still criticised.
    let of = match evaluated.name.contains("/round-") {
        true => format!(" of {} still criticised", evaluated.n_tasks),
        false => String::new(),
    };
    format!(
        "{:<12} pass@1 {}{of}, wrong → right {}, right → wrong {}{judged}{faults}",
        evaluated.name,
        share("pass_at_1"),
        share("delta_up"),
        share("delta_down"),
    )
}
