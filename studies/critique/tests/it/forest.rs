//! Forests over real tests: rounds, branches, votes, stops, and the lines that they leave.

use std::{pin::Pin, sync::Arc};

use chat::Chat;
use critique::{
    CRITIC, Critique, GENERATOR, Made, Purpose, REVISER, RewardConfig, Task,
    forest::{Forest, NodeType, Round, Start, initial_programs, read_forest},
    metrics::rounds::{Trajectory, of_rounds},
    tiny::Split,
};
use judge::Judge;
use policy::{Policy, PolicyError, Request, ScriptedPolicy};
use record::{Completion, Group, Sampling, Seed, TaskId, WeightVersion};
use rollout::{Options, Roles, Runner};

use crate::stage::{chat, judge, made};

const CORRECT: &str = "Overall judgment: Correct";
const INCORRECT: &str = "Overall judgment: Incorrect";

/// What a role says of the task with this name.
type Line = Arc<dyn Fn(&TaskId) -> String + Send + Sync>;

struct Rounds<'a> {
    judge: &'a Judge,
    critic: Line,
    reviser: Line,
    votes: u32,
    stop_at_correct: bool,
}

impl Rounds<'_> {
    async fn start(&self, tasks: &[Arc<Task>]) -> Forest {
        let study = Start {
            judge: self.judge.clone(),
            generates: false,
        };
        let runner = Runner::new(Arc::new(study), Roles::default(), Options::default());
        let groups = runner.play(0, tasks, 1, Seed(0), |_| {}).await.unwrap();
        Forest::planted(tasks, &groups, |task| task.id.clone(), self.stop_at_correct)
    }

    async fn grow(&self, forest: &mut Forest, branches: u32) -> Vec<Group> {
        let says = |line: &Line| {
            let line = line.clone();
            Arc::new(ScriptedPolicy::new(chat(), move |request| {
                Some(line(&request.task))
            }))
        };
        let sampling = Sampling::greedy(100_000);
        let roles = Roles::default()
            .bind(CRITIC, says(&self.critic), sampling.clone())
            .bind(REVISER, says(&self.reviser), sampling);
        let study = Round {
            critique: Critique {
                judge: self.judge.clone(),
                reward: RewardConfig::default(),
                purpose: Purpose::Measuring,
            },
            votes: self.votes,
            stop_at_correct: self.stop_at_correct,
            hinted: false,
        };
        let runner = Runner::new(Arc::new(study), roles, Options::default());
        let tasks = forest.frontier();
        let groups = runner
            .play(0, &tasks, branches, Seed(1), |_| {})
            .await
            .unwrap();
        forest.grow(&tasks, &groups);
        groups
    }
}

fn tasks(made: &[Made]) -> Vec<Arc<Task>> {
    made.iter().map(|one| Arc::new(one.task.clone())).collect()
}

fn right(path: &Trajectory) -> Vec<bool> {
    path.states.iter().map(|state| state.right).collect()
}

