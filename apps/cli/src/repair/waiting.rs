//! A model that takes its time: that it is waited for is said.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use policy::{Conversation, MessagePolicy, PolicyError, Reply};
use tokio::time::{Instant, interval_at};

use crate::screen::Screen;

/// Between two lines about the same answer.
const EVERY: Duration = Duration::from_secs(20);

pub(super) struct Waiting {
    pub(super) policy: Arc<dyn MessagePolicy>,
    /// The option that named it.
    pub(super) flag: &'static str,
    pub(super) screen: Screen,
}

impl MessagePolicy for Waiting {
    fn converse<'a>(
        &'a self,
        conversation: Conversation,
    ) -> BoxFuture<'a, Result<Reply, PolicyError>> {
        Box::pin(async move {
            let began = Instant::now();
            let mut ticks = interval_at(began + EVERY, EVERY);
            let mut answered = self.policy.converse(conversation);
            loop {
                tokio::select! {
                    biased;
                    answer = &mut answered => return answer,
                    _ = ticks.tick() => self.screen.say(format!(
                        "     {} has not answered for {} s",
                        self.flag,
                        began.elapsed().as_secs()
                    )),
                }
            }
        })
    }
}
