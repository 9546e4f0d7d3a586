//! What a recipe says about the study.

use serde::{Deserialize, Serialize};

use crate::{
    answer::Reading,
    memory::{Baseline, MemoryConfig, OpFormat},
    metrics::Metric,
    model_judge::JUDGE,
    play::{ANSWER, CHUNK_QA, roles_of},
    prompts::PromptConfig,
    step_reward::StepRewards,
};

/// How dialogues are read, remembered, asked about and paid for. The phases of the spec (section 4.2) are
/// settings of this: P0 is `memory.extraction = "rule"`, P1 `"policy"`, P2 adds step rewards, P3 is
/// `"four_roles"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecallConfig {
    pub memory: MemoryConfig,
    /// Answer from a memory that nobody learnt to write, in place of `memory`'s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// How policies write operations.
    pub format: OpFormat,
    pub prompt: PromptConfig,
    pub answer: Reading,
    pub reward: RewardConfig,
    /// What single calls are paid beside it.
    #[serde(skip_serializing_if = "StepRewards::is_empty")]
    pub step_rewards: StepRewards,
}

/// What an episode is paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RewardConfig {
    /// The mean of this over target turns; absent, the metric of the task's data source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Let the role `judge` say whether an answer is right, in place of the metric.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judge: bool,
}

impl RecallConfig {
    /// The roles that episodes ask.
    pub fn roles(&self) -> Vec<&'static str> {
        let judge = self.reward.judge.then_some(JUDGE);
        let roles = roles_of(self.effective_memory().extraction);
        let asks = self.step_rewards.asks_about_chunks() && roles != [ANSWER];
        let chunk_qa = asks.then_some(CHUNK_QA);
        roles.iter().copied().chain(judge).chain(chunk_qa).collect()
    }

    /// The memory that episodes are played with.
    pub fn effective_memory(&self) -> MemoryConfig {
        match self.baseline {
            Some(baseline) => self.memory.with_baseline(baseline),
            None => self.memory.clone(),
        }
    }
}
