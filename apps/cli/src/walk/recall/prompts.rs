//! Prompts that leave no room for a response are refused before anything is trained.

use std::{cmp::Reverse, sync::Arc};

use anyhow::{Context, anyhow, bail, ensure};
use recall::{
    ANSWER, CHUNK_QA, Granularity, JUDGE, Recall, Task, TurnRole, TurnSpec,
    tiny::{Draft, Split},
};
use record::{Message, Seed};

use super::{RecallRun, players::study, recipe::Recipe};
use crate::{
    failure::{Classify, Outcome},
    walk::{settings::prompt_tokens, tasks::TaskSets, vocabulary::Chats},
};

/// What a role is asked in a dialogue of the small world, apart from what its memory shows.
pub(super) fn example(recipe: &Recipe, study: &Recall, role: &str) -> anyhow::Result<Vec<Message>> {
    let draft = Draft::new(Seed(recipe.seed), Split::Lessons, 0, recipe.tasks.questions);
    for task in Task::of_dialogue(&draft.dialogue(), Granularity::Sample) {
        let turns = &task.public.turns;
        let mut bare = turns
            .iter()
            .filter_map(|turn| study.bare_prompt(role, &task.public, turn));
        if let Some(bare) = bare.next() {
            return Ok(bare.messages);
        }
    }
    bail!("nobody asks a role `{role}`")
}

impl RecallRun<'_> {
    /// A full memory, the longest turn and the longest response must fit into the context of every role.
    /// Of a run that has begun to train, this was found before.
    pub(super) fn check_prompts(&self, sets: &TaskSets<Task>, chats: &Chats) -> Outcome<()> {
        if self.frame.has_begun_to_train() {
            return Ok(());
        }
        let study = study(self.recipe.config(), chats, self.recipe)?;
        let tasks = || sets.train.iter().chain(&sets.eval);
        self.recipe.check_room(&study, chats, tasks).asked()
    }
}

/// Turns of a role that are rendered and counted: the longest ones in bytes.
const COUNTED: usize = 256;

impl Recipe {
    fn check_room<'a, T: Iterator<Item = &'a Arc<Task>>>(
        &self,
        study: &Recall,
        chats: &Chats,
        tasks: impl Fn() -> T,
    ) -> anyhow::Result<()> {
        let common = self.common();
        for policy in &common.policies {
            let context = policy.config(common.tokenizer)?.context;
            let chat = chats
                .of(policy.name)
                .map_err(|failure| anyhow!("{failure}"))?;
            for (role, sampling) in self.samplings(policy.name) {
                let mut turns: Vec<(&Task, &TurnSpec)> = tasks()
                    .flat_map(|task| task.public.turns.iter().map(move |turn| (&**task, turn)))
                    .filter(|(_, turn)| is_asked(role, turn))
                    .collect();
                turns.sort_by_key(|(_, turn)| Reverse(turn.observation().len()));
                for (task, turn) in turns.into_iter().take(COUNTED) {
                    let Some(bare) = study.bare_prompt(role, &task.public, turn) else {
                        continue;
                    };
                    let said = prompt_tokens(chat, &bare.messages).with_context(|| {
                        format!("task {}: a prompt of the role {role}", task.id)
                    })?;
                    let needed = said + bare.shown_tokens + sampling.max_tokens;
                    ensure!(
                        needed <= context,
                        "task {}, turn {}: the role {role} may need {needed} tokens, {said} of the turn, \
                         {} of memory (prompt.context_tokens) and {} of the response \
                         ({}.roles.{role}.max_tokens), and the context of {}.model is {context}; lower \
                         one of them, leave the task out, or give the model a longer context",
                        task.id,
                        turn.turn_id,
                        bare.shown_tokens,
                        sampling.max_tokens,
                        policy.key,
                        policy.key,
                    );
                }
            }
        }
        Ok(())
    }
}

/// Whether a role is asked in such turns: those who answer or judge in target turns, the others in those of
/// the history.
fn is_asked(role: &str, turn: &TurnSpec) -> bool {
    [ANSWER, CHUNK_QA, JUDGE].contains(&role) == (turn.turn_role == TurnRole::Target)
}
