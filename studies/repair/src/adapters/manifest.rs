//! The list of images that tasks need, one a line.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Place, Task};

/// Images to be pulled, in the order of their names. Those that somebody has to build are left out.
pub fn image_manifest<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> BTreeSet<String> {
    let pulled = |task: &&Task| {
        let metadata = &task.facts.metadata;
        let build = |fields: Option<&Value>| {
            fields.and_then(|fields| fields.get("requires_build")) == Some(&Value::Bool(true))
        };
        metadata.get("requires_build") != Some(&Value::Bool(true))
            && !build(metadata.get("sandbox"))
    };
    let images = tasks.into_iter().filter(pulled);
    images
        .filter_map(|task| match &task.place {
            Place::Image { name, .. } | Place::PatchedImage { name, .. } => Some(name.clone()),
            Place::Folder(_) | Place::Patched { .. } => None,
        })
        .collect()
}

/// The images that a manifest names: blank lines and what stands behind `#` are passed over.
pub fn read_image_manifest(text: &str) -> BTreeSet<String> {
    let names = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    names
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}
