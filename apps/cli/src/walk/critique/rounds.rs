//! Rounds of critique and revision: every contender's forest, its measures and its file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use anyhow::Context;
use chat::{BpeOptions, Chat, Tokenizer};
use critique::{
    CRITIC, GENERATOR, Purpose, REVISER, Task,
    forest::{Forest, Line, Round, Start, Started, initial_programs, read_forest},
    metrics::rounds::{Trajectory, of_rounds, relative_gain},
};
use eval::Evaluated;
use journal::Evaluation;
use policy::ScriptedPolicy;
use record::{Estimate, Group, Sampling, Seed, TaskId};
use rollout::{Answers, Roles};

use super::{
    CritiqueRun, contenders::Voice, evaluate::line, instruments::Instruments, recipe::Recipe,
};
use crate::{
    failure::{Classify, Outcome},
    walk::{
        evaluate::{Played, faults, share},
        settings::LONGEST_CONTEXT,
    },
};

/// The tests of the initial programs.
pub(super) const START: &str = "start";
/// What of a contender is measured over all rounds, below its name.
const ROUNDS: &str = "rounds";

/// Who criticises, and who revises.
pub(super) struct Contender<'a> {
    /// Of its first round; the others are below it.
    pub(super) name: &'a str,
    /// For people.
    pub(super) policy: &'a str,
    pub(super) critic: Voice,
    pub(super) reviser: Answers,
}

/// What all contenders are played with, so that they are compared on equal terms.
pub(super) struct Rounds<'a> {
    pub(super) instruments: &'a Instruments,
    pub(super) recipe: &'a Recipe,
    pub(super) tasks: &'a [Arc<Task>],
    pub(super) seed: Seed,
    /// Critiques and revisions of every program, round by round.
    pub(super) branches: Vec<u32>,
    /// Who writes the initial programs, in place of those of the tasks.
    pub(super) generator: Option<Answers>,
}

/// Plays a suite and gives back its groups, or those that it was played with before.
pub(super) type Play<'a, S> = &'a mut dyn FnMut(&Played<'_, S>) -> Outcome<Vec<Group>>;

impl<'a> Rounds<'a> {
    /// The suite that writes the initial programs, where somebody does, and runs them.
    pub(super) fn start(&self) -> Played<'a, Start> {
        let judge = self.instruments.judge.clone();
        let generator = self.recipe.generator.as_ref().zip(self.generator.as_ref());
        let (policy, roles, samples) = match generator {
            None => ("the programs as they are", Roles::default(), 1),
            Some((role, answers)) => {
                let roles = Roles::default();
                let roles = roles.bind_answers(GENERATOR, answers.clone(), role.sampling());
                let samples = self.recipe.eval.programs();
                ("the generator's programs", roles, samples)
            }
        };
        Played {
            name: START,
            policy,
            study: Arc::new(Start {
                judge,
                generates: generator.is_some(),
            }),
            roles,
            tasks: self.tasks,
            samples,
            seed: self.seed,
            rollout: &self.recipe.rollout,
            keeps: true,
        }
    }

    /// A contender's forest, from the groups of [`Self::start`] on.
    pub(super) fn forest(
        &self,
        contender: &Contender<'_>,
        start: &[Group],
        play: Play<'_, Round>,
    ) -> Outcome<Forest> {
        let stops = self.recipe.eval.stop_at_correct;
        let problem = |task: &Task| TaskId(task.facts.function.clone());
        let mut forest = Forest::planted(self.tasks, start, problem, stops);
        for (round, branches) in (1u64..).zip(&self.branches) {
            let mut frontier = forest.frontier();
            let (critic, sampling) = self.bound(&contender.critic, &forest, &mut frontier)?;
            if frontier.is_empty() {
                forest.grow(&[], &[]);
                continue;
            }
            let name = match round {
                1 => contender.name.to_owned(),
                _ => format!("{}/round-{round}", contender.name),
            };
            let reviser = self.recipe.reviser.sampling();
            let groups = play(&Played {
                name: &name,
                policy: contender.policy,
                study: Arc::new(Round {
                    critique: self.instruments.critique(self.recipe, Purpose::Measuring),
                    votes: contender.critic.votes(self.recipe),
                    stop_at_correct: stops,
                    hinted: matches!(contender.critic, Voice::Hinted { .. }),
                }),
                roles: Roles::default()
                    .bind_answers(CRITIC, critic, sampling)
                    .bind_answers(REVISER, contender.reviser.clone(), reviser),
                tasks: &frontier,
                samples: *branches,
                // The first round is the evaluation that recipes without rounds have.
                seed: match round {
                    1 => self.seed,
                    _ => self.seed.stream("round", round),
                },
                rollout: &self.recipe.rollout,
                keeps: true,
            })?;
            forest.grow(&frontier, &groups);
        }
        Ok(forest)
    }

    /// The critic of a round; of fixed texts, the programs without one leave the frontier.
    fn bound(
        &self,
        critic: &Voice,
        forest: &Forest,
        frontier: &mut Vec<Arc<Task>>,
    ) -> Outcome<(Answers, Sampling)> {
        let fixed = match critic {
            Voice::Model { answers, sampling } | Voice::Hinted { answers, sampling } => {
                return Ok((answers.clone(), sampling.clone()));
            }
            fixed => fixed,
        };
        let texts: BTreeMap<TaskId, String> = frontier
            .iter()
            .filter_map(|task| Some((task.id.clone(), fixed.text(task, forest.verdict(&task.id))?)))
            .collect();
        frontier.retain(|task| texts.contains_key(&task.id));
        let policy = ScriptedPolicy::by_task(bytes()?, texts);
        Ok((
            Answers::Tokens(Arc::new(policy)),
            Sampling::greedy(LONGEST_CONTEXT),
        ))
    }

    /// Everything that is measured over the rounds of a contender.
    pub(super) fn measures(
        &self,
        forest: &[Trajectory],
        no_critique: Option<&[Trajectory]>,
    ) -> BTreeMap<String, Estimate> {
        let mut measures = of_rounds(forest);
        for round in 1..=self.branches.len() {
            let gain = no_critique.and_then(|theirs| relative_gain(forest, theirs, round));
            let name = format!("gain_over_no_critique/round-{round}");
            measures.extend(gain.map(|gain| (name, gain)));
        }
        measures
    }
}

