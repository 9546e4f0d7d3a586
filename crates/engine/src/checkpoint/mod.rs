//! Safetensors and JSON files: read with every fact checked, written whole or not at all.

mod damage;
mod file;
mod survey;
mod write;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::Value;

use file::WeightFile;
pub use survey::{StoredAdapter, StoredFile, Survey};
pub use write::{WeightFiles, WeightType};
pub(crate) use write::{write_json, write_tensors, write_weights};

use crate::{
    ModelError,
    buffer::Buffer,
    layout::{Layout, Tensor},
};

/// The weights in one file, or the shards in several and where each tensor is.
const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

pub(crate) fn make_directory(path: &Path) -> Result<(), ModelError> {
    fs::create_dir_all(path).map_err(|source| io_error(path, source))
}

/// Whether a directory holds a model, and not only words about one.
pub(crate) fn has_weights(directory: &Path) -> bool {
    let files = [WHOLE, INDEX];
    directory.join("config.json").is_file()
        && files.iter().any(|file| directory.join(file).is_file())
}

pub(crate) fn read_json(path: &Path) -> Result<Value, ModelError> {
    regular(path)?;
    let text = fs::read(path).map_err(|source| io_error(path, source))?;
    serde_json::from_slice(&text).map_err(|source| ModelError::Json {
        path: path.to_owned(),
        source,
    })
}

/// Reads every tensor of the layout from `model.safetensors`, or from the shards of an index; they must
/// hold no other tensor. Names and shapes are compared before memory is taken for the weights, so that a
/// `config.json` of other sizes costs nothing.
pub(crate) fn read_weights(directory: &Path, layout: &Layout) -> Result<Buffer, ModelError> {
    let files = weight_files(directory)?;
    each_tensor(&files, layout, check_shape)?;
    check_tied_head(&files, layout)?;
    let mut buffer = Buffer::zeroed(layout.len);
    each_tensor(&files, layout, |path, name, view, tensor| {
        read_values(path, name, view, &mut buffer[tensor.range.clone()])
    })?;
    Ok(buffer)
}

const HEAD: &str = "lm_head.weight";

/// Of a tied model whose output projection is stored as well: it must be the embedding, or the files say
/// two things.
fn check_tied_head(files: &Files, layout: &Layout) -> Result<(), ModelError> {
    let tied = |tensor: &&Tensor| tensor.range == layout.head;
    let Some(embedding) = layout
        .tensors
        .iter()
        .find(tied)
        .filter(|_| layout.is_tied())
    else {
        return Ok(());
    };
    let read = |wanted: &str| -> Result<Option<(PathBuf, Vec<f32>)>, ModelError> {
        for path in &files.paths {
            let file = WeightFile::open(path)?;
            for (name, view) in sorted(&file.tensors()?) {
                if name == wanted {
                    check_shape(path, name, &view, embedding)?;
                    let mut values = vec![0.0; embedding.range.len()];
                    read_values(path, name, &view, &mut values)?;
                    return Ok(Some((path.clone(), values)));
                }
            }
        }
        Ok(None)
    };
    let Some((path, head)) = read(HEAD)? else {
        return Ok(());
    };
    match read(&embedding.name)? {
        Some((_, values)) if values != head => Err(ModelError::TwoHeads { path }),
        _ => Ok(()),
    }
}

/// A tensor that says nothing new: the output projection of a tied model a second time (see
/// [`check_tied_head`]), or rotary frequencies, which older programs stored beside each layer.
fn is_spare(name: &str, layout: &Layout) -> bool {
    (name == HEAD && layout.is_tied()) || name.ends_with(".rotary_emb.inv_freq")
}

/// Hands every tensor of the layout to `take`, with the file that holds it.
fn each_tensor(
    files: &Files,
    layout: &Layout,
    mut take: impl FnMut(&Path, &str, &TensorView, &Tensor) -> Result<(), ModelError>,
) -> Result<(), ModelError> {
    let mut unread: BTreeMap<&str, &Tensor> = layout
        .tensors
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor))
        .collect();
    for path in &files.paths {
        let file = WeightFile::open(path)?;
        for (name, view) in sorted(&file.tensors()?) {
            match unread.remove(name) {
                Some(tensor) => take(path, name, &view, tensor)?,
                None if is_spare(name, layout) => {}
                None => return Err(files.unexpected(path, name, layout)),
            }
        }
    }
    match unread.keys().next() {
        None => Ok(()),
        Some(name) => Err(files.missing(name)),
    }
}

/// The files that hold the weights of a directory.
pub(crate) struct Files {
    /// In the order of their names.
    pub(crate) paths: Vec<PathBuf>,
    /// Present where there is an index: its path, and the file of each tensor.
    index: Option<(PathBuf, BTreeMap<String, String>)>,
}

