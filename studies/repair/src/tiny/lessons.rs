//! Lessons: what a planner is asked, and what a teacher answers in the planner's wire format.

use std::fmt;

use record::{Message, Seed};

use super::{teacher::Mix, world::World};
use crate::{
    RepairConfig,
    action::{Action, ActionKind},
    environment::{CountTokens, first_observation, highest_suspicion},
    planner::{messages, pointing_at},
    wire::write,
};

/// One row to learn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    pub prompt: Vec<Message>,
    pub answer: String,
}

/// All lessons of one teacher.
pub struct Lessons {
    config: RepairConfig,
    count: CountTokens,
    mix: Mix,
    seed: Seed,
    world: World,
}

impl fmt::Debug for Lessons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lessons")
            .field("mix", &self.mix)
            .finish_non_exhaustive()
    }
}

impl Lessons {
    /// Observations are those of `config`'s environment in tokens of `count`.
    pub fn new(config: &RepairConfig, count: CountTokens, mix: Mix, seed: Seed) -> Self {
        Self {
            config: config.clone(),
            count,
            mix,
            seed,
            world: World::new(),
        }
    }

    /// The lesson of this number: always the same.
    pub fn lesson(&self, index: u64) -> Lesson {
        let mut rng = self.seed.stream("lesson", index).rng();
        let observed = &self.config.environment.observation;
        let (suspects, issue) = self.world.draw(observed.suspects, &mut rng);
        let observation = first_observation(observed, &issue, &suspects, &self.count);
        let drawn = self.mix.draw(&mut rng);
        let place = drawn.point(&suspects, &mut rng);
        let action = match place {
            Some(place) => {
                let told = suspects[place].told(highest_suspicion(&suspects));
                let action = Action::new(ActionKind::Repair(pointing_at(place + 1)));
                action.thinking(drawn.words(told, place + 1))
            }
            None => Action::new(ActionKind::Submit),
        };
        Lesson {
            prompt: messages(&self.config.planner, "", &observation),
            answer: write(&action, self.config.planner.format),
        }
    }
}
