//! The evaluation: every task is repaired once or several times, and every episode kept as it ends.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::anyhow;
use eval::Evaluated;
use policy::EndpointConfig;
use record::Seed;
use repair::{
    Repair, RepairConfig, Task,
    metrics::notes_of,
    patch_model::PATCHER,
    planner::{PLANNER, PlannerKind},
    play::Notes,
};
use serde_json::json;

use super::{
    RepairRun,
    instruments::Instruments,
    players::{cast, study, who},
    recipe::{Patcher, PolicyModel, Recipe},
    tasks::shared_tasks_of_file,
};
use crate::{
    failure::{Classify, Failure, Outcome},
    walk::{
        Again,
        checkpoints::{AFTER, BEFORE, Models, evaluated_checkpoint},
        evaluate::{Played, faults, share},
        tasks::TaskSets,
        vocabulary::Chats,
    },
};

/// The evaluation of a recipe without training.
const ALONE: &str = "eval";
/// What evaluations of planners that nobody trained begin with.
const BASELINE: &str = "baseline/";
/// Their kinds.
const BASELINES: [(&str, PlannerKind); 3] = [
    ("chance", PlannerKind::Chance),
    ("suspicion", PlannerKind::Suspicion),
    ("rules", PlannerKind::Rules),
];

impl RepairRun<'_> {
    pub(super) fn evaluate_alone(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        models: &Models,
    ) -> Outcome<()> {
        let kind = self.recipe.planner.kind;
        let policy = who(self.recipe, kind);
        self.frame.screen.headline(format!("Repair: {policy}"));
        self.evaluate(ALONE, kind, &sets.eval, chats, models)?;
        self.predictions(ALONE, kind)
    }

    /// Planners that nobody trained, and the supervised one, on held-out repositories.
    pub(super) fn evaluate_before(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        models: &Models,
    ) -> Outcome<()> {
        self.frame
            .screen
            .headline("Evaluation before reinforcement, on held-out repositories");
        if self.recipe.eval.baselines {
            for (name, kind) in BASELINES {
                let name = format!("{BASELINE}{name}");
                self.evaluate(&name, kind, &sets.eval, chats, models)?;
            }
        }
        let kind = self.recipe.planner.kind;
        self.evaluate(BEFORE, kind, &sets.eval, chats, models)
    }

    /// The reinforced planner on the same tasks.
    pub(super) fn evaluate_after(
        &self,
        sets: &TaskSets<Task>,
        chats: &Chats,
        models: &Models,
    ) -> Outcome<()> {
        self.frame
            .screen
            .headline("Evaluation after reinforcement, on the same held-out repositories");
        let kind = self.recipe.planner.kind;
        self.evaluate(AFTER, kind, &sets.eval, chats, models)?;
        self.predictions(AFTER, kind)
    }

    fn evaluate(
        &self,
        name: &str,
        kind: PlannerKind,
        tasks: &[Arc<Task>],
        chats: &Chats,
        models: &Models,
    ) -> Outcome<()> {
        let (frame, recipe) = (self.frame, self.recipe);
        let policy = policy_of(recipe, name, kind);
        let engines = frame.engines;
        let temperature = recipe.eval.temperature;
        let suite = Played {
            name,
            policy: &policy,
            study: study(recipe, config(recipe, kind), chats, self.instruments)?,
            roles: cast(engines, recipe, chats, models, temperature)?,
            tasks,
            samples: samples(name, kind, recipe.eval.samples),
            seed: frame.seed,
            rollout: &recipe.rollout,
            keeps: true,
        };
        frame.suite(&suite, line)
    }

    /// The patches as SWE-bench's harness takes them: `predictions.jsonl`.
    fn predictions(&self, name: &str, kind: PlannerKind) -> Outcome<()> {
        let frame = self.frame;
        let replay = frame.run.replay();
        let Some(episodes) = replay
            .evaluation(name)
            .and_then(|one| one.episodes.as_ref())
        else {
            return Ok(());
        };
        let groups = frame.run.read_episodes(episodes).failed()?;
        let policy = predictor(self.recipe, kind);
        let mut lines = Vec::new();
        for group in &groups {
            let notes = group.episodes.iter().find_map(notes_of);
            let prediction = json!({
                "instance_id": group.task.0,
                "model_name_or_path": policy,
                "model_patch": notes.map_or_else(String::new, |notes: Notes| notes.patch),
            });
            serde_json::to_writer(&mut lines, &prediction).failed()?;
            lines.push(b'\n');
        }
        frame.run.write_view("predictions.jsonl", &lines).failed()
    }
}

/// Who plans and who patches, as harnesses call the folders of their results: `rules+search`, `MODEL+search`.
fn predictor(recipe: &Recipe, kind: PlannerKind) -> String {
    let model = |role: &str| {
        let mut policies = recipe.policies.iter();
        let found = policies.find(|(_, policy)| policy.roles.contains_key(role));
        found.map_or_else(
            || role.to_owned(),
            |(name, policy)| match &policy.model {
                PolicyModel::Endpoint(endpoint) => EndpointConfig::parse(endpoint)
                    .map_or_else(|_| name.clone(), |endpoint| endpoint.model),
                PolicyModel::Local(_) => name.clone(),
            },
        )
    };
    let planner = match kind {
        PlannerKind::Rules => "rules".to_owned(),
        PlannerKind::Model => model(PLANNER),
        PlannerKind::Suspicion => "suspicion".to_owned(),
        PlannerKind::Chance => "chance".to_owned(),
    };
    let patcher = match &recipe.patcher {
        Patcher::Search(_) => "search".to_owned(),
        Patcher::Model(_) => model(PATCHER),
        Patcher::Generate(service) => service.model.clone(),
    };
    format!("{planner}+{patcher}").replace(['/', ':', '\\', ' '], "-")
}