/// # Errors
/// None there, an index that does not parse, or one that names a file that is not there.
pub(crate) fn weight_files(directory: &Path) -> Result<Files, ModelError> {
    let whole = directory.join(WHOLE);
    let index = directory.join(INDEX);
    if whole.exists() || !index.exists() {
        let pickled = directory.join("pytorch_model.bin");
        if !whole.exists() && pickled.exists() {
            return Err(ModelError::Pickled { path: pickled });
        }
        return Ok(Files {
            paths: vec![whole],
            index: None,
        });
    }
    let places = shards(&index)?;
    let names: BTreeSet<&String> = places.values().collect();
    let paths: Vec<PathBuf> = names.into_iter().map(|name| directory.join(name)).collect();
    match paths.iter().find(|path| !path.exists()) {
        Some(path) => Err(ModelError::MissingShard {
            path: path.clone(),
            index,
        }),
        None => Ok(Files {
            paths,
            index: Some((index, places)),
        }),
    }
}

impl Files {
    /// Where `tensor` was to be found.
    fn missing(&self, tensor: &str) -> ModelError {
        let whole = || self.paths.first().cloned().unwrap_or_default();
        let path = match &self.index {
            None => whole(),
            Some((index, places)) => match places.get(tensor) {
                Some(file) => index.with_file_name(file),
                None => index.clone(),
            },
        };
        let tensor = tensor.to_owned();
        ModelError::MissingTensor { path, tensor }
    }

    /// A tensor that nobody asked for, or asked for once.
    fn unexpected(&self, path: &Path, name: &str, layout: &Layout) -> ModelError {
        let (path, tensor) = (path.to_owned(), name.to_owned());
        if layout.tensors.iter().any(|tensor| tensor.name == name) {
            return ModelError::TensorTwice { path, tensor };
        }
        ModelError::UnknownTensor { path, tensor }
    }
}

/// The tensors of a file in the order of their names.
fn sorted<'a>(file: &'a SafeTensors<'a>) -> Vec<(&'a str, TensorView<'a>)> {
    let mut tensors: Vec<(&str, TensorView)> = file.iter().collect();
    tensors.sort_unstable_by_key(|(name, _)| *name);
    tensors
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
    let file = WeightFile::open(path)?;
    let names = file.tensors()?;
    Ok(names.names().into_iter().map(ToString::to_string).collect())
}

/// Reads one flat buffer per prefix: tensor `T` is stored as prefix + `T`. The file may also hold
/// `ignored`, and nothing else. Returns the file's metadata too.
pub(crate) fn read_tensors(
    path: &Path,
    tensors: &[Tensor],
    prefixes: &[&str],
    ignored: Option<&str>,
) -> Result<(Vec<Buffer>, BTreeMap<String, String>), ModelError> {
    let mapped = WeightFile::open(path)?;
    let file = mapped.tensors()?;
    let mut unread: Vec<&str> = file.names();
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
            check_shape(path, &name, &view, tensor)?;
            read_values(path, &name, &view, &mut buffer[tensor.range.clone()])?;
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
    Ok((buffers, mapped.metadata().into_iter().collect()))
}

/// Whether `view`, stored as `name`, has the shape of `tensor` and a dtype that can be widened.
fn check_shape(
    path: &Path,
    name: &str,
    view: &TensorView,
    tensor: &Tensor,
) -> Result<(), ModelError> {
    if view.shape() != tensor.shape {
        return Err(ModelError::WrongShape {
            path: path.to_owned(),
            tensor: name.to_owned(),
            expected: tensor.shape.clone(),
            found: view.shape().to_vec(),
        });
    }
    match view.dtype() {
        Dtype::F32 | Dtype::BF16 | Dtype::F16 => Ok(()),
        other => Err(wrong_dtype(path, name, other)),
    }
}

fn wrong_dtype(path: &Path, name: &str, found: Dtype) -> ModelError {
    ModelError::WrongDtype {
        path: path.to_owned(),
        tensor: name.to_owned(),
        found: format!("{found:?}"),
    }
}

/// Widens the numbers of `view` into `values`, which has room for them.
fn read_values(
    path: &Path,
    name: &str,
    view: &TensorView,
    values: &mut [f32],
) -> Result<(), ModelError> {
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
        other => return Err(wrong_dtype(path, name, other)),
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

/// Pipes and devices may have no end, and folders say little when they are read.
fn regular(path: &Path) -> Result<(), ModelError> {
    let found = fs::metadata(path).map_err(|source| io_error(path, source))?;
    match found.is_file() {
        true => Ok(()),
        false => Err(io_error(path, io::Error::other("it is no regular file"))),
    }
}

fn io_error(path: &Path, source: io::Error) -> ModelError {
    ModelError::Io {
        path: path.to_owned(),
        source,
    }
}
