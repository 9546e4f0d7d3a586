//! Evaluations: before and after, and the gates that the reviser must hold.

use std::{collections::BTreeMap, sync::Arc};

use chat::Chat;
use critique::{CRITIC, Purpose, REVISER, Task};
use engine::Model;
use eval::{Evaluated, Suite, evaluate};
use journal::{Evaluation, Interval};
use policy::{Policy, ScriptedPolicy};
use record::{Sampling, TaskId};
use rollout::{Roles, Runner, Study};
use serde_json::json;

use super::{Walk, tasks::TaskSets};
use crate::failure::{Classify, Outcome};

/// Critiques that tell nothing: the reviser may fix at most this share of wrong programs on them.
const UNHELPFUL: [&str; 6] =
    ["empty", "malformed", "truncated", "no-op", "absent-fragment", "correct"];
const UNHELPFUL_LIMIT: f64 = 0.15;
/// On the right critique it must fix at least this share.
const RIGHT_LIMIT: f64 = 0.85;

impl Walk<'_> {
    /// The reviser's gates, no critique, and the supervised critic.
    pub(super) fn evaluate_before(
        &self,
        sets: &TaskSets,
        chat: &Chat,
        critic: &Arc<Model>,
        reviser: &Arc<Model>,
    ) -> Outcome<()> {
        self.screen.headline("Evaluation before reinforcement, on held-out tasks");
        if self.recipe.eval.gates {
            self.gates(sets, chat, reviser)?;
        }
        let silent: Arc<dyn Policy> = Arc::new(ScriptedPolicy::always(chat.clone(), ""));
        self.suite("no-critique", "an empty critique", silent, 1, &sets.eval, chat, reviser)?;
        let policy: Arc<dyn Policy> = Arc::new(self.policy("critic-sft", chat, critic.clone())?);
        let samples = self.recipe.eval.samples;
        self.suite("sft", "critic-sft", policy, samples, &sets.eval, chat, reviser)
    }

    /// The trained critic, on the same tasks.
    pub(super) fn evaluate_after(
        &self,
        sets: &TaskSets,
        chat: &Chat,
        critic: &Arc<Model>,
        reviser: &Arc<Model>,
    ) -> Outcome<()> {
        self.screen.headline("Evaluation after reinforcement, on the same held-out tasks");
        let policy: Arc<dyn Policy> = Arc::new(self.policy("critic-rl", chat, critic.clone())?);
        let samples = self.recipe.eval.samples;
        self.suite("rl", "critic-rl", policy, samples, &sets.eval, chat, reviser)
    }

    /// What the reviser makes of fixed critiques of the wrong programs.
    fn gates(&self, sets: &TaskSets, chat: &Chat, reviser: &Arc<Model>) -> Outcome<()> {
        let wrong: Vec<Arc<Task>> =
            sets.eval.iter().filter(|task| !task.facts.initially_right).cloned().collect();
        let mut limits = BTreeMap::from([("good", json!({ "min": RIGHT_LIMIT }))]);
        limits.extend(UNHELPFUL.map(|kind| (kind, json!({ "max": UNHELPFUL_LIMIT }))));
        if self.replay.note("gates/limits").is_none() {
            self.run.note("gates/limits", &limits).failed()?;
            self.run.note("gates/about", ABOUT_GATES).failed()?;
        }
        for kind in limits.keys() {
            let texts: BTreeMap<TaskId, String> = wrong
                .iter()
                .filter_map(|task| Some((task.id.clone(), task.probe(kind)?.to_owned())))
                .collect();
            let tasks: Vec<Arc<Task>> =
                wrong.iter().filter(|task| texts.contains_key(&task.id)).cloned().collect();
            if tasks.is_empty() {
                continue;
            }
            let script: Arc<dyn Policy> = Arc::new(ScriptedPolicy::by_task(chat.clone(), texts));
            let name = format!("gate/{kind}");
            self.suite(&name, "a fixed critique", script, 1, &tasks, chat, reviser)?;
        }
        Ok(())
    }

    /// Plays and commits one evaluation, unless the journal has it.
    #[expect(clippy::too_many_arguments, reason = "a suite is named by all of these")]
    fn suite(
        &self,
        name: &str,
        policy_name: &str,
        critic: Arc<dyn Policy>,
        samples: u32,
        tasks: &[Arc<Task>],
        chat: &Chat,
        reviser: &Arc<Model>,
    ) -> Outcome<()> {
        let study = self.study(Purpose::Measuring);
        if let Some(done) = self.replay.evaluation(name) {
            if let Some(reference) = &done.episodes {
                let groups = self.run.read_episodes(reference).failed()?;
                groups
                    .iter()
                    .flat_map(|group| &group.episodes)
                    .for_each(|episode| study.replay(episode));
            }
            self.screen.say(format!("  {name}: done before"));
            return Ok(());
        }
        let scripted = name == "no-critique" || name.starts_with("gate/");
        let sampling = if scripted {
            Sampling::greedy(self.recipe.critic.model.context)
        } else {
            self.recipe.critic.sampling()
        };
        let frozen = Arc::new(self.policy(REVISER, chat, reviser.clone())?);
        let roles = Roles::default().bind(CRITIC, critic, sampling).bind(
            REVISER,
            frozen,
            self.recipe.reviser.sampling(),
        );
        let runner = Runner::new(study.clone(), roles, self.recipe.rollout.clone());
        let phase = format!("eval/{name}");
        self.phase(&phase, || {
            let work = self.screen.work(name, tasks.len() as u64 * u64::from(samples));
            let suite = Suite {
                name: name.to_owned(),
                policy: policy_name.to_owned(),
                study: study.as_ref(),
                runner: &runner,
                tasks,
                samples,
                // The same draws for every policy, so that they are compared on equal luck.
                seed: self.seed().stream("evaluation", 0),
            };
            let evaluated = self.instruments.runtime.block_on(async {
                tokio::select! {
                    done = evaluate(suite, |progress| work.at(progress.episodes_done as u64)) => {
                        done.failed()
                    }
                    () = self.stop.wait() => Err(self.interrupted()),
                }
            })?;
            work.done(line(&evaluated));
            let tokens = evaluated.sampled_tokens;
            self.commit(evaluated)?;
            Ok(tokens)
        })
    }

    fn commit(&self, evaluated: Evaluated) -> Outcome<()> {
        let interval = |estimate: record::Estimate| Interval {
            value: estimate.value,
            low: estimate.low,
            high: estimate.high,
        };
        let evaluation = Evaluation {
            name: evaluated.name,
            policy: evaluated.policy,
            n_tasks: evaluated.n_tasks as u64,
            metrics: evaluated
                .metrics
                .into_iter()
                .map(|(name, estimate)| (name, interval(estimate)))
                .collect(),
            episodes: None,
        };
        self.run.commit_evaluation(evaluation, Some(&evaluated.groups)).failed()?;
        Ok(())
    }
}

const ABOUT_GATES: &str = "The share of wrong programs that the frozen reviser fixes when it is given a \
fixed critique. It must follow the critique and know nothing better: on critiques that tell nothing \
it may fix few, on the right critique it must fix most. Only then is a pass the critic's doing.";

fn line(evaluated: &Evaluated) -> String {
    let share = |name: &str| {
        evaluated.metrics.get(name).map_or_else(String::new, |found| {
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
        return format!("{:<22} fixes {} of wrong programs{faults}", evaluated.name, share("fix_rate"));
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