/// The study with a planner of this kind. Those that look around need more steps than one that points.
fn config(recipe: &Recipe, kind: PlannerKind) -> RepairConfig {
    let mut config = recipe.config();
    if kind != config.planner.kind && kind == PlannerKind::Rules {
        config.environment.end.max_steps = None;
        config.environment.observation.suspects = 0;
    }
    config.planner.kind = kind;
    config
}

/// Episodes a task: of baselines that draw nothing, all would be the same.
fn samples(name: &str, kind: PlannerKind, asked: u32) -> u32 {
    let draws = matches!(kind, PlannerKind::Chance | PlannerKind::Model);
    match name.starts_with(BASELINE) && !draws {
        true => asked.min(1),
        false => asked,
    }
}

/// For people.
fn policy_of(recipe: &Recipe, name: &str, kind: PlannerKind) -> String {
    match name {
        BEFORE | AFTER => {
            let policies = recipe.common().policies;
            let ends = policies
                .iter()
                .map(|policy| evaluated_checkpoint(policy, name));
            ends.collect::<Vec<_>>().join(", ")
        }
        _ => who(recipe, kind),
    }
}

/// Plays the evaluations of a run again, on its own tasks or others.
pub(super) fn again(again: &Again<'_>, recipe: &Recipe) -> Outcome<Vec<Evaluated>> {
    let instruments = Instruments::start(recipe)?;
    let tasks = shared_tasks_of_file(&again.tasks)?;
    let own = recipe.planner.kind;
    let mut names: Vec<(String, PlannerKind)> = Vec::new();
    if recipe.trains() {
        if recipe.eval.baselines {
            let baselines = BASELINES.iter();
            names.extend(baselines.map(|(name, kind)| (format!("{BASELINE}{name}"), *kind)));
        }
        names.extend([(BEFORE.to_owned(), own), (AFTER.to_owned(), own)]);
    } else {
        names.push((ALONE.to_owned(), own));
    }
    let mut results = Vec::new();
    for (name, kind) in names {
        let Some((chats, models)) = again.policies(&recipe.common(), &name)? else {
            continue;
        };
        let policy = policy_of(recipe, &name, kind);
        let temperature = recipe.eval.temperature;
        let suite: Played<'_, Repair> = Played {
            name: &name,
            policy: &policy,
            study: study(recipe, config(recipe, kind), &chats, &instruments)?,
            roles: cast(&instruments.engines, recipe, &chats, &models, temperature)?,
            tasks: &tasks,
            samples: samples(
                &name,
                kind,
                again.args.samples.unwrap_or(recipe.eval.samples),
            ),
            seed: Seed(again.args.seed.unwrap_or(recipe.seed)),
            rollout: &recipe.rollout,
            keeps: false,
        };
        results.push(again.play(&suite, &instruments.engines, || name.clone())?);
    }
    if results.is_empty() {
        return Err(Failure::Asked(anyhow!(
            "{} has no supervised policy yet; let it go on with `etude train --resume`",
            again.reader.path().display()
        )));
    }
    Ok(results)
}

/// Evaluations of a run.
pub(super) fn n_evaluations(recipe: &Recipe) -> usize {
    if !recipe.trains() {
        return 1;
    }
    let baselines = if recipe.eval.baselines {
        BASELINES.len()
    } else {
        0
    };
    baselines + 1 + usize::from(recipe.rl.is_some())
}

/// An evaluation in one line.
pub(super) fn line(evaluated: &Evaluated) -> String {
    let mean = |name: &str| {
        evaluated
            .metrics
            .get(name)
            .map_or(f64::NAN, |found| found.value)
    };
    let packages: BTreeMap<&str, f64> = evaluated
        .metrics
        .iter()
        .filter_map(|(name, found)| Some((name.strip_prefix("resolved/repo/")?, found.value)))
        .collect();
    let seconds = evaluated.timings.get("seconds");
    let as_gold = match evaluated.metrics.get("same_as_gold") {
        Some(found) => format!(", same as gold {:.1} %", 100.0 * found.value),
        None => String::new(),
    };
    format!(
        "{:<6} resolved {} of {} tasks in {} package{}{as_gold}, {:.0} candidates, {:.0} test runs and {} a task{}",
        evaluated.name,
        share(evaluated, "resolved"),
        evaluated.n_tasks,
        packages.len(),
        if packages.len() == 1 { "" } else { "s" },
        mean("candidates"),
        mean("test_runs"),
        seconds.map_or("no time".to_owned(), |found| format!(
            "{:.1} s",
            found.value
        )),
        faults(evaluated),
    )
}
