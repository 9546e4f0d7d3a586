//! One round: a program is criticised, once or by several critiques that vote, and revised.

use std::collections::BTreeMap;

use rand::RngExt;
use record::{Episode, Estimate, Fault, Group, Seed};
use rollout::{Cx, Played, Study};
use serde::{Deserialize, Serialize};

use crate::{
    format::{Judgment, majority},
    play::{Criticism, Next, criticise, criticise_with_hint, follow},
    study::Critique,
    task::Task,
};

/// The critique study as one round of a forest.
pub struct Round {
    /// Its judge and its gate.
    pub critique: Critique,
    /// Critiques of each program, of which the judgment of the majority holds and one that shares it is followed,
    /// picked by the episode's own stream. At least 1.
    pub votes: u32,
    /// Programs that are found correct stay as they are, and are criticised no more.
    pub stop_at_correct: bool,
    /// The critic is told what running the program gave, expected values and all: a baseline that bounds what running
    /// programs could tell.
    pub hinted: bool,
}

/// What several critiques of one program judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Votes {
    pub correct: usize,
    pub incorrect: usize,
    /// Critiques that the gate refused; they have no vote.
    pub unreadable: usize,
}

impl Study for Round {
    type Task = Task;

    async fn play<'a>(&'a self, task: &'a Task, cx: &'a mut Cx) -> Result<Played, Fault> {
        let Critique { judge, reward, .. } = &self.critique;
        let mut critiques = Vec::new();
        for _ in 0..self.votes.max(1) {
            let criticism = if self.hinted {
                criticise_with_hint(judge, reward.gate, task, cx).await?
            } else {
                Some(criticise(reward.gate, task, cx).await?)
            };
            match criticism {
                Some(criticism) => critiques.push(criticism),
                None => {
                    let nothing = (Criticism::nothing(), None);
                    return follow(judge, reward, task, nothing, Next::Keep, cx).await;
                }
            }
        }
        let votes = (critiques.len() > 1).then(|| Votes::of(&critiques));
        let criticism = followed(critiques, cx.seed("vote"));
        let stops = self.stop_at_correct && criticism.judgment == Some(Judgment::Correct);
        let next = if stops { Next::Keep } else { Next::Revise };
        follow(judge, reward, task, (criticism, votes), next, cx).await
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        self.critique.counters()
    }

    fn step_metrics(
        &self,
        groups: &[Group],
        counted: &BTreeMap<String, f64>,
    ) -> BTreeMap<String, f64> {
        self.critique.step_metrics(groups, counted)
    }

    fn evaluation_metrics(&self, groups: &[Group]) -> BTreeMap<String, Estimate> {
        self.critique.evaluation_metrics(groups)
    }

    fn replay(&self, episode: &Episode) {
        self.critique.replay(episode);
    }
}

impl Votes {
    fn of(critiques: &[Criticism]) -> Self {
        let count = |judgment| {
            let judged = critiques.iter().filter(|one| one.judgment == judgment);
            judged.count()
        };
        Self {
            correct: count(Some(Judgment::Correct)),
            incorrect: count(Some(Judgment::Incorrect)),
            unreadable: count(None),
        }
    }
}

/// One of the critiques that judge as the majority does; any of them where none can be read.
fn followed(mut critiques: Vec<Criticism>, seed: Seed) -> Criticism {
    let judgments: Vec<Judgment> = critiques.iter().filter_map(|one| one.judgment).collect();
    if !judgments.is_empty() {
        let holds = majority(&judgments);
        // A tie is Incorrect, so somebody has said it.
        critiques.retain(|one| one.judgment == Some(holds));
    }
    let place = match critiques.len() {
        1 => 0,
        n => seed.rng().random_range(0..n),
    };
    critiques.swap_remove(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Judgment::{Correct, Incorrect};

    fn said(judgments: &[Option<Judgment>]) -> Vec<Criticism> {
        let one = |(at, judgment): (usize, &Option<Judgment>)| Criticism {
            text: at.to_string(),
            judgment: *judgment,
        };
        judgments.iter().enumerate().map(one).collect()
    }

    fn picks(judgments: &[Option<Judgment>]) -> Vec<String> {
        let mut picks: Vec<String> = (0..64)
            .map(|seed| followed(said(judgments), Seed(seed)).text)
            .collect();
        picks.sort();
        picks.dedup();
        picks
    }

    #[test]
    fn a_critique_of_the_majority_is_followed() {
        let two_of_three = [Some(Correct), Some(Incorrect), Some(Correct)];
        assert_eq!(picks(&two_of_three), ["0", "2"]);
        // Golden vector of the spec, section 11: two against two is Incorrect.
        let tie = [
            Some(Correct),
            Some(Correct),
            Some(Incorrect),
            Some(Incorrect),
        ];
        assert_eq!(picks(&tie), ["2", "3"]);
    }

    #[test]
    fn what_cannot_be_read_has_no_vote_and_is_followed_only_where_nothing_can() {
        assert_eq!(picks(&[None, Some(Correct), None]), ["1"]);
        assert_eq!(picks(&[None, None]), ["0", "1"]);
        assert_eq!(
            Votes::of(&said(&[None, Some(Correct), Some(Incorrect), None])),
            Votes {
                correct: 1,
                incorrect: 1,
                unreadable: 2
            }
        );
    }
}
