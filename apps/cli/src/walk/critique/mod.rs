//! The walk of the critique study: a critic is supervised and reinforced, its reviser stays frozen, and
//! the tests of programs in a sandbox judge both.

mod check;
mod contenders;
mod critiques;
mod declared;
mod eval_settings;
mod evaluate;
mod gates;
mod instruments;
mod lessons;
mod pairs;
mod plan;
mod players;
mod prompts;
mod recipe;
mod reinforce;
mod role;
mod rounds;
mod suspects;
pub(crate) mod synthesize;
mod tasks;
mod vocabulary;

use std::path::Path;

use eval::Evaluated;

pub(crate) use self::declared::DeclaredPlan;
use self::{instruments::Instruments, recipe::Recipe};
use super::{Again, Common, Frame, StudyWalk};
use crate::{failure::Outcome, plan::Plan};

pub(super) struct CritiqueWalk;

impl StudyWalk for CritiqueWalk {
    const NAME: &'static str = "critique";
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
        tasks::check_files(recipe)
    }

    fn start(recipe: &Recipe) -> Outcome<Instruments> {
        Instruments::start(recipe)
    }

    fn train(frame: &Frame<'_>, recipe: &Recipe, instruments: &Instruments) -> Outcome<()> {
        let run = CritiqueRun {
            frame,
            recipe,
            instruments,
        };
        run.train()
    }

    fn only_evaluates(recipe: &Recipe) -> bool {
        recipe.only_evaluates()
    }

    fn evaluate(again: &Again<'_>, recipe: &Recipe) -> Outcome<Vec<Evaluated>> {
        evaluate::again(again, recipe)
    }

    fn line(_recipe: &Recipe, evaluated: &Evaluated) -> String {
        evaluate::line(evaluated)
    }

    fn declared(recipe: &Recipe) -> anyhow::Result<Option<DeclaredPlan>> {
        recipe.check_declared()?;
        let plan = declared::plan(recipe);
        if plan.is_some() {
            recipe.check_sizes_declared()?;
        }
        Ok(plan)
    }

    fn plan(recipe: &Recipe, plan: &mut Plan) -> Outcome<()> {
        plan::add(recipe, plan)
    }
}

/// A run on its way.
struct CritiqueRun<'a> {
    frame: &'a Frame<'a>,
    recipe: &'a Recipe,
    instruments: &'a Instruments,
}

impl CritiqueRun<'_> {
    fn train(&self) -> Outcome<()> {
        let sets = self.tasks()?;
        let chats = self.vocabulary()?;
        let sets = self.fitting(sets, &chats)?;
        let critic = self.supervised_critic(&chats)?;
        let reviser = self.supervised_reviser(&chats)?;
        let generator = self.supervised_generator(&chats)?;
        let no_critique = self.evaluate_before(&sets, &chats, (&critic, &reviser), &generator)?;
        let Some(trained) = self.reinforce(&sets, &chats, &critic, &reviser)? else {
            return Ok(());
        };
        self.note_suspects(&sets)?;
        self.evaluate_after(&sets, &chats, &trained, &reviser, no_critique.as_deref())
    }
}