/// Programs whose tests say something else of them than their tasks do.
fn told_otherwise(tasks: &[Arc<Task>], groups: &[Group]) -> usize {
    let pairs = tasks.iter().zip(groups);
    let otherwise = pairs.filter(|(task, group)| {
        let started = group.episodes.iter().find_map(Started::of);
        started.is_some_and(|started| started.passed != task.facts.initially_right)
    });
    otherwise.count()
}

/// The programs that forests begin with: those of the tasks, or those of the file that the recipe names. Where a
/// generator writes them, one task of each problem.
pub(super) fn initial(recipe: &Recipe, tasks: &[Arc<Task>]) -> Outcome<Vec<Arc<Task>>> {
    if recipe.generator.is_some() {
        let mut known = BTreeSet::new();
        let mut first = tasks.to_vec();
        first.retain(|task| known.insert(task.facts.function.clone()));
        return Ok(first);
    }
    let Some(path) = &recipe.eval.forest else {
        return Ok(tasks.to_vec());
    };
    let named = || path.display().to_string();
    initial_programs(&nodes(path)?, tasks)
        .with_context(named)
        .asked()
}

/// Reads the file of nodes that a recipe names.
pub(super) fn check_file(recipe: &Recipe) -> Outcome<()> {
    let file = recipe.eval.forest.as_deref();
    file.map_or(Ok(()), |path| nodes(path).map(drop))
}

fn nodes(path: &Path) -> Outcome<Vec<Line>> {
    let named = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(named).asked()?;
    read_forest(&text).with_context(named).asked()
}

