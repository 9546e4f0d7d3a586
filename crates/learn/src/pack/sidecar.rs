//! What happened in episodes, beside their rows: kept by key, so that it survives whatever rows go through.

use std::collections::BTreeMap;

use record::{Call, Episode, EpisodeId, Group, StepKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Packed;

/// One thing that an episode did, with or without a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    #[serde(with = "as_text")]
    pub episode_id: EpisodeId,
    /// Its place among the events of its episode: names it together with the episode.
    pub event_id: u32,
    /// The call, where it was one; `None` for what needed no policy.
    pub step_id: Option<u32>,
    pub turn_id: Option<u32>,
    /// `history` or `target`.
    pub turn_role: String,
    pub agent_role: String,
    /// As the study writes them.
    pub memory_ops: Value,
    /// `None` is unscored, which is not 0.
    pub step_reward: Option<f32>,
}

/// What an event was paid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventReward {
    #[serde(with = "as_text")]
    pub episode_id: EpisodeId,
    pub event_id: u32,
    pub step_id: Option<u32>,
    pub step_reward: Option<f32>,
}

/// All events of the episodes of a batch, those without a row too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sidecar {
    pub step_meta: Vec<Event>,
}

/// Rows and events that do not speak of the same steps.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AlignmentError {
    #[error("row {row} is of step {key}, which no event speaks of")]
    NoEvent { row: usize, key: StepKey },
    #[error("two events speak of step {key}; its reward would be ambiguous")]
    TwoEvents { key: StepKey },
    #[error("row {row} is of step {key} by role `{row_role}`, but its event is of `{event_role}`")]
    OtherRole {
        row: usize,
        key: StepKey,
        row_role: String,
        event_role: String,
    },
    #[error("row {row} is of step {key} in turn {row_turn:?}, but its event is of {event_turn:?}")]
    OtherTurn {
        row: usize,
        key: StepKey,
        row_turn: Option<u32>,
        event_turn: Option<u32>,
    },
    #[error(
        "episode {episode}: entry {place} of notes.events is no event: {message}; it needs agent_role, and \
         turn_id, step_id and step_reward are numbers or absent"
    )]
    NoEventType {
        episode: EpisodeId,
        place: usize,
        message: String,
    },
    #[error("row {row} is padding and has {sampled} sampled tokens")]
    SampledPadding { row: usize, sampled: usize },
}

/// As studies write events into `notes.events`; whatever else they say of one is theirs.
#[derive(Deserialize)]
struct Noted {
    turn_id: Option<u32>,
    #[serde(default = "target")]
    turn_role: String,
    agent_role: String,
    step_id: Option<u32>,
    #[serde(default)]
    memory_ops: Value,
    step_reward: Option<f32>,
}

fn target() -> String {
    "target".to_owned()
}

/// The events of an episode: those of its `notes.events`, where the study writes such, and one for each call
/// that none of them speaks of. What a call was paid stands where its event says nothing.
///
/// # Errors
/// [`AlignmentError::NoEventType`].
pub fn events_of(episode: &Episode) -> Result<Vec<Event>, AlignmentError> {
    let noted = episode.notes.get("events").and_then(Value::as_array);
    let noted = noted.into_iter().flatten().enumerate();
    let noted = noted
        .map(|(place, event)| {
            Noted::deserialize(event).map_err(|error| AlignmentError::NoEventType {
                episode: episode.id,
                place,
                message: error.to_string(),
            })
        })
        .collect::<Result<Vec<Noted>, _>>()?;
    let said = |step: usize| noted.iter().any(|event| event.step_id == Some(step as u32));
    let of_call = |(step, call): (usize, &Call)| Noted {
        turn_id: call.turn,
        turn_role: target(),
        agent_role: call.role.clone(),
        step_id: Some(step as u32),
        memory_ops: Value::Null,
        step_reward: None,
    };
    let calls = episode.calls.iter().enumerate();
    let unsaid: Vec<Noted> = calls
        .filter(|(step, _)| !said(*step))
        .map(of_call)
        .collect();
    let paid = |step: u32| Some(episode.calls.get(step as usize)?.step_reward? as f32);
    let events = (0..)
        .zip(noted.into_iter().chain(unsaid))
        .map(|(event_id, noted)| Event {
            episode_id: episode.id,
            event_id,
            step_id: noted.step_id,
            turn_id: noted.turn_id,
            turn_role: noted.turn_role,
            agent_role: noted.agent_role,
            memory_ops: noted.memory_ops,
            step_reward: noted.step_reward.or_else(|| paid(noted.step_id?)),
        });
    Ok(events.collect())
}

