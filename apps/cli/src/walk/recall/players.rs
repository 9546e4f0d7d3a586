//! Who plays: the study with its memory, and policies bound to their roles.

use std::sync::Arc;

use chat::Chat;
use policy::{EnginePolicy, Policy};
use recall::{ANSWER, Recall, RecallConfig, memory::CountTokens};
use record::Sampling;
use retrieve::{Analyzer, Embedder, HashedEmbedder};
use rollout::Roles;

use super::recipe::Recipe;
use crate::{
    failure::{Classify, Outcome},
    walk::{Engines, checkpoints::Models, vocabulary::Chats},
};

/// The study with these settings.
pub(super) fn study(config: RecallConfig, chats: &Chats, recipe: &Recipe) -> Outcome<Arc<Recall>> {
    let study = Recall::new(config, counter_of(recipe, chats)?, Some(embedder()));
    Ok(Arc::new(study.asked()?))
}

/// What `memory.retrieval = "dense"` and `"hybrid"` find facts by: spelling, in vectors of hashed features.
pub(super) fn embedder() -> Arc<dyn Embedder> {
    const DIMENSION: usize = 512;
    Arc::new(HashedEmbedder::new(DIMENSION, Analyzer::default()))
}

/// Counts tokens as the policy that answers reads them.
pub(super) fn counter_of(recipe: &Recipe, chats: &Chats) -> Outcome<CountTokens> {
    let chat: Chat = chats.of(recipe.policy_of(ANSWER).asked()?)?.clone();
    // Whatever cannot be encoded is counted by its bytes, of which no token has less than one.
    Ok(Arc::new(move |text: &str| {
        let tokens = chat.tokenizer().encode(text);
        tokens.map_or(text.len(), |tokens| tokens.len())
    }))
}

/// Every role bound to its policy, whose weights stay as they are.
pub(super) fn cast(
    engines: &Engines,
    recipe: &Recipe,
    chats: &Chats,
    models: &Models,
    temperature: Option<f64>,
) -> Outcome<Roles> {
    let mut roles = Roles::default();
    for (name, model) in models {
        let policy: Arc<EnginePolicy> =
            Arc::new(engines.policy(name, chats.of(name)?, model.clone())?);
        for (role, sampling) in recipe.samplings(name) {
            let sampling = Sampling {
                temperature: temperature.map_or(sampling.temperature, |own| own as f32),
                ..sampling
            };
            roles = roles.bind(role, policy.clone() as Arc<dyn Policy>, sampling);
        }
    }
    Ok(roles)
}