impl CritiqueRun<'_> {
    /// Runs the initial programs, before anybody contends in this process.
    pub(super) fn begin(&self, rounds: &Rounds<'_>) -> Outcome<()> {
        self.frame.suite(&rounds.start(), start_line)?;
        if rounds.generator.is_none() {
            let otherwise = told_otherwise(rounds.tasks, &self.groups(START)?);
            if otherwise > 0 {
                self.frame.screen.say(format!(
                    "  {} not do on their tests here what their file says (`success`); what they do here counts",
                    match otherwise {
                        1 => "1 of the programs does".to_owned(),
                        n => format!("{n} of the programs do"),
                    }
                ));
            }
        }
        Ok(())
    }

    /// Plays what the run has not played, commits a contender's measures and writes its file.
    pub(super) fn contend(
        &self,
        rounds: &Rounds<'_>,
        contender: &Contender<'_>,
        no_critique: Option<&[Trajectory]>,
    ) -> Outcome<Vec<Trajectory>> {
        let start = self.groups(START)?;
        let mut play = |suite: &Played<'_, Round>| {
            self.frame.suite(suite, line)?;
            self.groups(suite.name)
        };
        let forest = rounds.forest(contender, &start, &mut play)?;
        let paths = forest.trajectories();
        let name = format!("{}/{ROUNDS}", contender.name);
        if self.frame.replay.evaluation(&name).is_none() {
            let metrics = rounds.measures(&paths, no_critique);
            self.frame.screen.say(said(contender.name, &metrics));
            let evaluation = Evaluation {
                name,
                policy: contender.policy.to_owned(),
                n_tasks: rounds.tasks.len() as u64,
                metrics,
                ..Evaluation::default()
            };
            self.frame
                .run
                .commit_evaluation(evaluation, None)
                .failed()?;
        }
        let view = format!("forest-{}.jsonl", contender.name);
        self.frame
            .run
            .write_view(&view, &json_lines(&forest.lines())?)
            .failed()?;
        Ok(paths)
    }

    /// The episodes of a committed evaluation.
    fn groups(&self, name: &str) -> Outcome<Vec<Group>> {
        let replay = self.frame.run.replay();
        let committed = replay
            .evaluation(name)
            .and_then(|one| one.episodes.as_ref());
        committed.map_or_else(
            || Ok(Vec::new()),
            |reference| self.frame.run.read_episodes(reference).failed(),
        )
    }
}

/// The measures of a contender as an evaluation that nobody keeps.
pub(super) fn evaluated(
    contender: &Contender<'_>,
    n_tasks: usize,
    metrics: BTreeMap<String, Estimate>,
) -> Evaluated {
    Evaluated {
        name: format!("{}/{ROUNDS}", contender.name),
        policy: contender.policy.to_owned(),
        n_tasks,
        metrics,
        timings: BTreeMap::new(),
        tally: rollout::Tally::of(&[]),
        groups: Vec::new(),
        episode_seconds: Vec::new(),
        sampled_tokens: 0,
    }
}

fn start_line(evaluated: &Evaluated) -> String {
    let right = share(evaluated, "pass_at_1");
    format!(
        "{START:<12} pass@1 {right} of {}{}",
        evaluated.policy,
        faults(evaluated)
    )
}

/// pass@1 round by round, in one line.
pub(super) fn said(name: &str, metrics: &BTreeMap<String, Estimate>) -> String {
    let at = |metric: &str, round: usize| metrics.get(&format!("{metric}/round-{round}"));
    let passes = (0..).map_while(|round| at("pass_at_1", round));
    let passes: Vec<String> = passes
        .map(|found| format!("{:.1}", 100.0 * found.value))
        .collect();
    let last = passes.len().saturating_sub(1);
    let regressions: Vec<String> = (1..=last)
        .filter_map(|round| at("regression_rate", round))
        .map(|found| format!("{:.1}", 100.0 * found.value))
        .collect();
    let gain = at("gain_over_no_critique", last).map_or_else(String::new, |gain| {
        format!(
            ", {:+.0} % [{:+.0}, {:+.0}] over no critique",
            100.0 * gain.value,
            100.0 * gain.low,
            100.0 * gain.high
        )
    });
    format!(
        "  {name}: pass@1 by round {} %, broken in each {} %{gain}",
        passes.join(" → "),
        regressions.join(", ")
    )
}

fn json_lines(lines: &[Line]) -> Outcome<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line).failed()?;
        text.push(b'\n');
    }
    Ok(text)
}

/// A chat of bytes alone: fixed texts need no model's tokens.
pub(super) fn bytes() -> Outcome<Chat> {
    let special_tokens = Chat::builtin_special_tokens();
    let options = BpeOptions {
        vocabulary: 256 + special_tokens.len(),
        special_tokens,
    };
    let tokenizer = Tokenizer::train([], &options).failed()?;
    Chat::builtin(tokenizer).failed()
}
