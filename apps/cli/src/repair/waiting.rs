//! A model that takes its time: that it is waited for is said.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use policy::{Conversation, Endpoint, MessagePolicy, PolicyError, Reply};
use tokio::time::{Instant, interval_at};

use crate::screen::Screen;

/// Between two lines about the same answer.
const EVERY: Duration = Duration::from_secs(20);

/// Pauses before an endpoint is asked again that are not worth a line.
const MOMENT: Duration = Duration::from_millis(900);
/// Characters of why it is asked again.
const WHY: usize = 160;

pub(super) struct Waiting {
    policy: Arc<dyn MessagePolicy>,
    /// The option that named it.
    flag: &'static str,
    screen: Screen,
}

impl Waiting {
    pub(super) fn new(endpoint: Endpoint, flag: &'static str, screen: Screen) -> Self {
        let policy = endpoint.telling(move |why, pause| {
            if pause > MOMENT {
                let line = why.lines().next().unwrap_or_default();
                let why: String = line.chars().take(WHY).collect();
                let seconds = pause.as_secs_f64();
                screen.say(format!(
                    "     {flag}: {why}; it is asked again in {seconds:.0} s"
                ));
            }
        });
        Self {
            policy: Arc::new(policy),
            flag,
            screen,
        }
    }
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
