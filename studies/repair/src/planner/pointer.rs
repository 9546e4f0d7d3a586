//! Planners that point at one suspect after the other: what a planner that learns to point is compared with.

use rand::seq::SliceRandom;
use record::Seed;

use super::Choice;
use crate::{
    action::{Action, ActionKind, RepairAction},
    environment::PlannerEnv,
    wire::Reply,
};

/// What is said to the patch model: where is all that these planners know.
pub(crate) const PLAN: &str = "mend it";

#[derive(Debug)]
pub struct PointingPlanner {
    /// `None` for the order of suspicion.
    drawn: Option<Seed>,
    /// The suspects in the order in which they are pointed at, from 0, and how many were.
    order: Option<Vec<usize>>,
    done: usize,
}

impl PointingPlanner {
    pub(super) fn by_suspicion() -> Self {
        Self {
            drawn: None,
            order: None,
            done: 0,
        }
    }

    pub(super) fn by_chance(seed: Seed) -> Self {
        Self {
            drawn: Some(seed),
            ..Self::by_suspicion()
        }
    }

    pub(super) fn next(&mut self, env: &PlannerEnv<'_>) -> Choice {
        let drawn = self.drawn;
        let order = self.order.get_or_insert_with(|| order(drawn, env));
        let next = order.get(self.done);
        self.done += 1;
        let kind = match next {
            Some(place) => ActionKind::Repair(pointing_at(place + 1)),
            None => ActionKind::Submit,
        };
        Choice {
            reply: Reply::of(Action::new(kind)),
            text: None,
            call: None,
            fallback: None,
            gives_up: next.is_none(),
        }
    }
}

/// A repair of the suspect with this number.
pub(crate) fn pointing_at(number: usize) -> RepairAction {
    RepairAction {
        plan: vec![PLAN.to_owned()],
        focus_ids: vec![number.to_string()],
        ..RepairAction::default()
    }
}

fn order(drawn: Option<Seed>, env: &PlannerEnv<'_>) -> Vec<usize> {
    let suspects = env.sources().suspects();
    let mut order: Vec<usize> = (0..suspects.len()).collect();
    match drawn {
        None => {
            order.sort_by(|a, b| suspects[*b].suspicion.total_cmp(&suspects[*a].suspicion));
        }
        Some(seed) => order.shuffle(&mut seed.rng()),
    }
    order
}
