//! The one trait that a study implements.

use std::{collections::BTreeMap, future::Future};

use record::{Episode, EpisodeId, Estimate, Fault, Group, Reward, TaskId};

use crate::Cx;

/// A task as the runner sees it: something with a name.
pub trait TaskRow: Send + Sync + 'static {
    fn id(&self) -> &TaskId;
}

/// An environment whose episode is one async function.
pub trait Study: Send + Sync + 'static {
    type Task: TaskRow;

    /// Plays one episode to its verdict. Everything random in it comes from [`Cx::seed`], every
    /// policy call goes through [`Cx::ask`], which records its tokens.
    ///
    /// # Errors
    /// Only what prevented a verdict. A wrong answer, a malformed one or a program that crashes is
    /// a [`Played`] with a low reward, not a fault.
    fn play<'a>(
        &'a self,
        task: &'a Self::Task,
        cx: &'a mut Cx,
    ) -> impl Future<Output = Result<Played, Fault>> + Send + 'a;

    /// What the study's instruments have counted since they were started, by name.
    fn counters(&self) -> BTreeMap<String, f64>;

    /// The study's own metrics of one training step; `counted` is what [`Study::counters`] grew by
    /// while it was played.
    fn step_metrics(
        &self,
        groups: &[Group],
        counted: &BTreeMap<String, f64>,
    ) -> BTreeMap<String, f64>;

    /// The study's measures of an evaluation, with 95 % intervals over tasks.
    fn evaluation_metrics(&self, groups: &[Group]) -> BTreeMap<String, Estimate>;

    /// Called on resume for every committed episode, in order, before new ones are played: the
    /// place to refill caches, so that a resumed run counts the same hits as an uninterrupted one.
    fn replay(&self, episode: &Episode);

    /// How long what is measured took: as [`Self::evaluation_metrics`], of seconds, which differ from run to run.
    /// Episodes whose seconds nobody has measured are in none.
    fn evaluation_timings(
        &self,
        _groups: &[Group],
        _seconds: &BTreeMap<EpisodeId, f64>,
    ) -> BTreeMap<String, Estimate> {
        BTreeMap::new()
    }
}

/// An episode played to its verdict.
#[derive(Clone, Debug)]
pub struct Played {
    pub reward: Reward,
    /// The study's own facts, kept with the episode for metrics and reports.
    pub notes: serde_json::Value,
}
