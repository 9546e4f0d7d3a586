//! Asking the hub: what a revision is, which files it has, and their bytes.
//!
//! `GET /api/datasets/ID/revision/REVISION` and `…/tree/COMMIT?recursive=true` (page by page, as the `Link` header
//! says), then `GET /datasets/ID/resolve/COMMIT/PATH`. Everything is fetched at the one commit that the revision was
//! when it was first asked for.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow, bail, ensure};
use code::RelativePath;
use reqwest::{Client, Response, StatusCode, header::LINK};
use serde::Deserialize;

use super::{HubId, has_rows};
use crate::{
    failure::{Classify, Outcome},
    screen::{Screen, count_of},
};

/// Where the hub is, unless `HF_ENDPOINT` says otherwise.
const HUB: &str = "https://huggingface.co";
/// For one file.
const TIMEOUT: Duration = Duration::from_secs(6 * 3600);
/// More make a list that nobody reads.
const SHOWN: usize = 20;

#[derive(Deserialize)]
struct Revision {
    sha: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
}

struct Hub {
    client: Client,
    address: String,
    token: Option<String>,
}

/// The files of rows of a split, below `folder`; those that are there already are not fetched again. Also the id with
/// the commit that they are of.
pub(super) fn fetch(
    id: &HubId,
    split: &str,
    folder: &Path,
    screen: Screen,
) -> Outcome<(HubId, Vec<PathBuf>)> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).and_then(|value| value.into_string().ok());
        value.filter(|value| !value.trim().is_empty())
    };
    let address = variable("HF_ENDPOINT").unwrap_or_else(|| HUB.to_owned());
    let hub = Hub {
        client: policy::endpoint::client(TIMEOUT).failed()?,
        address: address.trim_end_matches('/').to_owned(),
        token: variable("HF_TOKEN"),
    };
    let runtime = tokio::runtime::Runtime::new().failed()?;
    let revision = runtime.block_on(hub.revision(id)).asked()?;
    let entries = runtime.block_on(hub.tree(id, &revision)).asked()?;
    let wanted = wanted(&entries, id, split).asked()?;
    let bytes: u64 = wanted.iter().map(|(_, size)| size).sum();
    screen.say(format!(
        "{}@{revision}: {} of {:.1} MB for the split {split}",
        id.dataset,
        count_of(wanted.len(), "file"),
        bytes as f64 / 1e6
    ));
    let place = folder.join(id.dataset.replace('/', "--")).join(&revision);
    let mut files = Vec::new();
    for (path, size) in wanted {
        let file = place.join(path.as_str());
        if fs::metadata(&file).is_ok_and(|found| found.len() == size) {
            screen.say(format!("  {path}: there already"));
        } else {
            let fetching = hub.file(id, &revision, &path, (&file, size));
            runtime.block_on(fetching).failed()?;
            screen.say(format!("  {path}"));
        }
        files.push(file);
    }
    let fetched = HubId {
        revision,
        ..id.clone()
    };
    Ok((fetched, files))
}

impl Hub {
    /// The commit that the id's revision is now.
    async fn revision(&self, id: &HubId) -> anyhow::Result<String> {
        let HubId {
            dataset, revision, ..
        } = id;
        let escaped = revision.replace('/', "%2F");
        let url = format!("{}/api/datasets/{dataset}/revision/{escaped}", self.address);
        let found: Revision = self.get(&url, id).await?.json().await?;
        let is_commit = found.sha.chars().all(|c| c.is_ascii_hexdigit());
        ensure!(
            is_commit && !found.sha.is_empty(),
            "{url} names the commit `{}`, which is none",
            found.sha
        );
        Ok(found.sha)
    }

    /// Every file of a commit.
    async fn tree(&self, id: &HubId, commit: &str) -> anyhow::Result<Vec<Entry>> {
        let first = format!(
            "{}/api/datasets/{}/tree/{commit}?recursive=true",
            self.address, id.dataset
        );
        let mut entries = Vec::new();
        let mut next = Some(first);
        while let Some(url) = next {
            let response = self.get(&url, id).await?;
            next = next_page(&response);
            let page: Vec<Entry> = response.json().await.with_context(|| url.clone())?;
            entries.extend(page);
        }
        Ok(entries)
    }

    /// Fetches a file whole or not at all.
    async fn file(
        &self,
        id: &HubId,
        commit: &str,
        path: &RelativePath,
        (to, size): (&Path, u64),
    ) -> anyhow::Result<()> {
        let url = format!(
            "{}/datasets/{}/resolve/{commit}/{}",
            self.address,
            id.dataset,
            escaped(path.as_str())
        );
        let mut response = self.get(&url, id).await?;
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        let mut name = to.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let mut file = fs::File::create(&part).with_context(|| part.display().to_string())?;
        let mut found = 0;
        while let Some(bytes) = response.chunk().await.with_context(|| url.clone())? {
            found += bytes.len() as u64;
            file.write_all(&bytes)
                .with_context(|| part.display().to_string())?;
        }
        ensure!(
            found == size,
            "{url} has {found} bytes, and the hub lists it with {size}; try again"
        );
        file.sync_all()?;
        fs::rename(&part, to).with_context(|| to.display().to_string())
    }

