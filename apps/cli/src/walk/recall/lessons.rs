//! Phases `tokenizer` and `sft/…`: what a teacher says in dialogues of the small world, as texts for a
//! vocabulary and as rows for policies.

use std::sync::Arc;

use chat::Chat;
use recall::{
    ANSWER, CHUNK_QA, Task,
    memory::CountTokens,
    tiny::{Draft, Lesson, Mix, Split, Teacher},
};
use record::{Datum, Fault, Seed};
use train::conversations_to_rows;

use super::{
    RecallRun,
    players::{counter_of, embedder},
    recipe::Recipe,
    tasks::tasks_of,
};
use crate::{
    failure::{Classify, Failure, Outcome},
    walk::{
        checkpoints::{Models, supervised_checkpoint},
        supervise::Supervision,
        tasks::TaskSets,
        vocabulary::Chats,
    },
};

/// Dialogues whose texts a vocabulary is trained on, at most of each kind.
const CORPUS_DIALOGUES: usize = 600;
/// Dialogues in a row without a lesson for a policy, after which there is none.
const IDLE_DIALOGUES: u64 = 100;

impl RecallRun<'_> {
    pub(super) fn vocabulary(&self, sets: &TaskSets<Task>) -> Outcome<Chats> {
        let texts = format!("what is read and said in {CORPUS_DIALOGUES} dialogues");
        let tasks = sets.train.iter().map(AsRef::as_ref);
        self.frame.vocabulary(&self.recipe.common(), &texts, || {
            corpus(self.recipe, tasks.clone())
        })
    }

    /// Every policy at the end of its supervised stages.
    pub(super) fn supervised(&self, chats: &Chats) -> Outcome<Models> {
        let (frame, recipe) = (self.frame, self.recipe);
        let common = recipe.common();
        let mut models = Models::new();
        for policy in &common.policies {
            let roles = roles_of(recipe, policy.name);
            let plays = roles.join(" and as ");
            frame.screen.headline(match policy.stages.len() {
                0 => format!("{}: untaught, it plays as {plays}", policy.name),
                _ => format!(
                    "Supervised: {} learns what a teacher says as {plays}",
                    policy.name
                ),
            });
            let chat = chats.of(policy.name)?;
            let supervision = Supervision {
                policy,
                start: policy
                    .begins_as
                    .and_then(|other| models.get(other).cloned()),
                checkpoint: &supervised_checkpoint(policy.name),
                chat,
                seed: frame.seed.stream(policy.name, 0),
                save_every: recipe.sft.save_every,
            };
            let count = counter_of(recipe, chats)?;
            let model = frame.supervised(&supervision, |index| {
                let stage = &recipe.policies[policy.name].sft[index];
                let teacher = teacher(recipe, &count, policy.name, (index, &stage.mix))?;
                let rows = || rows(recipe, &teacher, policy.name, chat, stage.rows);
                frame.engines.engine.run(rows)
            })?;
            models.insert(policy.name.to_owned(), model);
        }
        Ok(models)
    }
}

/// The roles that a policy is taught: those that it plays, and whoever answers about single turns learns to
/// answer.
fn roles_of<'a>(recipe: &'a Recipe, policy: &str) -> Vec<&'a str> {
    let Some(policy) = recipe.policies.get(policy) else {
        return Vec::new();
    };
    let mut roles: Vec<&str> = policy.roles.keys().map(String::as_str).collect();
    if policy.roles.contains_key(ANSWER) {
        roles.retain(|role| *role != CHUNK_QA);
    }
    roles
}

/// Who teaches a policy in one of its stages.
pub(super) fn teacher(
    recipe: &Recipe,
    count: &CountTokens,
    policy: &str,
    (stage, mix): (usize, &Mix),
) -> Outcome<Teacher> {
    let seed = Seed(recipe.seed)
        .stream("lessons", 0)
        .stream(policy, stage as u64);
    let (config, questions) = (recipe.config(), recipe.tasks.questions);
    let reading = (count.clone(), Some(embedder()));
    Teacher::new(&config, reading, mix, questions, seed).asked()
}

