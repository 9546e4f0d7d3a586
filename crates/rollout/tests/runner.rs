//! The runner with a study whose plays fail in chosen members: all are accounted for.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests stop at the first surprise"
)]

use std::{
    collections::BTreeMap,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use chat::{BpeOptions, Chat, Tokenizer};
use policy::ScriptedPolicy;
use record::{
    Episode, EpisodeId, Estimate, Fault, Group, LineLog, LogLine, Message, Outcome, Reward,
    Sampling, Seed, TaskId,
};
use rollout::{Cx, Options, Played, Progress, Roles, RolloutError, Runner, Study, Tally, TaskRow};
use serde_json::json;

/// What happens to every play of a member, in order; the last is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Graded,
    Infra,
    Grader,
    Hangs,
    NotFinite,
    Panics,
    UnboundRole,
}

struct Row {
    id: TaskId,
    /// One fate a play of the task.
    fates: Vec<Fate>,
}

impl TaskRow for Row {
    fn id(&self) -> &TaskId {
        &self.id
    }
}

/// Plays every task by its fates; counts plays and how many are under way at once.
#[derive(Default)]
struct Failing {
    plays: Mutex<BTreeMap<TaskId, usize>>,
    playing: AtomicUsize,
    most_playing: AtomicUsize,
}

