//! A patch model that says what was recorded, in order: for tests and for playing a run again.

use std::sync::Mutex;

use async_trait::async_trait;
use record::Fault;
use rollout::Cx;

use super::{Answered, PatchModel, PatchRequest, reply::read_reply};
use crate::workplace::Testbed;

/// Replies that are read as those of a model are.
#[derive(Debug)]
pub struct RecordedPatcher {
    replies: Mutex<std::vec::IntoIter<String>>,
}

impl RecordedPatcher {
    pub fn new(replies: impl IntoIterator<Item = String>) -> Self {
        let replies: Vec<String> = replies.into_iter().collect();
        Self {
            replies: Mutex::new(replies.into_iter()),
        }
    }
}

#[async_trait]
impl PatchModel for RecordedPatcher {
    /// # Errors
    /// A grader fault when all replies have been given: there is no other patch to make up.
    async fn propose(
        &self,
        _request: &PatchRequest,
        _testbed: &Testbed,
        _cx: &mut Cx,
    ) -> Result<Answered, Fault> {
        let mut replies = self.replies.lock().map_err(Fault::grader)?;
        let reply = replies.next();
        let reply = reply
            .ok_or_else(|| Fault::grader("the recorded replies of the patch model are used up"))?;
        Ok(read_reply(&reply).into())
    }
}
