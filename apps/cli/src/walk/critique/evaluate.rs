//! Evaluations of the critic: before and after reinforcement, and again for `etude eval`.

use std::{path::Path, sync::Arc};

use chat::Chat;
use critique::{CRITIC, Critique, Purpose, REVISER, Task};
use engine::Model;
use eval::Evaluated;
use policy::{Policy, ScriptedPolicy};
use record::{Sampling, Seed};
use rollout::Roles;

use super::{
    CritiqueRun,
    instruments::Instruments,
    lessons::{CRITIC_SFT, REVISER as REVISER_CHECKPOINT},
    recipe::Recipe,
    reinforce::CRITIC_RL,
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
    ) -> Outcome<()> {
        self.frame
            .screen
            .headline("Evaluation before reinforcement, on held-out tasks");
        let reviser = self.reviser(chats, reviser)?;
        let chat = chats.of(CRITIC)?;
        if self.recipe.eval.gates {
            self.gates(&sets.eval, chat, &reviser)?;
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
        self.critic("sft", CRITIC_SFT, (chat, critic), reviser, &sets.eval)
    }

    /// The trained critic, on the same tasks.
    pub(super) fn evaluate_after(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        critic: &Arc<Model>,
        reviser: &Arc<Model>,
    ) -> Outcome<()> {
        self.frame
            .screen
            .headline("Evaluation after reinforcement, on the same held-out tasks");
        let reviser = self.reviser(chats, reviser)?;
        let critic = (chats.of(CRITIC)?, critic);
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
        self.suite(Criticised {
            name,
            policy: checkpoint,
            critic: Arc::new(engines.policy(checkpoint, chat, model.clone())?),
            sampling: self.recipe.critic.sampling(),
            reviser,
            tasks,
            samples: self.recipe.eval.samples,
            seed: self.frame.seed,
        })
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
    let mut results = Vec::new();
    for (name, checkpoint) in [("sft", CRITIC_SFT), ("rl", CRITIC_RL)] {
        if reader.replay().checkpoint(checkpoint).is_none() {
            continue;
        }
        let directory = reader.checkpoint_path(checkpoint).asked()?;
        let chat = Chat::load(&directory).asked()?;
        let samples = args.samples.unwrap_or(recipe.eval.samples);
        let criticised = Criticised {
            name,
            policy: checkpoint,
            critic: Arc::new(engines.policy(checkpoint, &chat, load(&directory)?)?),
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

fn load(directory: &Path) -> Outcome<Arc<Model>> {
    Ok(Arc::new(Model::load(directory).asked()?))
}

/// An evaluation in one line.
pub(super) fn line(evaluated: &Evaluated) -> String {
    let (faults, share) = (faults(evaluated), |name: &str| share(evaluated, name));
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
