//! Evaluations: before and after, and the gates that the reviser must hold.

use std::{collections::BTreeMap, sync::Arc};

use critique::{CRITIC, Purpose, REVISER, Task};
use engine::Model;
use eval::{Evaluated, Suite, evaluate};
use journal::Evaluation;
use policy::{Policy, ScriptedPolicy};
use record::{Sampling, Seed, TaskId};
use rollout::{Roles, Runner, Study};
use serde_json::json;
use train::Stop;

use super::{
    Instruments, Walk, recipe::Recipe, reinforce::CRITIC_RL, supervise::CRITIC_SFT,
    tasks::TaskSets, vocabulary::Chats,
};
use crate::failure::{Classify, Outcome};

/// One suite with everything that it is played with.
pub(crate) struct Played<'a> {
    pub(crate) name: &'a str,
    /// What is evaluated, for people.
    pub(crate) policy: &'a str,
    pub(crate) critic: Arc<dyn Policy>,
    pub(crate) sampling: Sampling,
    pub(crate) reviser: Arc<dyn Policy>,
    pub(crate) tasks: &'a [Arc<Task>],
    pub(crate) samples: u32,
    pub(crate) seed: Seed,
}

impl Played<'_> {
    fn episodes(&self) -> u64 {
        self.tasks.len() as u64 * u64::from(self.samples)
    }

    /// Plays the suite; `None` when a stop was requested first.
    pub(crate) fn play(
        &self,
        instruments: &Instruments,
        recipe: &Recipe,
        stop: &Stop,
        on_progress: impl Fn(u64),
    ) -> Outcome<Option<Evaluated>> {
        let study = instruments.study(recipe, Purpose::Measuring);
        let roles = Roles::default()
            .bind(CRITIC, self.critic.clone(), self.sampling.clone())
            .bind(REVISER, self.reviser.clone(), recipe.reviser.sampling());
        let runner = Runner::new(study.clone(), roles, recipe.rollout.clone());
        let suite = Suite {
            name: self.name.to_owned(),
            policy: self.policy.to_owned(),
            study: study.as_ref(),
            runner: &runner,
            tasks: self.tasks,
            samples: self.samples,
            // The same draws for every policy, so that they are compared on equal luck.
            seed: self.seed.stream("evaluation", 0),
        };
        instruments.runtime.block_on(async {
            tokio::select! {
                done = evaluate(suite, |progress| on_progress(progress.episodes_done as u64)) => {
                    done.map(Some).failed()
                }
                () = stop.wait() => Ok(None),
            }
        })
    }
}

/// Critiques that tell nothing: the reviser may fix at most this share of wrong programs on them.
const UNHELPFUL: [&str; 5] = ["empty", "malformed", "truncated", "no-op", "correct"];
const UNHELPFUL_LIMIT: f64 = 0.15;
/// On the right critique it must fix at least this share.
const RIGHT: &str = "good";
const RIGHT_LIMIT: f64 = 0.85;
/// Says what to write and misquotes what to replace: shown, without a limit, as following it is no
/// leak.
const MISQUOTED: &str = "absent-fragment";

