//! Tasks whose prompts leave no room for a response: refused before anything is trained, left out, or shortened at
//! a marked place, as the recipe says. No prompt is cut anywhere else.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context, anyhow};
use chat::Chat;
use critique::{
    CRITIC, GENERATOR, REVISER, Task,
    prompts::{critique_prompt, generation_prompt, revision_prompt, without_examples},
};
use record::Message;
use serde::Serialize;

use super::{
    CritiqueRun,
    recipe::{OverLong, Recipe},
    role::RoleModel,
};
use crate::{
    failure::{Classify, Failure, Outcome},
    screen::count_of,
    walk::{settings::prompt_tokens, tasks::TaskSets, vocabulary::Chats},
};

/// What became of tasks whose prompts were too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Fitted {
    /// Those that lost their examples and fit.
    pub(super) shortened: usize,
    pub(super) left_out: usize,
}

/// What the journal calls these counts.
const NOTE: &str = "tasks/over-long";

impl CritiqueRun<'_> {
    /// The tasks that fit. Of a run that has begun to train and refuses others, this was done before.
    pub(super) fn fitting(&self, sets: TaskSets<Task>, chats: &Chats) -> Outcome<TaskSets<Task>> {
        let (frame, recipe) = (self.frame, self.recipe);
        let refuses = recipe.prompts.over_long == OverLong::Refuse;
        if refuses && frame.has_begun_to_train() {
            return Ok(sets);
        }
        let (train, of_train) = fitting(recipe, chats, &sets.train)?;
        let (eval, of_eval) = fitting(recipe, chats, &sets.eval)?;
        if !refuses && frame.run.replay().note(NOTE).is_none() {
            let counts = BTreeMap::from([("train", of_train), ("eval", of_eval)]);
            frame.run.note(NOTE, &counts).failed()?;
            let shortened = of_train.shortened + of_eval.shortened;
            let left_out = of_train.left_out + of_eval.left_out;
            frame.screen.say(format!(
                "  prompts: {} shortened by their examples, {} left out",
                count_of(shortened, "over-long task"),
                left_out
            ));
        }
        for (set, name) in [(&train, "train"), (&eval, "evaluate on")] {
            if set.is_empty() && (name != "train" || recipe.rl.is_some()) {
                return Err(Failure::Asked(anyhow!(
                    "every task to {name} is too long for the roles that are to read it; give their models a \
                     longer context, or raise prompts.critic_tokens and prompts.reviser_tokens"
                )));
            }
        }
        Ok(TaskSets { train, eval })
    }
}

/// Those of the tasks that fit, shortened where the recipe wants it so.
pub(super) fn fitting(
    recipe: &Recipe,
    chats: &Chats,
    tasks: &[Arc<Task>],
) -> Outcome<(Vec<Arc<Task>>, Fitted)> {
    let rooms = rooms(recipe, chats)?;
    let mut fitted = Fitted::default();
    let mut kept = Vec::with_capacity(tasks.len());
    let mut refused = 0;
    let mut first = None;
    for task in tasks {
        let why = match too_long(&rooms, task).asked()? {
            None => {
                kept.push(task.clone());
                continue;
            }
            Some(why) => why,
        };
        match recipe.prompts.over_long {
            OverLong::Refuse => {
                refused += 1;
                first.get_or_insert(why);
            }
            OverLong::LeaveOut => fitted.left_out += 1,
            OverLong::Shorten => match shortened(&rooms, task).asked()? {
                Some(shorter) => {
                    kept.push(Arc::new(shorter));
                    fitted.shortened += 1;
                }
                None => fitted.left_out += 1,
            },
        }
    }
    match first {
        None => Ok((kept, fitted)),
        Some(why) => Err(Failure::Asked(anyhow!(
            "{why}; {} of {} so long. Leave such tasks out with prompts.over_long = \"leave-out\", leave out their \
             examples with \"shorten\", or give the model a longer context",
            match refused {
                1 => "1 task is".to_owned(),
                n => format!("{n} tasks are"),
            },
            tasks.len()
        ))),
    }
}

