//! Made tasks, a judge and scripted roles.

use std::{collections::BTreeMap, sync::Arc};

use chat::{BpeOptions, Chat, Tokenizer};
use critique::{
    CRITIC, Critique, Made, Notes, Purpose, REVISER, RewardConfig, Task, make_tasks, notes_of,
    tiny::{Split, TaskSet, drafts},
};
use judge::{Judge, JudgeConfig};
use policy::ScriptedPolicy;
use record::{Episode, Sampling, Seed, TaskId};
use rollout::{Options, Roles, Runner};
use sandbox::{Config, Sandbox};

pub(crate) fn judge() -> Judge {
    let mut config = JudgeConfig::small();
    config.limits.cpu = std::time::Duration::from_millis(500);
    Judge::new(Sandbox::start(Config::new(2)).unwrap(), config)
}

pub(crate) async fn made(judge: &Judge, split: Split, n: usize, share_right: f64) -> Vec<Made> {
    let drafts = drafts(TaskSet::Functions, Seed(11), split, share_right);
    make_tasks(judge, drafts, n, |_| {}).await.unwrap().0
}

/// A tokenizer of bytes alone.
pub(crate) fn chat() -> Chat {
    let options = BpeOptions {
        vocabulary: 261,
        special_tokens: Chat::builtin_special_tokens(),
    };
    Chat::builtin(Tokenizer::train([], &options).unwrap()).unwrap()
}

/// Plays every task once for its reward: the critic and the reviser say their texts of the task.
pub(crate) async fn play(
    judge: &Judge,
    purpose: Purpose,
    tasks: &[Task],
    critiques: BTreeMap<TaskId, String>,
    revisions: BTreeMap<TaskId, String>,
) -> Vec<(Episode, Notes)> {
    let study = Critique {
        judge: judge.clone(),
        reward: RewardConfig::default(),
        purpose,
    };
    let sampling = Sampling::greedy(100_000);
    let roles = Roles::default()
        .bind(
            CRITIC,
            Arc::new(ScriptedPolicy::by_task(chat(), critiques)),
            sampling.clone(),
        )
        .bind(
            REVISER,
            Arc::new(ScriptedPolicy::by_task(chat(), revisions)),
            sampling,
        );
    let tasks: Vec<Arc<Task>> = tasks.iter().cloned().map(Arc::new).collect();
    let runner = Runner::new(Arc::new(study), roles, Options::default());
    let groups = runner.play(1, &tasks, 1, Seed(3), |_| {}).await.unwrap();
    let episodes = groups.into_iter().flat_map(|group| group.episodes);
    episodes
        .map(|episode| (episode.clone(), notes_of(&episode).unwrap()))
        .collect()
}

/// The same text for every task.
pub(crate) fn all(tasks: &[Task], text: impl Fn(&Task) -> String) -> BTreeMap<TaskId, String> {
    tasks
        .iter()
        .map(|task| (task.id.clone(), text(task)))
        .collect()
}
