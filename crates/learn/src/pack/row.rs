//! One call as it is packed: unpadded, with what a peer needs to know of it.

use std::collections::BTreeMap;

use record::{Batch, Datum, Episode, EpisodeId, Group, StepKey, TokenId};

/// One call of an episode, unpadded.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub key: StepKey,
    /// Names the group that shares a baseline: step and group of the run.
    pub uid: String,
    pub agent_role: String,
    pub turn: Option<u32>,
    pub data_source: String,
    pub prompt: Vec<TokenId>,
    /// What stands behind the prompt, sampled or not.
    pub response: Vec<TokenId>,
    /// True for sampled tokens of the response: known from where they came from.
    pub mask: Vec<bool>,
    /// One a token of the response; 0 where it was not sampled.
    pub logprobs: Vec<f32>,
    /// As `logprobs`.
    pub advantages: Vec<f32>,
    /// Of the whole episode.
    pub reward: f32,
}

/// The rows of `batch`, in its order, whose episodes are those of `groups`; rows without a key or an episode
/// are left out. `data_source` is said of episodes whose notes do not name theirs.
pub fn rows_of(groups: &[Group], batch: &Batch, data_source: &str) -> Vec<Row> {
    let episodes = groups.iter().flat_map(|group| &group.episodes);
    let episodes: BTreeMap<EpisodeId, &Episode> =
        episodes.map(|episode| (episode.id, episode)).collect();
    let rows = batch.data.iter().filter_map(|datum| {
        let key = datum.key()?;
        let episode = episodes.get(&key.episode)?;
        let call = episode.calls.get(key.step as usize)?;
        let source = episode.notes.get("data_source");
        let source = source.and_then(|source| source.as_str());
        let start = call.completion.prompt.len().min(datum.tokens.len());
        Some(Row {
            key,
            uid: format!("{}/{}", key.episode.step, key.episode.group),
            agent_role: call.role.clone(),
            turn: call.turn,
            data_source: source.unwrap_or(data_source).to_owned(),
            prompt: datum.tokens[..start].to_vec(),
            response: datum.tokens[start..].to_vec(),
            mask: datum.mask[start..].to_vec(),
            logprobs: on_mask(datum, &datum.logprobs, start),
            advantages: on_mask(datum, &datum.advantages, start),
            reward: episode.outcome.reward().map_or(0.0, |reward| reward.total) as f32,
        })
    });
    rows.collect()
}

fn on_mask(datum: &Datum, values: &[f32], start: usize) -> Vec<f32> {
    let pairs = values.iter().zip(&datum.mask).skip(start);
    pairs
        .map(|(value, mask)| if *mask { *value } else { 0.0 })
        .collect()
}
