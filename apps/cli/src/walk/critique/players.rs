//! Who plays the roles of an episode: models here, models behind endpoints, or texts that are said.

use std::sync::Arc;

use chat::Chat;
use critique::{CRITIC, GENERATOR, REVISER};
use engine::Model;
use rollout::Answers;

use super::{
    CritiqueRun, instruments::Instruments, recipe::Recipe, role::RoleModel, rounds::bytes,
};
use crate::{
    failure::{Classify, Outcome},
    walk::vocabulary::Chats,
};

/// The weights of a role; none of one that is played elsewhere, or by another role.
pub(super) type Weights = Option<Arc<Model>>;

impl CritiqueRun<'_> {
    /// Who criticises with these weights, under the sampler's name `name`.
    pub(super) fn critic(&self, name: &str, chats: &Chats, weights: &Weights) -> Outcome<Answers> {
        player(self.instruments, CRITIC, name, chats, weights)
    }

    /// Who revises, beside a critic of these weights.
    pub(super) fn reviser(
        &self,
        chats: &Chats,
        reviser: &Weights,
        critic: &Weights,
    ) -> Outcome<Answers> {
        revising(self.recipe, self.instruments, chats, reviser, critic)
    }
}

/// Who revises: the role's own model, unless the recipe says that it is the critic.
pub(super) fn revising(
    recipe: &Recipe,
    instruments: &Instruments,
    chats: &Chats,
    reviser: &Weights,
    critic: &Weights,
) -> Outcome<Answers> {
    match recipe.reviser.model {
        RoleModel::Critic => player(instruments, CRITIC, REVISER, chats, critic),
        _ => player(instruments, REVISER, REVISER, chats, reviser),
    }
}

/// Who writes programs, where the recipe has somebody for it.
pub(super) fn generating(
    recipe: &Recipe,
    instruments: &Instruments,
    chats: &Chats,
    weights: &Weights,
) -> Outcome<Option<Answers>> {
    let generator = recipe.generator.as_ref();
    let player = generator.map(|_| player(instruments, GENERATOR, GENERATOR, chats, weights));
    player.transpose()
}

/// Who plays `role`: its endpoint, or its weights under the sampler's name `name`.
pub(super) fn player(
    instruments: &Instruments,
    role: &'static str,
    name: &str,
    chats: &Chats,
    weights: &Weights,
) -> Outcome<Answers> {
    match (instruments.endpoints.get(role), weights) {
        (Some(endpoint), _) => Ok(Answers::Messages(endpoint.clone())),
        (None, Some(model)) => {
            let policy = instruments
                .engines
                .policy(name, chats.of(role)?, model.clone());
            Ok(Answers::Tokens(Arc::new(policy?)))
        }
        (None, None) => Err(anyhow::anyhow!("nobody plays the {role}")).failed(),
    }
}

/// What fixed texts are said in: the tokens of a model of the run where one runs here, else bytes.
pub(super) fn spoken(chats: &Chats) -> Outcome<Chat> {
    for role in [CRITIC, REVISER] {
        if let Ok(chat) = chats.of(role) {
            return Ok(chat.clone());
        }
    }
    bytes()
}
