//! The walk of the repair study: planners and patch models are evaluated on checkouts with failing tests, and
//! a planner that is trained here learns from what its plans lead to.

mod check;
mod evaluate;
mod instruments;
mod lessons;
mod plan;
mod players;
mod recipe;
mod reinforce;
mod tasks;

use std::path::Path;

use eval::Evaluated;

use self::{instruments::Instruments, recipe::Recipe};
use super::{Again, Common, Frame, StudyWalk};
use crate::{failure::Outcome, plan::Plan};

pub(crate) use players::{bare_testbeds, testbeds};

pub(super) struct RepairWalk;

impl StudyWalk for RepairWalk {
    const NAME: &'static str = "repair";
    type Recipe = Recipe;
    type Instruments = Instruments;

    fn amend(recipe: &mut Recipe, place: &Path) {
        recipe.amend(place);
    }

    fn common(recipe: &Recipe) -> Common<'_> {
        recipe.common()
    }

    fn check(recipe: &Recipe) -> anyhow::Result<()> {
        recipe.check()
    }

    fn check_files(recipe: &Recipe) -> Outcome<()> {
        tasks::tasks_of(recipe, |package| Ok(package.name.into())).map(|_| ())
    }

    fn start(recipe: &Recipe) -> Outcome<Instruments> {
        Instruments::start(recipe)
    }

    fn train(frame: &Frame<'_>, recipe: &Recipe, instruments: &Instruments) -> Outcome<()> {
        let run = RepairRun {
            frame,
            recipe,
            instruments,
        };
        run.walk()
    }

    fn only_evaluates(recipe: &Recipe) -> bool {
        !recipe.trains()
    }

    fn evaluate(again: &Again<'_>, recipe: &Recipe) -> Outcome<Vec<Evaluated>> {
        evaluate::again(again, recipe)
    }

    fn line(_recipe: &Recipe, evaluated: &Evaluated) -> String {
        evaluate::line(evaluated)
    }

    fn plan(recipe: &Recipe, plan: &mut Plan) -> Outcome<()> {
        plan::add(recipe, plan)
    }
}

/// A run on its way.
struct RepairRun<'a> {
    frame: &'a Frame<'a>,
    recipe: &'a Recipe,
    instruments: &'a Instruments,
}

impl RepairRun<'_> {
    fn walk(&self) -> Outcome<()> {
        let sets = self.tasks()?;
        let chats = self.vocabulary(&sets)?;
        let models = self.supervised(&chats)?;
        if !self.recipe.trains() {
            return self.evaluate_alone(&sets, &chats, &models);
        }
        self.evaluate_before(&sets, &chats, &models)?;
        if self.recipe.rl.is_none() {
            return Ok(());
        }
        let trained = self.reinforce(&sets, &chats, &models)?;
        self.evaluate_after(&sets, &chats, &trained)
    }
}
