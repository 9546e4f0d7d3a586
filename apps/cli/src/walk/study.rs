//! What a study brings to the walk, and which studies there are.

use std::path::{Path, PathBuf};

use ::train::Stop;
use eval::Evaluated;
use journal::{Replay, RunDir, RunReader};
use recipe::{RecipeError, Resolved};
use rollout::Study;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned, de::Error};

use super::{
    Engines, Frame,
    critique::{CritiqueWalk, DeclaredPlan},
    evaluate::Played,
    recall::RecallWalk,
    repair::RepairWalk,
    settings::Common,
};
use crate::{
    args::{EvalArgs, PlanArgs, TrainArgs},
    evaluate,
    failure::{Classify, Failure, Outcome},
    plan::{self, Plan},
    screen::Screen,
    train,
};

/// Every study, under the name that `study = "…"` of a recipe has for it.
static STUDIES: [Commands; 3] = [
    Commands::of::<CritiqueWalk>(),
    Commands::of::<RecallWalk>(),
    Commands::of::<RepairWalk>(),
];

/// One study's walk from a recipe to a report.
pub(crate) trait StudyWalk: 'static {
    /// What recipes and runs call the study.
    const NAME: &'static str;
    /// The recipe, with its defaults filled in.
    type Recipe: DeserializeOwned + Serialize;
    /// What is started once a process for the study to play with.
    type Instruments: AsRef<Engines>;

    /// What the recipe says relative to its own place is taken from `place` on.
    fn amend(recipe: &mut Self::Recipe, place: &Path);

    /// What recipes of all studies say.
    fn common(recipe: &Self::Recipe) -> Common<'_>;

    /// Checks what types cannot say, before anything is done.
    fn check(recipe: &Self::Recipe) -> anyhow::Result<()>;

    /// Reads the files that a recipe names, so that a bad one is refused before anything is done.
    fn check_files(recipe: &Self::Recipe) -> Outcome<()>;

    /// Starts everything that the recipe needs, or says what this machine lacks.
    fn start(recipe: &Self::Recipe) -> Outcome<Self::Instruments>;

    /// Walks to the end of the recipe, apart from the report.
    fn train(
        frame: &Frame<'_>,
        recipe: &Self::Recipe,
        instruments: &Self::Instruments,
    ) -> Outcome<()>;

    /// The recipe has nothing to train, so that `etude eval` can begin a run of it.
    fn only_evaluates(_recipe: &Self::Recipe) -> bool {
        false
    }

    /// Plays evaluations of a run again.
    fn evaluate(again: &Again<'_>, recipe: &Self::Recipe) -> Outcome<Vec<Evaluated>>;

    /// An evaluation in one line.
    fn line(recipe: &Self::Recipe, evaluated: &Evaluated) -> String;

    /// What the recipe would do with models that it declares and that are not here; `None` where it can be planned by
    /// trying.
    ///
    /// # Errors
    /// What is wrong with the recipe, models and files apart.
    fn declared(_recipe: &Self::Recipe) -> anyhow::Result<Option<DeclaredPlan>> {
        Ok(None)
    }

    /// Adds the study's models and phases to a plan.
    fn plan(recipe: &Self::Recipe, plan: &mut Plan) -> Outcome<()>;
}

/// A run whose evaluations are to be played again.
pub(crate) struct Again<'a> {
    pub(crate) args: &'a EvalArgs,
    pub(crate) reader: &'a RunReader,
    pub(crate) screen: Screen,
    pub(crate) stop: &'a Stop,
    /// The file of the tasks.
    pub(crate) tasks: PathBuf,
}

impl Again<'_> {
    /// Plays one evaluation; `done` says it to people.
    pub(crate) fn play<S: Study>(
        &self,
        suite: &Played<'_, S>,
        engines: &Engines,
        done: impl FnOnce() -> String,
    ) -> Outcome<Evaluated> {
        let work = self.screen.work(suite.name, suite.episodes());
        let played = suite.play(engines, self.stop, |done| work.at(done))?;
        // Of a run that is evaluated again nothing is kept.
        let evaluated = played.ok_or(Failure::Stopped)?;
        work.done(done());
        Ok(evaluated)
    }
}

/// The commands that read a recipe, for one study.
pub(crate) struct Commands {
    name: &'static str,
    pub(crate) train: fn(&Path, &TrainArgs, Screen) -> Outcome<()>,
    pub(crate) resume: fn((RunDir, Replay), &str, &TrainArgs, Screen) -> Outcome<()>,
    pub(crate) evaluate: fn(&EvalArgs, &RunReader, Screen) -> Outcome<()>,
    pub(crate) plan: fn(&PlanArgs) -> Outcome<()>,
    /// Whether a recipe has nothing to train.
    pub(crate) only_evaluates: fn(&Path, &[String]) -> Outcome<bool>,
}

impl Commands {
    const fn of<W: StudyWalk>() -> Self {
        Self {
            name: W::NAME,
            train: train::begin::<W>,
            resume: train::resume::<W>,
            evaluate: evaluate::again::<W>,
            plan: plan::of_recipe::<W>,
            only_evaluates: |path, set| Ok(W::only_evaluates(&load::<W>(path, set).asked()?.value)),
        }
    }

    /// Those of the study that the recipe at `path` names.
    pub(crate) fn of_recipe(path: &Path, set: &[String]) -> Outcome<&'static Self> {
        Ok(recipe::load::<Named>(path, set).asked()?.value.study.0)
    }

    /// Those of the study that the run in `directory` was begun for, whose recipe is `text`.
    pub(crate) fn of_run(directory: &Path, text: &str) -> Outcome<&'static Self> {
        let origin = directory.join("recipe.toml").display().to_string();
        let named = recipe::resolve::<Named>(text, &origin, &[]).asked()?;
        Ok(named.value.study.0)
    }
}

/// Reads the recipe of a study at `path`.
pub(crate) fn load<W: StudyWalk>(
    path: &Path,
    set: &[String],
) -> Result<Resolved<W::Recipe>, RecipeError> {
    let place = path.parent().unwrap_or(Path::new(""));
    recipe::load_amended(path, set, |recipe| W::amend(recipe, place))
}

/// The one key of a recipe that all studies read.
#[derive(Deserialize, Serialize)]
struct Named {
    study: StudyOf,
}

struct StudyOf(&'static Commands);

impl<'de> Deserialize<'de> for StudyOf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = STUDIES.iter().find(|study| study.name == name);
        found
            .map(Self)
            .ok_or_else(|| D::Error::custom(unknown(&name)))
    }
}

/// In serde's words, which the reader of recipes adds the nearest name to.
fn unknown(name: &str) -> String {
    let known: Vec<String> = STUDIES
        .iter()
        .map(|study| format!("`{}`", study.name))
        .collect();
    if name == super::critique::synthesize::STUDY {
        return "the folder is one of `etude data synthesize`: the command that began it goes on with it, and it is no \
                recipe"
            .to_owned();
    }
    format!(
        "unknown variant `{name}`, expected one of {}",
        known.join(", ")
    )
}

impl Serialize for StudyOf {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name)
    }
}
