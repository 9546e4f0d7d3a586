//! What lies in a model directory, and everything that is wrong with it, without the model in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use safetensors::tensor::TensorView;

use super::{
    Files, WeightFile, check_shape, check_tied_head, is_spare, read_values, sorted, weight_files,
};
use crate::{
    LoraConfig, Model, ModelConfig, ModelError,
    layout::{Layout, Tensor},
    lora,
};

/// The weights of a directory in the Hugging Face layout as they are stored.
#[derive(Debug, Default)]
pub struct Survey {
    /// Of an adapter, the base's. Absent when `config.json` cannot be used.
    pub config: Option<ModelConfig>,
    /// Of an adapter, the directory of its base.
    pub base: Option<PathBuf>,
    /// Present for adapters that fit their base.
    pub adapter: Option<StoredAdapter>,
    /// Of an adapter, its base's.
    pub files: Vec<StoredFile>,
    /// All that keeps the model from being loaded; none when it can be.
    pub problems: Vec<ModelError>,
}

/// An adapter as `peft` stores it.
#[derive(Debug)]
pub struct StoredAdapter {
    pub config: LoraConfig,
    pub parameters: usize,
}

/// One file of weights.
#[derive(Debug)]
pub struct StoredFile {
    pub path: PathBuf,
    pub bytes: u64,
    pub tensors: usize,
    /// Numbers of each dtype, under its name in the file.
    pub numbers: BTreeMap<String, u64>,
}

impl Survey {
    /// Reads every byte of the weights once, one tensor at a time. An adapter whose base is sound is
    /// loaded over it, for whether it fits depends on the base's weights.
    pub fn of(directory: &Path) -> Self {
        let mut survey = Self::default();
        if !lora::is_adapter(directory) {
            survey.read_directory(directory);
            return survey;
        }
        match lora::base_of(directory) {
            Ok(base) => {
                survey.read_directory(&base);
                survey.base = Some(base);
            }
            Err(error) => survey.problems.push(error),
        }
        if survey.problems.is_empty() {
            survey.read_adapter(directory);
        }
        survey
    }

    fn read_directory(&mut self, directory: &Path) {
        match ModelConfig::load(directory) {
            Ok(config) => self.config = Some(config),
            Err(error) => self.problems.push(error),
        }
        match weight_files(directory) {
            Ok(files) => self.read(&files),
            Err(error) => self.problems.push(error),
        }
    }

    fn read_adapter(&mut self, directory: &Path) {
        match Model::load(directory) {
            Ok(model) => {
                self.adapter = model.adapter().map(|adapter| StoredAdapter {
                    config: adapter.config().clone(),
                    parameters: adapter.n_parameters(),
                });
            }
            Err(error) => self.problems.push(error),
        }
    }

    fn read(&mut self, files: &Files) {
        let layout = self.config.as_ref().map(Layout::new);
        let mut found = BTreeSet::new();
        for path in &files.paths {
            if let Err(error) = self.read_file(files, path, layout.as_ref(), &mut found) {
                self.problems.push(error);
            }
        }
        // What a file that cannot be read would have held is not called missing.
        let all_read = self.files.len() == files.paths.len();
        for tensor in layout.iter().flat_map(|layout| &layout.tensors) {
            if all_read && !found.contains(&tensor.name) {
                self.problems.push(files.missing(&tensor.name));
            }
        }
        if let Some(layout) = layout.filter(|_| self.problems.is_empty()) {
            self.problems.extend(check_tied_head(files, &layout).err());
        }
    }

    fn read_file(
        &mut self,
        files: &Files,
        path: &Path,
        layout: Option<&Layout>,
        found: &mut BTreeSet<String>,
    ) -> Result<(), ModelError> {
        let file = WeightFile::open(path)?;
        let tensors = file.tensors()?;
        let mut numbers = BTreeMap::new();
        for (name, view) in sorted(&tensors) {
            let dtype = format!("{:?}", view.dtype());
            *numbers.entry(dtype).or_insert(0) += count(view.shape());
            let known = |tensor: &&Tensor| tensor.name == name;
            let Some(layout) = layout else { continue };
            let problem = match layout.tensors.iter().find(known) {
                Some(tensor) if found.insert(name.to_owned()) => check(path, name, &view, tensor),
                None if is_spare(name, layout) => Ok(()),
                _ => Err(files.unexpected(path, name, layout)),
            };
            self.problems.extend(problem.err());
        }
        self.files.push(StoredFile {
            path: path.to_owned(),
            bytes: file.len() as u64,
            tensors: tensors.len(),
            numbers,
        });
        Ok(())
    }
}

fn count(shape: &[usize]) -> u64 {
    shape.iter().map(|size| *size as u64).product()
}

fn check(path: &Path, name: &str, view: &TensorView, tensor: &Tensor) -> Result<(), ModelError> {
    check_shape(path, name, view, tensor)?;
    read_values(path, name, view, &mut vec![0.0; tensor.range.len()])
}