/// Two wrong programs and a right one. The first is repaired at once, the second in the second round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_go_on_until_they_are_found_correct() {
    let judge = judge();
    let mut made = made_of(&judge, &[false, false, true]).await;
    made.sort_by_key(|one| one.task.facts.initially_right);
    let tasks = tasks(&made);
    let references: Vec<(String, String)> = made
        .iter()
        .map(|one| (one.task.id.0.clone(), one.draft.function.reference()))
        .collect();
    let (second, third) = (references[1].0.clone(), references[2].0.clone());
    let reference = move |id: &TaskId| {
        let found = references.iter().find(|(task, _)| id.0.starts_with(task));
        found.unwrap().1.clone()
    };
    let first = tasks[0].id.0.clone();
    let rounds = Rounds {
        judge: &judge,
        critic: Arc::new(move |id| match id.0.as_str() {
            name if name == third || name == format!("{first}/0") => CORRECT.to_owned(),
            _ => INCORRECT.to_owned(),
        }),
        reviser: Arc::new(move |id| match id.0.as_str() {
            name if name == second => "def f(*_):\n    return None".to_owned(),
            _ => reference(id),
        }),
        votes: 1,
        stop_at_correct: true,
    };
    let mut forest = rounds.start(&tasks).await;
    for expected in [3, 2, 1] {
        assert_eq!(forest.frontier().len(), expected);
        rounds.grow(&mut forest, 1).await;
    }
    let paths = forest.trajectories();
    assert_eq!(right(&paths[0]), [false, true, true, true]);
    assert_eq!(right(&paths[1]), [false, false, true, true]);
    assert_eq!(right(&paths[2]), [true, true, true, true]);
    let said =
        |path: &Trajectory| -> Vec<bool> { path.rounds.iter().map(Option::is_some).collect() };
    assert_eq!(said(&paths[0]), [true, true, false]);
    assert_eq!(said(&paths[2]), [true, false, false]);
    // Nothing was revised where the program was found correct.
    assert!(paths[2].rounds[0].unwrap().similarity.is_none());
    let similarity = paths[1].rounds[0].unwrap().similarity.unwrap();
    assert!((0.0..1.0).contains(&similarity));
    let measures = of_rounds(&paths);
    for (round, expected) in [1.0 / 3.0, 2.0 / 3.0, 1.0, 1.0].into_iter().enumerate() {
        let found = measures[&format!("pass_at_1/round-{round}")].value;
        assert!((found - expected).abs() < 1e-12, "{round}: {found}");
    }

    let lines = forest.lines();
    let of = |kind| lines.iter().filter(|line| line.node_type == kind).count();
    assert_eq!((of(NodeType::Root), of(NodeType::Generation)), (3, 3));
    assert_eq!(of(NodeType::CritiqueRevision), 3 + 2 + 1);
    let text: String = lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap() + "\n")
        .collect();
    assert_eq!(read_forest(&text).unwrap(), lines);
    let again = initial_programs(&lines, &tasks).unwrap();
    let programs = |tasks: &[Arc<Task>]| -> Vec<(String, bool)> {
        tasks
            .iter()
            .map(|task| (task.public.program.clone(), task.facts.initially_right))
            .collect()
    };
    assert_eq!(programs(&again), programs(&tasks));
    assert!(initial_programs(&lines, &tasks[1..]).is_err());
    // The original's forests number problems: a number that two datasets have names none.
    let numbered = |dataset: &str, task: &Arc<Task>| {
        let mut task = (**task).clone();
        task.id = TaskId(format!("{dataset}/0/0"));
        task.facts.function = format!("{dataset}/0");
        Arc::new(task)
    };
    let two = [numbered("taco", &tasks[0]), numbered("apps", &tasks[1])];
    let mut line = lines
        .iter()
        .find(|line| line.node_type == NodeType::Generation)
        .unwrap()
        .clone();
    "0".clone_into(&mut line.task_id);
    assert!(initial_programs(&[line.clone()], &two[..1]).is_ok());
    let error = initial_programs(&[line.clone()], &two).unwrap_err();
    assert!(error.to_string().contains("taco/0 or apps/0"), "{error}");
    "apps/0".clone_into(&mut line.task_id);
    assert!(initial_programs(&[line], &two).is_ok());
    let last = lines.last().unwrap();
    assert_eq!(last.success, Some(1.0));
    assert_eq!(last.metadata.result["accepted"], true);
    assert_eq!(last.critique.as_deref(), Some(INCORRECT));
    assert!(
        last.sanitized_solution
            .as_ref()
            .unwrap()
            .starts_with("```python\ndef f(")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn branches_share_the_weight_of_their_program() {
    let judge = judge();
    let made = made_of(&judge, &[false, true]).await;
    let tasks = tasks(&made);
    let rounds = Rounds {
        judge: &judge,
        critic: Arc::new(|_| INCORRECT.to_owned()),
        reviser: Arc::new(|_| "def f(*_):\n    return None".to_owned()),
        votes: 1,
        stop_at_correct: false,
    };
    let mut forest = rounds.start(&tasks).await;
    rounds.grow(&mut forest, 3).await;
    rounds.grow(&mut forest, 2).await;
    let paths = forest.trajectories();
    assert_eq!(paths.len(), 2 * 3 * 2);
    assert!(
        paths
            .iter()
            .all(|path| (path.weight - 1.0 / 6.0).abs() < 1e-12)
    );
    assert_eq!(forest.lines().len(), 2 + 2 + 2 * 3 + 2 * 3 * 2);
    let hashes: std::collections::BTreeSet<String> =
        forest.lines().into_iter().map(|line| line.hash).collect();
    assert_eq!(hashes.len(), forest.lines().len());
    let measures = of_rounds(&paths);
    assert_eq!(measures["pass_at_1/round-0"].value, 0.5);
    assert_eq!(measures["pass_at_1/round-2"].value, 0.0);
    assert_eq!(measures["delta_down_from_start/round-2"].value, 0.5);
}

/// The critic is asked as often as there are votes, and what it says last is in the minority.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_majority_of_several_critiques_decides() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let judge = judge();
    let made = made_of(&judge, &[true]).await;
    let tasks = tasks(&made);
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let rounds = Rounds {
        judge: &judge,
        critic: Arc::new(move |_| match counter.fetch_add(1, Ordering::Relaxed) % 3 {
            2 => INCORRECT.to_owned(),
            _ => CORRECT.to_owned(),
        }),
        reviser: Arc::new(|_| panic!("the program is found correct and kept")),
        votes: 3,
        stop_at_correct: true,
    };
    let mut forest = rounds.start(&tasks).await;
    let groups = rounds.grow(&mut forest, 1).await;
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    let notes = critique::notes_of(&groups[0].episodes[0]).unwrap();
    let votes = notes.votes.unwrap();
    assert_eq!((votes.correct, votes.incorrect), (2, 1));
    assert!(notes.passed && notes.revision.is_none());
    assert!(forest.frontier().is_empty());
}

