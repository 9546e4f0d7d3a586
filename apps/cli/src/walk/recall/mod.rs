//! The walk of the recall study: policies are supervised on the calls of a teacher, some of their roles
//! are reinforced by how questions are answered, and all of it is compared with memories that nobody
//! learnt to write.

mod check;
mod evaluate;
mod files;
mod lessons;
mod plan;
mod players;
mod prompts;
mod recipe;
mod reinforce;
mod tasks;

use std::path::Path;

use eval::Evaluated;

use self::recipe::Recipe;
use super::{Again, Common, Engines, Frame, StudyWalk};
use crate::{failure::Outcome, plan::Plan};

pub(super) struct RecallWalk;

impl StudyWalk for RecallWalk {
    const NAME: &'static str = "recall";
    type Recipe = Recipe;
    /// No program is run: there is nothing beside the engines.
    type Instruments = Engines;

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
        files::tasks_of_files(recipe).map(|_| ())
    }

    fn start(recipe: &Recipe) -> Outcome<Engines> {
        Engines::start(recipe.threads)
    }

    fn train(frame: &Frame<'_>, recipe: &Recipe, _engines: &Engines) -> Outcome<()> {
        RecallRun { frame, recipe }.train()
    }

    fn evaluate(again: &Again<'_>, recipe: &Recipe) -> Outcome<Vec<Evaluated>> {
        evaluate::again(again, recipe)
    }

    fn line(recipe: &Recipe, evaluated: &Evaluated) -> String {
        evaluate::line(recipe, evaluated)
    }

    fn plan(recipe: &Recipe, plan: &mut Plan) -> Outcome<()> {
        plan::add(recipe, plan)
    }
}

/// A run on its way.
struct RecallRun<'a> {
    frame: &'a Frame<'a>,
    recipe: &'a Recipe,
}

impl RecallRun<'_> {
    fn train(&self) -> Outcome<()> {
        let sets = self.tasks()?;
        let chats = self.vocabulary(&sets)?;
        self.check_prompts(&sets, &chats)?;
        let supervised = self.supervised(&chats)?;
        self.evaluate_before(&sets, &chats, &supervised)?;
        let trained = self.reinforce(&sets, &chats, &supervised)?;
        self.evaluate_after(&sets, &chats, &trained)
    }
}
