//! Evaluations: memories that nobody learnt to write, the supervised policies and the reinforced ones, all
//! within the same budget of tokens.

use std::sync::Arc;

use eval::Evaluated;
use recall::{
    ANSWER, Recall, RecallConfig, Task,
    memory::{Baseline, Extraction},
};
use record::Seed;
use rollout::Roles;

use super::{
    RecallRun,
    files::{FormatName, tasks_of_file},
    players::{cast, study},
    recipe::Recipe,
};
use crate::{
    failure::{Classify, Failure, Outcome},
    walk::{
        Again, Engines,
        checkpoints::{AFTER, BEFORE, Models, evaluated_checkpoint},
        evaluate::{Played, faults, share},
        tasks::TaskSets,
        vocabulary::Chats,
    },
};

impl RecallRun<'_> {
    /// The baselines and the supervised policies.
    pub(super) fn evaluate_before(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        models: &Models,
    ) -> Outcome<()> {
        self.frame
            .screen
            .headline("Evaluation before reinforcement, on held-out dialogues");
        self.evaluations(BEFORE, sets, chats, models, self.recipe.eval.baselines)
    }

    /// The reinforced policies on the same tasks; and the baselines again where they are read by another
    /// reader now.
    pub(super) fn evaluate_after(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        models: &Models,
    ) -> Outcome<()> {
        self.frame
            .screen
            .headline("Evaluation after reinforcement, on the same held-out dialogues");
        let baselines = self.recipe.eval.baselines && reads_anew(self.recipe);
        self.evaluations(AFTER, sets, chats, models, baselines)
    }

    fn evaluations(
        &self,
        name: &str,
        sets: &TaskSets<Task>,
        chats: &Chats,
        models: &Models,
        baselines: bool,
    ) -> Outcome<()> {
        let (frame, recipe) = (self.frame, self.recipe);
        let temperature = recipe.eval.temperature;
        let roles = cast(frame.engines, recipe, chats, models, temperature)?;
        for one in evaluated(recipe, name, baselines) {
            let suite = one.suite(recipe, chats, &roles, &sets.eval)?;
            frame.suite(&suite, |evaluated| line(recipe, evaluated))?;
        }
        Ok(())
    }
}

/// One way of remembering that is evaluated.
struct Remembering {
    name: String,
    /// For people.
    policy: String,
    config: RecallConfig,
}

/// The baselines first, where they are wanted, then the recipe's own way.
fn evaluated(recipe: &Recipe, name: &str, baselines: bool) -> Vec<Remembering> {
    let own = recipe.config();
    let mut all = Vec::new();
    if baselines {
        for baseline in Baseline::ALL {
            all.push(Remembering {
                name: format!("{name}/{}", baseline.name()),
                policy: format!("{name}, {}", baseline.name()),
                config: RecallConfig {
                    baseline: Some(baseline),
                    ..own.clone()
                },
            });
        }
        let mut by_rule = own.clone();
        by_rule.baseline = None;
        by_rule.memory.extraction = Extraction::Rule;
        if by_rule != own {
            all.push(Remembering {
                name: format!("{name}/rule_memory"),
                policy: format!("{name}, a memory by rule"),
                config: by_rule,
            });
        }
    }
    let policies = recipe.common().policies;
    let ends = policies
        .iter()
        .map(|policy| evaluated_checkpoint(policy, name));
    all.push(Remembering {
        name: name.to_owned(),
        policy: ends.collect::<Vec<_>>().join(", "),
        config: own,
    });
    all
}

impl Remembering {
    fn suite<'a>(
        &'a self,
        recipe: &'a Recipe,
        chats: &Chats,
        roles: &Roles,
        tasks: &'a [Arc<Task>],
    ) -> Outcome<Played<'a, Recall>> {
        Ok(Played {
            name: &self.name,
            policy: &self.policy,
            study: study(self.config.clone(), chats, recipe)?,
            roles: roles.clone(),
            tasks,
            samples: recipe.eval.samples,
            seed: Seed(recipe.seed),
            rollout: &recipe.rollout,
            keeps: false,
        })
    }
}

/// The evaluations of a run again, before and after reinforcement.
pub(super) fn again(again: &Again<'_>, recipe: &Recipe) -> Outcome<Vec<Evaluated>> {
    let args = again.args;
    let tasks: Vec<Task> = match args.tasks {
        Some(_) => {
            let format = args.format.map(FormatName).or(recipe.tasks.format);
            let tasks = tasks_of_file(recipe, &again.tasks, "eval", format);
            tasks.map_err(|failure| match (failure, format) {
                (Failure::Asked(error), None) => Failure::Asked(error.context(
                    "a file of tasks as runs keep them was expected; if it holds dialogues, name their \
                     format with --format",
                )),
                (failure, _) => failure,
            })?
        }
        None => dataset::read_jsonl(&again.tasks).asked()?,
    };
    let tasks: Vec<Arc<Task>> = tasks.into_iter().map(Arc::new).collect();
    let engines = Engines::start(recipe.threads)?;
    let mut results = Vec::new();
    for name in [BEFORE, AFTER] {
        let Some((chats, models)) = again.policies(&recipe.common(), name)? else {
            continue;
        };
        let roles = cast(&engines, recipe, &chats, &models, recipe.eval.temperature)?;
        for one in evaluated(recipe, name, recipe.eval.baselines) {
            let suite = Played {
                samples: args.samples.unwrap_or(recipe.eval.samples),
                seed: Seed(args.seed.unwrap_or(recipe.seed)),
                ..one.suite(recipe, &chats, &roles, &tasks)?
            };
            results.push(again.play(&suite, &engines, || {
                format!("{}: {} tasks", one.name, tasks.len())
            })?);
        }
    }
    if results.is_empty() {
        return Err(Failure::Asked(anyhow::anyhow!(
            "{} has no supervised policy yet; let it go on with `etude train --resume`",
            again.reader.path().display()
        )));
    }
    Ok(results)
}

/// An evaluation in one line.
pub(super) fn line(recipe: &Recipe, evaluated: &Evaluated) -> String {
    let number = |name: &str| evaluated.metrics.get(name).map(|found| found.value);
    let memory = number("context_tokens").map_or_else(String::new, |tokens| {
        format!(", {}", of_budget(recipe, tokens))
    });
    // Where another metric than F1 scores answers, its word comes first.
    let score = match number("score") == number("f1") {
        true => String::new(),
        false => format!("score {}, ", share(evaluated, "score")),
    };
    format!(
        "{:<18} {score}F1 {}, exact match {}{memory}{}",
        evaluated.name,
        share(evaluated, "f1"),
        share(evaluated, "exact_match"),
        faults(evaluated),
    )
}

/// What a prompt holds of a memory, on average, beside what it may hold: every baseline has the same budget.
pub(super) fn of_budget(recipe: &Recipe, tokens: f64) -> String {
    let budget = recipe.prompt.context_tokens;
    format!("{tokens:.0} of {budget} tokens of memory in the prompt")
}

/// Evaluations of a run, before and after reinforcement.
pub(super) fn n_evaluations(recipe: &Recipe) -> usize {
    let after = recipe.eval.baselines && reads_anew(recipe);
    evaluated(recipe, BEFORE, recipe.eval.baselines).len() + evaluated(recipe, AFTER, after).len()
}

/// Whether reinforcement changes how memories are read.
fn reads_anew(recipe: &Recipe) -> bool {
    recipe.rl.train.iter().any(|role| role == ANSWER)
}