/// The first `n` rows that a teacher gives a policy, in an order of their own, so that a batch has rows of
/// many dialogues. Every role of the policy has an equal share.
pub(super) fn rows(
    recipe: &Recipe,
    teacher: &Teacher,
    policy: &str,
    chat: &Chat,
    n: usize,
) -> Outcome<Vec<Datum>> {
    let seed = Seed(recipe.seed).stream("order", 0).stream(policy, 0);
    let roles = roles_of(recipe, policy);
    let mut order: Vec<(u64, Lesson)> = Vec::with_capacity(n);
    for (index, role) in roles.iter().enumerate() {
        let share = n / roles.len() + usize::from(index < n % roles.len());
        let lessons = lessons(teacher, role, share)?.into_iter().take(share);
        let first = order.len() as u64;
        order.extend(
            (first..)
                .map(|index| seed.stream("place", index).0)
                .zip(lessons),
        );
    }
    order.sort_by_key(|(place, _)| *place);
    let lessons = order.into_iter().map(|(_, lesson)| lesson.messages);
    conversations_to_rows(chat, lessons).failed()
}

/// Lessons of whole dialogues until there are at least `n`.
fn lessons(teacher: &Teacher, role: &str, n: usize) -> Outcome<Vec<Lesson>> {
    let mut lessons = Vec::with_capacity(n);
    let mut idle = 0;
    for index in 0.. {
        if lessons.len() >= n {
            break;
        }
        let found = teacher.lessons(role, index).map_err(refused)?;
        idle = if found.is_empty() { idle + 1 } else { 0 };
        if idle > IDLE_DIALOGUES {
            return Err(Failure::Asked(anyhow::anyhow!(
                "the dialogues of the small world have no lesson for the role {role}; take the supervised \
                 stages of its policy out"
            )));
        }
        lessons.extend(found);
    }
    Ok(lessons)
}

fn refused(fault: Fault) -> Failure {
    Failure::Asked(anyhow::anyhow!(fault.message))
}

/// The lines and questions of dialogues, what policies are asked in them and what a teacher says; and the
/// dialogues that are trained on. The same recipe gives the same texts.
pub(super) fn corpus<'a>(
    recipe: &Recipe,
    tasks: impl Iterator<Item = &'a Task>,
) -> Outcome<Vec<String>> {
    let seed = Seed(recipe.seed).stream("corpus", 0);
    let mut texts: Vec<String> = tasks
        .take(CORPUS_DIALOGUES)
        .flat_map(|task| &task.public.turns)
        .map(|turn| turn.observation())
        .collect();
    // Nothing that is taken from here depends on this count.
    let count: CountTokens = Arc::new(|text: &str| text.split_whitespace().count());
    let common = recipe.common();
    let taught: Vec<(&str, Teacher)> = common
        .policies
        .iter()
        .filter(|policy| !policy.stages.is_empty())
        .map(|policy| {
            let teacher = teacher(recipe, &count, policy.name, (0, &Mix::default()))?;
            Ok((policy.name, teacher))
        })
        .collect::<Outcome<_>>()?;
    for index in 0..CORPUS_DIALOGUES as u64 {
        let draft = Draft::new(seed, Split::Lessons, index, recipe.tasks.questions);
        texts.extend(draft.texts());
        for (policy, teacher) in &taught {
            for role in roles_of(recipe, policy) {
                let lessons = teacher.lessons(role, index).map_err(refused)?;
                let messages = lessons.into_iter().flat_map(|lesson| lesson.messages);
                texts.extend(messages.map(|message| message.content));
            }
        }
    }
    Ok(texts)
}

/// The chats of the policies as a run of this recipe would have them.
pub(super) fn chats(recipe: &Recipe) -> Outcome<Chats> {
    let (tasks, _) = tasks_of(recipe)?;
    Chats::new(&recipe.common(), || corpus(recipe, tasks.iter()))
}