/// What a role can read.
struct Room<'a> {
    role: &'static str,
    /// Tokens are a quarter of the bytes where they are unknown.
    chat: Option<&'a Chat>,
    /// Tokens of a prompt with all that comes on top of it: fewer than this.
    below: usize,
    /// The longest critique, in tokens of the critic, which are about those of the reviser.
    on_top: usize,
    prompt: fn(&Task) -> Vec<Message>,
}

/// Who reads the prompts of a role, and how many tokens the recipe lets them have.
struct Asked {
    role: &'static str,
    policy: &'static str,
    most: Option<usize>,
    on_top: usize,
    prompt: fn(&Task) -> Vec<Message>,
}

fn rooms<'a>(recipe: &'a Recipe, chats: &'a Chats) -> Outcome<Vec<Room<'a>>> {
    let common = recipe.common();
    let settings = &recipe.prompts;
    let of_critic = Asked {
        role: CRITIC,
        policy: CRITIC,
        most: settings.critic_tokens,
        on_top: 0,
        prompt: |task| critique_prompt(&task.public),
    };
    let of_reviser = Asked {
        role: REVISER,
        policy: match recipe.reviser.model {
            RoleModel::Critic => CRITIC,
            _ => REVISER,
        },
        most: settings.reviser_tokens,
        on_top: recipe.critic.max_tokens,
        prompt: |task| revision_prompt(&task.public, ""),
    };
    let of_generator = recipe.generator.is_some().then_some(Asked {
        role: GENERATOR,
        policy: GENERATOR,
        most: None,
        on_top: 0,
        prompt: |task| generation_prompt(&task.public.statement, task.public.prompter),
    });
    let mut rooms = Vec::new();
    for asked in [of_critic, of_reviser].into_iter().chain(of_generator) {
        let Asked {
            role,
            policy,
            most,
            on_top,
            prompt,
        } = asked;
        let context = match common.policies.iter().find(|one| one.name == policy) {
            Some(policy) => Some(policy.config(common.tokenizer).asked()?.context),
            None => None,
        };
        let most = most.map(|most| most + 1);
        let below = match (context, most) {
            (Some(context), Some(most)) => context.min(most),
            (Some(only), None) | (None, Some(only)) => only,
            // Whoever is asked elsewhere refuses what it cannot read.
            (None, None) => continue,
        };
        rooms.push(Room {
            role,
            chat: context.map(|_| chats.of(policy)).transpose()?,
            below,
            on_top,
            prompt,
        });
    }
    Ok(rooms)
}

/// Why the prompts of a task do not fit, in words for people.
fn too_long(rooms: &[Room<'_>], task: &Task) -> anyhow::Result<Option<String>> {
    for room in rooms {
        let prompt = (room.prompt)(task);
        let tokens = match room.chat {
            Some(chat) => prompt_tokens(chat, &prompt)
                .with_context(|| format!("task {}: the {}'s prompt", task.id, room.role))?,
            None => prompt
                .iter()
                .map(|message| message.content.len())
                .sum::<usize>()
                .div_ceil(4),
        };
        if tokens + room.on_top >= room.below {
            let critique = match room.on_top {
                0 => String::new(),
                most => format!(" and up to {most} of a critique (critic.max_tokens)"),
            };
            return Ok(Some(format!(
                "task {}: the {role}'s prompt takes {tokens} tokens{critique}, and {role}.model has room for fewer \
                 than {}, by its context or by prompts.{role}_tokens, so there is no room for a response",
                task.id,
                room.below,
                role = room.role
            )));
        }
    }
    Ok(None)
}

/// The task without its examples, if it fits then.
fn shortened(rooms: &[Room<'_>], task: &Task) -> anyhow::Result<Option<Task>> {
    let Some(statement) = without_examples(&task.public.statement) else {
        return Ok(None);
    };
    let mut shorter = task.clone();
    shorter.public.statement = statement;
    Ok(too_long(rooms, &shorter)?.is_none().then_some(shorter))
}