    async fn get(&self, url: &str, id: &HubId) -> anyhow::Result<Response> {
        let mut request = self.client.get(url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await;
        let response = response.with_context(|| format!("{url} cannot be reached"))?;
        let dataset = &id.dataset;
        match response.status() {
            StatusCode::OK => Ok(response),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => bail!(
                "the hub does not show {dataset} to you: if it is there, it is private or asks for your consent; give \
                 a token that may read it in HF_TOKEN"
            ),
            StatusCode::NOT_FOUND => bail!("the hub has no {url}"),
            other => bail!("{url} answers {other}"),
        }
    }
}

/// The address behind `rel="next"`.
fn next_page(response: &Response) -> Option<String> {
    let links = response.headers().get(LINK)?.to_str().ok()?;
    let next = links
        .split(',')
        .find(|link| link.contains("rel=\"next\""))?;
    let (_, rest) = next.split_once('<')?;
    Some(rest.split_once('>')?.0.to_owned())
}

/// A path as it stands in an address.
fn escaped(path: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    path.bytes()
        .map(|byte| match kept(byte) {
            true => (byte as char).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// The files of rows of a split: those below the id's path where it has one, else those whose own name, or that of
/// their folder, begins with the split's. They must lie in one folder.
fn wanted(entries: &[Entry], id: &HubId, split: &str) -> anyhow::Result<Vec<(RelativePath, u64)>> {
    let rows = entries
        .iter()
        .filter(|entry| entry.kind == "file" && has_rows(&entry.path));
    let of_split = |entry: &&Entry| match &id.path {
        Some(path) => entry.path.starts_with(path.as_str()),
        None => {
            let (folder, name) = parts(&entry.path);
            let folder = folder.rsplit('/').next().unwrap_or_default();
            begins_with(name, split) || folder == split
        }
    };
    let found: Vec<&Entry> = rows.clone().filter(of_split).collect();
    if found.is_empty() {
        let some: Vec<&str> = rows.map(|entry| entry.path.as_str()).take(SHOWN).collect();
        let among = match some.is_empty() {
            true => "it has no .parquet, .jsonl or .json at all".to_owned(),
            false => format!("it has {}", some.join(", ")),
        };
        bail!(
            "{} has no file of rows for {}: {among}. Say which with {}:PATH",
            id.dataset,
            id.path.as_deref().unwrap_or(split),
            id.dataset
        );
    }
    let mut folders: Vec<&str> = found.iter().map(|entry| parts(&entry.path).0).collect();
    folders.sort_unstable();
    folders.dedup();
    ensure!(
        folders.len() == 1,
        "{} has files of the split {split} in {} folders ({}); say which with {}:FOLDER/",
        id.dataset,
        folders.len(),
        folders.join(", "),
        id.dataset
    );
    let mut wanted = Vec::new();
    for entry in found {
        let path = RelativePath::new(&entry.path)
            .map_err(|error| anyhow!("{} lists the file `{}`: {error}", id.dataset, entry.path))?;
        wanted.push((path, entry.size));
    }
    wanted.sort();
    Ok(wanted)
}

/// A path's folder and name.
fn parts(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether a name is the split's, or has more behind it that is no letter: `train-00000-of-00009.parquet`.
fn begins_with(name: &str, split: &str) -> bool {
    name.strip_prefix(split)
        .and_then(|rest| rest.chars().next())
        .is_some_and(|next| !next.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(paths: &[&str]) -> Vec<Entry> {
        let entry = |path: &&str| Entry {
            kind: "file".to_owned(),
            path: (*path).to_owned(),
            size: 1,
        };
        paths.iter().map(entry).collect()
    }

    fn chosen(paths: &[&str], id: &str, split: &str) -> Result<Vec<String>, String> {
        let id = HubId::parse(id).unwrap();
        let found = wanted(&entries(paths), &id, split).map_err(|error| error.to_string())?;
        Ok(found
            .into_iter()
            .map(|(path, _)| path.as_str().to_owned())
            .collect())
    }

    #[test]
    fn files_of_the_split_are_chosen() {
        let paths = [
            "README.md",
            "data/train-00001-of-00002.parquet",
            "data/train-00000-of-00002.parquet",
            "data/test-00000-of-00001.parquet",
            "data/training_notes.json",
        ];
        assert_eq!(
            chosen(&paths, "a/b", "train").unwrap(),
            [
                "data/train-00000-of-00002.parquet",
                "data/train-00001-of-00002.parquet"
            ]
        );
        let lines = ["test.jsonl", "test2.jsonl", "test10.jsonl.gz", "code.py"];
        assert_eq!(chosen(&lines, "a/b", "test").unwrap().len(), 3);
        assert_eq!(
            chosen(&lines, "a/b:test2", "test").unwrap(),
            ["test2.jsonl"]
        );
        assert_eq!(
            chosen(&["train/a.json"], "a/b", "train").unwrap(),
            ["train/a.json"]
        );
    }

    #[test]
    fn what_is_not_clear_is_asked_about() {
        let both = ["ALL/train-0.parquet", "EASY/train-0.parquet"];
        let error = chosen(&both, "a/b", "train").unwrap_err();
        assert!(
            error.contains("ALL, EASY") && error.contains("a/b:FOLDER/"),
            "{error}"
        );
        assert_eq!(
            chosen(&both, "a/b:ALL/", "train").unwrap(),
            ["ALL/train-0.parquet"]
        );
        let error = chosen(&["train/data.arrow", "test.json"], "a/b", "train").unwrap_err();
        assert!(error.contains("it has test.json"), "{error}");
        let error = chosen(&["../train.json"], "a/b", "train").unwrap_err();
        assert!(error.contains("../train.json"), "{error}");
    }
}
