//! Adapters of policies: put over a policy's weights when its recipe says so, and trained from then on.

use std::sync::Arc;

use chat::Chat;
use engine::{Adapter, LoraConfig, LoraTarget, Model};
use record::Seed;
use serde::{Deserialize, Serialize};

use super::{Frame, settings::PolicySettings};
use crate::failure::{Classify, Outcome};

/// The weights that a policy's adapters lie over, when supervised stages train adapters.
pub(crate) const BASE: &str = "base";

/// From one checkpoint to another: checkpoints lie side by side.
const BESIDE: &str = "../";

/// When a policy's adapters come, and what they are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lora {
    /// Supervised stages that train every weight before the adapters take over; all that is trained
    /// afterwards, reinforcement included, is adapters over the weights of that moment.
    #[serde(default)]
    pub(crate) full_stages: usize,
    /// Rows of `A` and columns of `B`.
    pub(crate) rank: usize,
    /// `scale = alpha / rank`.
    pub(crate) alpha: f64,
    /// Chance that an input of an adapter is zeroed in training.
    #[serde(default)]
    pub(crate) dropout: f64,
    /// Matrices with an adapter, in every layer.
    #[serde(default = "LoraTarget::all")]
    pub(crate) targets: Vec<LoraTarget>,
    /// `scale = alpha / sqrt(rank)`.
    #[serde(default)]
    pub(crate) rslora: bool,
}

impl Lora {
    pub(crate) fn config(&self) -> LoraConfig {
        LoraConfig {
            rank: self.rank,
            alpha: self.alpha,
            dropout: self.dropout,
            targets: self.targets.clone(),
            rslora: self.rslora,
        }
    }
}

impl Frame<'_> {
    /// Puts new adapters over `model` if the policy's begin after so many stages. They name the
    /// checkpoint `base` as theirs, which is written first.
    pub(super) fn adapted(
        &self,
        policy: &PolicySettings<'_>,
        stage: usize,
        base: &str,
        chat: &Chat,
        model: Arc<Model>,
        seed: Seed,
    ) -> Outcome<Arc<Model>> {
        let Some(lora) = policy.lora.filter(|lora| lora.full_stages == stage) else {
            return Ok(model);
        };
        self.save_model(base, chat, &model)?;
        let adapter = Adapter::new(&model, lora.config(), seed.stream("lora", 0)).asked()?;
        let adapter = adapter.named_base(&format!("{BESIDE}{base}"));
        self.screen.say(format!(
            "  {}: adapters of rank {} train {} numbers, the {} of {base} stay as they are",
            policy.name,
            lora.rank,
            adapter.n_parameters(),
            model.n_parameters(),
        ));
        Ok(Arc::new(model.with_adapter(Arc::new(adapter)).failed()?))
    }
}

/// The same model, to be saved so many folders below a checkpoint of its own: its adapters name a base that
/// is another checkpoint as it is seen from there.
pub(super) fn seen_from(model: &Arc<Model>, below: usize) -> Outcome<Arc<Model>> {
    let Some(adapter) = model.adapter() else {
        return Ok(model.clone());
    };
    let Some(base) = adapter.base_name().filter(|name| name.starts_with(BESIDE)) else {
        return Ok(model.clone());
    };
    let name = BESIDE.repeat(below + 1) + base.trim_start_matches(BESIDE);
    let adapter = Adapter::clone(adapter).named_base(&name);
    Ok(Arc::new(model.with_adapter(Arc::new(adapter)).failed()?))
}
