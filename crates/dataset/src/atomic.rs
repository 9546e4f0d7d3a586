//! Files that are whole or not there.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use crate::error::DatasetError;

/// A file that is written beside its place and moved there when it is done. Dropped before, it is
/// removed and the place is as it was.
pub(crate) struct Unfinished {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Unfinished {
    pub(crate) fn create(path: &Path) -> Result<Self, DatasetError> {
        let temporary = path.with_added_extension("unfinished");
        let file = File::create(&temporary).map_err(DatasetError::unwritable(path))?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            file: Some(BufWriter::with_capacity(1 << 16, file)),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the file to its place, durably.
    pub(crate) fn finish(mut self) -> Result<(), DatasetError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let work = || {
            file.into_inner()
                .map_err(std::io::IntoInnerError::into_error)?
                .sync_all()?;
            fs::rename(&self.temporary, &self.path)?;
            let folder = match self.path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            File::open(folder)?.sync_all()
        };
        work().map_err(|source| {
            // Nothing to be done about a temporary file that cannot be removed either.
            let _ = fs::remove_file(&self.temporary);
            DatasetError::unwritable(&self.path)(source)
        })
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.file {
            Some(file) => file.flush(),
            None => Ok(()),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
