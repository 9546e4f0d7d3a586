//! Tasks whose prompts leave no room for a response are refused before anything is trained.

use anyhow::{Context, ensure};
use chat::Chat;
use critique::{
    CRITIC, REVISER, Task,
    prompts::{critique_prompt, revision_prompt},
};
use record::Message;

use super::CritiqueRun;
use crate::{
    failure::{Classify, Outcome},
    walk::{settings::prompt_tokens, tasks::TaskSets, vocabulary::Chats},
};

impl CritiqueRun<'_> {
    /// Of a run that has begun to train, this was done before.
    pub(super) fn check_prompts(&self, sets: &TaskSets<Task>, chats: &Chats) -> Outcome<()> {
        if self.frame.has_begun_to_train() {
            return Ok(());
        }
        // The longest critique comes on top; in tokens of the critic, which are about those of the reviser.
        let longest = self.recipe.critic.max_tokens;
        let asked_of_reviser = |task: &Task| revision_prompt(&task.public, "");
        let asked_of_critic = |task: &Task| critique_prompt(&task.public);
        self.check_prompts_of((CRITIC, 0), chats.of(CRITIC)?, sets, asked_of_critic)?;
        let reviser = chats.of(REVISER)?;
        self.check_prompts_of((REVISER, longest), reviser, sets, asked_of_reviser)
    }

    fn check_prompts_of(
        &self,
        (role, on_top): (&str, usize),
        chat: &Chat,
        sets: &TaskSets<Task>,
        prompt: impl Fn(&Task) -> Vec<Message>,
    ) -> Outcome<()> {
        let common = self.recipe.common();
        let config = common.policy(role)?.config(common.tokenizer).asked()?;
        for task in sets.train.iter().chain(&sets.eval) {
            let prompt = prompt(task);
            check_prompt((role, on_top), task, &prompt, chat, config.context).asked()?;
        }
        Ok(())
    }
}

fn check_prompt(
    (role, on_top): (&str, usize),
    task: &Task,
    prompt: &[Message],
    chat: &Chat,
    context: usize,
) -> anyhow::Result<()> {
    let tokens = prompt_tokens(chat, prompt)
        .with_context(|| format!("task {}: the {role}'s prompt", task.id))?;
    let critique = match on_top {
        0 => String::new(),
        most => format!(" and up to {most} of a critique (critic.max_tokens)"),
    };
    ensure!(
        tokens + on_top < context,
        "task {}: the {role}'s prompt takes {tokens} tokens{critique}, and the context of {role}.model is \
         {context}, so there is no room for a response; leave the task out or give the model a longer context",
        task.id
    );
    Ok(())
}
