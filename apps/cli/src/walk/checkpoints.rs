//! Checkpoints that roles begin with, and prompts that roles are to read: what cannot work is refused
//! before anything is trained.

use std::path::Path;

use anyhow::{Context, ensure};
use chat::Chat;
use critique::{
    CRITIC, REVISER, Task,
    prompts::{critic_lesson, critique_prompt, reviser_lesson, revision_prompt},
    tiny::{self, CriticMix, CriticRows, ReviserMix, ReviserRows, Split},
};
use record::{Message, Seed};

use super::{Walk, model_source::ModelSource, recipe::Recipe, tasks::TaskSets, vocabulary::Chats};
use crate::{
    failure::{Classify, Outcome},
    model::Findings,
};

impl Recipe {
    /// Reads every file of the checkpoints, and has their templates render what the roles will say.
    pub(super) fn check_checkpoints(&self) -> anyhow::Result<()> {
        let mut sound: Vec<&Path> = Vec::new();
        for (role, settings) in self.roles() {
            let ModelSource::Checkpoint(directory) = &settings.model else {
                continue;
            };
            let asked = || format!("{role}.model");
            if !sound.contains(&directory.as_path()) {
                let findings = Findings::of(directory);
                findings
                    .and_then(|findings| findings.check())
                    .with_context(asked)?;
                sound.push(directory);
            }
            let chat = Chat::load(directory).with_context(asked)?;
            let prompt = self.example(role)?;
            let tokens = rendered(&chat, &prompt)
                .with_context(|| format!("{}: a prompt of the {role}", directory.display()))
                .with_context(asked)?;
            let context = self.config(role, settings)?.context;
            ensure!(
                tokens < context,
                "{role}.model: a prompt of the {role} takes {tokens} tokens and the context of {} is {context}, \
                 so there is no room for a response",
                directory.display()
            );
        }
        Ok(())
    }

    /// A chat as the role will be given it.
    fn example(&self, role: &str) -> anyhow::Result<Vec<Message>> {
        let seed = Seed(self.seed);
        let draft = [tiny::draft(seed, Split::Train, 0, self.tasks.share_right)];
        Ok(match role {
            "critic" => {
                critic_lesson(CriticRows::new(&draft, &CriticMix::default(), seed)?.row(0)).0
            }
            _ => reviser_lesson(ReviserRows::new(&draft, &ReviserMix::default(), seed)?.row(0)).0,
        })
    }
}

impl Walk<'_> {
    /// Refuses tasks whose prompts leave no room for a response; of a run that has begun to train, this
    /// was done before.
    pub(super) fn check_prompts(&self, sets: &TaskSets, chats: &Chats) -> Outcome<()> {
        let phases = self.replay.phases();
        if phases.iter().any(|phase| phase.starts_with("sft/")) {
            return Ok(());
        }
        // The longest critique comes on top; in tokens of the critic, which are about those of the reviser.
        let longest = self.recipe.critic.max_tokens;
        let asked_of_reviser = |task: &Task| revision_prompt(&task.public, "");
        let asked_of_critic = |task: &Task| critique_prompt(&task.public);
        self.check_prompts_of((CRITIC, 0), &chats.critic, sets, asked_of_critic)
            .asked()?;
        self.check_prompts_of((REVISER, longest), &chats.reviser, sets, asked_of_reviser)
            .asked()
    }

    fn check_prompts_of(
        &self,
        (role, on_top): (&str, usize),
        chat: &Chat,
        sets: &TaskSets,
        prompt: impl Fn(&Task) -> Vec<Message>,
    ) -> anyhow::Result<()> {
        let roles = self.recipe.roles();
        let (_, settings) = roles[usize::from(role != CRITIC)];
        let context = self.recipe.config(role, settings)?.context;
        for task in sets.train.iter().chain(&sets.eval) {
            let tokens = rendered(chat, &prompt(task))
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
        }
        Ok(())
    }
}

/// Tokens of a prompt.
fn rendered(chat: &Chat, messages: &[Message]) -> anyhow::Result<usize> {
    Ok(chat.render(messages, true)?.tokens.len())
}
