//! Rewards of single steps: a registry of pure functions of what an episode did (spec of the recall study,
//! section 4.3).
//!
//! Each scores the calls that it concerns and leaves the others unscored, which is not 0: an unscored call is
//! left out of the group that its advantage is computed in. All are better the higher they are.

mod content;
mod credit;
mod rules;
mod view;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Notes};
use view::View;

/// Which step rewards there are and what they weigh: `format = { weight = 0.1, clip = [-1.0, 1.0] }`. Those
/// that are left out are not computed.
///
/// *Memory calls* are calls that no answer was asked of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepRewards {
    /// Memory calls: share of the operations asked for that were done. Noops count as done, duplicates that
    /// were skipped do not, and a call that asks for nothing has 0 (Mem-alpha's r2); of `fact_split`, whether
    /// all of it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Weighing>,
    /// Memory calls that write facts: minus the share of the writes that were there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Weighing>,
    /// Memory calls: 1 - tokens of the memory at the end / tokens of what was read, between -1 and 1
    /// (Mem-alpha's r3); 0 where no answer earned anything, or an empty memory would earn it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<Weighing>,
    /// Memory calls that change something: share of the changes that are sound by rule. A deletion is judged
    /// by what it removed (Mem-alpha's r4, in which deletions have 0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Weighing>,
    /// Memory calls: mean grade of questions about what was read in the turn, answered from the memory
    /// (Fine-Mem's chunk reward). Of [`Given::chunk_qa`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_qa: Option<ChunkQa>,
    /// Memory calls that can write facts: credit for the answers that saw them (Fine-Mem). With `n` questions,
    /// `s_j` the score of the j-th answer and `M_j` the facts that it was shown, a call earns
    /// `s_j / (|M_j| n)` for every fact in `M_j` that it created, also after updates; `fact_split` earns what
    /// its turn does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Weighing>,
    /// Memory calls: how much of the surprise at the gold answers the memory took away, over the questions
    /// whose answers earned something, between -1 and 1 (after InfoMem). Of [`Given::likelihoods`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info_gain: Option<Weighing>,
    /// Memory calls in turns that answers follow from: share of that evidence that was retrieved when its
    /// question came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrievability: Option<Weighing>,
    /// `fact_split`: minus the share of `long_mem`'s decisions in the turn that nothing need be done about
    /// what was called important.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noop_feedback: Option<Weighing>,
    /// Memory calls that write facts: mean share of a fact's words that were read in the turn, or stood in
    /// the fact before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faithfulness: Option<Weighing>,
    /// All calls: 0 up to `words` words, then minus the excess as a share of `words`, at least -1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Length>,
    /// Answers: their own score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Weighing>,
}

/// What a step reward weighs in the sum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighing {
    pub weight: f64,
    /// Bounds that it is cut to before it is weighed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
}

/// [`Weighing`] of `chunk_qa`, and which questions it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkQa {
    pub weight: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// Whether the questions that tasks have about single turns are asked right behind each, of the role
    /// `chunk_qa`. Without it, those of the episode's own questions count whose evidence all lies in one turn,
    /// with the grades that their answers have at the end, which costs no calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ask: bool,
}

/// [`Weighing`] of `length`, with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Length {
    pub weight: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// Above 0.
    pub words: u32,
}

/// What step rewards need that only a model can tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Given {
    /// By history turn: the grades, between 0 and 1, of answers from the memory after the turn to questions
    /// about what was read in it.
    pub chunk_qa: BTreeMap<u32, Vec<f64>>,
    /// By target turn.
    pub likelihoods: BTreeMap<u32, Likelihoods>,
}

impl Given {
    /// What the notes of an episode give: of chunk questions as [`ChunkQa::ask`] says, the likelihoods of its
    /// grades.
    pub fn of_notes(rewards: &StepRewards, notes: &Notes) -> Self {
        let mut chunk_qa: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let asked = rewards.asks_about_chunks();
        for answer in notes.chunk_answers.iter().filter(|_| asked) {
            let grades = chunk_qa.entry(answer.turn_id).or_default();
            grades.push(answer.grade.score);
        }
        let mut likelihoods = BTreeMap::new();
        for event in &notes.events {
            let Some(grade) = &event.grade else { continue };
            likelihoods.extend(grade.likelihoods.map(|found| (event.turn_id, found)));
            let mut turns = grade.evidence.iter().map(|evidence| evidence.turn_id);
            if !asked
                && let Some(turn_id) = turns.next()
                && turns.all(|other| other == turn_id)
            {
                chunk_qa.entry(turn_id).or_default().push(grade.score);
            }
        }
        Self {
            chunk_qa,
            likelihoods,
        }
    }
}