struct Playing<'a>(&'a AtomicUsize);

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Study for Failing {
    type Task = Row;

    async fn play<'a>(&'a self, task: &'a Row, cx: &'a mut Cx) -> Result<Played, Fault> {
        let now = self.playing.fetch_add(1, Relaxed) + 1;
        let _playing = Playing(&self.playing);
        self.most_playing.fetch_max(now, Relaxed);
        let play = {
            let mut plays = self.plays.lock().unwrap();
            let count = plays.entry(task.id.clone()).or_default();
            *count += 1;
            *count - 1
        };
        let fields = json!({"task_id": task.id.0, "play": play});
        cx.log(LogLine::new(LineLog::Events, "played", fields));
        let answer = cx.ask("speaker", &[Message::user("?")]).await?;
        tokio::time::sleep(Duration::from_millis(2)).await;
        let reward = match task.fates[play.min(task.fates.len() - 1)] {
            Fate::Graded => 0.5,
            Fate::Infra => return Err(Fault::infra(format!("no sandbox for {}", task.id))),
            Fate::Grader => return Err(Fault::grader("no tests")),
            Fate::Hangs => return pending().await,
            Fate::NotFinite => f64::NAN,
            Fate::Panics => panic!("a bug in the study"),
            Fate::UnboundRole => {
                cx.ask("nobody", &[]).await?;
                1.0
            }
        };
        Ok(Played {
            reward: Reward::of("pass", reward),
            notes: json!(answer.text),
        })
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn step_metrics(&self, _: &[Group], _: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn evaluation_metrics(&self, _: &[Group]) -> BTreeMap<String, Estimate> {
        BTreeMap::new()
    }

    fn replay(&self, _: &Episode) {}
}

fn roles() -> Roles {
    let options = BpeOptions {
        vocabulary: 261,
        special_tokens: Chat::builtin_special_tokens(),
    };
    let chat = Chat::builtin(Tokenizer::train([], &options).unwrap()).unwrap();
    let policy = Arc::new(ScriptedPolicy::always(chat, "said"));
    Roles::default().bind("speaker", policy, Sampling::greedy(16))
}

fn options(max_fault_share: f64) -> Options {
    Options {
        deadline_s: 0.5,
        max_fault_share,
        ..Options::default()
    }
}

/// Plays each task once.
async fn play(
    study: &Arc<Failing>,
    options: Options,
    fates: &[&[Fate]],
) -> Result<Vec<Group>, RolloutError> {
    let row = |(index, fates): (usize, &&[Fate])| {
        Arc::new(Row {
            id: TaskId(format!("task-{index}")),
            fates: fates.to_vec(),
        })
    };
    let tasks: Vec<Arc<Row>> = fates.iter().enumerate().map(row).collect();
    Runner::new(study.clone(), roles(), options)
        .play(7, &tasks, 1, Seed(1), |_| {})
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_member_is_accounted_for() {
    use Fate::{Graded, Grader, Hangs, Infra, NotFinite, UnboundRole};
    let fates: &[&[Fate]] = &[
        &[Graded],
        &[Infra, Graded],
        &[Infra, Infra, Graded],
        &[Grader, Graded],
        &[Hangs, Graded],
        &[NotFinite, Graded],
        &[UnboundRole, Graded],
        &[Infra, Hangs],
        &[Infra, Grader],
    ];
    let study = Arc::new(Failing::default());
    let groups = play(&study, options(1.0), fates).await.unwrap();

    let plays: Vec<usize> = study.plays.lock().unwrap().values().copied().collect();
    assert_eq!(
        plays,
        [1, 2, 2, 1, 1, 1, 1, 2, 2],
        "only infrastructure is retried, and once"
    );
    let ended: Vec<(&str, u32)> = groups
        .iter()
        .map(|group| {
            let [episode] = group.episodes.as_slice() else {
                panic!("a member is missing")
            };
            (kind(&episode.outcome), episode.retries)
        })
        .collect();
    let expected = [
        ("graded", 0),
        ("graded", 1),
        ("infra", 1),
        ("grader", 0),
        ("timeout", 0),
        ("grader", 0),
        ("grader", 0),
        ("timeout", 1),
        ("grader", 1),
    ];
    assert_eq!(ended, expected);
    let tally = Tally::of(&groups);
    assert_eq!(
        tally,
        Tally {
            graded: 2,
            infra_faults: 1,
            grader_faults: 4,
            timeouts: 2,
            retries: 4
        }
    );
    assert_eq!((tally.faulted(), tally.episodes()), (7, 9));
    for (index, group) in groups.iter().enumerate() {
        let episode = &group.episodes[0];
        assert_eq!(
            episode.id,
            EpisodeId {
                step: 7,
                group: index as u32,
                member: 0
            }
        );
        assert_eq!(episode.task, group.task);
        assert_eq!(
            episode.calls.len(),
            1,
            "calls of a play that was given up stay out"
        );
        assert_eq!(episode.outcome.reward().is_some(), !episode.notes.is_null());
    }
    assert_eq!(study.playing.load(Relaxed), 0);
}

fn kind(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Graded { .. } => "graded",
        Outcome::InfraFault { .. } => "infra",
        Outcome::GraderFault { .. } => "grader",
        Outcome::Timeout { .. } => "timeout",
    }
}

#[tokio::test]
async fn too_many_faults_stop_the_step_and_say_why() {
    use Fate::{Graded, Infra};
    let fates: &[&[Fate]] = &[&[Graded], &[Infra], &[Graded], &[Graded]];
    let at_the_limit = play(&Arc::default(), options(0.25), fates).await;
    assert_eq!(Tally::of(&at_the_limit.unwrap()).faulted(), 1);

    let beyond = play(&Arc::default(), options(0.24), fates)
        .await
        .unwrap_err();
    let RolloutError::TooManyFaults {
        step: 7,
        faulted: 1,
        episodes: 4,
        ref first,
        ..
    } = beyond
    else {
        panic!("{beyond}");
    };
    assert_eq!(first, "no sandbox for task-1");
    assert!(
        beyond.to_string().contains("rollout.max_fault_share"),
        "{beyond}"
    );

    let tolerated_once: &[&[Fate]] = &[&[Infra, Graded]];
    let groups = play(&Arc::default(), options(0.0), tolerated_once)
        .await
        .unwrap();
    assert_eq!(
        (Tally::of(&groups).retries, Tally::of(&groups).faulted()),
        (1, 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_is_an_error_and_takes_the_step_with_it() {
    let study = Arc::new(Failing::default());
    let slow = Options {
        deadline_s: 1000.0,
        ..options(1.0)
    };
    let fates: &[&[Fate]] = &[&[Fate::Panics], &[Fate::Hangs], &[Fate::Hangs]];
    let error = play(&study, slow, fates).await.unwrap_err();
    assert!(
        matches!(error, RolloutError::Panicked { step: 7, .. }),
        "{error}"
    );
    while study.playing.load(Relaxed) > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn no_tasks_are_an_error() {
    let error = play(&Arc::default(), options(1.0), &[]).await.unwrap_err();
    assert!(matches!(error, RolloutError::NoTasks { step: 7 }));
}

/// Groups of several members come back in order, whatever the concurrency, and no more play at once
/// than are allowed to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrency_changes_nothing() {
    let tasks: Vec<Arc<Row>> = (0..5)
        .map(|index| {
            Arc::new(Row {
                id: TaskId(format!("task-{index}")),
                fates: vec![Fate::Graded],
            })
        })
        .collect();
    let mut results = Vec::new();
    for concurrency in [1, 3, 512] {
        let study = Arc::new(Failing::default());
        let options = Options {
            concurrency,
            ..options(0.0)
        };
        let mut seen = Vec::new();
        let note = |Progress {
                        episodes_done,
                        episodes,
                        ..
                    }: Progress<'_>| {
            assert_eq!(episodes, 15);
            seen.push(episodes_done);
        };
        let runner = Runner::new(study.clone(), roles(), options);
        results.push(runner.play(1, &tasks, 3, Seed(1), note).await.unwrap());
        assert!(study.most_playing.load(Relaxed) <= concurrency);
        assert_eq!(seen, (1..=15).collect::<Vec<usize>>());
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    let members: Vec<u32> = results[0]
        .iter()
        .flat_map(|group| &group.episodes)
        .map(|one| one.id.member)
        .collect();
    assert_eq!(members, [0, 1, 2].repeat(5));
}

/// Lines are given with their episode, those of plays that were retried too, and how long it all took.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_for_logs_go_with_their_episodes() {
    let row = |name: &str, fates: &[Fate]| {
        let (id, fates) = (TaskId(name.to_owned()), fates.to_vec());
        Arc::new(Row { id, fates })
    };
    let tasks = [
        row("again", &[Fate::Infra, Fate::Graded]),
        row("once", &[Fate::Graded]),
        row("late", &[Fate::Hangs]),
    ];
    let runner = Runner::new(Arc::new(Failing::default()), roles(), options(1.0));
    let mut seen = BTreeMap::new();
    let note = |ended: Progress<'_>| {
        assert!(ended.seconds > 0.0);
        let own = |line: &LogLine| {
            assert_eq!(line.fields["task_id"], ended.episode.task.0);
            line.fields["play"].as_u64().unwrap()
        };
        let plays: Vec<u64> = ended.log.iter().map(own).collect();
        seen.insert(ended.episode.task.0.clone(), plays);
    };
    runner.play(1, &tasks, 1, Seed(1), note).await.unwrap();
    let expected = [("again", vec![0, 1]), ("late", vec![0]), ("once", vec![0])];
    let expected = expected.map(|(task, plays)| (task.to_owned(), plays));
    assert_eq!(seen, BTreeMap::from(expected));
}

/// What a step abandons stops playing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_step_stops_its_episodes() {
    let study = Arc::new(Failing::default());
    let slow = Options {
        deadline_s: 1000.0,
        ..options(1.0)
    };
    let fates: &[&[Fate]] = &[&[Fate::Hangs], &[Fate::Hangs]];
    let abandoned =
        tokio::time::timeout(Duration::from_millis(200), play(&study, slow, fates)).await;
    assert!(abandoned.is_err());
    while study.playing.load(Relaxed) > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_was_played_before_is_not_played_again() {
    let row = |(index, fate): (usize, Fate)| {
        Arc::new(Row {
            id: TaskId(format!("task-{index}")),
            fates: vec![fate],
        })
    };
    let fates = [Fate::Graded, Fate::Grader, Fate::Graded];
    let tasks: Vec<Arc<Row>> = fates.into_iter().enumerate().map(row).collect();
    let runner = || {
        let study = Arc::new(Failing::default());
        (study.clone(), Runner::new(study, roles(), options(1.0)))
    };
    let (_, all) = runner();
    let mut ended = Vec::new();
    let keep = |progress: Progress<'_>| ended.push(progress.episode.clone());
    let played = all.play(0, &tasks, 2, Seed(1), keep).await.unwrap();
    assert_eq!(ended.len(), 6);
    // One of another task is not what is asked for, and a fault may pass.
    let mut finished: Vec<Episode> = ended.into_iter().filter(|one| one.id.member == 0).collect();
    finished
        .iter_mut()
        .filter(|one| one.id.group == 2)
        .for_each(|one| one.task.0.push('x'));
    let (study, rest) = runner();
    let rest = rest.with_finished(finished);
    let again = rest.play(0, &tasks, 2, Seed(1), |_| {}).await.unwrap();
    assert_eq!(again, played);
    let plays: Vec<usize> = study.plays.lock().unwrap().values().copied().collect();
    assert_eq!(plays, [1, 2, 2]);
}
