//! Patches that somebody predicts, as files of SWE-bench have them (spec of the repair study, section 11.1).

use std::{collections::BTreeMap, path::Path};

use dataset::{DatasetError, RowErrors};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::adapters::{Record, records};

/// A patch for an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    pub instance_id: String,
    /// Who made it; the name of a folder, with `/` as `__`.
    #[serde(default = "nobody")]
    pub model_name_or_path: String,
    /// A unified diff. None or an empty one is counted, not run.
    pub model_patch: Option<String>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

fn nobody() -> String {
    "None".to_owned()
}

impl Prediction {
    pub fn is_empty(&self) -> bool {
        self.model_patch.as_deref().is_none_or(str::is_empty)
    }
}

/// Predictions by instance, of a list, an object by instance or JSON Lines.
///
/// # Errors
/// A file that cannot be read, and every row that is no prediction or predicts for an instance again.
pub fn read_predictions(path: &Path) -> Result<BTreeMap<String, Prediction>, DatasetError> {
    let mut predictions: BTreeMap<String, Prediction> = BTreeMap::new();
    let mut errors = RowErrors::new(50);
    let mut add = |record: &Record| {
        let prediction: Prediction = record.parse()?;
        let id = prediction.instance_id.clone();
        match predictions.insert(id.clone(), prediction) {
            None => Ok(()),
            Some(_) => Err(record.error(
                "instance_id",
                format!("`{id}` is predicted for a second time"),
            )),
        }
    };
    for record in records(path, "instance_id")? {
        if let Err(error) = add(&record?) {
            errors.push(error);
        }
    }
    match predictions.is_empty() && errors.is_empty() {
        true => Err(DatasetError::Empty {
            path: path.to_owned(),
        }),
        false => Ok(errors.or(predictions)?),
    }
}