/// Log-likelihoods of a gold answer, means over its tokens, so never above 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Likelihoods {
    /// After the prompt that the memory made.
    pub with_memory: f64,
    /// After the same prompt with an empty memory.
    pub without_memory: f64,
}

/// A setting that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadStepReward {
    #[error("step reward `{name}`: weight {weight} is not a finite number")]
    Weight { name: &'static str, weight: f64 },
    #[error(
        "step reward `{name}`: clip [{low}, {high}] holds no number; write the lower bound first"
    )]
    Clip {
        name: &'static str,
        low: f64,
        high: f64,
    },
    #[error("step reward `length`: words is 0; say how many words are free")]
    Words,
}

/// Scores every call of an episode: its `step_rewards` are what each reward that concerns it says, cut to its
/// bounds, and its `step_reward` their weighted sum. Where none does, both stay empty; rules are never scored.
pub fn score(rewards: &StepRewards, notes: &mut Notes, given: &Given) {
    let scored: Vec<BTreeMap<String, f64>> = {
        let view = View::of(notes);
        let calls = notes.events.iter().enumerate();
        calls
            .map(|(index, event)| match &event.response {
                Some(_) => scores(rewards, &view, given, index, event),
                None => BTreeMap::new(),
            })
            .collect()
    };
    let weights: BTreeMap<&str, f64> = rewards
        .chosen()
        .map(|(name, weighing)| (name, weighing.weight))
        .collect();
    for (event, scores) in notes.events.iter_mut().zip(scored) {
        let weighed = scores
            .iter()
            .filter_map(|(name, score)| Some(weights.get(name.as_str())? * score));
        event.step_reward = (!scores.is_empty()).then(|| weighed.sum());
        event.step_rewards = scores;
    }
}

fn scores(
    rewards: &StepRewards,
    view: &View<'_>,
    given: &Given,
    index: usize,
    event: &Event,
) -> BTreeMap<String, f64> {
    let mut scores = BTreeMap::new();
    for (name, weighing) in rewards.chosen() {
        let score = match name {
            "format" => rules::format(event),
            "duplicate" => rules::duplicate(event),
            "compression" => rules::compression(view, event),
            "content" => content::content(view, event),
            "chunk_qa" => credit::chunk_qa(&given.chunk_qa, event),
            "evidence" => credit::evidence(view, index, event),
            "info_gain" => credit::info_gain(view, &given.likelihoods, event),
            "retrievability" => credit::retrievability(view, event),
            "noop_feedback" => rules::noop_feedback(view, event),
            "faithfulness" => content::faithfulness(view, event),
            "length" => rewards
                .length
                .and_then(|length| rules::length(event, length.words)),
            "answer" => event.grade.as_ref().map(|grade| grade.score),
            _ => None,
        };
        let clipped = score.map(|score| match weighing.clip {
            Some([low, high]) => score.max(low).min(high),
            None => score,
        });
        scores.extend(clipped.map(|score| (name.to_owned(), score)));
    }
    scores
}

impl StepRewards {
    pub fn is_empty(&self) -> bool {
        self.chosen().next().is_none()
    }

    /// Whether `chunk_qa` is made of questions that are asked for it.
    pub fn asks_about_chunks(&self) -> bool {
        self.chunk_qa.is_some_and(|chunk_qa| chunk_qa.ask)
    }

    /// Those that are to be computed, by name.
    pub fn chosen(&self) -> impl Iterator<Item = (&'static str, Weighing)> {
        let length = self.length.map(|length| Weighing {
            weight: length.weight,
            clip: length.clip,
        });
        let chunk_qa = self.chunk_qa.map(|chunk_qa| Weighing {
            weight: chunk_qa.weight,
            clip: chunk_qa.clip,
        });
        [
            ("format", self.format),
            ("duplicate", self.duplicate),
            ("compression", self.compression),
            ("content", self.content),
            ("chunk_qa", chunk_qa),
            ("evidence", self.evidence),
            ("info_gain", self.info_gain),
            ("retrievability", self.retrievability),
            ("noop_feedback", self.noop_feedback),
            ("faithfulness", self.faithfulness),
            ("length", length),
            ("answer", self.answer),
        ]
        .into_iter()
        .filter_map(|(name, weighing)| Some((name, weighing?)))
    }

    /// # Errors
    ///
    /// A weight that is no number, bounds the wrong way round, a limit of 0 words.
    pub fn check(&self) -> Result<(), BadStepReward> {
        for (name, Weighing { weight, clip }) in self.chosen() {
            if !weight.is_finite() {
                return Err(BadStepReward::Weight { name, weight });
            }
            match clip {
                Some([low, high]) if low.is_nan() || high.is_nan() || low > high => {
                    return Err(BadStepReward::Clip { name, low, high });
                }
                _ => {}
            }
        }
        match self.length {
            Some(length) if length.words == 0 => Err(BadStepReward::Words),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
