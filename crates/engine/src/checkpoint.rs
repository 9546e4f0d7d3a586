//! Safetensors and JSON files: read with every fact checked, written whole or not at all.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use safetensors::{Dtype, SafeTensorError, SafeTensors, tensor::TensorView};
use serde_json::Value;

use crate::{
    ModelError,
    buffer::Buffer,
    layout::{Layout, Tensor},
};

pub(crate) fn make_directory(path: &Path) -> Result<(), ModelError> {
    fs::create_dir_all(path).map_err(|source| io_error(path, source))
}

/// Whether a directory holds a model, and not only words about one.
pub(crate) fn has_weights(directory: &Path) -> bool {
    let files = ["model.safetensors", "model.safetensors.index.json"];
    directory.join("config.json").is_file()
        && files.iter().any(|file| directory.join(file).is_file())
}

pub(crate) fn read_json(path: &Path) -> Result<Value, ModelError> {
    let text = fs::read(path).map_err(|source| io_error(path, source))?;
    serde_json::from_slice(&text).map_err(|source| ModelError::Json {
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn write_json(path: &Path, value: &Value) -> Result<(), ModelError> {
    write_whole(path, format!("{value:#}\n").as_bytes())
}

/// Reads every tensor of the layout from `model.safetensors`, or from the shards of an index; they must
/// hold no other tensor.
pub(crate) fn read_weights(directory: &Path, layout: &Layout) -> Result<Buffer, ModelError> {
    let whole = directory.join("model.safetensors");
    let index = directory.join("model.safetensors.index.json");
    if whole.exists() || !index.exists() {
        // A tied model may carry its output projection a second time.
        let second = layout.is_tied().then_some("lm_head.weight");
        let (mut buffers, _) = read_tensors(&whole, &layout.tensors, &[""], second)?;
        return Ok(buffers.swap_remove(0));
    }
    let places = shards(&index)?;
    let files: BTreeSet<&str> = places.values().map(String::as_str).collect();
    let mut buffer = Buffer::zeroed(layout.len);
    let mut read = BTreeSet::new();
    for file in files {
        let path = directory.join(file);
        let bytes = fs::read(&path).map_err(|source| io_error(&path, source))?;
        let shard = SafeTensors::deserialize(&bytes).map_err(|source| damaged(&path, source))?;
        for (name, view) in shard.tensors() {
            let Some(tensor) = layout.tensors.iter().find(|tensor| tensor.name == name) else {
                if name == "lm_head.weight" && layout.is_tied() {
                    continue;
                }
                return Err(ModelError::UnknownTensor { path, tensor: name });
            };
            read_tensor(&path, &name, &view, tensor, &mut buffer)?;
            read.insert(name);
        }
    }
    match layout
        .tensors
        .iter()
        .find(|tensor| !read.contains(&tensor.name))
    {
        None => Ok(buffer),
        Some(tensor) => Err(ModelError::MissingTensor {
            path: places
                .get(&tensor.name)
                .map_or(index, |file| directory.join(file)),
            tensor: tensor.name.clone(),
        }),
    }
}

/// The file of each tensor, as an index says. Files lie beside the index.
fn shards(index: &Path) -> Result<BTreeMap<String, String>, ModelError> {
    let json = read_json(index)?;
    let places = json.get("weight_map").and_then(Value::as_object);
    let Some(places) = places.filter(|places| !places.is_empty()) else {
        return Err(bad_index(index, "weight_map", &json["weight_map"]));
    };
    let place = |(tensor, file): (&String, &Value)| match file.as_str() {
        Some(name) if !name.contains('/') && !name.is_empty() => {
            Ok((tensor.clone(), name.to_owned()))
        }
        _ => Err(bad_index(index, tensor, file)),
    };
    places.iter().map(place).collect()
}

fn bad_index(index: &Path, key: &str, found: &Value) -> ModelError {
    ModelError::BadIndex {
        path: index.to_owned(),
        key: key.to_owned(),
        found: found.to_string(),
    }
}

/// The names of the tensors in a file.
pub(crate) fn tensor_names(path: &Path) -> Result<BTreeSet<String>, ModelError> {
    let bytes = fs::read(path).map_err(|source| io_error(path, source))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|source| damaged(path, source))?;
    Ok(file.names().into_iter().map(ToString::to_string).collect())
}

/// Reads one flat buffer per prefix: tensor `T` is stored as prefix + `T`. The file may also hold
/// `ignored`, and nothing else. Returns the file's metadata too.
pub(crate) fn read_tensors(
    path: &Path,
    tensors: &[Tensor],
    prefixes: &[&str],
    ignored: Option<&str>,
) -> Result<(Vec<Buffer>, HashMap<String, String>), ModelError> {
    let damaged = |source| damaged(path, source);
    let bytes = fs::read(path).map_err(|source| io_error(path, source))?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
    let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
    let mut unread: Vec<&str> = file.names().into_iter().map(AsRef::as_ref).collect();
    let mut buffers = Vec::new();
    for prefix in prefixes {
        let mut buffer = Buffer::zeroed(tensors.last().map_or(0, |last| last.range.end));
        for tensor in tensors {
            let name = format!("{prefix}{}", tensor.name);
            let Ok(view) = file.tensor(&name) else {
                return Err(ModelError::MissingTensor {
                    path: path.to_owned(),
                    tensor: name,
                });
            };
            unread.retain(|other| *other != name);
            read_tensor(path, &name, &view, tensor, &mut buffer)?;
        }
        buffers.push(buffer);
    }
    unread.retain(|name| Some(*name) != ignored);
    unread.sort_unstable();
    if let Some(tensor) = unread.first() {
        let tensor = (*tensor).to_owned();
        return Err(ModelError::UnknownTensor {
            path: path.to_owned(),
            tensor,
        });
    }
    Ok((buffers, header.metadata().clone().unwrap_or_default()))
}

/// Reads `view`, stored as `name`, to where `tensor` lies in `buffer`.
fn read_tensor(
    path: &Path,
    name: &str,
    view: &TensorView,
    tensor: &Tensor,
    buffer: &mut Buffer,
) -> Result<(), ModelError> {
    if view.shape() != tensor.shape {
        return Err(ModelError::WrongShape {
            path: path.to_owned(),
            tensor: name.to_owned(),
            expected: tensor.shape.clone(),
            found: view.shape().to_vec(),
        });
    }
    let values = &mut buffer[tensor.range.clone()];
    match view.dtype() {
        Dtype::F32 => {
            for (value, bytes) in values.iter_mut().zip(view.data().as_chunks::<4>().0) {
                *value = f32::from_le_bytes(*bytes);
            }
        }
        Dtype::BF16 => {
            for (value, [low, high]) in values.iter_mut().zip(view.data().as_chunks::<2>().0) {
                *value = f32::from_le_bytes([0, 0, *low, *high]);
            }
        }
        Dtype::F16 => {
            for (value, bytes) in values.iter_mut().zip(view.data().as_chunks::<2>().0) {
                *value = half::f16::from_le_bytes(*bytes).to_f32();
            }
        }
        other => {
            return Err(ModelError::WrongDtype {
                path: path.to_owned(),
                tensor: name.to_owned(),
                found: format!("{other:?}"),
            });
        }
    }
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(index) => Err(ModelError::NotFinite {
            path: path.to_owned(),
            tensor: name.to_owned(),
            index,
            value: values[index],
        }),
    }
}

/// Writes flat buffers, each under its prefix, and metadata beside `format = pt`.
pub(crate) fn write_tensors(
    path: &Path,
    tensors: &[Tensor],
    buffers: &[(&str, &[f32])],
    metadata: &[(&str, String)],
) -> Result<(), ModelError> {
    let damaged = |source| ModelError::Safetensors {
        path: path.to_owned(),
        source,
    };
    let mut views = Vec::new();
    for (prefix, flat) in buffers {
        for tensor in tensors {
            let bytes = bytemuck::cast_slice(&flat[tensor.range.clone()]);
            let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).map_err(damaged)?;
            views.push((format!("{prefix}{}", tensor.name), view));
        }
    }
    let own = metadata
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()));
    let metadata = own
        .chain([("format".to_owned(), "pt".to_owned())])
        .collect();
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(damaged)?;
    write_whole(path, &bytes)
}

/// Writes beside the target, syncs, then renames over it.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ModelError> {
    let temporary = path.with_added_extension("partial");
    let write = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|source| io_error(path, source))
}

fn damaged(path: &Path, source: SafeTensorError) -> ModelError {
    ModelError::Safetensors {
        path: path.to_owned(),
        source,
    }
}

fn io_error(path: &Path, source: io::Error) -> ModelError {
    ModelError::Io {
        path: path.to_owned(),
        source,
    }
}