impl Sidecar {
    /// The events of all episodes of `groups`, graded or not, in their order.
    ///
    /// # Errors
    /// [`AlignmentError::NoEventType`].
    pub fn of(groups: &[Group]) -> Result<Self, AlignmentError> {
        let mut step_meta = Vec::new();
        for episode in groups.iter().flat_map(|group| &group.episodes) {
            step_meta.extend(events_of(episode)?);
        }
        Ok(Self { step_meta })
    }

    /// What every event was paid.
    pub fn step_rewards_ext(&self) -> Vec<EventReward> {
        let reward = |event: &Event| EventReward {
            episode_id: event.episode_id,
            event_id: event.event_id,
            step_id: event.step_id,
            step_reward: event.step_reward,
        };
        self.step_meta.iter().map(reward).collect()
    }

    /// The events that are calls, by their key.
    ///
    /// # Errors
    /// [`AlignmentError::TwoEvents`].
    pub fn by_step(&self) -> Result<BTreeMap<StepKey, &Event>, AlignmentError> {
        let mut found = BTreeMap::new();
        for event in &self.step_meta {
            let Some(step) = event.step_id else { continue };
            let key = StepKey {
                episode: event.episode_id,
                step,
            };
            if found.insert(key, event).is_some() {
                return Err(AlignmentError::TwoEvents { key });
            }
        }
        Ok(found)
    }

    /// Checks that every row of `packed`, wherever it stands and however often, is a step that exactly one
    /// event speaks of, with the same role and turn, and that padding has no sampled token.
    ///
    /// # Errors
    /// The first row or step that is not so.
    pub fn check_alignment(&self, packed: &Packed) -> Result<(), AlignmentError> {
        let events = self.by_step()?;
        for (row, info) in packed.rows.iter().enumerate() {
            let Some(key) = info.key else {
                let mask = packed.response_mask.row(row).iter();
                let sampled = mask.filter(|mask| **mask != 0).count();
                if sampled > 0 {
                    return Err(AlignmentError::SampledPadding { row, sampled });
                }
                continue;
            };
            let event = events.get(&key);
            let event = event.ok_or(AlignmentError::NoEvent { row, key })?;
            if event.agent_role != info.agent_role {
                return Err(AlignmentError::OtherRole {
                    row,
                    key,
                    row_role: info.agent_role.clone(),
                    event_role: event.agent_role.clone(),
                });
            }
            if info.turn.is_some() && event.turn_id != info.turn {
                return Err(AlignmentError::OtherTurn {
                    row,
                    key,
                    row_turn: info.turn,
                    event_turn: event.turn_id,
                });
            }
        }
        Ok(())
    }
}

/// Episodes as `step/group/member`.
mod as_text {
    use record::EpisodeId;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(id: &EpisodeId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<EpisodeId, D::Error> {
        let text = String::deserialize(from)?;
        let mut parts = text.split('/').map(str::parse::<u64>);
        let mut next = || parts.next().and_then(Result::ok);
        let id = (|| {
            Some(EpisodeId {
                step: next()?,
                group: next()?.try_into().ok()?,
                member: next()?.try_into().ok()?,
            })
        })();
        id.ok_or_else(|| D::Error::custom(format!("`{text}` is not step/group/member")))
    }
}