/// The generator sees the statement alone and is asked as often as programs are wanted; a critic with a hint knows
/// which of them are right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_are_sampled_and_criticised_by_what_running_them_gave() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let judge = judge();
    let made = made_of(&judge, &[false, true]).await;
    let tasks = tasks(&made);
    let reads = |request: &policy::Request| chat().tokenizer().decode(&request.prompt).unwrap();
    let statements: Vec<(String, String)> = made
        .iter()
        .map(|one| {
            (
                one.task.public.statement.clone(),
                one.draft.function.reference(),
            )
        })
        .collect();
    let known = statements.clone();
    let reference = move |prompt: &str| {
        let found = known
            .iter()
            .find(|(statement, _)| prompt.contains(statement));
        found.unwrap().1.clone()
    };
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let writes = ScriptedPolicy::new(chat(), move |request| {
        let prompt = reads(request);
        assert!(!prompt.contains("def f("), "{prompt}");
        Some(match counter.fetch_add(1, Ordering::Relaxed) % 3 {
            0 => format!("Here:\n```python\n{}\n```", reference(&prompt)),
            _ => "def f(*_):\n    raise KeyError('no')".to_owned(),
        })
    });
    let sampling = Sampling::greedy(100_000);
    let roles = Roles::default().bind(GENERATOR, Arc::new(writes), sampling.clone());
    let study = Start {
        judge: judge.clone(),
        generates: true,
    };
    let runner = Runner::new(Arc::new(study), roles, Options::default());
    let groups = runner.play(0, &tasks, 3, Seed(0), |_| {}).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 6);
    let mut forest = Forest::planted(&tasks, &groups, |task| task.id.clone(), false);
    let frontier = forest.frontier();
    let right = frontier.iter().filter(|task| task.facts.initially_right);
    assert_eq!((frontier.len(), right.count()), (6, 2));

    let critic = ScriptedPolicy::new(chat(), move |request| {
        let prompt = reads(request);
        let passes = prompt.contains("Every test passes");
        assert!(passes != prompt.contains("KeyError"), "{prompt}");
        Some(if passes { CORRECT } else { INCORRECT }.to_owned())
    });
    let reviser = ScriptedPolicy::always(chat(), "def f(*_):\n    return None");
    let roles = Roles::default()
        .bind(CRITIC, Arc::new(critic), sampling.clone())
        .bind(REVISER, Arc::new(reviser), sampling);
    let study = Round {
        critique: Critique {
            judge: judge.clone(),
            reward: RewardConfig::default(),
            purpose: Purpose::Measuring,
        },
        votes: 1,
        stop_at_correct: true,
        hinted: true,
    };
    let runner = Runner::new(Arc::new(study), roles, Options::default());
    let groups = runner.play(0, &frontier, 1, Seed(1), |_| {}).await.unwrap();
    forest.grow(&frontier, &groups);
    let measures = of_rounds(&forest.trajectories());
    assert_eq!(measures["judgment_f1/round-1"].value, 1.0);
    let lines = forest.lines();
    let of = |kind| lines.iter().filter(|line| line.node_type == kind).count();
    assert_eq!((of(NodeType::Root), of(NodeType::Generation)), (2, 6));
    let answers = lines.iter().filter_map(|line| line.solution.as_deref());
    assert_eq!(
        answers.filter(|answer| answer.starts_with("Here:")).count(),
        2
    );
}

