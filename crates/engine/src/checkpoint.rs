//! Safetensors and JSON files: read with every fact checked, written whole or not at all.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::Value;

use crate::{ModelError, buffer::Buffer, layout::Layout};

pub(crate) fn make_directory(path: &Path) -> Result<(), ModelError> {
    fs::create_dir_all(path).map_err(|source| io_error(path, source))
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

/// Reads every tensor of the layout from one file; the file must hold no other tensor.
pub(crate) fn read_weights(path: &Path, layout: &Layout) -> Result<Buffer, ModelError> {
    let (mut buffers, _) = read_tensors(path, layout, &[""])?;
    Ok(buffers.swap_remove(0))
}

/// Reads one flat buffer per prefix: tensor `T` of the layout is stored as prefix + `T`. Returns
/// the file's metadata too.
pub(crate) fn read_tensors(
    path: &Path,
    layout: &Layout,
    prefixes: &[&str],
) -> Result<(Vec<Buffer>, HashMap<String, String>), ModelError> {
    let damaged = |source| ModelError::Safetensors {
        path: path.to_owned(),
        source,
    };
    let bytes = fs::read(path).map_err(|source| io_error(path, source))?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
    let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
    let mut unread: Vec<&str> = file.names().into_iter().map(AsRef::as_ref).collect();
    let mut buffers = Vec::new();
    for prefix in prefixes {
        let mut buffer = Buffer::zeroed(layout.len);
        for tensor in &layout.tensors {
            let name = format!("{prefix}{}", tensor.name);
            let Ok(view) = file.tensor(&name) else {
                return Err(ModelError::MissingTensor {
                    path: path.to_owned(),
                    tensor: name,
                });
            };
            unread.retain(|other| *other != name);
            if view.shape() != tensor.shape {
                return Err(ModelError::WrongShape {
                    path: path.to_owned(),
                    tensor: name,
                    expected: tensor.shape.clone(),
                    found: view.shape().to_vec(),
                });
            }
            read_values(path, &name, &view, &mut buffer[tensor.range.clone()])?;
        }
        buffers.push(buffer);
    }
    // A tied model may carry its output projection a second time.
    let tied = layout.head == layout.embedding;
    unread.retain(|name| !(tied && *name == "lm_head.weight"));
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
    layout: &Layout,
    buffers: &[(&str, &[f32])],
    metadata: &[(&str, String)],
) -> Result<(), ModelError> {
    let damaged = |source| ModelError::Safetensors {
        path: path.to_owned(),
        source,
    };
    let mut views = Vec::new();
    for (prefix, flat) in buffers {
        for tensor in &layout.tensors {
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

fn io_error(path: &Path, source: io::Error) -> ModelError {
    ModelError::Io {
        path: path.to_owned(),
        source,
    }
}