impl Walk<'_> {
    /// The reviser's gates, no critique, and the supervised critic.
    pub(super) fn evaluate_before(
        &self,
        sets: &TaskSets,
        chats: &Chats,
        critic: &Arc<Model>,
        reviser: &Arc<Model>,
    ) -> Outcome<()> {
        self.screen
            .headline("Evaluation before reinforcement, on held-out tasks");
        if self.recipe.eval.gates {
            self.gates(sets, chats, reviser)?;
        }
        let reviser = Arc::new(self.instruments.policy(
            REVISER,
            &chats.reviser,
            reviser.clone(),
        )?);
        self.suite(&Played {
            name: "no-critique",
            policy: "an empty critique",
            critic: Arc::new(ScriptedPolicy::always(chats.critic.clone(), "")),
            sampling: self.recipe.scripted(),
            reviser: reviser.clone(),
            tasks: &sets.eval,
            samples: 1,
            seed: self.seed(),
        })?;
        self.suite(&Played {
            name: "sft",
            policy: CRITIC_SFT,
            critic: Arc::new(
                self.instruments
                    .policy(CRITIC_SFT, &chats.critic, critic.clone())?,
            ),
            sampling: self.recipe.critic.sampling(),
            reviser,
            tasks: &sets.eval,
            samples: self.recipe.eval.samples,
            seed: self.seed(),
        })
    }

    /// The trained critic, on the same tasks.
    pub(super) fn evaluate_after(
        &self,
        sets: &TaskSets,
        chats: &Chats,
        critic: &Arc<Model>,
        reviser: &Arc<Model>,
    ) -> Outcome<()> {
        self.screen
            .headline("Evaluation after reinforcement, on the same held-out tasks");
        self.suite(&Played {
            name: "rl",
            policy: CRITIC_RL,
            critic: Arc::new(
                self.instruments
                    .policy(CRITIC_RL, &chats.critic, critic.clone())?,
            ),
            sampling: self.recipe.critic.sampling(),
            reviser: Arc::new(
                self.instruments
                    .policy(REVISER, &chats.reviser, reviser.clone())?,
            ),
            tasks: &sets.eval,
            samples: self.recipe.eval.samples,
            seed: self.seed(),
        })
    }

    /// What the reviser makes of fixed critiques of the wrong programs.
    fn gates(&self, sets: &TaskSets, chats: &Chats, reviser: &Arc<Model>) -> Outcome<()> {
        let wrong: Vec<Arc<Task>> = sets
            .eval
            .iter()
            .filter(|task| !task.facts.initially_right)
            .cloned()
            .collect();
        let mut limits = BTreeMap::from([(RIGHT, json!({ "min": RIGHT_LIMIT }))]);
        limits.extend(UNHELPFUL.map(|kind| (kind, json!({ "max": UNHELPFUL_LIMIT }))));
        if self.replay.note("gates/limits").is_none() {
            self.run.note("gates/limits", &limits).failed()?;
            self.run.note("gates/about", ABOUT_GATES).failed()?;
        }
        let reviser = Arc::new(self.instruments.policy(
            REVISER,
            &chats.reviser,
            reviser.clone(),
        )?);
        for kind in limits.into_keys().chain([MISQUOTED]) {
            let texts: BTreeMap<TaskId, String> = wrong
                .iter()
                .filter_map(|task| Some((task.id.clone(), task.probe(kind)?.to_owned())))
                .collect();
            let tasks: Vec<Arc<Task>> = wrong
                .iter()
                .filter(|task| texts.contains_key(&task.id))
                .cloned()
                .collect();
            if tasks.is_empty() {
                continue;
            }
            self.suite(&Played {
                name: &format!("gate/{kind}"),
                policy: "a fixed critique",
                critic: Arc::new(ScriptedPolicy::by_task(chats.critic.clone(), texts)),
                sampling: self.recipe.scripted(),
                reviser: reviser.clone(),
                tasks: &tasks,
                samples: 1,
                seed: self.seed(),
            })?;
        }
        Ok(())
    }

    /// Plays and commits one evaluation, unless the journal has it.
    fn suite(&self, suite: &Played<'_>) -> Outcome<()> {
        let Played { name, .. } = *suite;
        if let Some(done) = self.replay.evaluation(name) {
            if let Some(reference) = &done.episodes {
                let study = self.instruments.study(self.recipe, Purpose::Measuring);
                let groups = self.run.read_episodes(reference).failed()?;
                groups
                    .iter()
                    .flat_map(|group| &group.episodes)
                    .for_each(|episode| study.replay(episode));
            }
            self.screen.say(format!("  {name}: done before"));
            return Ok(());
        }
        self.phase(&format!("eval/{name}"), || {
            let work = self.screen.work(name, suite.episodes());
            let played = suite.play(self.instruments, self.recipe, self.stop, |done| {
                work.at(done)
            });
            let evaluated = played?.ok_or_else(|| self.interrupted())?;
            work.done(line(&evaluated));
            let tokens = evaluated.sampled_tokens;
            self.commit(evaluated)?;
            Ok(tokens)
        })
    }

    fn commit(&self, evaluated: Evaluated) -> Outcome<()> {
        let evaluation = Evaluation {
            name: evaluated.name,
            policy: evaluated.policy,
            n_tasks: evaluated.n_tasks as u64,
            metrics: evaluated.metrics,
            episodes: None,
        };
        self.run
            .commit_evaluation(evaluation, Some(&evaluated.groups))
            .failed()?;
        Ok(())
    }
}

const ABOUT_GATES: &str = "The share of wrong programs that the frozen reviser fixes when it is given a \
fixed critique. It must follow the critique and know nothing better: on critiques that tell nothing \
it may fix few, on the right critique it must fix most. Only then is a pass the critic's doing. The \
absent-fragment critique names the right replacement and misquotes what it replaces.";

/// An evaluation in one line.
pub(crate) fn line(evaluated: &Evaluated) -> String {
    let share = |name: &str| {
        evaluated
            .metrics
            .get(name)
            .map_or_else(String::new, |found| {
                format!(
                    "{:.1} % [{:.1}, {:.1}]",
                    100.0 * found.value,
                    100.0 * found.low,
                    100.0 * found.high
                )
            })
    };
    let faults = match evaluated.tally.faulted() {
        0 => String::new(),
        n => format!(", {n} episodes without a verdict"),
    };
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