/// A hint for which there is no room leaves the program as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_critic_that_cannot_read_the_hint_says_nothing() {
    let judge = judge();
    let made = made_of(&judge, &[true]).await;
    let tasks = tasks(&made);
    let study = || Round {
        critique: Critique {
            judge: judge.clone(),
            reward: RewardConfig::default(),
            purpose: Purpose::Measuring,
        },
        votes: 1,
        stop_at_correct: false,
        hinted: true,
    };
    let played = async |critic: Arc<dyn Policy>| {
        let roles = Roles::default().bind(CRITIC, critic, Sampling::greedy(100));
        let runner = Runner::new(Arc::new(study()), roles, Options::default());
        runner.play(0, &tasks, 1, Seed(1), |_| {}).await
    };
    let groups = played(Arc::new(Cramped(chat()))).await.unwrap();
    let notes = critique::notes_of(&groups[0].episodes[0]).unwrap();
    assert!(notes.passed && notes.revision.is_none() && notes.judgment.is_none());
    // Whatever else keeps it from answering is a fault.
    let silent = ScriptedPolicy::new(chat(), |_| None);
    let stopped = played(Arc::new(silent)).await.unwrap_err();
    assert!(stopped.to_string().contains("has no answer"), "{stopped}");
}

/// A model with a context that every prompt fills.
struct Cramped(Chat);

impl Policy for Cramped {
    fn sample<'a>(
        &'a self,
        request: Request,
    ) -> Pin<Box<dyn Future<Output = Result<Completion, PolicyError>> + Send + 'a>> {
        let tokens = request.prompt.len();
        let context = tokens;
        Box::pin(async move { Err(PolicyError::PromptTooLong { tokens, context }) })
    }

    fn chat(&self) -> &Chat {
        &self.0
    }

    fn weights(&self) -> WeightVersion {
        WeightVersion(0)
    }
}

/// Made tasks of which these are right.
async fn made_of(judge: &Judge, right: &[bool]) -> Vec<Made> {
    let all = made(judge, Split::HeldOut, 40, 0.5).await;
    let mut left: Vec<Made> = all;
    right
        .iter()
        .map(|right| {
            let of_kind = |one: &Made| one.task.facts.initially_right == *right;
            let place = left.iter().position(of_kind).unwrap();
            left.remove(place)
        })
        .collect()
}
