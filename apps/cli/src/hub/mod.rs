//! Datasets by their ids on the Hugging Face hub. Asking it is the feature `hub`, which other builds do without.

#[cfg(feature = "hub")]
mod client;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{failure::Outcome, screen::Screen};

/// A dataset, at one of its revisions, and the part of it that is wanted: `OWNER/NAME[@REVISION][:PATH]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HubId {
    /// `OWNER/NAME`.
    pub(crate) dataset: String,
    /// A branch, a tag or a commit; once it is fetched, the commit.
    pub(crate) revision: String,
    /// What the paths of wanted files begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
}

impl HubId {
    /// What an argument means that names no file here; `None` where it can be no id.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (rest, path) = match text.split_once(':') {
            Some((rest, path)) if !path.is_empty() => (rest, Some(path.to_owned())),
            Some(_) => return None,
            None => (text, None),
        };
        let (dataset, revision) = match rest.split_once('@') {
            Some((dataset, revision)) => (dataset, revision),
            None => (rest, "main"),
        };
        let (owner, name) = dataset.split_once('/')?;
        let is_name = |text: &str| {
            let of_names = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !text.is_empty() && text.chars().all(of_names) && !text.starts_with('.')
        };
        let is_revision = !revision.is_empty() && revision.split('/').all(is_name);
        if !(is_name(owner) && is_name(name) && is_revision) || has_rows(name) {
            return None;
        }
        Some(Self {
            dataset: dataset.to_owned(),
            revision: revision.to_owned(),
            path,
        })
    }
}

/// Whether rows may be read from a file of this name.
fn has_rows(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let plain = [".gz", ".zst"]
        .iter()
        .find_map(|packed| name.strip_suffix(packed))
        .unwrap_or(&name);
    [".parquet", ".jsonl", ".json"]
        .iter()
        .any(|end| plain.ends_with(end))
}

/// Files of rows, and the datasets of the hub that some of them are from.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) datasets: Vec<HubId>,
}

/// Arguments as files: those that are here as they are, and of ids the files of the split, which are fetched into
/// `folder`.
pub(crate) fn gather(
    arguments: &[PathBuf],
    split: &str,
    folder: &Path,
    screen: Screen,
) -> Outcome<Gathered> {
    let mut gathered = Gathered::default();
    for argument in arguments {
        let id = argument.to_str().and_then(HubId::parse);
        match id.filter(|_| !argument.exists()) {
            None => gathered.files.push(argument.clone()),
            Some(id) => {
                let (id, files) = fetch(&id, split, folder, screen)?;
                gathered.datasets.push(id);
                gathered.files.extend(files);
            }
        }
    }
    Ok(gathered)
}

#[cfg(feature = "hub")]
fn fetch(id: &HubId, split: &str, folder: &Path, screen: Screen) -> Outcome<(HubId, Vec<PathBuf>)> {
    client::fetch(id, split, folder, screen)
}

#[cfg(not(feature = "hub"))]
fn fetch(id: &HubId, _: &str, _: &Path, _: Screen) -> Outcome<(HubId, Vec<PathBuf>)> {
    Err(crate::failure::Failure::Asked(anyhow::anyhow!(
        "{0} is no file here. As a dataset of the Hugging Face hub it can be fetched by a build with `cargo build \
         --release --features hub`; or download its files and give their paths",
        id.dataset
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_files() {
        let id = |dataset: &str, revision: &str, path: Option<&str>| HubId {
            dataset: dataset.to_owned(),
            revision: revision.to_owned(),
            path: path.map(str::to_owned),
        };
        for (text, expected) in [
            ("BAAI/TACO", id("BAAI/TACO", "main", None)),
            ("a/b@v1.0:ALL/", id("a/b", "v1.0", Some("ALL/"))),
            (
                "a/b@refs/convert/parquet",
                id("a/b", "refs/convert/parquet", None),
            ),
            (
                "a/b-c_d:test.jsonl",
                id("a/b-c_d", "main", Some("test.jsonl")),
            ),
        ] {
            assert_eq!(HubId::parse(text), Some(expected), "{text}");
        }
        for text in [
            "rows.jsonl",
            "data/rows.jsonl",
            "data/rows.parquet",
            "data/rows.jsonl.gz",
            "./rows",
            "../rows",
            "/tmp/rows",
            "a/b/c",
            "a/",
            "a/b@",
            "a/b:",
            "a b/c",
        ] {
            assert_eq!(HubId::parse(text), None, "{text}");
        }
    }
}
