//! What a report is made from: a run, read and in memory.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use journal::{Replay, RunReader};
use record::Group;

/// A run as its report sees it.
#[derive(Clone, Debug, Default)]
pub struct RunView {
    /// The run directory.
    pub path: PathBuf,
    pub replay: Replay,
    /// The resolved recipe; empty when it could not be read.
    pub recipe: String,
    /// Episodes by evaluation name, where the evaluation kept them.
    pub episodes: BTreeMap<String, Vec<Group>>,
    /// What could not be read. The report says it and shows the rest.
    pub problems: Vec<String>,
}

impl RunView {
    /// Reads a run, finished or not.
    ///
    /// # Errors
    /// Only when there is no readable journal; other missing parts become [`Self::problems`].
    pub fn load(path: &Path) -> journal::Result<Self> {
        let reader = RunReader::open(path)?;
        let mut view = Self {
            path: path.to_owned(),
            replay: reader.replay().clone(),
            ..Self::default()
        };
        match reader.recipe() {
            Ok(recipe) => view.recipe = recipe,
            Err(error) => view.problems.push(error.to_string()),
        }
        for evaluation in reader.replay().evaluations() {
            let Some(reference) = &evaluation.episodes else {
                continue;
            };
            match reader.read_episodes(reference) {
                Ok(groups) => {
                    view.episodes.insert(evaluation.name.clone(), groups);
                }
                Err(error) => view.problems.push(error.to_string()),
            }
        }
        Ok(view)
    }
}
