//! The walk of the critique study: a critic is supervised and reinforced, its reviser stays frozen, and
//! the tests of programs in a sandbox judge both.

mod check;
mod contenders;
mod eval_settings;
mod evaluate;
mod gates;
mod instruments;
mod lessons;
mod pairs;
mod plan;
mod prompts;
mod recipe;
mod reinforce;
mod rounds;
mod suspects;
mod tasks;
mod vocabulary;

use std::path::Path;

use critique::{CRITIC, REVISER};
use eval::Evaluated;

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
struct CritiqueRun<'a> {
    frame: &'a Frame<'a>,
    recipe: &'a Recipe,
    instruments: &'a Instruments,
}

impl CritiqueRun<'_> {
    fn train(&self) -> Outcome<()> {
        let sets = self.tasks()?;
        let chats = self.vocabulary()?;
        self.check_prompts(&sets, &chats)?;
        let critic = self.supervised_critic(chats.of(CRITIC)?)?;
        let reviser = self.supervised_reviser(chats.of(REVISER)?)?;
        let no_critique = self.evaluate_before(&sets, &chats, &critic, &reviser)?;
        let trained = self.reinforce(&sets, &chats, &critic, &reviser)?;
        self.note_suspects(&sets)?;
        self.evaluate_after(&sets, &chats, &trained, &reviser, no_critique.as_deref())
    }
}
