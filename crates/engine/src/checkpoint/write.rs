//! Weights to files: each whole or not at all, and the same weights to the same bytes.
//!
//! The library's own writer puts metadata in the order of a randomly seeded map, so the header, which
//! is one line of JSON, is written here.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::io_error;
use crate::{ModelError, layout::Tensor};

/// How numbers are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightType {
    #[default]
    F32,
    /// Rounded to nearest, ties to even.
    Bf16,
    /// Rounded to nearest, ties to even; refused where a weight is out of its range.
    F16,
}

/// How the weights of a model are laid out in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightFiles {
    pub dtype: WeightType,
    /// Most bytes of tensors in one file; a larger tensor has a file of its own.
    pub shard_bytes: u64,
}

impl Default for WeightFiles {
    /// One file of f32.
    fn default() -> Self {
        Self {
            dtype: WeightType::F32,
            shard_bytes: u64::MAX,
        }
    }
}

impl WeightType {
    /// As `config.json` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
            Self::F16 => "float16",
        }
    }

    pub fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }

    fn tag(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::Bf16 => "BF16",
            Self::F16 => "F16",
        }
    }

    fn write(self, values: &[f32], to: &mut impl Write) -> io::Result<()> {
        if self == Self::F32 {
            return to.write_all(bytemuck::cast_slice(values));
        }
        for value in values {
            to.write_all(&match self {
                Self::Bf16 => half::bf16::from_f32(*value).to_le_bytes(),
                _ => half::f16::from_f32(*value).to_le_bytes(),
            })?;
        }
        Ok(())
    }

    /// The first of `values` that this type has no finite number for.
    fn overflow(self, values: &[f32]) -> Option<usize> {
        let fits = |value: &f32| match self {
            Self::F32 => true,
            Self::Bf16 => half::bf16::from_f32(*value).is_finite(),
            Self::F16 => half::f16::from_f32(*value).is_finite(),
        };
        values.iter().position(|value| !fits(value))
    }
}

/// One tensor on its way to a file.
struct Source<'a> {
    name: String,
    shape: &'a [usize],
    values: &'a [f32],
}

/// Writes flat buffers as f32, each under its prefix, and metadata beside `format = pt`.
pub(crate) fn write_tensors(
    path: &Path,
    tensors: &[Tensor],
    buffers: &[(&str, &[f32])],
    metadata: &[(&str, String)],
) -> Result<(), ModelError> {
    let sources = buffers.iter().flat_map(|(prefix, flat)| {
        tensors.iter().map(move |tensor| Source {
            name: format!("{prefix}{}", tensor.name),
            shape: &tensor.shape,
            values: &flat[tensor.range.clone()],
        })
    });
    write_file(path, sources.collect(), WeightType::F32, metadata)
}

/// Writes `model.safetensors`, or shards with their index when one file would be too large.
pub(crate) fn write_weights(
    directory: &Path,
    tensors: &[Tensor],
    weights: &[f32],
    files: WeightFiles,
) -> Result<Vec<PathBuf>, ModelError> {
    let mut shards: Vec<Vec<Source<'_>>> = Vec::new();
    let (mut filled, mut total) = (0, 0);
    for tensor in tensors {
        let bytes = tensor.range.len() as u64 * files.dtype.bytes();
        let full = filled > 0 && bytes > files.shard_bytes.saturating_sub(filled);
        if shards.is_empty() || full {
            shards.push(Vec::new());
            filled = 0;
        }
        filled += bytes;
        total += bytes;
        if let Some(shard) = shards.last_mut() {
            shard.push(Source {
                name: tensor.name.clone(),
                shape: &tensor.shape,
                values: &weights[tensor.range.clone()],
            });
        }
    }
    let n = shards.len();
    let mut places = BTreeMap::new();
    let mut written = Vec::new();
    for (index, shard) in shards.into_iter().enumerate() {
        let file = match n {
            1 => "model.safetensors".to_owned(),
            n => format!("model-{:05}-of-{n:05}.safetensors", index + 1),
        };
        for source in &shard {
            places.insert(source.name.clone(), file.clone());
        }
        let path = directory.join(file);
        write_file(&path, shard, files.dtype, &[])?;
        written.push(path);
    }
    if n > 1 {
        let path = directory.join("model.safetensors.index.json");
        let index = json!({ "metadata": { "total_size": total }, "weight_map": places });
        write_json(&path, &index)?;
        written.push(path);
    }
    Ok(written)
}

/// Tensors lie in the order of their names, as other programs write them.
fn write_file(
    path: &Path,
    mut sources: Vec<Source<'_>>,
    dtype: WeightType,
    metadata: &[(&str, String)],
) -> Result<(), ModelError> {
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    for Source { name, values, .. } in &sources {
        if let Some(index) = dtype.overflow(values) {
            return Err(ModelError::DoesNotFit {
                path: path.to_owned(),
                tensor: name.clone(),
                index,
                value: values[index],
                dtype: dtype.name(),
            });
        }
    }
    let header = header(&sources, dtype, metadata);
    write_through(path, |file| {
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        sources
            .iter()
            .try_for_each(|source| dtype.write(source.values, file))
    })
}

/// One line of JSON, filled with spaces so that the data begins at a multiple of eight bytes.
fn header(sources: &[Source<'_>], dtype: WeightType, metadata: &[(&str, String)]) -> String {
    let own = metadata.iter().map(|(key, value)| (*key, value.as_str()));
    let metadata: BTreeMap<&str, &str> = own.chain([("format", "pt")]).collect();
    let mut header = Map::from_iter([("__metadata__".to_owned(), json!(metadata))]);
    let mut begin = 0;
    for source in sources {
        let end = begin + source.values.len() as u64 * dtype.bytes();
        let described = json!({
            "dtype": dtype.tag(),
            "shape": source.shape,
            "data_offsets": [begin, end],
        });
        header.insert(source.name.clone(), described);
        begin = end;
    }
    let mut header = Value::Object(header).to_string();
    let padding = header.len().next_multiple_of(8) - header.len();
    header.extend(std::iter::repeat_n(' ', padding));
    header
}

pub(crate) fn write_json(path: &Path, value: &Value) -> Result<(), ModelError> {
    write_through(path, |file| writeln!(file, "{value:#}"))
}

/// Writes beside the target, syncs, then renames over it.
fn write_through(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), ModelError> {
    let temporary = path.with_added_extension("partial");
    let work = || -> io::Result<()> {
        let mut file = BufWriter::new(File::create(&temporary)?);
        write(&mut file)?;
        file.into_inner().map_err(io::Error::from)?.sync_all()?;
        fs::rename(&temporary, path)
    };
    work().map_err(|source| io_error(path, source))
}
