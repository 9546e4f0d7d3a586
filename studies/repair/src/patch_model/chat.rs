//! A patch model that is a policy: any model that chats, bound to the role `patcher`.

use async_trait::async_trait;
use record::{Fault, StopReason};
use rollout::Cx;
use serde::{Deserialize, Serialize};

use super::{
    Answered, PATCHER, PatchModel, PatchRequest, Proposed, prompt::messages, reply::read_reply,
};
use crate::{action::CUT_OFF, workplace::Testbed};

/// Asks the policy of the role `patcher` with the graph as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatPatcher {
    /// Tokens of the prompt, by the policy's own tokenizer.
    pub max_input_tokens: usize,
}

impl Default for ChatPatcher {
    fn default() -> Self {
        Self {
            max_input_tokens: 8_192,
        }
    }
}

#[async_trait]
impl PatchModel for ChatPatcher {
    async fn propose(
        &self,
        request: &PatchRequest,
        _testbed: &Testbed,
        cx: &mut Cx,
    ) -> Result<Answered, Fault> {
        // A role that nothing is bound to is told by asking it.
        let count = |text: &str| {
            let counted = cx.count_tokens(PATCHER, text);
            counted.unwrap_or(text.len().div_ceil(4))
        };
        let messages = messages(request, self.max_input_tokens, &count);
        let answer = cx.ask(PATCHER, &messages).await?;
        let mut proposed = read_reply(&answer.text);
        if answer.stop == StopReason::Length && matches!(proposed, Proposed::None { .. }) {
            proposed = Proposed::None {
                code: CUT_OFF,
                detail: "the answer was cut off at its limit of tokens before its patch was whole; answer with the \
                         patch alone, and a shorter one"
                    .to_owned(),
            };
        }
        Ok(proposed.into())
    }
}
