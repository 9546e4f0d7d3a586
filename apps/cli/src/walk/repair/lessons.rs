//! Phases `tokenizer` and `sft/…`: lessons in pointing at suspects, as texts for a vocabulary and as rows for
//! policies.

use std::sync::Arc;

use chat::Chat;
use record::{Datum, Seed};
use repair::{
    Task,
    environment::CountTokens,
    tiny::{Lessons, Mix},
};

use super::{RepairRun, players::counter_of, recipe::Recipe};
use crate::{
    failure::Outcome,
    walk::{
        checkpoints::{Models, supervised_checkpoint},
        supervise::{Supervision, lesson_rows},
        tasks::TaskSets,
        vocabulary::Chats,
    },
};

/// Lessons, and issues of tasks, that a vocabulary is trained on.
const CORPUS: u64 = 1500;

impl RepairRun<'_> {
    pub(super) fn vocabulary(&self, sets: &TaskSets<Task>) -> Outcome<Chats> {
        let common = self.recipe.common();
        if common.policies.is_empty() {
            return Ok(Chats::from_iter([]));
        }
        let texts = format!("{CORPUS} lessons and the issues of tasks");
        let tasks = sets.train.iter().map(AsRef::as_ref);
        self.frame
            .vocabulary(&common, &texts, || Ok(corpus(self.recipe, tasks.clone())))
    }

    /// Every local policy at the end of its supervised stages.
    pub(super) fn supervised(&self, chats: &Chats) -> Outcome<Models> {
        let (frame, recipe) = (self.frame, self.recipe);
        let mut models = Models::new();
        for policy in &recipe.common().policies {
            frame.screen.headline(match policy.stages.len() {
                0 => format!("{}: untaught", policy.name),
                _ => format!(
                    "Supervised: {} learns to point, from an uneven teacher",
                    policy.name
                ),
            });
            let chat = chats.of(policy.name)?;
            let supervision = Supervision {
                policy,
                start: None,
                checkpoint: &supervised_checkpoint(policy.name),
                chat,
                seed: frame.seed.stream(policy.name, 0),
                save_every: recipe.sft.save_every,
            };
            let count = counter_of(recipe, chats)?;
            let model = frame.supervised(&supervision, |index| {
                let stage = &recipe.policies[policy.name].sft[index];
                let rows = || rows(recipe, &count, chat, (index, &stage.mix), stage.rows);
                frame.engines.engine.run(rows)
            })?;
            models.insert(policy.name.to_owned(), model);
        }
        Ok(models)
    }
}

/// The first `n` rows of a stage.
pub(super) fn rows(
    recipe: &Recipe,
    count: &CountTokens,
    chat: &Chat,
    (stage, mix): (usize, &Mix),
    n: usize,
) -> Outcome<Vec<Datum>> {
    let seed = Seed(recipe.seed).stream("lessons", stage as u64);
    let lessons = Lessons::new(&recipe.config(), count.clone(), *mix, seed);
    let lessons = (0..n as u64).map(|index| lessons.lesson(index));
    lesson_rows(chat, lessons.map(|lesson| (lesson.prompt, lesson.answer)))
}

/// Lessons, and the issues of training tasks. The same recipe gives the same texts.
fn corpus<'a>(recipe: &Recipe, tasks: impl Iterator<Item = &'a Task>) -> Vec<String> {
    let mut texts = Vec::new();
    for task in tasks.take(CORPUS as usize) {
        let issue = &task.public.issue;
        texts.extend([issue.title.clone(), issue.body.clone()]);
    }
    // Budgets of observations are in tokens that are not known yet.
    let mut config = recipe.config();
    let observation = &mut config.environment.observation;
    let budgets = [
        &mut observation.tokens,
        &mut observation.issue_tokens,
        &mut observation.section_tokens,
    ];
    for budget in budgets {
        *budget = usize::MAX;
    }
    let count: CountTokens = Arc::new(|text: &str| text.len());
    let seed = Seed(recipe.seed).stream("corpus", 0);
    let lessons = Lessons::new(&config, count, Mix::default(), seed);
    for lesson in (0..CORPUS).map(|index| lessons.lesson(index)) {
        texts.extend(lesson.prompt.into_iter().map(|message| message.content));
        texts.push(lesson.answer);
    }
    texts
}

/// The chats of the policies as a run of this recipe would have them.
pub(super) fn chats(recipe: &Recipe, train: &[Task]) -> Outcome<Chats> {
    Chats::new(&recipe.common(), || Ok(corpus(recipe, train.iter())))
}
