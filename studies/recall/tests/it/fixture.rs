//! A runner with a scripted policy for every role.

use std::sync::Arc;

use chat::{BpeOptions, Chat, Tokenizer};
use policy::{Request, ScriptedPolicy};
use recall::{
    ANSWER, CHUNK_QA, EXTRACT, FACT_SPLIT, Granularity, JUDGE, LONG_MEM, MEMORY, Notes, Recall,
    RecallConfig, SHORT_MEM, Task,
    tiny::{Draft, Split},
};
use record::{Group, Sampling, Seed};
use rollout::{Options, Roles, Runner};
use serde_json::Value;

/// Bytes are tokens: nothing here depends on a vocabulary.
pub(crate) fn chat() -> Chat {
    let options = BpeOptions {
        vocabulary: 256 + Chat::builtin_special_tokens().len(),
        special_tokens: Chat::builtin_special_tokens(),
    };
    Chat::builtin(Tokenizer::train(["a"], &options).unwrap()).unwrap()
}

/// Settings as a recipe would have them.
pub(crate) fn config(settings: Value) -> RecallConfig {
    serde_json::from_value(settings).unwrap()
}

pub(crate) fn study(config: RecallConfig) -> Arc<Recall> {
    Arc::new(Recall::new(config, Arc::new(|text: &str| text.len()), None).unwrap())
}

/// Dialogues of the small world as tasks.
pub(crate) fn tasks(n: u64, granularity: Granularity) -> Vec<Arc<Task>> {
    let drafts = (0..n).map(|index| Draft::new(Seed(3), Split::Train, index, 1).dialogue());
    drafts
        .flat_map(|dialogue| Task::of_dialogue(&dialogue, granularity))
        .map(Arc::new)
        .collect()
}

/// What a script is asked: the role, and the text of its prompt.
pub(crate) type Script = fn(&str, &str) -> Option<String>;

/// Plays tasks with `script` behind every role.
pub(crate) fn play(
    study: &Arc<Recall>,
    tasks: &[Arc<Task>],
    members: u32,
    script: Script,
    concurrency: usize,
) -> Vec<Group> {
    let reader = chat();
    let policy = Arc::new(ScriptedPolicy::new(chat(), move |request: &Request| {
        let prompt = reader.tokenizer().decode(&request.prompt).ok()?;
        script(&request.role, &prompt)
    }));
    let roles = [
        ANSWER, MEMORY, EXTRACT, FACT_SPLIT, LONG_MEM, SHORT_MEM, CHUNK_QA, JUDGE,
    ];
    let roles = roles.iter().fold(Roles::default(), |roles, role| {
        roles.bind(role, policy.clone(), Sampling::greedy(4096))
    });
    let options = Options {
        concurrency,
        max_fault_share: 1.0,
        ..Options::default()
    };
    let runner = Runner::new(study.clone(), roles, options);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let played = runner.play(1, tasks, members, Seed(5), |_| {});
    runtime.block_on(played).unwrap()
}

/// The notes of every episode, in order.
pub(crate) fn notes(groups: &[Group]) -> Vec<Notes> {
    let episodes = groups.iter().flat_map(|group| &group.episodes);
    episodes
        .map(|episode| Notes::of(episode).unwrap_or_else(|| panic!("{:?}", episode.outcome)))
        .collect()
}
