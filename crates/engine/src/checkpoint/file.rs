//! A safetensors file in memory as the system maps it: read without a copy of the whole.

use std::{fs::File, path::Path};

use memmap2::Mmap;
use safetensors::SafeTensors;

use super::{damage, io_error, regular};
use crate::ModelError;

/// The bytes of a file of weights.
pub(super) struct WeightFile<'a> {
    path: &'a Path,
    map: Mmap,
}

impl<'a> WeightFile<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self, ModelError> {
        regular(path)?;
        let file = File::open(path).map_err(|source| io_error(path, source))?;
        // SAFETY: the map is only read, and as bytes, for which every value is valid. Files of weights
        // are never written in place here (they appear by a rename); another program that cuts one
        // short while it is read ends this process with a signal instead of wrong weights.
        let map = unsafe { Mmap::map(&file) };
        let map = map.map_err(|source| io_error(path, source))?;
        Ok(Self { path, map })
    }

    /// The tensors, with every offset checked.
    pub(super) fn tensors(&self) -> Result<SafeTensors<'_>, ModelError> {
        SafeTensors::deserialize(&self.map).map_err(|refusal| ModelError::Safetensors {
            path: self.path.to_owned(),
            reason: damage::explain(&self.map, &refusal),
        })
    }

    /// What the header says beside the tensors.
    pub(super) fn metadata(&self) -> Vec<(String, String)> {
        let header = SafeTensors::read_metadata(&self.map).ok();
        let metadata = header.and_then(|(_, header)| header.metadata().clone());
        metadata.unwrap_or_default().into_iter().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }
}
